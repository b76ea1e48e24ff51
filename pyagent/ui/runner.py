"""Runs the full screen from a clean terminal to a clean terminal."""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import TYPE_CHECKING

from pyagent.launch import AgentStarter
from pyagent.ui.blocks import BlockKind
from pyagent.ui.cli import EXIT_FAILURE, Invocation, silence
from pyagent.ui.leftovers import cure_terminal, terminal_marked
from pyagent.ui.log_file import errors_to_log, streams_guarded
from pyagent.ui.terminal import EXIT_CODES, Watchdog, end_on_signals

if TYPE_CHECKING:
    from pyagent.ui.instant import InstantPrompt

CLOSE_TIMEOUT_S = 3.0
"""How long the agent gets, after the screen is gone, to stop tools and close its log."""


def run_screen(invocation: Invocation, starter: AgentStarter, instant: InstantPrompt | None = None) -> int:
    """Open the full screen and return the exit code; it takes over from the instant prompt, if there is one."""
    os.environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")
    options = invocation.options
    tty_fd = os.dup(2)
    cure_terminal(options.home, tty_fd)
    watchdog = Watchdog(tty_fd, modes=None if instant is None else instant.modes)
    with errors_to_log(options.log_path, options.environ):
        with streams_guarded(options.log_path, options.environ), terminal_marked(options.home, tty_fd) as mark:
            watchdog.mark = mark
            # What is imported stays: looking for garbage in it meanwhile would take a tenth of the start.
            gc.disable()
            from pyagent.ui.app import PyagentApp

            app = PyagentApp(invocation, starter, watchdog=watchdog, instant=instant)
            gc.freeze()
            gc.enable()
            end_on_signals(watchdog)
            app.run(mouse=invocation.has_mouse)
            watchdog.has_screen = False
            if instant is not None:
                instant.hand_over()  # The driver gave the terminal back, even if the screen was never painted.
        exit_code = app.return_code or 0
        if app.view is not None:
            app.view.handle.close(CLOSE_TIMEOUT_S)
        watchdog.disarm()
    if exit_code == EXIT_CODES[signal.SIGHUP]:
        # The terminal is gone: a last flush into it would fail and take the exit code with it.
        silence(sys.stdout)
        silence(sys.stderr)
        return exit_code
    if app.failure:
        print(f"pyagent: {' '.join(app.failure.split())}", file=sys.stderr)
        return exit_code or EXIT_FAILURE
    if exit_code == EXIT_FAILURE:
        print(f"pyagent: the screen ended by a mistake of pyagent's; see {options.log_path}", file=sys.stderr)
    if app.handover is not None and exit_code == 0:
        from pyagent.ui.handover import hand_over

        hand_over(app.handover, invocation)
    if app.view is not None and any(block.kind is BlockKind.USER for block in app.view.blocks):
        print(f"Resume this session with: pyagent --resume {app.view.status.session_id}")
    return exit_code
