"""When the server's own web search is declared."""

from __future__ import annotations

import pytest

from pyagent.agent.server_tools import MAX_SEARCHES, with_server_tools
from pyagent.messages import JsonObject
from pyagent.settings import Settings

OWN: JsonObject = {"name": "Read", "description": "Reads.", "input_schema": {"type": "object"}}
SEARCH: JsonObject = {"type": "web_search_20260318", "name": "web_search", "max_uses": MAX_SEARCHES}
ON = Settings(is_web_search_on=True)


@pytest.mark.parametrize(
    ("settings", "is_first_party", "is_offered"),
    [
        (Settings(), True, False),
        (ON, True, True),
        (ON, False, False),
        (Settings(is_web_search_on=True, deny_rules=("WebSearch",)), True, False),
        (Settings(is_web_search_on=True, ask_rules=("WebSearch",)), True, False),
        (Settings(is_web_search_on=True, deny_rules=("WebFetch", "WebSearch(x)")), True, True),
    ],
    ids=["off by default", "on", "another server", "denied", "to be asked about", "other rules"],
)
def test_web_search_is_declared_where_the_server_has_it_and_the_user_wants_it(
    settings: Settings, is_first_party: bool, is_offered: bool
) -> None:
    tools = with_server_tools((OWN,), settings, is_first_party=is_first_party)
    assert tools == ((OWN, SEARCH) if is_offered else (OWN,))


def test_a_switch_of_the_server_takes_the_declaration_away_and_never_doubles_it() -> None:
    declared = with_server_tools((OWN,), ON, is_first_party=True)
    assert with_server_tools(declared, ON, is_first_party=True) == declared
    assert with_server_tools(declared, ON, is_first_party=False) == (OWN,)
