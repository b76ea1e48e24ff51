"""What the doctor finds: each fault has a line that says what it is, and one that says what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pyagent.agent.doctor import findings
from pyagent.agent.trust import trust
from pyagent.findings import Finding
from pyagent.launch import LaunchOptions


def options_in(folder: Path, **environ: str) -> LaunchOptions:
    cwd = folder / "work"
    cwd.mkdir(exist_ok=True)
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return LaunchOptions(cwd=cwd, home=home / ".pyagent", environ={"HOME": str(home), **environ})


def found(options: LaunchOptions, subject: str) -> list[Finding]:
    return [finding for finding in findings(options) if finding.subject == subject]


def verdicts(options: LaunchOptions, subject: str) -> list[str]:
    return [finding.verdict for finding in found(options, subject)]


def test_an_ordinary_place_has_nothing_broken(tmp_path: Path) -> None:
    options = options_in(tmp_path, ANTHROPIC_API_KEY="a-key")
    everything = list(findings(options))
    assert [finding for finding in everything if finding.verdict == "fail"] == []
    assert {"Python", "git", "settings", "credentials", "token table", "disk", "clock"} <= {
        f.subject for f in everything
    }


def test_the_key_itself_is_never_shown(tmp_path: Path) -> None:
    options = options_in(tmp_path, ANTHROPIC_API_KEY="sk-ant-secret", ANTHROPIC_AUTH_TOKEN="token-secret")
    assert "secret" not in repr(list(findings(options)))


def write(content: str) -> Callable[[LaunchOptions], None]:
    def prepare(options: LaunchOptions) -> None:
        options.home.mkdir(parents=True)
        (options.home / "settings.json").write_text(content)

    return prepare


@pytest.mark.parametrize(
    ("content", "verdict", "said"),
    [
        ("{ broken", "fail", "settings.json is ignored: invalid JSON in line 1"),
        (json.dumps({"webSearch": "yes"}), "warn", "webSearch is ignored: use true or false"),
        (json.dumps({"gates": {"histroySnip": True}}), "warn", "the nearest is gates.historySnip"),
        (json.dumps({"permissions": {"allow": ["Write(src/**)"]}}), "warn", "never matches"),
    ],
)
def test_each_fault_of_a_settings_file_is_a_line_with_file_and_key(
    tmp_path: Path, content: str, verdict: str, said: str
) -> None:
    options = options_in(tmp_path)
    write(content)(options)
    faults = [finding for finding in found(options, "settings") if finding.verdict in ("warn", "fail")]
    assert [finding.verdict for finding in faults] == [verdict]
    assert said in faults[0].text
    assert faults[0].fix


def test_settings_that_cannot_be_used_at_all_fail(tmp_path: Path) -> None:
    options = replace(options_in(tmp_path), settings_json="{ no")
    assert verdicts(options, "settings") == ["fail"]


def test_no_key_is_worth_a_word_and_a_bad_address_fails(tmp_path: Path) -> None:
    assert verdicts(options_in(tmp_path), "credentials") == ["warn"]
    assert verdicts(options_in(tmp_path, ANTHROPIC_BASE_URL="not an address"), "server") == ["fail"]
    assert verdicts(options_in(tmp_path, ANTHROPIC_BASE_URL="http://127.0.0.1:8080"), "credentials") == ["ok"]


def test_a_home_that_others_can_read_is_named_with_the_command_that_closes_it(tmp_path: Path) -> None:
    options = options_in(tmp_path)
    options.home.mkdir(mode=0o755)
    options.home.chmod(0o755)
    first = found(options, "sessions")[0]
    assert (first.verdict, first.fix) == ("warn", f"chmod 700 {options.home}")


def test_a_large_memory_file_is_named(tmp_path: Path) -> None:
    options = options_in(tmp_path)
    (options.cwd / "AGENTS.md").write_text("word " * 20_000)
    (finding,) = found(options, "memory files")
    assert finding.verdict == "warn"
    assert str(options.cwd / "AGENTS.md") in finding.text


def test_an_unknown_model_is_worth_a_word(tmp_path: Path) -> None:
    options = options_in(tmp_path, ANTHROPIC_BASE_URL="http://127.0.0.1:8080")
    assert verdicts(replace(options, model="a-local-model"), "model") == ["warn"]
    assert verdicts(replace(options, model="offline"), "model") == ["ok"]


def test_a_folder_that_is_not_trusted_is_named_with_the_command_that_trusts_it(tmp_path: Path) -> None:
    options = options_in(tmp_path)
    (finding,) = found(options, "folder")
    assert "not trusted" in finding.text
    assert "/permissions trust" in finding.fix
    trust(options.cwd, options.home)
    (finding,) = found(options, "folder")
    assert finding.text.endswith("is trusted")


def test_what_waits_for_trust_is_no_fault(tmp_path: Path) -> None:
    options = options_in(tmp_path)
    (options.cwd / ".pyagent").mkdir()
    (options.cwd / ".pyagent" / "settings.json").write_text(json.dumps({"permissions": {"allow": ["Bash"]}}))
    (finding,) = found(options, "settings")
    assert finding.verdict == "info"
    assert "/permissions trust" in finding.text


def test_no_hint_has_a_registry_asked_for_the_name_pyagent(tmp_path: Path) -> None:
    installing = [finding.fix for finding in findings(options_in(tmp_path)) if "pip install" in finding.fix]
    assert not any("pyagent" in hint.partition("pip install")[2] for hint in installing)
