"""Finds what a server would refuse for good and says, as an op for the log, how the view is put right.

Whatever broke the history (a kill between a call and its result, an import, a cut by a layer, another server's habits),
after one repair every later request is valid: a session can never be lost to a permanent 400.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import is_

from pyagent.agent.wire.normalise import NormalBlock, answer_blocks, assistant_blocks, user_blocks
from pyagent.log import AssistantEntry, Repair
from pyagent.messages import DocumentBlock, ImageBlock, ToolResultBlock
from pyagent.view import View, ViewItem

INTERRUPTED_TEXT = "[The call was interrupted before it gave a result.]"
REMOVED_MEDIA_TEXT = "[An image or document was left out: {why}.]"

MAX_NAME_CHARS = 200
"""The API refuses a call whose tool name is longer, or empty."""
MAX_IMAGE_BASE64_BYTES = 10 * 1024 * 1024
MAX_SIDE_PX = 8_000
MANY_IMAGES_COUNT = 20
"""With more images and documents than this in a request, each side may have at most `MANY_SIDE_PX`."""
MANY_SIDE_PX = 2_000
MAX_IMAGES_COUNT = 600
MAX_IMAGES_SMALL_WINDOW_COUNT = 100
"""Images and documents in one request, for windows of a million tokens and for smaller ones."""
SMALL_WINDOW_TOKENS = 200_000

_SERVER_USES = frozenset({"server_tool_use", "mcp_tool_use"})


@dataclass(frozen=True, slots=True)
class MediaLimits:
    max_count: int = MAX_IMAGES_COUNT
    max_base64_bytes: int = MAX_IMAGE_BASE64_BYTES
    max_side_px: int = MAX_SIDE_PX
    many_side_px: int = MANY_SIDE_PX

    @classmethod
    def for_window(cls, window_tokens: int) -> MediaLimits:
        return cls(MAX_IMAGES_SMALL_WINDOW_COUNT if window_tokens <= SMALL_WINDOW_TOKENS else MAX_IMAGES_COUNT)


@dataclass(slots=True)
class _Findings:
    reasons: list[str] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    dropped_results: list[str] = field(default_factory=list)
    dropped_blocks: list[str] = field(default_factory=list)

    def say(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)

    def repair(self) -> Repair | None:
        if not self.reasons:
            return None
        return Repair(
            "; ".join(self.reasons), dict(self.answers), tuple(self.dropped_results), tuple(self.dropped_blocks)
        )


def find_repair(view: View, limits: MediaLimits | None = None, *, open_text: str = INTERRUPTED_TEXT) -> Repair | None:
    """What makes the view valid, or None if it is. The view with the repair applied needs none.

    Calls of the last response that have no result yet are answered too, with `open_text`: ask only when no tool runs.
    """
    found: Repair | None = None
    # A block that leaves can bring two messages together or part them, so the result is looked at again. Each pass
    # takes something out or answers a call, and neither can happen twice to one block.
    while True:
        repair = _find_once(view, limits, open_text)
        if repair is None:
            return found
        found = repair if found is None else _joined(found, repair)
        view = view.with_op(repair)


class Repairer:
    """`find_repair` for a conversation that grows: a view found sound is looked at again from its last round only.

    Anything odd there, and any other view, is looked at as a whole.
    """

    def __init__(self) -> None:
        self._sound: tuple[ViewItem, ...] = ()
        self._limits: MediaLimits | None = None
        self._round_start = 0
        self._ids_before: set[str] = set()
        """Of the calls before the last round."""
        self._media_before_count = 0

    def find(
        self, view: View, limits: MediaLimits | None = None, *, open_text: str = INTERRUPTED_TEXT
    ) -> Repair | None:
        """The same as `find_repair(view, limits, open_text=open_text)`."""
        if self._is_grown(view, limits) and self._is_tail_sound(view, limits):
            self._remember(view, limits)
            return None
        repair = find_repair(view, limits, open_text=open_text)
        self._round_start, self._ids_before, self._media_before_count = 0, set(), 0
        if repair is None:
            self._remember(view, limits)
        else:
            self._sound = ()
        return repair

    def _is_grown(self, view: View, limits: MediaLimits | None) -> bool:
        return (
            bool(self._sound)
            and limits == self._limits
            and len(self._sound) <= len(view.items)
            and all(map(is_, self._sound, view.items))
        )

    def _is_tail_sound(self, view: View, limits: MediaLimits | None) -> bool:
        tail = View(view.items[self._round_start :])
        if _find_once(tail, limits, INTERRUPTED_TEXT) is not None:
            return False
        if any(use_id in self._ids_before for use_id in _call_ids(tail.items)):
            return False
        media_count = sum(1 for _ in _media(tail))
        total = self._media_before_count + media_count
        return not media_count or limits is None or total <= min(limits.max_count, MANY_IMAGES_COUNT)

    def _remember(self, view: View, limits: MediaLimits | None) -> None:
        self._sound, self._limits = view.items, limits
        start = _last_round_start(view.items)
        settled = View(view.items[self._round_start : start])
        self._ids_before.update(_call_ids(settled.items))
        self._media_before_count += sum(1 for _ in _media(settled))
        self._round_start = start


def _last_round_start(items: tuple[ViewItem, ...]) -> int:
    """Where the last run of responses begins: everything before it is answered and done with."""
    at = next((at for at in range(len(items) - 1, -1, -1) if not items[at].is_user), 0)
    while at > 0 and not (items[at - 1].is_user and user_blocks(items[at - 1])):
        at -= 1
    return at


def _call_ids(items: Iterable[ViewItem]) -> Iterator[str]:
    for item in items:
        entry = item.record.payload
        if not item.is_user and isinstance(entry, AssistantEntry):
            yield from (raw["id"] for raw in entry.content if raw.get("type") == "tool_use" and "id" in raw)


def _find_once(view: View, limits: MediaLimits | None, open_text: str) -> Repair | None:
    findings = _Findings()
    calls = _drop_bad_calls(view, findings)
    _pair(view, calls, findings, open_text)
    _pair_server_tools(view, findings)
    if limits is not None:
        _limit_media(view, limits, findings)
    return findings.repair()


def _joined(first: Repair, second: Repair) -> Repair:
    return Repair(
        "; ".join(dict.fromkeys([*first.reason.split("; "), *second.reason.split("; ")])),
        {**second.answers, **first.answers},
        (*first.dropped_results, *second.dropped_results),
        (*first.dropped_blocks, *second.dropped_blocks),
    )


def media_repair(view: View, places: Iterable[tuple[str, int]], why: str) -> Repair | None:
    """The repair that takes the images and documents at these (entry uuid, block index) places out of the view."""
    findings = _Findings()
    by_uuid = {item.uuid: item for item in view.items}
    for uuid, index in dict.fromkeys(places):
        item = by_uuid.get(uuid)
        if item is not None and item.is_user and item.overlay.folded_text is None:
            _drop_media(view, item, index, why, findings)
    return findings.repair()


def thinking_repair(view: View, reason: str) -> Repair | None:
    """The repair after which no thinking of the responses now in the view is sent any more."""
    uuids = tuple(
        item.uuid
        for item in view.items
        if not item.is_user
        and not item.overlay.is_thinking_dropped
        and any(block.kind in ("thinking", "redacted_thinking") for block in assistant_blocks(item))
    )
    return Repair(reason, dropped_thinking=uuids) if uuids else None


# ── calls and results ────────────────────────────────────────────────────────────────────────────────────────────


def _drop_bad_calls(view: View, findings: _Findings) -> dict[str, list[_Call]]:
    """uuid → the item's calls that stay: the first of each id, with a name and an input a server takes."""
    seen: set[str] = set()
    calls: dict[str, list[_Call]] = {}
    for item in view.items:
        if item.is_user:
            continue
        content = item.entry.content
        for block in assistant_blocks(item):
            if block.kind != "tool_use":
                continue
            raw = content[block.index]
            assert isinstance(raw, dict)
            if not isinstance(raw.get("input"), dict):
                findings.say("a call had no usable input")
            elif raw["id"] in seen:
                findings.say("two calls had the same id")
            elif not raw["name"].strip() or len(raw["name"]) > MAX_NAME_CHARS:
                seen.add(raw["id"])
                findings.say("a call had no usable tool name")
            else:
                seen.add(raw["id"])
                calls.setdefault(item.uuid, []).append(_Call(block.tool_id, raw["id"]))
                continue
            findings.dropped_blocks.append(f"{item.uuid}/{block.index}")
    return calls


@dataclass(frozen=True, slots=True)
class _Call:
    sent_id: str
    """In the alphabet the API takes."""
    logged_id: str
    """As it came."""


@dataclass(slots=True)
class _Round:
    """The calls of one assistant message and the results of the user message behind it."""

    calls: dict[str, _Call] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    has_user: bool = False


def _pair(view: View, calls: dict[str, list[_Call]], findings: _Findings, open_text: str) -> None:
    """Walk the messages as the renderer makes them: what follows a message's calls is their results, nothing else."""
    current = _Round()
    missing: dict[str, _Call] = {}
    stray: dict[str, str] = {}
    for item in view.items:
        if item.is_user:
            blocks = user_blocks(item)
            current.has_user = current.has_user or bool(blocks)
            for block in blocks:
                if block.kind == "tool_result":
                    _match_result(item, block, current, stray, findings)
            continue
        kept = calls.get(item.uuid, [])
        if not _is_shown(item, kept):
            continue
        if current.has_user:
            missing |= {call.sent_id: call for call in current.calls.values() if call.sent_id not in current.answered}
            current = _Round()
        current.calls |= {call.sent_id: call for call in kept}
        made_up = answer_blocks(item)
        if made_up:
            # They end the message: a response right behind this one begins the next.
            current.has_user = True
            current.answered |= {block.tool_id for block in made_up}
    still_open = {call.sent_id: call for call in current.calls.values() if call.sent_id not in current.answered}
    for sent_id, call in (missing | still_open).items():
        findings.say("a call had no result")
        # A result that came too late is still what the call gave.
        late = stray.get(sent_id, "")
        findings.answers[call.logged_id] = late or (open_text if sent_id in still_open else INTERRUPTED_TEXT)


def _is_shown(item: ViewItem, kept_calls: list[_Call]) -> bool:
    """Whether anything of a response but thinking is sent once bad calls are gone."""
    if kept_calls:
        return True
    return any(block.kind not in ("thinking", "redacted_thinking", "tool_use") for block in assistant_blocks(item))


def _match_result(
    item: ViewItem, block: NormalBlock, current: _Round, stray: dict[str, str], findings: _Findings
) -> None:
    if block.tool_id in current.calls and block.tool_id not in current.answered:
        current.answered.add(block.tool_id)
        return
    is_second = block.tool_id in current.answered
    findings.say("a call had two results" if is_second else "a result had no call before it")
    findings.dropped_results.append(f"{item.uuid}/{block.index}")
    text = next((b.text for at, b in _placed(item) if at == block.index and isinstance(b, ToolResultBlock)), "")
    stray.setdefault(block.tool_id, text)


# ── tools the server runs ────────────────────────────────────────────────────────────────────────────────────────


def _pair_server_tools(view: View, findings: _Findings) -> None:
    """Server calls and their results stand in responses; a call of the last response may still be under way, as long
    as nothing but results of other calls was said since."""
    last = view.last_assistant
    if last is not None and not _waits_for_server(view):
        last = None
    open_uses: dict[str, tuple[ViewItem, int]] = {}
    for item in view.items:
        if item.is_user:
            continue
        for block in assistant_blocks(item):
            if block.kind in _SERVER_USES:
                open_uses[str(block.wire.get("id"))] = (item, block.index)
                continue
            is_result = block.kind.endswith("_tool_result")
            if is_result and open_uses.pop(str(block.wire.get("tool_use_id")), None) is None:
                findings.say("a server tool's result had no call")
                findings.dropped_blocks.append(f"{item.uuid}/{block.index}")
    for item, index in open_uses.values():
        if item is not last:
            findings.say("a server tool's call had no result")
            findings.dropped_blocks.append(f"{item.uuid}/{index}")


def _waits_for_server(view: View) -> bool:
    for item in reversed(view.items):
        if not item.is_user:
            return True
        if any(block.kind != "tool_result" for block in user_blocks(item)):
            return False
    return False


# ── images and documents ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Medium:
    item: ViewItem
    index: int
    side_px: int
    base64_bytes: int


def _limit_media(view: View, limits: MediaLimits, findings: _Findings) -> None:
    media = list(_media(view))
    allowed = limits.max_count
    too_many = media[: max(len(media) - allowed, 0)]
    rest = media[len(too_many) :]
    for medium in too_many:
        _drop_media(view, medium.item, medium.index, f"a request may hold {allowed}", findings)
    side_px = limits.many_side_px if len(rest) > MANY_IMAGES_COUNT else limits.max_side_px
    for medium in rest:
        if medium.base64_bytes > limits.max_base64_bytes:
            _drop_media(view, medium.item, medium.index, "it is too many bytes", findings)
        elif medium.side_px > side_px:
            _drop_media(view, medium.item, medium.index, f"a side has more than {side_px} pixels", findings)


def _media(view: View) -> Iterator[_Medium]:
    """All images and documents, oldest first; those inside a result count with the result's place."""
    for item in view.items:
        if not item.is_user or item.overlay.folded_text is not None:
            continue
        for index, block in _placed(item):
            parts = block.content if isinstance(block, ToolResultBlock) else (block,)
            for part in parts:
                if isinstance(part, ImageBlock | DocumentBlock):
                    side = max(part.width_px, part.height_px) if isinstance(part, ImageBlock) else 0
                    yield _Medium(item, index, side, len(part.source.get("data") or ""))


def _placed(item: ViewItem) -> Iterator[tuple[int, object]]:
    entry = item.entry
    places = [at for at in range(len(entry.content)) if at not in item.overlay.dropped_blocks]
    return zip(places, item.user_blocks(), strict=True)


def _drop_media(view: View, item: ViewItem, index: int, why: str, findings: _Findings) -> None:
    """Take out a block; of a result the text stays, as the answer to its call."""
    if index < 0 or f"{item.uuid}/{index}" in (*findings.dropped_blocks, *findings.dropped_results):
        return
    block = next((block for at, block in _placed(item) if at == index), None)
    note = REMOVED_MEDIA_TEXT.format(why=why)
    if isinstance(block, ToolResultBlock):
        if view.tool_use(block.tool_use_id) is None:
            return
        findings.dropped_results.append(f"{item.uuid}/{index}")
        findings.answers[block.tool_use_id] = f"{block.text}\n{note}".strip()
    elif isinstance(block, ImageBlock | DocumentBlock):
        findings.dropped_blocks.append(f"{item.uuid}/{index}")
    else:
        return
    findings.say(f"an image or document was left out: {why}")
