"""Hooks around a compaction that hang or break: it is made all the same, and the person is told."""

from __future__ import annotations

import asyncio

from pyagent.agent.pipeline_ports import TimelyHooks
from pyagent.compaction.outcome import Trigger
from pyagent.compaction.ports import CompactionHooks, PreCompactAnswer
from pyagent.events import Event, Notice
from tests.compaction.builder import Talk
from tests.compaction.fakes import Bench, FixedHooks, ScriptedSummarizer, summary
from tests.compaction.test_behind_the_boundary import working_talk

LIMIT_S = 0.05


class HangingHooks:
    """Never ends."""

    async def pre_compact(self, trigger: Trigger, instructions: str) -> PreCompactAnswer:
        await asyncio.Event().wait()
        raise AssertionError

    async def session_start(self) -> tuple[str, ...]:
        await asyncio.Event().wait()
        raise AssertionError

    async def post_compact(self, trigger: Trigger, summary: str) -> None:
        await asyncio.Event().wait()


class BrokenHooks:
    """Fails at once."""

    async def pre_compact(self, trigger: Trigger, instructions: str) -> PreCompactAnswer:
        raise OSError("no such program")

    async def session_start(self) -> tuple[str, ...]:
        raise OSError("no such program")

    async def post_compact(self, trigger: Trigger, summary: str) -> None:
        raise OSError("no such program")


def timely(hooks: CompactionHooks, told: list[Event]) -> TimelyHooks:
    return TimelyHooks(hooks, told.append, limit_s=LIMIT_S)


async def compact(talk: Talk, hooks: CompactionHooks) -> bool:
    bench = Bench(talk, ScriptedSummarizer(summary()), hooks=hooks)
    return (await bench.compact()).compacted is not None


def lines(told: list[Event]) -> list[str]:
    return [event.text for event in told if isinstance(event, Notice)]


async def test_hooks_that_hang_do_not_hold_up_a_compaction() -> None:
    told: list[Event] = []
    assert await compact(working_talk(), timely(HangingHooks(), told))
    assert [line.split(";")[0] for line in lines(told)] == [
        "A PreCompact hook did not end within 0.05 s",
        "A SessionStart hook did not end within 0.05 s",
    ]


async def test_hooks_that_fail_do_not_make_a_compaction_fail() -> None:
    told: list[Event] = []
    assert await compact(working_talk(), timely(BrokenHooks(), told))
    assert "A PreCompact hook failed: no such program; the compaction goes on without it." in lines(told)


async def test_a_hook_after_a_compaction_can_neither_hang_nor_fail_it() -> None:
    told: list[Event] = []
    await timely(HangingHooks(), told).post_compact("auto", "what was done")
    await timely(BrokenHooks(), told).post_compact("auto", "what was done")
    assert len(lines(told)) == 2


async def test_hooks_in_time_are_heard() -> None:
    told: list[Event] = []
    hooks = FixedHooks(PreCompactAnswer("keep ticket ids"), ("HOOK",))
    guarded = timely(hooks, told)
    assert (await guarded.pre_compact("manual", "")).instructions == "keep ticket ids"
    assert await guarded.session_start() == ("HOOK",)
    await guarded.post_compact("manual", "what was done")
    assert hooks.calls == ["pre_compact manual", "session_start", "post_compact manual: what was done"]
    assert told == []


async def test_an_interrupt_reaches_a_hook_that_runs() -> None:
    told: list[Event] = []
    running = asyncio.create_task(TimelyHooks(HangingHooks(), told.append).pre_compact("auto", ""))
    await asyncio.sleep(0)
    running.cancel()
    (result,) = await asyncio.gather(running, return_exceptions=True)
    assert isinstance(result, asyncio.CancelledError)
    assert told == []
