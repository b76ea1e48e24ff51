from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyagent.ui.fuzzy import fuzzy_match, rank

NAMES = st.text(alphabet="abc/_.", max_size=12)


@given(NAMES, NAMES)
def test_matched_positions_spell_the_query_in_order(query: str, text: str) -> None:
    match = fuzzy_match(query, text)
    if match is not None:
        assert "".join(text[position] for position in match.positions) == query
        assert list(match.positions) == sorted(set(match.positions))


@given(NAMES, NAMES)
def test_a_text_matches_exactly_when_it_has_the_letters_in_order(query: str, text: str) -> None:
    letters = iter(text)
    assert (fuzzy_match(query, text) is not None) == all(char in letters for char in query)


def ranked(query: str, *texts: str) -> list[str]:
    return [text for text, _ in rank(query, texts, lambda text: text, limit=10)]


def test_names_beat_folders_and_starts_beat_middles() -> None:
    assert ranked("prompt", "prompt_old/x.py", "ui/prompt.py")[0] == "ui/prompt.py"
    assert ranked("co", "disco", "compact")[0] == "compact"
    assert ranked("clear", "clear-all", "clear")[0] == "clear"
    assert ranked("tm", "items.py", "transcript_model.py")[0] == "transcript_model.py"


def test_without_a_query_the_order_is_kept() -> None:
    assert ranked("", "b", "a") == ["b", "a"]
