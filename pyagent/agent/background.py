"""Slow work on a thread that never holds up the end of the program."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

ResultT = TypeVar("ResultT")


def in_daemon_thread(work: Callable[[], ResultT], *, name: str) -> Future[ResultT]:
    """Run `work` on a thread of its own; await the future with `asyncio.wrap_future`.

    Unlike an executor's, the thread is not waited for at exit, so work stuck in a dead network file system is left
    behind. Giving up on the future leaves the work running.
    """
    future: Future[ResultT] = Future()
    # Marked as running at once, so that a waiter who is cancelled doesn't cancel the work for the others.
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
