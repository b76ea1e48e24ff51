"""How the doctor speaks, and what it knows of the terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pyagent.findings import Finding
from pyagent.ui.doctor import lines_of, terminal_findings

DOCTOR = [sys.executable, "-P", "-m", "pyagent", "doctor"]


def test_each_finding_is_a_line_and_what_to_do_stands_below_it() -> None:
    lines = lines_of([Finding("ok", "git", "2.39"), Finding("fail", "clock", "it says\n1970", "Set the clock.")])
    assert lines[1:] == [
        "ok    git: 2.39",
        "FAIL  clock: it says 1970",
        "      → Set the clock.",
        "1 of 2 checks failed.",
    ]
    assert lines_of([Finding("warn", "x", "y")])[-1] == "Nothing is broken. 1 worth a look."


@pytest.mark.parametrize(
    ("environ", "verdict", "said"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "ok", "16 million colours"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "ok", "no colours"),
        ({"TERM": "dumb"}, "warn", "TERM is dumb"),
        ({}, "warn", "TERM is not set"),
    ],
)
def test_the_terminal_is_told_by_its_environment(environ: dict[str, str], verdict: str, said: str) -> None:
    finding = next(iter(terminal_findings(environ, has_terminal=True)))
    assert (finding.verdict, said in finding.text) == (verdict, True)


def test_the_command_ends_well_only_if_nothing_is_broken(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYAGENT_HOME": str(tmp_path / "p"), "PYTHONPATH": root}
    good = subprocess.run(DOCTOR, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert good.returncode == 0, good.stdout + good.stderr
    assert "Nothing is broken." in good.stdout
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "settings.json").write_text("{ broken")
    bad = subprocess.run(DOCTOR, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert bad.returncode == 1
    assert "FAIL  settings:" in bad.stdout
