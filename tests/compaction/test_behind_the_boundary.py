"""What stands behind a boundary: budget, restored state, the user's words, anchors, and the preview of it all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyagent.compaction.anchors import Anchor, anchors_of, check_anchors, ledger
from pyagent.compaction.budget import RESULT_CUT_NOTE, select_prompts
from pyagent.compaction.compactor import Preview
from pyagent.compaction.context import Sizer
from pyagent.compaction.count import ContextCounter
from pyagent.compaction.ports import PreCompactAnswer, RestorableState, RestoreText
from pyagent.errors import PromptTooLongError
from pyagent.log import FileSeen, Revoke, UserEntry
from pyagent.messages import TextBlock
from tests.compaction.builder import Talk, WordTokenizer, words
from tests.compaction.fakes import Bench, FixedHooks, FixedSources, ScriptedSummarizer, summary
from tests.compaction.strategies import last_boundary


def working_talk(files: int = 0, rounds: int = 30, tokens: int = 1_000) -> Talk:
    talk = Talk()
    talk.prompt("only change parse.py, never touch /srv/vendor/lib.py; the limit is 250 ms")
    for number in range(files):
        use_id = talk.call("Read", words(50), file_path=f"/p/{number}.py")
        talk.write(FileSeen(f"/p/{number}.py", "old", use_id, "read"))
    for number in range(rounds):
        talk.call("Bash", words(tokens), command=f"step {number}")
    talk.answer("that is done")
    talk.task("now add tests", rounds=2, tokens=100)
    return talk


def texts(talk: Talk) -> list[str]:
    return [item.entry.text for item in talk.view]


async def compacted(talk: Talk, sources: FixedSources | None = None) -> Bench:
    bench = Bench(talk, ScriptedSummarizer(summary("We worked on parse.py.")), sources or FixedSources())
    assert (await bench.compact()).compacted is not None
    return bench


async def test_the_five_files_used_last_are_restored_and_known_again() -> None:
    talk = working_talk(files=8)
    await compacted(talk, FixedSources(files={f"/p/{n}.py": f"x = {n}\ny = 2" for n in range(8)}))
    restored = last_boundary(talk).receipt["files_restored"]
    assert restored == [f"/p/{n}.py" for n in (7, 6, 5, 4, 3)]
    known = talk.state.known_file("/p/7.py")
    assert known is not None
    assert known.is_visible
    assert known.seen.how == "restore"
    assert known.seen.sha256 == "sha of /p/7.py"
    assert any("     1\tx = 7" in text for text in texts(talk))
    assert talk.state.known_file("/p/0.py") is None


async def test_a_file_that_is_gone_makes_room_for_an_older_one() -> None:
    talk = working_talk(files=6)
    await compacted(talk, FixedSources(files={f"/p/{n}.py": "x" for n in range(5)}))
    assert last_boundary(talk).receipt["files_restored"] == [f"/p/{n}.py" for n in (4, 3, 2, 1, 0)]


async def test_of_a_long_file_the_first_page_and_its_path_are_restored() -> None:
    talk = working_talk(files=1)
    await compacted(talk, FixedSources(files={"/p/0.py": words(20_000)}))
    page = next(text for text in texts(talk) if "Beginning of /p/0.py" in text)
    assert "of 2,000;" in page
    assert len(page.split()) < 1_100
    assert last_boundary(talk).receipt["referenced"] == ["/p/0.py"]
    known = talk.state.known_file("/p/0.py")
    assert known is not None
    assert known.seen.is_partial


async def test_everything_has_its_place_and_memory_stands_after_the_summary() -> None:
    state = RestorableState(
        memory=(RestoreText("memory:/p/CLAUDE.md", "MEMORY"),),
        pins=(RestoreText("pin:1", "PIN"),),
        plan=RestoreText("plan", "PLAN"),
        tasks=RestoreText("tasks", "TASKS"),
        subagents=(RestoreText("subagent:1", "AGENT"),),
        skills=(RestoreText("skill:a", "SKILL"),),
        announcements=(RestoreText("tools", "TOOLS"),),
        discovered_tools=("zeta", "alpha"),
    )
    talk = working_talk()
    bench = Bench(talk, ScriptedSummarizer(summary()), FixedSources(state), FixedHooks(at_start=("HOOK",)))
    await bench.compact()
    found = [text for text in texts(talk) if text.isupper()]
    assert found == ["MEMORY", "PIN", "PLAN", "TASKS", "AGENT", "TOOLS", "SKILL", "HOOK"]
    assert last_boundary(talk).checkpoint["discovered_tools"] == ["alpha", "zeta"]


async def test_a_hook_that_prints_without_end_does_not_push_out_the_rest() -> None:
    talk = working_talk(files=1)
    sources = FixedSources(files={"/p/0.py": "x"})
    bench = Bench(talk, ScriptedSummarizer(summary()), sources, FixedHooks(at_start=(words(50_000),)))
    await bench.compact()
    receipt = last_boundary(talk).receipt
    assert receipt["parts"]["hooks"] <= 0.1 * 83_000
    assert receipt["files_restored"] == ["/p/0.py"]


async def test_a_hook_may_forbid_a_compaction() -> None:
    bench = Bench(working_talk(), hooks=FixedHooks(PreCompactAnswer(block_reason="not now")))
    result = await bench.compact()
    assert "not now" in getattr(result.outcome, "reason", "")
    assert result.compacted is None


async def test_what_a_hook_says_before_joins_the_instructions() -> None:
    bench = Bench(working_talk(), ScriptedSummarizer(summary()), hooks=FixedHooks(PreCompactAnswer("keep ticket ids")))
    await bench.compact("stress the API")
    assert "stress the API\nkeep ticket ids" in bench.summarizer.requests[0].instruction


async def test_skills_are_cut_at_their_head() -> None:
    state = RestorableState(skills=tuple(RestoreText(f"skill:{n}", words(9_000)) for n in range(8)))
    talk = working_talk()
    await compacted(talk, FixedSources(state))
    parts = last_boundary(talk).receipt["parts"]
    assert parts["skills"] <= 25_000


async def test_the_results_of_the_current_round_are_cut_and_may_be_read_again() -> None:
    talk = working_talk()
    talk.prompt("read the big one")
    use_id = talk.call("Read", words(60_000), file_path="/p/big.py")
    talk.write(FileSeen("/p/big.py", "sha", use_id, "read"))
    bench = await compacted(talk)
    block = talk.view.result_block(use_id)
    assert block is not None
    assert RESULT_CUT_NOTE in block.text
    assert bench.tokens() < bench.context().thresholds.trigger // 2 + bench.overhead_tokens
    known = talk.state.known_file("/p/big.py")
    assert known is not None
    assert not known.is_visible
    talk.write(Revoke(talk.state.boundaries[-1].seq))
    block = talk.view.result_block(use_id)
    assert block is not None
    assert RESULT_CUT_NOTE not in block.text


async def test_a_compaction_right_after_another_keeps_the_round_the_model_is_in() -> None:
    talk = working_talk()
    talk.prompt("go")
    use_id = talk.call("Bash", words(200), command="make")
    state = RestorableState(tasks=RestoreText("tasks", "TASKS"))
    bench = await compacted(talk, FixedSources(state))
    error = PromptTooLongError("too long", prompt_tokens=120_000, limit_tokens=100_000)
    result = await bench.overflow(error, refusals=2)
    assert result.compacted is not None
    assert talk.view.tool_use(use_id) is not None
    assert texts(talk).count("TASKS") == 1


async def test_a_prompt_longer_than_the_window_allows_is_cut_in_the_middle() -> None:
    talk = working_talk()
    talk.prompt("BEGIN " + words(190_000) + " END")
    bench = Bench(talk, ScriptedSummarizer(summary()))
    result = await bench.before_request()
    assert result.compacted is not None
    last = talk.view.last_prompt
    assert last is not None
    assert last.entry.text.startswith("BEGIN")
    assert last.entry.text.endswith("END")
    assert bench.tokens() < bench.context().thresholds.trigger


async def test_the_newest_rounds_stay_word_for_word() -> None:
    talk = working_talk()
    await compacted(talk)
    assert "finished now add tests" in texts(talk)
    assert "that is done" in texts(talk)
    kept = last_boundary(talk).kept
    assert set(kept) <= {record.uuid for record in talk.state.records}


async def test_everything_before_a_position_can_be_compacted_alone() -> None:
    talk = working_talk()
    position = talk.view.index.prompts[1]
    bench = Bench(talk, ScriptedSummarizer(summary()))
    after = [item.uuid for item in talk.view.items[position:]]
    result = await bench.compact(upto=position)
    assert result.compacted is not None
    assert [item.uuid for item in talk.view.items][-len(after) :] == after
    assert len(bench.summarizer.requests[0].view) == position


async def test_earlier_words_survive_a_second_compaction() -> None:
    talk = working_talk()
    bench = await compacted(talk)
    for number in range(20):
        talk.task(f"further request {number}", rounds=1, tokens=1_000)
    bench.summarizer = ScriptedSummarizer(summary("second"))
    await bench.compact()
    assert "never touch /srv/vendor/lib.py" in texts(talk)[0]
    assert "further request 3" in texts(talk)[0]


async def test_the_preview_calls_no_model_and_changes_nothing() -> None:
    talk = working_talk(files=1)
    hooks = FixedHooks()
    bench = Bench(talk, sources=FixedSources(files={"/p/0.py": "x"}), hooks=hooks)
    seq = talk.state.next_seq
    preview = await bench.pipeline.preview(bench.context())
    assert isinstance(preview, Preview)
    assert preview.after_tokens < preview.before_tokens
    assert "restored: file /p/0.py" in preview.text
    assert talk.state.next_seq == seq
    assert hooks.calls == []


async def test_the_preview_names_each_file_once_and_its_parts_add_up() -> None:
    talk = working_talk(files=2)
    bench = Bench(talk, sources=FixedSources(files={"/p/0.py": "x", "/p/1.py": "word\n" * 20_000}))
    preview = await bench.pipeline.preview(bench.context())
    assert isinstance(preview, Preview)
    lines = preview.text.splitlines()
    assert [line for line in lines if "/p/0.py" in line] == ["  restored: file /p/0.py"]
    assert [line for line in lines if "/p/1.py" in line] == ["  restored, cut: file /p/1.py"]
    start = lines.index("behind it, in tokens:") + 1
    parts = [int(line.rpartition(": ")[2].replace(",", "")) for line in lines[start:] if "restored" not in line]
    assert sum(parts) == preview.after_tokens


async def test_the_receipt_says_what_it_cost() -> None:
    talk = working_talk()
    await compacted(talk)
    receipt = last_boundary(talk).receipt
    assert receipt["calls"] == 1
    assert receipt["cost_usd"] == 0.01
    assert receipt["cached_share"] == 0.9
    assert receipt["duration_s"] > 0
    assert receipt["anchors"]["text"].startswith("kept ")


# ── the user's words ─────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.integers(1, 300), max_size=40), st.integers(0, 3_000))
def test_selected_prompts_fit_keep_their_order_and_hold_the_newest(sizes: list[int], room: int) -> None:
    sizer = Sizer(ContextCounter(WordTokenizer()), "claude_from_4_7")
    earlier = [(str(number), words(size)) for number, size in enumerate(sizes)]
    chosen = select_prompts(earlier, room, sizer)
    assert sum(sizer.text(text) for _, text in chosen) <= room
    numbers = [int(uuid) for uuid, _ in chosen]
    assert numbers == sorted(numbers)
    if earlier and sizer.text(earlier[-1][1]) <= 0.9 * room:
        assert numbers[-1] == len(earlier) - 1


# ── anchors ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_anchors_are_rules_numbers_paths_errors_and_failed_commands() -> None:
    talk = Talk()
    talk.prompt("Only change src/parse.py. It must answer within 250 ms. Why is it slow?")
    talk.call("Edit", "ok", file_path="/p/src/other.py")
    talk.call("Bash", "Traceback … KeyError: 'x'", is_error=True, command="pytest -q")
    kinds = {(anchor.kind, anchor.text) for anchor in anchors_of(talk.view.items)}
    assert ("rule", "Only change src/parse.py") in kinds
    assert ("number", "250 ms") in kinds
    assert ("path", "src/parse.py") in kinds
    assert ("path", "/p/src/other.py") in kinds
    assert ("error", "KeyError") in kinds
    assert ("command", "pytest -q") in kinds
    assert any(kind == "question" for kind, _ in kinds)


def test_a_pasted_line_of_megabytes_is_looked_at_in_no_time() -> None:
    talk = Talk()
    talk.prompt("never " + "x1,1" * 500_000)
    assert anchors_of(talk.view.items)[0].kind == "rule"


def test_what_the_summary_left_out_is_listed() -> None:
    anchors = (Anchor("rule", "never push"), Anchor("path", "/a/b.py"), Anchor("number", "250 ms"))
    check = check_anchors(anchors, "He said: NEVER  push; see b.py")
    assert check.text == "kept 2 of 3"
    assert "250 ms" in ledger(check.missing)
    assert ledger(()) == ""


async def test_a_missing_anchor_stands_in_the_new_view() -> None:
    talk = working_talk()
    talk.call("Edit", "ok", file_path="/p/deep/forgotten.py")
    for number in range(20):
        talk.call("Bash", words(1_200), command=f"more {number}")
    talk.answer("ok")
    await compacted(talk)
    assert "/p/deep/forgotten.py" in texts(talk)[0]
    assert "/p/deep/forgotten.py" in last_boundary(talk).receipt["anchors"]["missing"]


def test_cutting_keeps_whole_lines_and_says_so() -> None:
    sizer = Sizer(ContextCounter(WordTokenizer()), "other")
    text = "\n".join(f"line {number} of it" for number in range(100))
    cut = sizer.head(text, 100, "[… cut]")
    assert sizer.text(cut) <= 100
    assert cut.endswith("of it\n[… cut]")
    assert sizer.head("short", 100, "[… cut]") == "short"


def test_pyagent_s_own_texts_are_no_anchors() -> None:
    talk = Talk()
    talk.write(UserEntry((TextBlock("never read src/a.py and src/a.py"),), origin="reminder"))
    assert anchors_of(talk.view.items) == ()
