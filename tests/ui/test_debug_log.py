"""`--debug`: what happened is in the file, and nothing that was said."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from pyagent.commands import SubmitPrompt
from pyagent.errors import UsageError
from pyagent.events import Notice, TextDelta, TurnFinished
from pyagent.ui.debug_log import debug_log, described, logging_starter
from tests.ui.fake_agent import FakeAgent, launch_options, opened


def test_events_and_commands_are_logged_without_their_words(tmp_path: Path) -> None:
    agent = FakeAgent([opened()], lambda command: [TextDelta("secret"), TurnFinished("end_turn", 2, 1.5, "secret")])
    with debug_log(tmp_path / "logs" / "d.log", ""):
        handle = logging_starter(agent)(launch_options(tmp_path), lambda event: None)
        handle.send(SubmitPrompt("secret"))
    text = (tmp_path / "logs" / "d.log").read_text()
    assert "SessionOpened session_id=5f0c1a52" in text
    assert "SubmitPrompt text=<6 chars>" in text
    assert "TurnFinished stop_reason=end_turn api_rounds=2 duration_s=1.5" in text
    assert "TextDelta" not in text
    assert "secret" not in text


@pytest.mark.parametrize(
    ("categories", "seen"),
    [("", ["wire", "tools"]), ("wire", ["wire"]), ("!wire", ["tools"]), ("tools,!read", [])],
)
def test_categories_choose_modules(tmp_path: Path, categories: str, seen: list[str]) -> None:
    with debug_log(tmp_path / "d.log", categories):
        logging.getLogger("pyagent.agent.wire.client").debug("wire")
        logging.getLogger("pyagent.tools.read").debug("tools")
        logging.getLogger("anthropic").debug("sdk")
    assert [line.split()[-1] for line in (tmp_path / "d.log").read_text().splitlines()] == seen


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Cannot write the debug log"), debug_log(tmp_path, ""):
        pass


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    with debug_log(tmp_path / "d.log", ""):
        pass
    assert (tmp_path / "d.log").stat().st_mode & 0o777 == 0o600


def test_figures_and_names_are_shown_and_texts_counted() -> None:
    assert described(Notice("hello", "warning")) == "Notice text=<5 chars> level=warning hint=<0 chars>"
