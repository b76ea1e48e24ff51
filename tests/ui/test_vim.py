"""Vim's editing, as text and cursor: `|` marks the cursor in the examples."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyagent.ui.vim import Mode, Step, Vim, press, selected
from pyagent.ui.vim_motions import resting_place

NORMAL = Vim(mode=Mode.NORMAL)


def keys_of(typed: str) -> list[str]:
    """`dw<esc>` → its keys."""
    keys: list[str] = []
    while typed:
        if typed.startswith("<") and ">" in typed and typed[1].isalpha():
            name, _, typed = typed[1:].partition(">")
            keys.append({"esc": "escape", "c-r": "ctrl+r"}.get(name, name))
        else:
            keys.append(typed[0])
            typed = typed[1:]
    return keys


def after(marked: str, typed: str, vim: Vim = NORMAL) -> Step:
    """What these keys make of the text; printable keys of an insertion are inserted, as the host does."""
    cursor = marked.index("|")
    step = Step(vim, marked.replace("|", "", 1), cursor)
    for key in keys_of(typed):
        before = step
        step = press(before.vim, before.text, before.cursor, key)
        if step.effect == "pass" and step.vim.mode is Mode.INSERT and len(key) == 1:
            text = step.text[: step.cursor] + key + step.text[step.cursor :]
            step = Step(step.vim, text, step.cursor + 1)
    return step


def shown(step: Step) -> str:
    return step.text[: step.cursor] + "|" + step.text[step.cursor :]


@pytest.mark.parametrize(
    ("before", "keys", "expected"),
    [
        # motions
        ("|one two", "w", "one |two"),
        ("|one.two x", "w", "one|.two x"),
        ("|one.two x", "W", "one.two |x"),
        ("one |two", "b", "|one two"),
        ("|one two", "e", "on|e two"),
        ("on|e two", "e", "one tw|o"),
        ("|one two three", "2w", "one two |three"),
        ("  on|e", "0", "|  one"),
        ("  on|e", "^", "  |one"),
        ("|one\ntwo", "$", "on|e\ntwo"),
        ("|one\ntwo\nsix", "G", "one\ntwo\n|six"),
        ("one\ntwo\n|six", "gg", "|one\ntwo\nsix"),
        ("|one\ntwo\nsix", "2G", "one\n|two\nsix"),
        ("|a,b,c", "f,", "a|,b,c"),
        ("|a,b,c", "t,;", "a,|b,c"),
        ("|ab,cd,e", "t,;", "ab,c|d,e"),
        ("a,b,|c", "F,", "a,b|,c"),
        ("|a,b,c", "f,;", "a,b|,c"),
        ("|a,b,c", "f,;,", "a|,b,c"),
        ("lo|ng\na\nlong", "jj", "long\na\nlo|ng"),
        ("|f(a, b)", "%", "f(a, b|)"),
        # operators
        ("|one two", "dw", "|two"),
        ("one |two\nthree", "dw", "one| \nthree"),
        ("|one two three", "d2w", "|three"),
        ("|one two three", "2dw", "|three"),
        ("one |two", "db", "|two"),
        ("|one two", "de", "| two"),
        ("one\n|two\nthree", "dd", "one\n|three"),
        ("one\n|two", "dd", "|one"),
        ("|one\ntwo\nthree", "2dd", "|three"),
        ("one\n|two\nthree", "dk", "|three"),
        ("o|ne two", "D", "|o"),
        ("one t|wo", "d0", "|wo"),
        ("|a,b,c", "dt,", "|,b,c"),
        ("|a,b,c", "df,", "|b,c"),
        ("o|ne", "x", "o|e"),
        ("o|ne", "X", "|ne"),
        ("|one", "2x", "|e"),
        ("|one", "~", "O|ne"),
        ("|one", "rx", "|xne"),
        ("|one\n  two", "J", "one| two"),
        ("|one", ">>", "  |one"),
        ("  |one", "<<", "|one"),
        # text objects
        ("one t|wo three", "diw", "one | three"),
        ("one t|wo three", "daw", "one |three"),
        ("one tw|o", "daw", "on|e"),
        ('say "he|llo there" now', 'di"', 'say "|" now'),
        ('say "he|llo there" now', 'da"', "say | now"),
        ("f(a, (b|), c)", "di(", "f(a, (|), c)"),
        ("f(a, |(b), c)", "di(", "f(a, (|), c)"),
        ("f(a|, b)", "dab", "|f"),
        ("f[a|]", "di]", "f[|]"),
        ("a\n|b\nc\n\nd", "dip", "|\nd"),
        # put
        ("|one two", "dwP", "one| two"),
        ("|one\ntwo", "yyp", "one\n|one\ntwo"),
        ("|one\ntwo", "ddp", "two\n|one"),
        ("|ab", "xp", "b|a"),
        ("|one two", "yiwP", "on|eone two"),
        # visual
        ("|one two", "vex", "| two"),
        ("|one two", "ved", "| two"),
        ("|one\ntwo\nsix", "Vjd", "|six"),
        ("o|ne two", "viwd", "| two"),
        ("|one two", "vwrx", "|xxxxxwo"),
        ("|one two", "ve~", "|ONE two"),
        ("|one two", "veyP", "on|eone two"),
        ("|one two", "veowd", "on|wo"),
    ],
)
def test_a_command_does_to_text_and_cursor_what_vim_does(before: str, keys: str, expected: str) -> None:
    assert shown(after(before, keys)) == expected


@pytest.mark.parametrize(
    ("before", "keys", "expected"),
    [
        ("|one two", "cwsix<esc>", "si|x two"),
        ("one|", "a more<esc>", "one mor|e"),
        ("o|ne", "I> <esc>", ">| one"),
        ("o|ne", "A!<esc>", "one|!"),
        ("|one", "otwo<esc>", "one\ntw|o"),
        ("|one", "Otwo<esc>", "tw|o\none"),
        ("one\nt|wo\nsix", "ccx<esc>", "one\n|x\nsix"),
        ("o|ne two", "Cx<esc>", "o|x"),
        ("|one", "sx<esc>", "|xne"),
        ("f(|a)", "ci(b<esc>", "f(|b)"),
        ("|one two", "vecsix<esc>", "si|x two"),
        # repeat
        ("|one two three", "dw.", "|three"),
        ("|one two", "cwx<esc>w.", "x |x"),
        ("|abcdef", "x3.", "|ef"),
        ("|one", "A!<esc>..", "one!!|!"),
    ],
)
def test_a_change_ends_with_escape_and_can_be_repeated(before: str, keys: str, expected: str) -> None:
    step = after(before, keys)
    assert step.vim.mode is Mode.NORMAL
    assert shown(step) == expected


def test_escape_leaves_insertion_one_character_back_and_is_the_hosts_afterwards() -> None:
    step = press(Vim(), "one", 3, "escape")
    assert (step.vim.mode, step.cursor, step.effect) == (Mode.NORMAL, 2, "")
    assert press(step.vim, step.text, step.cursor, "escape").effect == "pass"


def test_escape_gives_up_a_command_that_is_half_typed() -> None:
    step = after("|one two", "2d<esc>w")
    assert shown(step) == "one |two"


@pytest.mark.parametrize(("keys", "effect"), [("u", "undo"), ("<c-r>", "redo"), ("k", "history_previous")])
def test_undo_and_history_are_left_to_the_host(keys: str, effect: str) -> None:
    assert after("|one", keys).effect == effect


def test_a_sequence_typed_quickly_ends_the_insertion_and_leaves_no_trace() -> None:
    vim = Vim(remaps={"jj": "<Esc>"})
    first = press(vim, "a", 1, "j", at_s=1.0)
    assert first.effect == "pass"
    second = press(first.vim, "aj", 2, "j", at_s=1.3)
    assert (second.vim.mode, second.text, second.cursor) == (Mode.NORMAL, "a", 0)


def test_a_sequence_typed_slowly_is_text() -> None:
    first = press(Vim(remaps={"jj": "<Esc>"}), "a", 1, "j", at_s=1.0)
    assert press(first.vim, "aj", 2, "j", at_s=3.0).effect == "pass"


TEXTS = st.text(alphabet='ab (_"]\n.é世', max_size=40)
KEYS = st.lists(
    st.sampled_from([*'hjklwbeWBE0^$gGfFtT;,%{}dcy<>xXDCYpPJ~oOaivVsSr123"(wap.u', "escape", "ctrl+r", "left", "up"]),
    max_size=25,
)


@example(" ", 0, ["v", ">"])
@given(TEXTS, st.integers(0, 40), KEYS)
def test_the_cursor_always_stands_on_a_character_outside_of_insertion(text: str, at: int, keys: list[str]) -> None:
    step = Step(NORMAL, text, resting_place(text, at))
    for key in keys:
        step = press(step.vim, step.text, step.cursor, key)
        assert 0 <= step.cursor <= len(step.text)
        if step.vim.mode is not Mode.INSERT:
            assert step.cursor == resting_place(step.text, step.cursor)
        extent = selected(step.vim, step.text, step.cursor)
        assert extent is None or 0 <= extent.start <= extent.end <= len(step.text)


MOTIONS = st.sampled_from(
    ["w", "b", "e", "W", "B", "E", "0", "$", "^", "h", "l", "fa", "ta", "Fb", "Tb", "iw", "aw", "%"]
)


@given(TEXTS, st.integers(0, 40), MOTIONS, st.integers(1, 3))
def test_what_is_deleted_is_what_a_yank_takes_and_goes_back_where_it_was(
    text: str, at: int, motion: str, count: int
) -> None:
    at = resting_place(text, at)
    keys = [*str(count), *motion]
    deleted, yanked = Step(NORMAL, text, at), Step(NORMAL, text, at)
    for key in ("d", *keys):
        deleted = press(deleted.vim, deleted.text, deleted.cursor, key)
    for key in ("y", *keys):
        yanked = press(yanked.vim, yanked.text, yanked.cursor, key)
    assert yanked.text == text
    assert deleted.vim.register == yanked.vim.register
    taken = deleted.vim.register.text
    rest = deleted.text
    assert any(rest[:place] + taken + rest[place:] == text for place in range(len(rest) + 1))


@given(TEXTS, st.integers(0, 40), KEYS)
def test_motions_and_yanks_never_change_the_text(text: str, at: int, keys: list[str]) -> None:
    harmless = [key for key in keys if key not in "dcxXDCpPJ~oOaisSr<>.v" or key in ("escape",)]
    step = Step(NORMAL, text, resting_place(text, at))
    for key in harmless:
        step = press(step.vim, step.text, step.cursor, key)
    assert step.text == text
