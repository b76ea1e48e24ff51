"""Texts that upset screens: wide, joined, combining, right-to-left, invisible and controlling characters."""

from __future__ import annotations

from hypothesis import strategies as st

NASTY = (
    "漢字かな交じり文",
    "한글 조합: \u1112\u1161\u11ab",
    "👩‍👩‍👧‍👦",
    "👍🏽 👋🏿",
    "🇩🇪🇫🇷",
    "🇩",
    "❤️ ☺️ 1️⃣ ⚠️",
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "e\u0301 n\u0303 Z\u0351\u036b\u0343\u036a",
    "\u0301leading mark",
    "שלום עולם",
    "مرحبا بالعالم",
    "\u202eoverride\u202c",
    "\u2066isolate\u2069",
    "क्षि தமிழ் ไทย",
    "a\u200bb\u200cc\u200dd\u2060e\ufefff",
    "soft\u00adhyphen",
    "tab\tto\tstop",
    "bell\x07 esc\x1b[31m nul\x00 del\x7f c1\x9b31m",
    "cr\rback",
    "\U0001fae8\U0001fadf new signs",
    "﷽ ꧅",
    "ｱﾞ half ｗｉｄｅ",
    "x" * 300,
    "漢" * 150,
    "[/foo] [@click=app.quit]x[/]",
    "\ud800 lone",
    "",
)

_CHARS = st.one_of(
    st.sampled_from("ab 漢字👍🏽🇩🇪❤\ufe0f\u200d\u0301\u0308\u200b\u00adשל\t\x1b\x07\x9b\u202e\u1100\u1161क्षि|`*-#>"),
    st.characters(),
)
NASTY_TEXTS = st.one_of(st.lists(st.sampled_from(NASTY), max_size=4).map("".join), st.text(_CHARS, max_size=60))
