"""The user's own status line: a program that is told the session's facts and answers with rows for the screen.

It runs after things have changed, never more often than every `DEBOUNCE_S`, one at a time, and never holds anything
up. Its standard input is one JSON object in the shape that status line scripts of other agents expect.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyagent.events import (
    CompactionFinished,
    CostMoved,
    Event,
    EventSink,
    GaugeMoved,
    Notice,
    SettingMoved,
    StatusLineMoved,
    TurnFinished,
)
from pyagent.log import AssistantEntry, Boundary
from pyagent.messages import JsonObject, Usage
from pyagent.state import ConversationState
from pyagent.tools.shell_environment import child_environment

DEBOUNCE_S = 0.3
"""Time without a further change before the program is run: a turn's figures come in bursts."""
TIMEOUT_S = 5.0
"""A program that takes longer would always be behind."""
MAX_ROWS = 3
MAX_OUTPUT_BYTES = 16_000
LARGE_CONTEXT_TOKENS = 200_000
"""What `exceeds_200k_tokens` is about."""

_TRIGGERS = (GaugeMoved, CostMoved, SettingMoved, TurnFinished, CompactionFinished)


@dataclass(frozen=True, slots=True)
class StatusLineFacts:
    """What the program is told besides what the conversation's state says."""

    session_id: str
    transcript_path: str
    cwd: str
    project_dir: str
    added_dirs: tuple[str, ...]
    model: str
    version: str
    window_tokens: int
    effort: str
    has_thinking: bool
    open_for_s: float
    mode: str
    git_place: JsonObject
    """`repo` and `git_worktree`, as `git_state.git_place` gives them."""
    vim_mode: str
    """Of the input line; empty while it is not edited as vim does."""


def status_line_input(facts: StatusLineFacts, state: ConversationState) -> JsonObject:
    """The object on the program's standard input.

    `used_percentage` is what the newest request sent (fresh, written to and read from the cache) against the window,
    without the answer. `current_usage` is null before the first call and right after a compaction.
    """
    usage = current_usage(state)
    used = 0.0 if usage is None else 100 * usage.prompt_tokens / facts.window_tokens
    workspace: JsonObject = {
        "current_dir": facts.cwd,
        "project_dir": facts.project_dir,
        "added_dirs": list(facts.added_dirs),
        **facts.git_place,
    }
    return {
        "hook_event_name": "Status",
        "session_id": facts.session_id,
        "session_name": state.settings.get("title", ""),
        "transcript_path": facts.transcript_path,
        "cwd": facts.cwd,
        "workspace": workspace,
        "model": {"id": facts.model, "display_name": facts.model},
        "version": facts.version,
        "cost": {
            "total_cost_usd": state.cost_usd,
            "total_duration_ms": round(1_000 * facts.open_for_s),
            "total_api_duration_ms": round(1_000 * state.work.waited_s),
            "total_lines_added": state.work.added_lines,
            "total_lines_removed": state.work.removed_lines,
        },
        "context_window": {
            "total_input_tokens": sum(total.prompt_tokens for total in state.totals.values()),
            "total_output_tokens": sum(total.output_tokens for total in state.totals.values()),
            "context_window_size": facts.window_tokens,
            "used_percentage": round(used, 1),
            "remaining_percentage": round(100 - used, 1),
            "current_usage": None
            if usage is None
            else {
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "cache_creation_input_tokens": usage.cache_creation_input_tokens,
                "cache_read_input_tokens": usage.cache_read_input_tokens,
            },
        },
        "exceeds_200k_tokens": usage is not None and usage.context_tokens > LARGE_CONTEXT_TOKENS,
        "effort": {"level": facts.effort or "default"},
        "thinking": {"enabled": facts.has_thinking},
        "permission_mode": facts.mode,
        **({"vim": {"mode": facts.vim_mode}} if facts.vim_mode else {}),
    }


def current_usage(state: ConversationState) -> Usage | None:
    """Usage of the newest response of the conversation, unless a compaction came after it."""
    for record in reversed(state.branch):
        if isinstance(record.payload, Boundary):
            return None
        if isinstance(record.payload, AssistantEntry) and record.payload.usage.is_reported:
            return record.payload.usage
    return None


class StatusLine:
    """Runs the program and tells of its rows. For one event loop."""

    def __init__(
        self,
        *,
        command: Callable[[], str],
        facts: Callable[[], Awaitable[JsonObject]],
        environ: Mapping[str, str],
        cwd: Callable[[], Path],
        emit: EventSink,
        debounce_s: float = DEBOUNCE_S,
    ) -> None:
        """`command` may change while the session runs; empty for none."""
        self._command = command
        self._facts = facts
        self._environ = environ
        self._cwd = cwd
        self._emit = emit
        self._debounce_s = debounce_s
        self._task: asyncio.Task[None] | None = None
        self._is_due = False
        self._rows: tuple[str, ...] = ()
        self._told_problems: set[str] = set()

    def watch(self, event: Event) -> None:
        """Take note of an event on its way to the front end."""
        if isinstance(event, _TRIGGERS):
            self.run_soon()

    def run_soon(self) -> None:
        """Something the program is told has changed."""
        if not self._command() and not self._rows:
            return
        self._is_due = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run_while_due())

    async def _run_while_due(self) -> None:
        while self._is_due:
            await asyncio.sleep(self._debounce_s)
            self._is_due = False
            command = self._command()
            rows = await self._rows_of(command) if command else ()
            if rows is not None and rows != self._rows:
                self._rows = rows
                self._emit(StatusLineMoved(rows))

    async def _rows_of(self, command: str) -> tuple[str, ...] | None:
        """The rows; None where there are none to be had."""
        given = json.dumps(await self._facts(), ensure_ascii=True).encode()
        try:
            process = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self._cwd(),
                env=child_environment(self._environ, {}, {}, ()),
                start_new_session=True,
            )
        except OSError as error:
            self._tell(f"cannot be started: {error.strerror or error}")
            return None
        try:
            output, errors = await asyncio.wait_for(process.communicate(given), TIMEOUT_S)
        except TimeoutError:
            self._tell(f"took longer than {TIMEOUT_S:.0f} s and was stopped")
            return None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        if process.returncode:
            words = errors.decode("utf-8", "replace").strip().splitlines()
            self._tell(f"ended with code {process.returncode}" + (f": {words[-1][:200]}" if words else ""))
            return None
        text = output[:MAX_OUTPUT_BYTES].decode("utf-8", "replace")
        return tuple(line.rstrip() for line in text.splitlines() if line.strip())[:MAX_ROWS]

    def _tell(self, problem: str) -> None:
        """Each problem once."""
        if problem not in self._told_problems:
            self._told_problems.add(problem)
            self._emit(Notice(f"The status line's command {problem}.", "warning", "See /statusline."))

    async def close(self) -> None:
        """Stop, and end the program if it runs."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
