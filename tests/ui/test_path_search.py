"""Searching many paths: what is found is what fuzzy matching would find, and the best of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyagent.ui.fuzzy import fuzzy_match, rank
from pyagent.ui.path_search import POOL_SIZE, PathSearch

PATHS = st.lists(st.text(alphabet="abAB/_.İ é", min_size=1, max_size=10), max_size=12, unique=True)
QUERIES = st.text(alphabet="abAB/_.", min_size=1, max_size=5)


@given(PATHS, QUERIES)
def test_exactly_the_paths_with_the_letters_in_order_are_found(paths: list[str], query: str) -> None:
    found = PathSearch(paths).matching(query)
    assert sorted(found) == sorted(path for path in paths if fuzzy_match(query, path) is not None)


@given(PATHS, QUERIES)
def test_typing_on_finds_what_a_search_from_the_beginning_finds(paths: list[str], query: str) -> None:
    search = PathSearch(paths)
    for end in range(1, len(query) + 1):
        found = search.matching(query[:end])
        assert sorted(found) == sorted(PathSearch(paths).matching(query[:end]))


def test_among_very_many_paths_the_best_is_not_lost() -> None:
    paths = [f"deep/folder/with_parts/xparser{number}.py" for number in range(2 * POOL_SIZE)] + ["src/parser.py"]
    found = PathSearch(paths).matching("parser")
    assert len(found) == POOL_SIZE
    assert rank("parser", found, lambda path: path, limit=1)[0][0] == "src/parser.py"


def test_a_name_with_a_newline_is_found_and_breaks_nothing() -> None:
    search = PathSearch(["two\nlines.txt", "other.txt"])
    assert search.matching("lines") == ["two\nlines.txt"]
    assert search.matching("er") == ["other.txt"]


def test_without_a_query_the_first_paths_are_offered() -> None:
    assert PathSearch(["b", "a"]).matching("") == ["b", "a"]
