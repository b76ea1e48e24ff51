"""Prints blocks as labelled lines, each piece once, as it becomes final. Control characters are made inert."""

from __future__ import annotations

from collections.abc import Callable

from pyagent.events import PermissionQuestion
from pyagent.ui.block_view import seconds
from pyagent.ui.blocks import LIVE_STATES, Block, BlockKind, BlockState, DiffKind
from pyagent.ui.diff import diff_counts, diff_lines
from pyagent.ui.lines import inert
from pyagent.ui.reduce import AllReplaced, BlockGone, BlockPut, Change, TextGrown
from pyagent.ui.spoken import SpokenLines, spoken, spoken_report
from pyagent.wording import plural

MAX_OUTPUT_LINES = 20
"""Of a tool's output or diff. It is read aloud or scrolls by; the whole of it stands in the session."""

_SIGNS = {DiffKind.ADDED: "+", DiffKind.REMOVED: "-", DiffKind.CONTEXT: " ", DiffKind.HUNK: "", DiffKind.MORE: "… "}


class PlainPrinter:
    """Turns changes of the transcript into text for `write`."""

    def __init__(
        self,
        write: Callable[[str], None],
        *,
        is_verbose: bool,
        is_spoken: bool = False,
        write_error: Callable[[str], None] | None = None,
    ) -> None:
        """`is_spoken`: worded for a screen reader. `write_error` takes what went wrong, where that has a way of its
        own, in the form of a program's complaint; else it goes the way of everything."""
        self._write = write
        self._write_error = write_error or write
        self._error_label = "pyagent" if write_error else "error"
        self._is_spoken = is_spoken
        self._lines = SpokenLines()
        self._is_verbose = is_verbose
        self._blocks: dict[str, Block] = {}
        self._printed: dict[str, BlockState] = {}
        self._streaming = ""
        """Id of the block whose text is being printed; its line is still open."""
        self._half_told: Block | None = None
        """A call of a resumed session whose result is read, but not yet the record that says how it went."""
        self._typed = ""
        self.has_prompt = False

    def typed(self, text: str) -> None:
        """This prompt stands on the terminal already, as it was typed; its block is not printed again."""
        self._typed = text

    def line(self, text: str) -> None:
        """Print a line of pyagent's own or of outside text."""
        self._line(text, self._write)

    def _line(self, text: str, write: Callable[[str], None]) -> None:
        self.settle()
        self._close_stream()
        text = inert(text).rstrip("\n")
        write((spoken(text) if self._is_spoken else text) + "\n")

    def report(self, title: str, text: str) -> None:
        """Print the answer to a command."""
        self.line(title)
        if text:
            self.line(spoken_report(text) if self._is_spoken else text)

    def _stream(self, text: str) -> None:
        """Print a piece of a text whose line is still open."""
        self._write(self._lines.feed(inert(text)) if self._is_spoken else inert(text))

    def raw(self, text: str) -> None:
        """Write a control character of our own (the bell)."""
        self._write(text)

    def settle(self) -> None:
        """Print what still waits for a record that would say more."""
        block, self._half_told = self._half_told, None
        if block is not None:
            self._print_ended_tool(block)

    def show(self, change: Change) -> None:
        """Print what is new in a change."""
        if not (self._half_told and isinstance(change, BlockPut) and change.block.id == self._half_told.id):
            self.settle()
        match change:
            case BlockPut(block=block):
                self._blocks[block.id] = block
                self._put(block)
            case TextGrown(block_id=block_id, delta=delta):
                if block_id == self._streaming:
                    self._stream(delta)
            case BlockGone(block_id=block_id):
                self._blocks.pop(block_id, None)
            case AllReplaced(blocks=blocks):
                self._close_stream()
                self._printed.clear()
                self._blocks = {}
                for block in blocks:
                    self.show(BlockPut(block))

    def question(self, question: PermissionQuestion) -> None:
        """Print what a permission is asked for, in full."""
        self.line(f"Permission Required: {question.tool_name}")
        self.line(question.subject)
        for words in (question.description, question.reason):
            if words:
                self.line(words)
        if question.new_text is not None:
            for row in diff_lines(question.old_text or "", question.new_text):
                self.line(f"{_SIGNS[row.kind]}{row.text}")

    def _put(self, block: Block) -> None:
        match block.kind:
            case BlockKind.ASSISTANT:
                self._put_text(block, "pyagent: ")
            case BlockKind.THINKING:
                if self._is_verbose:
                    self._put_text(block, "thinking: ")
            case BlockKind.TOOL | BlockKind.DIFF:
                self._put_tool(block)
            case BlockKind.USER:
                self._put_prompt(block)
            case BlockKind.IMAGE:
                self._once(block, f"you: [{block.title} {block.text}]".replace(" ]", "]"))
            case BlockKind.ERROR:
                words = " ".join(part for part in (f"{self._error_label}: {block.text}", block.detail) if part)
                self._once(block, words, self._write_error)
            case BlockKind.BOUNDARY:
                self._once(block, "compacted: " + " · ".join((block.text, *block.facts)))
            case BlockKind.NOTICE | BlockKind.CLEARED | BlockKind.BANNER:
                words = " · ".join(part for part in (block.text, *block.facts) if part)
                self._once(block, " ".join(part for part in (words, block.detail) if part))

    def _put_prompt(self, block: Block) -> None:
        self.has_prompt = True
        if self._typed and block.text == self._typed:
            self._printed[block.id] = block.state
        self._typed = ""
        self._once(block, f"you: {block.text}")

    def _once(self, block: Block, text: str, write: Callable[[str], None] | None = None) -> None:
        if block.id not in self._printed:
            self._printed[block.id] = block.state
            self._line(text, write or self._write)

    def _put_text(self, block: Block, label: str) -> None:
        """Text that streams is printed as it comes; the end of it only closes the line."""
        before = self._printed.get(block.id)
        self._printed[block.id] = block.state
        if before is None:
            self._close_stream()
            self._write(label)
            self._streaming = block.id
            self._stream(block.text)
        if block.state is not BlockState.STREAMING:
            if block.state is not BlockState.DONE and before is not None:
                self._write(f" [{block.state}]")
            self._close_stream()

    def _close_stream(self) -> None:
        if self._streaming:
            self._streaming = ""
            self._write(self._lines.finish() + "\n" if self._is_spoken else "\n")

    def _put_tool(self, block: Block) -> None:
        before = self._printed.get(block.id)
        if block.state is BlockState.RUNNING and before is None:
            self._printed[block.id] = block.state
            self.line(f"tool: {block.title} {block.text}")
        if block.state in LIVE_STATES or before == block.state:
            return
        self._half_told = block if before is None and block.elapsed_s is None else None
        if self._half_told is None:
            self._print_ended_tool(block)

    def _print_ended_tool(self, block: Block) -> None:
        before = self._printed.get(block.id)
        self._printed[block.id] = block.state
        facts = [] if block.state is BlockState.OK else [block.state.value]
        facts += block.facts
        if block.diff:
            added, removed = diff_counts(block.diff)
            facts.append(f"{plural(added, 'line')} added, {removed} removed")
        if block.elapsed_s is not None and block.elapsed_s >= 1:
            facts.append(seconds(block.elapsed_s))
        label = "tool error" if block.state is BlockState.FAILED else "tool"
        what = f"{block.title} {block.text}" if before is None else f"{block.title} ended"
        self.line(f"{label}: {' · '.join([what, *facts])}")
        self._put_output(block)

    def _put_output(self, block: Block) -> None:
        if not self._is_verbose and block.is_collapsed and block.state is not BlockState.FAILED:
            return
        rows = [f"{_SIGNS[row.kind]}{row.text}" for row in block.diff] if self._is_verbose else []
        rows += block.detail.rstrip("\n").split("\n") if block.detail else []
        shown = rows[-MAX_OUTPUT_LINES:] if block.state is BlockState.FAILED else rows[:MAX_OUTPUT_LINES]
        for row in shown:
            self.line(f"  {row}")
        if len(rows) > len(shown):
            self.line(f"  {len(rows) - len(shown)} more lines")
