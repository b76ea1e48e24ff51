"""The rows of `/config`: every setting is there, with words, and in the form a file would hold it."""

from __future__ import annotations

import json

from pyagent.agent.config import LoadedSettings
from pyagent.agent.setting_catalogue import setting_rows
from pyagent.agent.setting_schema import list_paths, parsed_setting, scalar_paths
from pyagent.settings import Settings

ROWS = setting_rows(LoadedSettings(Settings()))


def test_every_setting_has_a_row_and_says_what_it_is_for() -> None:
    keys = {row.key for row in ROWS}
    assert {*scalar_paths(), *list_paths()} - keys == {"compaction.isAutoDisabled", "compaction.windowTokens"}
    assert [row.key for row in ROWS if not row.help] == []


def test_what_a_row_shows_can_be_typed_as_its_value() -> None:
    for row in ROWS:
        if row.value and row.kind != "list":
            parsed = parsed_setting(row.key, row.value)
            assert json.dumps(parsed.json_value, ensure_ascii=False) == row.value


def test_every_choice_is_one_the_setting_takes() -> None:
    for row in ROWS:
        for choice in row.choices:
            parsed_setting(row.key, choice)
