"""The log file is the owner's alone, stays small, and holds no secrets."""

from __future__ import annotations

import logging
import os
import stat
import sys
from pathlib import Path

import pytest

from pyagent.errors import PyagentError, UsageError
from pyagent.ui.log_file import MAX_LOG_BYTES, errors_to_log, open_log, streams_guarded, without_secrets


def test_it_is_readable_by_its_owner_only_also_if_it_was_not(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "pyagent.log"
    path.parent.mkdir()
    path.touch(0o644)
    log = open_log(path, {})
    assert log is not None
    log.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_it_keeps_the_newest_part_when_it_grows_too_large(tmp_path: Path) -> None:
    path = tmp_path / "pyagent.log"
    path.write_text("old line\n" * (MAX_LOG_BYTES // 9 + 1))
    log = open_log(path, {})
    assert log is not None
    with log:
        assert path.stat().st_size < MAX_LOG_BYTES / 2
        os.write(log.fileno(), b"x" * MAX_LOG_BYTES + b"\nstray\n")
        print("the newest line", file=log)
    assert path.stat().st_size < MAX_LOG_BYTES / 2
    assert path.read_text() == "stray\nthe newest line\n"


def test_a_log_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file")
    with errors_to_log(tmp_path / "logs" / "pyagent.log", {}):
        logging.getLogger("x").warning("nobody reads this")


def test_without_a_log_what_is_printed_still_stays_off_the_screen(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").write_text("a file")
    with streams_guarded(tmp_path / "logs" / "pyagent.log", {}):
        os.write(1, b"from a child\n")
        logging.getLogger("x").warning("from a library")
        print("drawn", file=sys.__stdout__, flush=True)
    assert capfd.readouterr() == ("drawn\n", "")


def test_secrets_of_the_environment_and_what_looks_like_a_key_are_blacked_out(tmp_path: Path) -> None:
    path = tmp_path / "pyagent.log"
    environ = {"ANTHROPIC_AUTH_TOKEN": "correct-horse", "MY_API_KEY": "battery-staple", "HOME": "/home/ada-lovelace"}
    with errors_to_log(path, environ):
        logging.getLogger("x").warning(
            "correct-horse battery-staple sk-ant-api03-abcdefghijklmnop Bearer abcdefgh.ijk http://u:pa55@host "
            "/home/ada-lovelace"
        )
    kept = path.read_text()
    assert "/home/ada-lovelace" in kept
    for secret in ("correct-horse", "battery-staple", "abcdefghijklmnop", "abcdefgh.ijk", "pa55"):
        assert secret not in kept


def test_short_values_are_not_taken_for_secrets() -> None:
    assert without_secrets("a token is a token") == "a token is a token"


def test_a_mistake_is_told_in_one_line_and_its_trace_is_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "pyagent.log"
    with pytest.raises(PyagentError, match=r"KeyError: 'no such variable'.*pyagent\.log"), errors_to_log(path, {}):
        os.environ.copy().pop("no such variable")
    assert "Traceback" in path.read_text()


def test_errors_meant_for_the_user_pass_untouched(tmp_path: Path) -> None:
    path = tmp_path / "pyagent.log"
    with pytest.raises(UsageError, match="so not"), errors_to_log(path, {}):
        raise UsageError("so not")
    assert path.read_text() == ""
