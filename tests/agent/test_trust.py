"""Which folders count as trusted, and how that is kept."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyagent.agent.trust import TRUST_FILE, is_trusted, trust
from pyagent.errors import PyagentError


def folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def test_no_folder_is_trusted_at_first(tmp_path: Path) -> None:
    assert not is_trusted(tmp_path, tmp_path / "home")


def test_a_trusted_folder_and_what_lies_in_it_stay_trusted_and_nothing_beside_it(tmp_path: Path) -> None:
    home, project = tmp_path / "home", folder(tmp_path / "project")
    trust(project, home)
    assert is_trusted(project, home)
    assert is_trusted(folder(project / "src" / "deep"), home)
    assert not is_trusted(tmp_path, home)
    assert not is_trusted(folder(tmp_path / "project-two"), home)


def test_trust_in_the_user_s_home_does_not_reach_what_is_downloaded_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user_home = folder(tmp_path / "user")
    monkeypatch.setenv("HOME", str(user_home))
    trust(user_home, user_home / ".pyagent")
    assert is_trusted(user_home, user_home / ".pyagent")
    assert not is_trusted(folder(user_home / "downloads" / "clone"), user_home / ".pyagent")


def test_a_link_is_as_trusted_as_the_folder_it_leads_to(tmp_path: Path) -> None:
    home, real, other = tmp_path / "home", folder(tmp_path / "real"), folder(tmp_path / "other")
    link = tmp_path / "link"
    link.symlink_to(real)
    trust(link, home)
    assert is_trusted(real, home)
    link.unlink()
    link.symlink_to(other)
    assert not is_trusted(link, home)


def test_the_list_is_readable_by_its_owner_only_even_if_it_was_open_before(tmp_path: Path) -> None:
    home = folder(tmp_path / "home")
    path = home / TRUST_FILE
    path.write_text('{"folders": []}')
    path.chmod(0o644)
    trust(tmp_path, home)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [item.name for item in home.iterdir() if item.name.endswith(".tmp")] == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"folders": {}}', '{"folders": [1, null]}', "[" * 100_000, "\xff"])
def test_a_damaged_list_trusts_nothing_and_is_replaced_by_the_next_answer(tmp_path: Path, content: str) -> None:
    home = folder(tmp_path / "home")
    (home / TRUST_FILE).write_text(content, encoding="latin-1")
    assert not is_trusted(tmp_path, home)
    trust(tmp_path, home)
    assert is_trusted(tmp_path, home)


def test_answers_given_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    home = tmp_path / "home"
    projects = [folder(tmp_path / f"project{number}") for number in range(12)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda project: trust(project, home), projects))
    assert all(is_trusted(project, home) for project in projects)
    assert len(json.loads((home / TRUST_FILE).read_text())["folders"]) == 12


def test_trust_that_cannot_be_saved_is_an_error_for_the_user(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(PyagentError, match="could not be saved"):
        trust(tmp_path, blocked / "home")
    assert not is_trusted(tmp_path, blocked / "home")
