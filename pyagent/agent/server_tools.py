"""Tools that the model's server runs itself. They are declared with the others and never come to the tool runner.

Only the first-party API has them. What they find comes back inside the response and is sent again as it came.
"""

from __future__ import annotations

from pyagent.agent.rules import names_tool, parse_rules
from pyagent.messages import JsonObject
from pyagent.settings import Settings

WEB_SEARCH_TYPE = "web_search_20260318"
WEB_SEARCH_RULE = "WebSearch"
"""Its name in permission rules and in `--tools`."""

MAX_SEARCHES = 8
"""Of one request. Each is billed; a question that eight searches do not answer needs another question."""


def with_server_tools(
    tools: tuple[JsonObject, ...], settings: Settings, *, is_first_party: bool
) -> tuple[JsonObject, ...]:
    """The definitions with the server's tools behind them, as this server and these settings have it."""
    own = tuple(tool for tool in tools if "input_schema" in tool)
    if not (is_first_party and settings.is_web_search_on) or _is_denied(settings):
        return own
    return (*own, {"type": WEB_SEARCH_TYPE, "name": "web_search", "max_uses": MAX_SEARCHES})


def _is_denied(settings: Settings) -> bool:
    """Whether a rule forbids it. The server asks nobody, so a rule that says to ask forbids it too."""
    rules = parse_rules((*settings.deny_rules, *settings.ask_rules))
    return any(rule.spec is None and names_tool(rule, WEB_SEARCH_RULE, is_allow=False) for rule in rules)
