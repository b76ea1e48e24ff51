"""Replaying a recorded session through the pipeline: no network, and what each policy would have sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyagent.agent.encoding import LocalEncoding
from pyagent.agent.replay import Replayed, replay, standard_policies
from pyagent.agent.wire.catalogue import model_info
from pyagent.errors import UsageError
from pyagent.log import SessionStarted
from pyagent.record_lines import record_to_line
from pyagent.settings import CompactionSettings
from pyagent.ui.replay_command import run_context_command
from tests.compaction.builder import Talk

MODEL = "claude-sonnet-5"
WINDOW_TOKENS = 60_000


def recorded(tasks: int = 12, *, gap_minutes: float = 0.0) -> Talk:
    """A session whose calls add a few thousand tokens each."""
    talk = Talk()
    talk.write(SessionStarted(1, "s", "/work", "1"))
    text = "\n".join(f"line {n}: the quick brown fox jumps over the lazy dog" for n in range(150))
    for number in range(tasks):
        talk.prompt(f"task {number}")
        for _ in range(3):
            talk.call("Bash", text, command=f"step {number}")
        talk.answer("done")
        talk.wait(minutes=gap_minutes)
    return talk


async def runs(talk: Talk) -> dict[str, Replayed]:
    encoding = LocalEncoding()
    await encoding.ready()
    return {
        policy.name: await replay(talk.state.records, policy, encoding, model_info(MODEL), window_tokens=WINDOW_TOKENS)
        for policy in standard_policies(CompactionSettings())
    }


async def test_only_the_reactive_policy_meets_a_refusal_and_every_policy_stays_below_the_window() -> None:
    found = await runs(recorded())
    assert {name: run.refusals > 0 for name, run in found.items()} == {
        "reactive": True, "as set": False, "no notes": False, "no clearing": False, "economy": False,
    }  # fmt: skip
    for run in found.values():
        assert len(run.calls) == 48
        assert all(0 < call.sent_tokens <= WINDOW_TOKENS for call in run.calls)
        assert all(call.cached_tokens <= call.sent_tokens for call in run.calls)
        assert run.usd > 0
    assert found["as set"].notes > 0
    assert found["no notes"].notes == 0
    assert found["as set"].summaries < found["no notes"].summaries


async def test_a_pause_leaves_nothing_cached_and_clears_old_results() -> None:
    found = await runs(recorded(3, gap_minutes=90))
    first_after_pause = found["as set"].calls[4]
    assert first_after_pause.cached_tokens == 0
    assert any(event.startswith("cleared") for call in found["as set"].calls for event in call.events)
    assert not any(event.startswith("cleared") for call in found["no clearing"].calls for event in call.events)


def write_session(talk: Talk, folder: Path) -> Path:
    path = folder / "session.jsonl"
    path.write_bytes(b"".join(record_to_line(record) for record in talk.state.records))
    return path


def test_the_command_prints_each_call_and_the_totals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_session(recorded(2), tmp_path)
    assert (
        run_context_command(["replay", str(path), "--window", "20000", "--set", "gates.sessionMemory=false"], {}) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"session.jsonl · {MODEL} · window 20,000 · 8 calls")
    assert sum(line.startswith("── ") for line in lines) == 5
    assert [line.split("  ")[0].strip() for line in lines[-5:]] == [
        "reactive", "as set", "no notes", "no clearing", "economy",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["replay"], "required"),
        (["show"], "context replay"),
        (["replay", "{path}", "--set", "gates.nothing=1"], "no such setting|There is no setting"),
        (["replay", "{path}", "--set", "gapMinutes=soon"], "does not take"),
        (["replay", "{path}", "--window", "5"], "at least"),
    ],
)
def test_what_means_nothing_is_refused_in_one_line(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    path = write_session(recorded(1), tmp_path)
    with pytest.raises(UsageError, match=complaint):
        run_context_command([word.replace("{path}", str(path)) for word in arguments], {})
