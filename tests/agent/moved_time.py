"""An event loop whose time can be moved: waits that really last minutes pass in an instant, over real sockets too."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from tests.agent.support import SteadyClock

T = TypeVar("T")


class MovableLoop(asyncio.SelectorEventLoop):
    """Every timer on it, of whatever library, runs by the moved time."""

    def __init__(self) -> None:
        super().__init__()
        self.moved_s = 0.0

    def time(self) -> float:
        return super().time() + self.moved_s


def run_on_movable_loop(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=MovableLoop) as runner:
        return runner.run(main)


def move_time(seconds: float, clock: SteadyClock) -> None:
    """Let the loop's timers and the agent's clock go on by that much."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, MovableLoop)
    loop.moved_s += seconds
    clock.pass_time(seconds=seconds)
