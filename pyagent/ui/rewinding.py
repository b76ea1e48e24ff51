"""What `/rewind` offers on a screen: the prompts to go back to, and the ways back with what each would change."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pyagent.events import RewindFile, RewindOffered, RewindPlanned, RewindPoint
from pyagent.ui.choosing import age
from pyagent.ui.dialogs.picker import PickerItem
from pyagent.wording import plural

REDO = "redo"
MAX_PROMPT_CHARS = 200
_KIND_WORDS = {"create": "comes back", "change": "changes back", "delete": "is removed"}


def point_items(offered: RewindOffered, now: datetime) -> list[PickerItem]:
    """A row for each prompt, newest first; above them the way forward again, if there is one."""
    items = [PickerItem(REDO, "Take the last rewind back", "redo")] if offered.can_redo else []
    return items + [_point_item(point, now) for point in offered.points]


def _point_item(point: RewindPoint, now: datetime) -> PickerItem:
    facts = [age((now - point.at).total_seconds())]
    facts += ["files too"] if point.has_files else ["conversation only"]
    facts += [] if point.is_in_view else ["before the last compaction"]
    return PickerItem(str(point.number), " ".join(point.text.split())[:MAX_PROMPT_CHARS], " · ".join(facts))


def way_items(planned: RewindPlanned) -> list[PickerItem]:
    """The ways back, each with the argument that `rewind` takes for it as its id."""
    number, files = planned.point.number, planned.files
    own = sum(file.is_own_edit for file in files)
    others = len(files) - own
    items: list[PickerItem] = []
    spared = f"; {plural(own, 'file')} you changed yourself stay" if own else ""
    restored = f"{plural(others, 'file')} restored{spared}"
    if others:
        items.append(PickerItem(f"{number} both", "Conversation and files", restored))
    items.append(PickerItem(f"{number} conversation", "Conversation only", "files stay as they are"))
    if others:
        items.append(PickerItem(f"{number} code", "Files only", restored))
    if own:
        words = f"all {plural(len(files), 'file')}, your own edits to {own} of them are replaced"
        items.append(PickerItem(f"{number} both own", "Conversation and files, my own edits too", words))
        items.append(PickerItem(f"{number} code own", "Files only, my own edits too", words))
    if planned.can_summarise:
        items.append(PickerItem(f"{number} upto", "Summarise what came before", "the rest stays word for word"))
        items.append(PickerItem(f"{number} from", "Summarise from here on", "what came before stays word for word"))
    items += [_file_item(number, position, file) for position, file in enumerate(files, start=1)]
    return items


def _file_item(number: int, position: int, file: RewindFile) -> PickerItem:
    own = " · you changed it yourself" if file.is_own_edit else ""
    argument = f"{number} file {position}" + (" own" if file.is_own_edit else "")
    return PickerItem(argument, file.path, _KIND_WORDS[file.kind] + own)


def way_preview(planned: RewindPlanned, item_id: str) -> str:
    """Markdown beside a way: the diff it would make, of one file where it is about one."""
    words = item_id.split()
    remarks = []
    if planned.problem:
        remarks.append(planned.problem)
    if planned.skipped:
        remarks.append(f"In no checkpoint, so left as they are: {', '.join(planned.skipped)}")
    if words[1] in ("conversation", "upto", "from"):
        return _indented(planned.point.text.splitlines())
    diff = planned.files[int(words[2]) - 1].diff if words[1] == "file" else whole_diff(planned)
    return "\n\n".join([*(_indented([remark]) for remark in remarks), _fenced(diff or "Only permissions change.")])


def whole_diff(planned: RewindPlanned) -> str:
    """All files' diffs in a row."""
    return "".join(file.diff for file in planned.files)


def _fenced(text: str) -> str:
    """As a code block that nothing in the text can end."""
    fence = "`" * 3
    while fence in text:
        fence += "`"
    return f"{fence}diff\n{text}\n{fence}"


def _indented(lines: Sequence[str]) -> str:
    """Literal text as Markdown: a code block by indentation."""
    return "\n".join(f"    {line}" for line in lines) or "    "
