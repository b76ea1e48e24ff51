from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyagent.ui.blocks import Block, BlockKind, BlockState
from pyagent.ui.lines import join_copied
from pyagent.ui.transcript_model import TranscriptModel, find_in_lines

KINDS = st.sampled_from(list(BlockKind))


def block(number: int, kind: BlockKind, text: str = "some text", **fields: object) -> Block:
    return Block(f"b{number}", kind, text, **fields)  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(KINDS, st.text(max_size=80), st.text(max_size=80)), max_size=12), st.integers(20, 100))
def test_rendering_makes_every_height_exact(parts: list[tuple[BlockKind, str, str]], width: int) -> None:
    model = TranscriptModel()
    model.load(block(n, kind, text, detail=detail) for n, (kind, text, detail) in enumerate(parts))
    model.set_width(width)
    lines = [len(model.rendered(index).lines) for index in range(len(model))]
    assert [model.heights[index] for index in range(len(model))] == lines
    assert model.heights.total == sum(lines)


def test_streamed_text_looks_like_loaded_text() -> None:
    source = "# Head\n\nSome *words*.\n\n- a\n- b\n\n```py\nx = 1\n```\nend"
    streamed, loaded = TranscriptModel(), TranscriptModel()
    streamed.append(block(1, BlockKind.ASSISTANT, "", state=BlockState.STREAMING))
    streamed.rendered(0)
    for char in source:
        streamed.append_text("b1", char)
    streamed.update("b1", state=BlockState.DONE)
    loaded.append(block(1, BlockKind.ASSISTANT, source))
    assert streamed.rendered(0).lines == loaded.rendered(0).lines
    assert streamed[0] == loaded[0]


def test_an_interrupted_answer_says_so() -> None:
    model = TranscriptModel()
    model.append(block(1, BlockKind.ASSISTANT, "par", state=BlockState.STREAMING))
    model.rendered(0)
    model.update("b1", state=BlockState.INTERRUPTED)
    assert [line.text for line in model.rendered(0).lines] == ["  par", "  ⊘ interrupted"]


def test_a_streaming_block_survives_a_full_cache() -> None:
    model = TranscriptModel()
    model.append(block(0, BlockKind.ASSISTANT, "", state=BlockState.STREAMING))
    model.rendered(0)
    for number in range(1, 700):
        model.append(block(number, BlockKind.NOTICE))
        model.rendered(number)
    assert model.rendered(0).stream is not None


def test_ids_are_unique() -> None:
    model = TranscriptModel()
    model.append(block(1, BlockKind.USER))
    with pytest.raises(ValueError, match="already"):
        model.append(block(1, BlockKind.USER))


def test_removing_a_block_leaves_the_others() -> None:
    model = TranscriptModel()
    for number in range(3):
        model.append(block(number, BlockKind.USER))
    model.remove("b1")
    assert [entry.id for entry in model] == ["b0", "b2"]
    model.remove("b2")
    assert [entry.id for entry in model] == ["b0"]
    assert model.heights.total == 1


def test_tool_calls_in_a_row_stand_together() -> None:
    model = TranscriptModel()
    model.append(block(0, BlockKind.TOOL))
    model.append(block(1, BlockKind.TOOL))
    model.append(block(2, BlockKind.ASSISTANT))
    assert [len(model.rendered(index).lines) for index in range(3)] == [1, 1, 2]


def test_a_match_is_found_across_a_soft_wrap() -> None:
    model = TranscriptModel()
    model.set_width(24)
    model.append(block(0, BlockKind.ASSISTANT, "aaaa bbbb cccc dddd eeee ffff"))
    lines = model.rendered(0).lines
    assert len(lines) == 2
    (match,) = model.matches(0, "DDDD eeee")
    assert [lines[number].text[start:end] for number, start, end in match] == ["dddd", "eeee"]


def test_gutters_are_not_searched() -> None:
    model = TranscriptModel()
    model.append(block(0, BlockKind.TOOL, "ls", title="Bash", detail="│ x\ny", collapsed=False))
    assert len(find_in_lines(model.rendered(0).lines, "│")) == 1


def test_output_is_capped_and_says_how_much_is_left() -> None:
    model = TranscriptModel()
    output = "\n".join(f"row {n}" for n in range(100))
    model.append(block(0, BlockKind.TOOL, "ls", title="Bash", detail=output, collapsed=False, state=BlockState.OK))
    model.append(block(1, BlockKind.TOOL, "ls", title="Bash", detail=output, collapsed=False, state=BlockState.FAILED))
    ok, failed = (model.rendered(index).lines for index in range(2))
    assert ok[1].text.endswith("row 0")
    assert ok[-1].text.strip() == "… 80 more lines"
    assert failed[1].text.strip() == "… 80 more lines"
    assert failed[-1].text.endswith("row 99")


def test_progress_lines_show_what_they_ended_with() -> None:
    model = TranscriptModel()
    model.append(block(0, BlockKind.TOOL, "get", title="Bash", detail="10%\r50%\r100%\n", collapsed=False))
    assert model.rendered(0).lines[1].content == "100%"


def test_a_boundary_is_one_quiet_line_that_unfolds_to_its_summary() -> None:
    model = TranscriptModel()
    model.set_width(60)
    model.append(
        block(0, BlockKind.BOUNDARY, "167k → 24k tokens", facts=("session memory", "0.3 s"), detail="**sum** up")
    )
    (line,) = model.rendered(0).lines
    assert line.text.startswith("── 167k → 24k tokens · session memory · 0.3 s ▸ ──")
    model.update("b0", collapsed=False)
    assert "sum up" in join_copied((row, 0, None) for row in model.rendered(0).lines)


def test_state_is_a_sign_and_a_word() -> None:
    texts = {}
    for state in BlockState:
        model = TranscriptModel()
        model.append(block(0, BlockKind.TOOL, "x", title="Bash", state=state))
        texts[state] = model.rendered(0).lines[0].text
    assert "✗" in texts[BlockState.FAILED]
    assert "failed" in texts[BlockState.FAILED]
    assert "running" in texts[BlockState.RUNNING]
    assert "interrupted" in texts[BlockState.INTERRUPTED]
    assert len(set(texts.values())) >= len(BlockState) - 1
