"""Runs the full screen from a clean terminal to a clean terminal."""

from __future__ import annotations

import gc
import os
import signal
import sys

from pyagent.launch import AgentStarter
from pyagent.ui.blocks import BlockKind
from pyagent.ui.cli import EXIT_FAILURE, Invocation, silence
from pyagent.ui.terminal import EXIT_CODES, Watchdog, errors_to_log, streams_guarded

CLOSE_TIMEOUT_S = 3.0
"""How long the agent gets, after the screen is gone, to stop tools and close its log."""


def run_screen(invocation: Invocation, starter: AgentStarter) -> int:
    """Open the full screen and return the exit code."""
    os.environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")
    home = invocation.options.home
    watchdog = Watchdog(os.dup(2))
    with errors_to_log(home) as log_path:
        with streams_guarded(home):
            from pyagent.ui.app import PyagentApp

            app = PyagentApp(invocation, starter, watchdog=watchdog)
            gc.freeze()
            app.run(mouse=invocation.has_mouse)
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
        print(f"pyagent: the screen ended by a mistake of pyagent's; see {log_path}", file=sys.stderr)
    if app.view is not None and any(block.kind is BlockKind.USER for block in app.view.blocks):
        print(f"Resume this session with: pyagent --resume {app.view.status.session_id}")
    return exit_code
