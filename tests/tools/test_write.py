"""Write: a whole file, new or known; and that a failure leaves the old one."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pyagent.tools.atomic import FileChangedError, write_atomically
from pyagent.tools.write import WriteInput, WriteTool
from tests.tools.support import Workbench


@pytest.mark.parametrize(("content", "count"), [("milk", "1 line"), ("milk\n", "1 line"), ("a\nb", "2 lines")])
def test_a_call_is_named_with_the_number_of_its_lines(content: str, count: str) -> None:
    tool_input = WriteInput.model_validate({"file_path": "notes.txt", "content": content})
    assert WriteTool().summary(tool_input) == f"Write notes.txt ({count})"


async def test_a_new_file_gets_its_folders_and_the_umask(bench: Workbench) -> None:
    result = await bench.call("Write", file_path="a/b/c.txt", content="é\n")
    path = bench.root / "a/b/c.txt"
    assert path.read_bytes() == "é\n".encode()
    plain = bench.root / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    assert result.display["summary"] == "+1 -0"
    assert result.files_seen[0].how == "write"


@pytest.mark.parametrize(
    ("situation", "before", "content", "after"),
    [
        ("LF is replaced as given", b"a\n", "b\nc", b"b\nc"),
        ("CRLF stays CRLF", b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        ("a UTF-8 mark stays", b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        ("UTF-16 stays", "a\n".encode("utf-16"), "é\n", "é\n".encode("utf-16")),
        ("Latin-1 stays where it can", b"caf\xe9\n", "th\xe9\n", b"th\xe9\n"),
        ("Latin-1 becomes UTF-8 where it must", b"caf\xe9\n", "→\n", "→\n".encode()),
        ("emptied", b"a\n", "", b""),
        ("mixed line ends are replaced as given", b"a\r\nb\n", "x\ny\n", b"x\ny\n"),
    ],
)
async def test_a_file_that_was_read_is_replaced(
    bench: Workbench, situation: str, before: bytes, content: str, after: bytes
) -> None:
    path = bench.path("a.txt", before)
    await bench.call("Read", file_path="a.txt")
    await bench.call("Write", file_path="a.txt", content=content)
    assert path.read_bytes() == after


async def test_what_the_model_does_not_know_is_not_replaced(bench: Workbench) -> None:
    unread = bench.path("unread.txt", "a\n")
    partly = bench.path("partly.txt", "a\nb\n")
    await bench.call("Read", file_path="partly.txt", limit=1)
    changed = bench.path("changed.txt", "a\n")
    await bench.call("Read", file_path="changed.txt")
    changed.write_text("a\nforeign\n")
    for path, word in ((unread, "not been read"), (partly, "Only a part"), (changed, "has changed")):
        before = path.read_bytes()
        result = await bench.call("Write", file_path=str(path), content="new")
        assert result.is_error
        assert word in result.text
        assert path.read_bytes() == before


async def test_a_touch_is_no_change(bench: Workbench) -> None:
    path = bench.path("a.txt", "a\n")
    await bench.call("Read", file_path="a.txt")
    os.utime(path, (1, 1))
    assert not (await bench.call("Write", file_path="a.txt", content="b\n")).is_error


async def test_what_was_written_may_be_written_again(bench: Workbench) -> None:
    await bench.call("Write", file_path="a.txt", content="1\n")
    result = await bench.call("Write", file_path="a.txt", content="2\n")
    assert not result.is_error
    assert result.display["summary"] == "+1 -1"


async def test_a_path_through_a_file_is_refused(bench: Workbench) -> None:
    bench.path("a", "x")
    assert (await bench.call("Write", file_path="a/b.txt", content="y")).is_error
    assert (await bench.call("Write", file_path=".", content="y")).is_error


async def test_a_dangling_link_creates_its_target(bench: Workbench) -> None:
    (bench.root / "link").symlink_to("target")
    await bench.call("Write", file_path="link", content="x")
    assert (bench.root / "link").is_symlink()
    assert (bench.root / "target").read_text() == "x"


async def test_a_lone_surrogate_is_replaced_and_never_fatal(bench: Workbench) -> None:
    await bench.call("Write", file_path="a.txt", content="a\ud83d\n")
    assert (bench.root / "a.txt").read_text() == "a\ufffd\n"


def test_a_change_in_the_last_moment_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"foreign")
    with pytest.raises(FileChangedError):
        write_atomically(path, b"new", expected=b"old")
    with pytest.raises(FileChangedError):
        write_atomically(path, b"new", expected=None)
    assert path.read_bytes() == b"foreign"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("is_linked", [False, True], ids=["single", "hard-linked"])
def test_a_full_disk_leaves_the_original(tmp_path: Path, is_linked: bool) -> None:
    """A limit on the size of files stands for the full disk: the write fails half way, with an error."""
    path = tmp_path / "a"
    old = b"old\n" * 1_000
    path.write_bytes(old)
    if is_linked:
        os.link(path, tmp_path / "b")
    script = (
        "import resource, signal, sys; from pathlib import Path; from pyagent.tools.atomic import write_atomically\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, 8_000))\n"
        "path = Path(sys.argv[1])\n"
        "try: write_atomically(path, b'new\\n' * 10_000, expected=path.read_bytes())\n"
        "except OSError as error: sys.exit(7)\n"
    )
    code = subprocess.run([sys.executable, "-c", script, str(path)], check=False).returncode
    assert code == 7
    assert path.read_bytes() == old
    assert sorted(os.listdir(tmp_path)) == (["a", "b"] if is_linked else ["a"])


@pytest.mark.parametrize("situation", ["a folder that takes no new names", "a file of somebody else"])
def test_what_cannot_be_replaced_is_written_in_place(situation: str) -> None:
    """Tried as a plain user, since root may do anything."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "a"
        path.write_bytes(b"old")
        path.chmod(0o666)
        folder.chmod(0o755 if situation.startswith("a folder") else 0o777)
        before = path.stat()
        if os.geteuid() == 0:
            user = 65_534
        elif situation.startswith("a folder"):
            user = os.geteuid()
            folder.chmod(0o555)
        else:
            pytest.skip("only root can make a file of somebody else")
        script = (
            "import os, sys; from pathlib import Path; from pyagent.tools.atomic import write_atomically\n"
            "os.setuid(int(sys.argv[2])) if os.geteuid() != int(sys.argv[2]) else None\n"
            "write_atomically(Path(sys.argv[1]), b'new', expected=b'old')\n"
        )
        subprocess.run([sys.executable, "-c", script, str(path), str(user)], check=True)
        folder.chmod(0o755)
        after = path.stat()
        assert path.read_bytes() == b"new"
        assert (after.st_ino, after.st_uid, after.st_mode) == (before.st_ino, before.st_uid, before.st_mode)
        assert os.listdir(folder) == ["a"]


async def test_a_link_in_a_circle_is_refused(bench: Workbench) -> None:
    (bench.root / "loop").symlink_to("loop")
    assert "leads back to itself" in (await bench.call("Write", file_path="loop", content="x")).text
    assert (await bench.call("Read", file_path="loop")).is_error


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "~no-such-user/a", "a\nb", "\ud83d"])
async def test_odd_paths_are_errors_for_the_model_or_work(bench: Workbench, name: str) -> None:
    for tool, fields in (("Read", {}), ("Write", {"content": "x"}), ("Edit", {"old_string": "a", "new_string": "b"})):
        bench.can_succeed(tool, file_path=name, **fields)
        assert (await bench.call(tool, file_path=name, **fields)).text


def test_a_kill_at_any_moment_leaves_old_or_new(tmp_path: Path) -> None:
    """Killed while it replaces a file over and over: what is there is always whole."""
    path = tmp_path / "a"
    versions = (b"1" * 300_000, b"2" * 300_000)
    path.write_bytes(versions[0])
    script = (
        "import sys; from pathlib import Path; from pyagent.tools.atomic import write_atomically\n"
        "path = Path(sys.argv[1]); print('ready', flush=True)\n"
        "a, b = b'1' * 300_000, b'2' * 300_000\n"
        "while True: write_atomically(path, b, expected=a); write_atomically(path, a, expected=b); print(flush=True)\n"
    )
    for rounds in range(1, 6):
        path.write_bytes(versions[0])
        with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(rounds):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
        assert path.read_bytes() in versions
