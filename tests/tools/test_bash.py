"""Bash: a command and its circumstances → output, exit code, directory."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pyagent.settings import Settings
from pyagent.tools.shell import ShellSession
from tests.tools.support import Workbench, content_of, mode_of, until

WAIT_FOR_GO = "while [ ! -e go ]; do sleep 0.01; done"

ROWS: tuple[tuple[str, str, str, bool], ...] = (
    ("output comes back", "echo hi", "hi", False),
    ("stdout and stderr stand in order", "echo a; echo b >&2; echo c", "a\nb\nc", False),
    ("nothing said", "true", "(no output)", False),
    ("a failure names its code", "echo no >&2; exit 3", "no\nExit code 3", True),
    ("an unknown program", "no-such-program", "no-such-program: command not found\nExit code 127", True),
    ("an unclosed quote is the command's own error", "echo 'a", "unexpected EOF", True),
    ("grep without a match is an answer", "echo a | grep b", "Exit code 1 (no match)", False),
    ("grep with an error is not", "grep b no-such-file", "Exit code 2", True),
    ("diff is an answer", "echo a >1; echo b >2; diff -q 1 2", "Exit code 1 (the files differ)", False),
    ("test is an answer", "[ -e nothing ]", "Exit code 1 (false)", False),
    ("[[ is an answer", "cd . && [[ -e nothing ]]", "Exit code 1 (false)", False),
    ("the last command decides", "grep -q b /dev/null; false", "Exit code 1", True),
    ("a heredoc", "cat <<X\n$((1+1))\nX", "2", False),
    ("several lines", "for i in 1 2; do\n  echo $i\ndone", "1\n2", False),
    ("bash features", "a=(1 2 3); echo ${#a[@]}", "3", False),
    ("descriptor 3 belongs to the command", "exec 3>log; echo x >&3; cat log", "x", False),
    ("its own exit trap", "trap 'echo bye' EXIT; echo hi", "hi\nbye", False),
    ("exec replaces the shell", "exec echo hi", "hi", False),
    ("stdin is empty", "cat; read x || echo nothing", "nothing", False),
    ("no terminal to open", "(exec 3</dev/tty) 2>/dev/null || echo none", "none", False),
    ("no terminal to be seen", "test -t 0 || test -t 1 || test -t 2 || tty", "not a tty\nExit code 1", True),
    ("killed by a signal from within", "kill -9 $$", "The shell was ended by SIGKILL.", True),
    ("UTF-8", "printf 'é☃'", "é☃", False),
    ("bytes that are no UTF-8", "printf '\\377'", "\ufffd", False),
    ("progress bars show their end", "for i in $(seq 2000); do printf '\\r%d%%' $i; done", "2000%", False),
    ("the clipboard is left alone", "printf '\\033]52;c;aGk=\\007ok'", "ok", False),
)


@pytest.mark.parametrize(("command", "says", "is_error"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
async def test_command(bench: Workbench, command: str, says: str, is_error: bool) -> None:
    result = await bench.call("Bash", command=command)
    assert says in result.text
    assert result.is_error == is_error
    if not is_error and "Exit" not in says:
        assert result.text == says


async def test_the_directory_carries_over_inside_the_project(bench: Workbench) -> None:
    bench.path("a b/x", "1")
    await bench.call("Bash", command="cd 'a b'")
    assert (await bench.call("Bash", command="pwd")).text == str(bench.root / "a b")
    await bench.call("Bash", command="cd ..; exit 4")
    assert (await bench.call("Bash", command="pwd")).text == str(bench.root)
    await bench.call("Bash", command="(cd 'a b')")
    assert bench.cwd == bench.root


async def test_outside_the_project_it_is_reset_and_said(bench: Workbench) -> None:
    result = await bench.call("Bash", command="cd /; pwd")
    assert result.text == f"/\nThe working directory was reset to {bench.root}: / is not inside the project."
    assert bench.cwd == bench.root


async def test_a_directory_that_was_deleted_falls_back(bench: Workbench) -> None:
    bench.path("tree/x", "1")
    await bench.call("Bash", command="cd tree")
    shutil.rmtree(bench.root / "tree")
    result = await bench.call("Bash", command="pwd")
    assert result.text.startswith(str(bench.root))
    assert "no longer exists" in result.text
    assert (await bench.call("Bash", command="pwd")).text == str(bench.root)


async def test_a_command_that_deletes_its_own_directory(bench: Workbench) -> None:
    bench.path("tree/x", "1")
    await bench.call("Bash", command="cd tree && rm -r ../tree; echo done")
    assert "done" in (await bench.call("Bash", command="echo done; pwd")).text
    assert bench.cwd == bench.root


async def test_variables_do_not_carry_over(bench: Workbench) -> None:
    await bench.call("Bash", command="export PYAGENT_X=1")
    assert (await bench.call("Bash", command="echo [$PYAGENT_X]")).text == "[]"


async def test_secrets_are_not_in_the_environment(tmp_path: Path) -> None:
    secret = dict.fromkeys(
        ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "TOKEN"), "s3cret"
    )
    kept = {"TOKENIZERS_PARALLELISM": "1", "KEYBOARD": "us", "NPM_TOKEN": "wanted", "SSH_AUTH_SOCK": "/x"}
    bench = Workbench(
        tmp_path, Settings(bash_allowed_secrets=("NPM_TOKEN",)), environ={"PATH": os.environ["PATH"], **secret, **kept}
    )
    text = (await bench.call("Bash", command="env")).text
    assert "s3cret" not in text
    for name, value in kept.items():
        assert f"{name}={value}\n" in text + "\n"


async def test_the_login_shell_is_asked_once_and_adds_what_we_lack(tmp_path: Path) -> None:
    (tmp_path / ".bash_profile").write_text(
        f"echo noise; export FROM_LOGIN=yes PATH=/login/bin:$PATH HOME_TOKEN=x; echo >> {tmp_path}/asked\n"
    )
    environ = {"PATH": "/ours:/usr/bin:/bin", "HOME": str(tmp_path), "SHELL": "/bin/bash", "FROM_US": "1"}
    shell = ShellSession(environ=environ)
    first = await shell.environment({})
    second = await shell.environment({"EXTRA": "2"})
    await shell.close()
    assert first["FROM_LOGIN"] == "yes"
    assert first["PATH"].split(":")[0] == "/ours"
    assert "/login/bin" in first["PATH"].split(":")
    assert "HOME_TOKEN" not in first
    assert second["EXTRA"] == "2"
    assert (tmp_path / "asked").read_text() == "\n"


async def test_a_login_shell_that_hangs_is_given_up(tmp_path: Path) -> None:
    from pyagent.tools.login_shell import LoginShell, ask_login_shell

    (tmp_path / ".bash_profile").write_text("sleep 1000\n")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SHELL": "/bin/bash"}
    assert await ask_login_shell(environ, timeout_s=0.1) == LoginShell()


RC = r"""
alias greet='echo hello'
alias rm='rm -i'
alias quoted='echo "it'\''s"'
shout() { printf '%s!\n' "$*"; }
__needed() { echo needed; }
_completion() { echo never; }
star() { case $1 in !(no)) echo extended ;; esac; }
broken_by_alias() { greet; }
"""


def with_rc(bench: Workbench, home: Path, text: str, shell: str = "/bin/bash") -> Callable[[str], Awaitable[str]]:
    home.mkdir()
    (home / ".bashrc").write_text("shopt -s extglob\n" + text)
    (home / ".zshrc").write_text(text)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "SHELL": shell}
    bench.shell = ShellSession(environ=environ)

    async def run(command: str) -> str:
        return (await bench.call("Bash", command=command)).text

    return run


async def test_aliases_and_functions_of_the_start_up_file_are_there(bench: Workbench, tmp_path: Path) -> None:
    run = with_rc(bench, tmp_path / "home", RC)
    assert await run("greet you") == "hello you"
    assert await run("quoted") == "it's"
    assert await run("shout a b; __needed; star yes; broken_by_alias") == "a b!\nneeded\nextended\nhello"
    assert "not found" in await run("_completion")
    bench.path("file", "")
    assert await run("rm file && ls") == "(no output)"
    assert (
        await run("set | grep -c '^__pyagent_\\(command\\|def\\)'; echo $#; echo \"$1\" | head -c 3")
        == ("0\n1\nset\n").strip()
    )


@pytest.mark.parametrize(
    "text", ["alias 'bad name=x'\nshout() {", "exit 3", "kill -9 $$", "exec true", "echo noise; shout() { echo !; }"]
)
async def test_a_start_up_file_that_is_broken_costs_its_definitions_at_most(
    bench: Workbench, tmp_path: Path, text: str
) -> None:
    run = with_rc(bench, tmp_path / "home", text)
    assert await run("echo fine") == "fine"


@pytest.mark.parametrize("size_bytes", [70_000, 140_000, 3_000_000])
@pytest.mark.parametrize("rc", ["", RC])
async def test_a_command_may_be_longer_than_one_word_of_a_process(
    bench: Workbench, tmp_path: Path, size_bytes: int, rc: str
) -> None:
    run = with_rc(bench, tmp_path / "home", rc)
    text = await run(f"cat <<'END' | wc -c\n{'x' * size_bytes}\nEND\nls /dev/fd | wc -l; cd /; exit 0")
    assert text.startswith(f"{size_bytes + 1}")
    assert (await run("echo 'unclosed")).startswith("Exit code") or "unexpected EOF" in await run("echo 'unclosed")


async def test_long_output_keeps_head_and_tail_and_a_file_has_it_all(bench: Workbench) -> None:
    result = await bench.call("Bash", command="seq 1 100000")
    assert result.text.startswith("1\n2\n3\n")
    assert result.text.endswith("\n99999\n100000")
    assert len(result.text) < 31_000
    path = Path(result.display["full_output"])
    assert str(path) in result.text
    assert content_of(path) == "".join(f"{n}\n" for n in range(1, 100_001))
    assert mode_of(path) == 0o600
    assert bench.ask("Read", file_path=str(path)) is None


async def test_output_is_reported_while_it_runs(bench: Workbench) -> None:
    call = asyncio.create_task(bench.call("Bash", command=f"echo one; {WAIT_FOR_GO}; echo two"))
    await until(lambda: "one\n" in bench.reported)
    bench.path("go", "")
    assert (await call).text == "one\ntwo"
    assert "".join(bench.reported) == "one\ntwo\n"


async def test_an_unfinished_line_is_reported_when_it_stays(bench: Workbench) -> None:
    call = asyncio.create_task(bench.call("Bash", command=f"printf 'Name? '; {WAIT_FOR_GO}; echo x"))
    await until(lambda: bench.reported)
    assert bench.reported == ["Name? "]
    bench.path("go", "")
    await call
    assert "".join(bench.reported) == "Name? x\n"


async def test_a_background_task_is_read_and_killed_by_its_id(bench: Workbench) -> None:
    started = await bench.call("Bash", command=f"echo up; {WAIT_FOR_GO}; echo more; sleep 1000", run_in_background=True)
    assert "bash_1" in started.text
    (task,) = bench.shell.tasks
    await until(lambda: task.text.partial_line == "" and task.text._row)
    assert (await bench.call("BashOutput", bash_id="bash_1")).text == "up\nbash_1 is still running."
    assert (await bench.call("BashOutput", bash_id="bash_1")).text.startswith("(no new output)")
    bench.path("go", "")
    await until(lambda: task.text._row)
    assert (await bench.call("BashOutput", bash_id="bash_1", filter="m.re")).text == "more\nbash_1 is still running."
    assert not (await bench.call("KillShell", shell_id="bash_1")).is_error
    assert "was killed" in (await bench.call("BashOutput", bash_id="bash_1")).text
    assert (await bench.call("KillShell", shell_id="bash_9")).is_error


async def test_a_finished_background_task_tells_its_exit_code(bench: Workbench) -> None:
    await bench.call("Bash", command="echo x; exit 5", run_in_background=True)
    (task,) = bench.shell.tasks
    await task.done.wait()
    assert (await bench.call("BashOutput", bash_id="bash_1")).text == "x\nbash_1 has finished with exit code 5."


async def test_the_default_timeout_moves_a_command_to_the_background(tmp_path: Path) -> None:
    # Long enough for a loaded machine to start a shell, since its output is looked for.
    bench = Workbench(tmp_path, Settings(bash_default_timeout_ms=2_000))
    result = await bench.call("Bash", command="echo begun; tail -f /dev/null")
    assert result.text.startswith("begun\n")
    assert "goes on in the background as bash_1" in result.text
    assert not result.is_error
    assert [task.state for task in bench.shell.tasks] == ["running"]
    await bench.shell.close()
    assert [task.state for task in bench.shell.tasks] == ["killed"]


@pytest.mark.parametrize("command", ["sleep 1000", "cd . && sleep 1000", "git hash-object --stdin <<(sleep 1000)"])
async def test_sleep_git_and_the_unparsable_are_killed_instead(tmp_path: Path, command: str) -> None:
    bench = Workbench(tmp_path, Settings(bash_default_timeout_ms=100))
    result = await bench.call("Bash", command=command)
    assert result.is_error
    assert bench.shell.tasks == ()


async def test_a_job_left_behind_does_not_hold_the_call(bench: Workbench) -> None:
    result = await bench.call("Bash", command="sleep 1000 & echo started")
    assert result.text.startswith("started\n")
    assert "background task bash_1" in result.text
    (task,) = bench.shell.tasks
    assert task.state == "running"
    assert not (await bench.call("KillShell", shell_id="bash_1")).is_error
    assert task.tree.members() == ()


async def test_a_timeout_gives_back_what_was_written_until_then(bench: Workbench) -> None:
    result = await bench.call("Bash", command="echo partial; sleep 1000", timeout=2_000)
    assert result.text == "partial\nKilled after 2 s (timeout), with all its children."
    assert result.is_error


async def test_a_timeout_above_the_most_is_lowered(tmp_path: Path) -> None:
    bench = Workbench(tmp_path, Settings(bash_max_timeout_ms=100))
    assert "Killed after 0.1 s" in (await bench.call("Bash", command="sleep 1000", timeout=999_999_999)).text


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("git diff --stat", "Bash(git diff:*)"),
        ("npm run build", "Bash(npm run:*)"),
        ("ls -la", "Bash(ls -la)"),
        ("rm -rf build", "Bash(rm -rf build)"),
        ("git diff; rm -rf x", "Bash(git diff; rm -rf x)"),
        ("git -C x push", "Bash(git -C x push)"),
        ("git diff $(rm x)", "Bash(git diff $(rm x))"),
        ("git log\nrm x", ""),
        ("git log\rrm x", ""),
        ("echo 'open", ""),
    ],
)
def test_the_dialog_shows_the_command_and_the_narrowest_rule(bench: Workbench, command: str, rule: str) -> None:
    question = bench.ask("Bash", command=command, description="d")
    assert question is not None
    assert question.subject == command
    assert question.session_rule == rule


@pytest.mark.parametrize(
    ("command", "may_edit", "may_write"),
    [
        ("cat a.txt", True, True),
        ("cat 'a.txt'", True, True),
        ("head -n 1 a.txt", True, False),
        ("tail -1 a.txt", True, False),
        ("sed -n '1,2p' a.txt", True, False),
        ("grep o a.txt", True, False),
        ("cat a.txt b.txt", False, False),
        ("cat a.txt | head -1", False, False),
        ("cat a.txt > b.txt", False, False),
        ("cat a.*", False, False),
        ("cat $(echo a.txt)", False, False),
        ("wc a.txt", False, False),
        ("grep nothing a.txt", False, False),
        ("echo a.txt", False, False),
    ],
)
async def test_showing_one_file_counts_as_reading_it(
    bench: Workbench, command: str, may_edit: bool, may_write: bool
) -> None:
    bench.path("a.txt", "one\ntwo\n")
    bench.path("b.txt", "b\n")
    await bench.call("Bash", command=command)
    assert bench.can_succeed("Edit", file_path="a.txt", old_string="one", new_string="1") == may_edit
    assert bench.can_succeed("Write", file_path="a.txt", content="1") == may_write


async def test_a_file_shown_by_cat_is_still_read_with_line_numbers(bench: Workbench) -> None:
    bench.path("a.txt", "one\n")
    await bench.call("Bash", command="cat a.txt")
    assert (await bench.call("Read", file_path="a.txt")).text == "     1\tone"


async def test_a_stop_does_not_wait_for_the_shared_threads(bench: Workbench) -> None:
    """Searches may fill the thread pool; Esc must work all the same."""
    release = threading.Event()
    workers = [asyncio.get_running_loop().run_in_executor(None, release.wait) for _ in range(64)]
    try:
        call = asyncio.create_task(bench.call("Bash", command="echo ready; sleep 1000"))
        await until(lambda: bench.reported)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    finally:
        release.set()
        await asyncio.gather(*workers)
