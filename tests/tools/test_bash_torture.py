"""Commands that try to stay, to flood or to ask: nothing of them is left, and our memory stays small."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pyagent.tools.process_list import ProcLister, PsLister
from pyagent.tools.processes import MARKER_VARIABLE
from pyagent.tools.shell import ShellSession
from tests.tools.support import Workbench, memory_peak, reset_memory_peak, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="counts processes through /proc")

MEMORY_BYTES = 50 * 1024 * 1024


def survivors() -> list[str]:
    """Processes that were started by any command of this test process."""
    found = []
    for process in ProcLister().look("")[0]:
        try:
            environ = Path(f"/proc/{process.pid}/environ").read_bytes()
            command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        except OSError:
            continue
        if f"{MARKER_VARIABLE}=".encode() in environ and f"PYAGENT_TORTURE={os.getpid()}".encode() in environ:
            found.append(command.decode(errors="replace"))
    return found


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


FLOODS = {
    "yes": "yes",
    "random bytes": "cat /dev/urandom",
    "random bytes as text": "cat /dev/urandom | base64",
    "one endless line": "tr '\\0' x </dev/zero",
    "many short lines": "seq 1 3000000",
    "carriage returns for ever": "while :; do printf '\\rworking %s' $RANDOM; done",
    "an endless control string": "printf '\\033]52;c;'; tr '\\0' A </dev/zero",
    "colours for ever": "yes $'\\e[31mred\\e[0m\\e[1A'",
    "the alternate screen for ever": "printf '\\033[?1049h'; yes",
}

STAYERS = {
    "eight spinning children": "for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; echo ready; wait",
    "TERM ignored": "trap '' TERM; echo ready; while :; do sleep 1000; done",
    "TERM ignored by children": "for i in 1 2 3; do (trap '' TERM; while :; do :; done) & done; echo ready; wait",
    "setsid": "setsid sleep 1000 & setsid -f sleep 1000; echo ready; sleep 1000",
    "nohup": "nohup sleep 1000 >/dev/null 2>&1 & echo ready; sleep 1000",
    "double fork": "( ( setsid sh -c 'trap \"\" TERM; sleep 1000; sleep 1000' & ) & ); echo ready; sleep 1000",
    "stopped child": "sleep 1000 & kill -STOP $!; echo ready; sleep 1000",
    "children that hold the pipe": "sleep 1000 & sleep 1000 & echo ready; sleep 1000",
    "children that respawn": "f() { while :; do sleep 0.01; done; }; f & f & echo ready; sleep 1000",
    "closed output": "echo ready; exec >&- 2>&-; sleep 1000",
}


@pytest.fixture(autouse=True)
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYAGENT_TORTURE", str(os.getpid()))


@pytest.fixture
def torture_bench(tmp_path: Path, marked: None) -> Workbench:
    root = tmp_path / "project"
    root.mkdir()
    return Workbench(root)


@pytest.mark.parametrize("command", FLOODS.values(), ids=FLOODS.keys())
async def test_a_flood_stays_within_memory_and_ends(torture_bench: Workbench, command: str) -> None:
    for _ in range(2):
        await torture_bench.call("Bash", command="true")
        files, resident = open_files(), reset_memory_peak()
        result = await torture_bench.call("Bash", command=command, timeout=700)
        assert memory_peak() - resident < MEMORY_BYTES
        assert len(result.text) < 32_000
        assert not [char for char in result.text if char in "\x1b\x07\r\x9b"]
        assert open_files() == files
        assert survivors() == []
        for path in torture_bench.results_dir.glob("*"):
            assert path.stat().st_size <= 64 * 1024 * 1024
            path.unlink()


@pytest.mark.parametrize("command", STAYERS.values(), ids=STAYERS.keys())
async def test_a_timeout_leaves_nobody(torture_bench: Workbench, command: str) -> None:
    await torture_bench.call("Bash", command="true")
    files = open_files()
    for _ in range(2):
        result = await torture_bench.call("Bash", command=command, timeout=300)
        assert result.is_error
        assert survivors() == []
        assert open_files() == files
    assert torture_bench.shell.tasks == ()


@pytest.mark.skipif(shutil.which("ps") is None, reason="no ps")
@pytest.mark.parametrize("command", STAYERS.values(), ids=STAYERS.keys())
async def test_a_timeout_leaves_nobody_where_only_ps_knows_the_processes(
    torture_bench: Workbench, command: str
) -> None:
    torture_bench.shell = ShellSession(torture_bench.settings, use_login=False, lister=PsLister())
    await test_a_timeout_leaves_nobody(torture_bench, command)


@pytest.mark.skipif(shutil.which("ps") is None, reason="no ps")
def test_ps_and_proc_tell_the_same_of_our_processes() -> None:
    environ = {**os.environ, MARKER_VARIABLE: "this-one", "LINES": "one\ntwo"}
    words = ["sh", "-c", "echo up; sleep 1000; : 'a\nb'"]
    with subprocess.Popen(words, env=environ, start_new_session=True, stdout=subprocess.PIPE) as child:
        try:
            # Right after its start a process has no environment to read yet.
            assert child.stdout is not None
            assert child.stdout.readline() == b"up\n"
            (listed, marked), (in_proc, marked_in_proc) = (
                lister.look(f"{MARKER_VARIABLE}=this-one") for lister in (PsLister(), ProcLister())
            )
            ours = next(process for process in listed if process.pid == child.pid)
            same = next(process for process in in_proc if process.pid == child.pid)
            assert (ours.parent, ours.group, ours.session) == (same.parent, same.group, same.session)
            assert child.pid in marked
            assert marked <= marked_in_proc
        finally:
            os.killpg(child.pid, 9)


@pytest.mark.parametrize("command", STAYERS.values(), ids=STAYERS.keys())
async def test_a_cancel_leaves_nobody(torture_bench: Workbench, command: str) -> None:
    await torture_bench.call("Bash", command="true")
    files = open_files()
    for _ in range(2):
        torture_bench.reported.clear()
        call = asyncio.create_task(torture_bench.call("Bash", command=command))
        await until(lambda: torture_bench.reported)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert survivors() == []
        assert open_files() == files


async def test_four_at_once_are_all_stopped(torture_bench: Workbench) -> None:
    calls = [
        asyncio.create_task(torture_bench.call("Bash", command=f"echo {n}; sleep 1000 | sleep 1000")) for n in range(4)
    ]
    await until(lambda: len(torture_bench.reported) == 4)
    for call in calls:
        call.cancel()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError] * 4
    assert survivors() == []


async def test_a_second_cancel_does_not_leave_half(torture_bench: Workbench) -> None:
    call = asyncio.create_task(torture_bench.call("Bash", command="trap '' TERM; echo ready; while :; do :; done"))
    await until(lambda: torture_bench.reported)
    call.cancel()
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert survivors() == []


async def test_a_cancel_at_any_step_leaves_nobody(torture_bench: Workbench) -> None:
    """Cancelled after 0, 1, 2 … turns of the loop: before, while and after the shell is started."""
    await torture_bench.call("Bash", command="true")
    files = open_files()
    for turns in range(40):
        call = asyncio.create_task(torture_bench.call("Bash", command="setsid sleep 1000 & sleep 1000"))
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert survivors() == []
    assert open_files() == files


async def test_background_tasks_end_with_the_session(torture_bench: Workbench) -> None:
    files = open_files()
    for command in STAYERS.values():
        await torture_bench.call("Bash", command=command, run_in_background=True)
    await until(lambda: all(task.output.total_chars or task.text._row for task in torture_bench.shell.tasks))
    await torture_bench.shell.close()
    assert survivors() == []
    assert open_files() == files


ASKERS = {
    "read from the terminal": "read x </dev/tty",
    "sudo": "sudo -k true",
    "su": "su nobody-such -c true",
    "ssh": "ssh -o ConnectTimeout=2 -p 9 nobody@127.0.0.1 true",
    "python": "python3",
    "python input": "python3 -c 'input()'",
    "an editor by git": "git init -q . && git -c user.name=a -c user.email=a@b commit --allow-empty",
    "git credentials": "git ls-remote http://127.0.0.1:9/x.git",
    "rebase": (
        "git init -q r; cd r; git config user.name a; git config user.email a@b; for i in 1 2; do"
        " git commit -q --allow-empty -m $i; done; git rebase -i HEAD~1"
    ),
    "a pager": "seq 1000 | ${PAGER:-less} >/dev/null; git --paginate log >/dev/null; false",
    "crontab": "crontab -e; false",
    "gpg": "gpg --batch --gen-key; false",
    "openssl": "openssl genrsa -aes256 -out key 2048; false",
    "passwd": "passwd nobody-such",
    "ssh-keygen": "ssh-keygen -f key </dev/tty",
}


def _is_here(command: str) -> bool:
    program = command.split()[0]
    return program in ("read", "seq") or shutil.which(program) is not None


HERE = {name: command for name, command in ASKERS.items() if _is_here(command)}
"""Those of the askers that this machine has; most it must have."""


def test_most_programs_that_ask_are_there_to_be_tried() -> None:
    assert len(HERE) >= 8


@pytest.mark.parametrize("command", HERE.values(), ids=HERE.keys())
async def test_what_asks_fails_instead_of_waiting(torture_bench: Workbench, command: str) -> None:
    result = await torture_bench.call("Bash", command=command, timeout=20_000)
    assert "Killed after" not in result.text
    assert survivors() == []
    if command != "python3":
        assert result.is_error


async def test_git_says_that_there_is_no_editor(torture_bench: Workbench) -> None:
    result = await torture_bench.call("Bash", command=ASKERS["rebase"])
    assert "There is no editor here" in result.text
    assert result.is_error


def test_an_exit_without_a_goodbye_ends_the_tasks_too(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys; from pathlib import Path; from tests.tools.support import Workbench\n"
        "async def main():\n"
        "    bench = Workbench(Path(sys.argv[1]))\n"
        "    command = 'setsid sleep 1000 & trap \"\" TERM; sleep 1000; sleep 1000'\n"
        "    await bench.call('Bash', command=command, run_in_background=True)\n"
        "    return bench\n"
        "bench = asyncio.new_event_loop().run_until_complete(main())\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=root, check=True)
    assert survivors() == []
