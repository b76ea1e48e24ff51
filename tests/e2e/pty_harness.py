"""Runs a command in a real pseudo-terminal and shows tests its screen.

with Terminal.spawn([sys.executable, "-m", "pyagent"], home=tmp_path) as terminal:
    terminal.wait_for("❯")
    terminal.type("hello")
    terminal.press("enter")
    terminal.wait_for(lambda screen: "Done." in screen)
    terminal.press("ctrl+d")
    assert terminal.wait_for_exit() == 0
    terminal.assert_restored()
"""

import contextlib
import errno
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from tests.e2e.emulator import Emulator, Modes
from tests.e2e.screen_image import draw_screen

REPOSITORY = Path(__file__).resolve().parents[2]
WAIT_LIMIT_S = 60.0
"""How long a wait lasts before the test fails: generous, since a loaded machine is no failure."""
KILL_LIMIT_S = 30.0

_LAUNCH = (
    "import fcntl, os, signal, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "[signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)];"
    "os.execvp(sys.argv[1], sys.argv[1:])"
)
"""Run in the child's new session, so that the terminal is its controlling one and Ctrl+C and SIGWINCH reach it. The two
signals are ignored in what a shell starts in the background, which the tests may be, and not under a real terminal."""

_KEYS = {
    "enter": "\r",
    "tab": "\t",
    "shift+tab": "\x1b[Z",
    "esc": "\x1b",
    "space": " ",
    "backspace": "\x7f",
    "delete": "\x1b[3~",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "f1": "\x1bOP",
    "f2": "\x1bOQ",
    "ctrl+up": "\x1b[1;5A",
    "ctrl+down": "\x1b[1;5B",
    "ctrl+left": "\x1b[1;5D",
    "ctrl+right": "\x1b[1;5C",
    "shift+enter": "\x1b[13;2u",
    "ctrl+_": "\x1f",
    "ctrl+space": "\x00",
}


def key_bytes(name: str) -> bytes:
    """What a terminal sends for a key: a name as in "enter" or "ctrl+c", "alt+" and a key, or one character.

    Raises:
        ValueError: there is no such key.
    """
    if name in _KEYS:
        return _KEYS[name].encode()
    if name.startswith("alt+"):
        return b"\x1b" + key_bytes(name.removeprefix("alt+"))
    letter = name.removeprefix("ctrl+")
    if name != letter and len(letter) == 1 and letter.isalpha():
        return bytes([ord(letter.upper()) - ord("@")])
    if len(name) == 1:
        return name.encode()
    raise ValueError(f"no key {name!r}")


def isolated_environment(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment with its own home and without anything of the person who runs the tests."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(REPOSITORY),
        "GIT_CONFIG_NOSYSTEM": "1",
        **(extra or {}),
    }


class Terminal:
    """A command in a pseudo-terminal. All waiting is for conditions on the screen."""

    def __init__(
        self, process: subprocess.Popen[bytes], master_fd: int, emulator: Emulator, attributes: list[object]
    ) -> None:
        self._process, self._master_fd, self._emulator = process, master_fd, emulator
        self._first_attributes = attributes
        self._wake_fd, self._wake_end_fd = os.pipe()
        self._changed = threading.Condition()
        self._output = bytearray()
        self._is_closed = False
        self._reads = threading.Event()
        self._reads.set()
        self._reader = threading.Thread(target=self._read, name="pty-reader", daemon=True)
        self._reader.start()

    @classmethod
    def spawn(
        cls,
        argv: Sequence[str],
        *,
        home: Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        columns: int = 80,
        lines: int = 24,
        has_kitty_keyboard: bool = False,
    ) -> "Terminal":
        """Start the command in a session of its own, with `home` as HOME and, unless `cwd` says otherwise, folder."""
        master_fd, slave_fd = pty.openpty()
        _set_size(slave_fd, columns, lines)
        attributes = _line_discipline(slave_fd)
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _LAUNCH, *argv],
                stdin=slave_fd,
                stdout=slave_fd,
                stderr=slave_fd,
                cwd=cwd or home,
                env=isolated_environment(home, env),
                start_new_session=True,
            )
        except OSError:
            os.close(master_fd)
            raise
        finally:
            os.close(slave_fd)
        emulator = Emulator(columns, lines, has_kitty_keyboard=has_kitty_keyboard)
        return cls(process, master_fd, emulator, attributes)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # What is on the screen

    @property
    def text(self) -> str:
        """The screen, a line each, without trailing blanks."""
        with self._changed:
            return "\n".join(self._emulator.lines)

    @property
    def cells(self) -> list[list[str]]:
        """What stands in each cell of each row; the second cell of a wide character is empty."""
        with self._changed:
            screen = self._emulator.screen
            return [[screen.buffer[y][x].data for x in range(screen.columns)] for y in range(screen.lines)]

    @property
    def scrollback(self) -> str:
        """What has scrolled out of the main screen, and the screen below it."""
        with self._changed:
            return "\n".join([*self._emulator.scrollback, *self._emulator.lines])

    @property
    def output(self) -> bytes:
        """Every byte the command has written."""
        with self._changed:
            return bytes(self._output)

    @property
    def modes(self) -> Modes:
        """The modes the command has set; they change as it writes."""
        return self._emulator.modes

    @property
    def cursor(self) -> tuple[int, int]:
        """Column and line of the cursor, from 0."""
        with self._changed:
            return self._emulator.screen.cursor.x, self._emulator.screen.cursor.y

    @property
    def pid(self) -> int:
        return self._process.pid

    def screenshot(self, path: Path | BinaryIO) -> None:
        """Write the screen as a PNG."""
        with self._changed:
            picture = draw_screen(self._emulator.screen, shows_cursor=self._emulator.modes.is_cursor_visible)
        picture.save(path, "PNG")

    # What a person does

    def send(self, data: str | bytes) -> None:
        """Send bytes as they are."""
        left = data.encode() if isinstance(data, str) else data
        while left:
            left = left[os.write(self._master_fd, left) :]

    def type(self, text: str) -> None:
        """Send text key by key."""
        for char in text:
            self.send(key_bytes(char))

    def press(self, *names: str) -> None:
        """Press keys, by name; see `key_bytes`."""
        for name in names:
            self.send(key_bytes(name))

    def paste(self, text: str) -> None:
        """Paste: bracketed if the command has asked for it, else as the keys a plain terminal sends."""
        lines = text.replace("\n", "\r")
        self.send(f"\x1b[200~{lines}\x1b[201~" if self.modes.has_bracketed_paste else lines)

    def resize(self, columns: int, lines: int) -> None:
        """Change the window's size; the kernel sends SIGWINCH."""
        with self._changed:
            self._emulator.resize(columns, lines)
        _set_size(self._master_fd, columns, lines)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the command."""
        self._process.send_signal(number)

    def wait_until_stopped(self) -> None:
        """Wait until the command is suspended: a SIGCONT that came before would be lost."""
        deadline = time.monotonic() + WAIT_LIMIT_S
        asked = ["ps", "-o", "state=", "-p", str(self._process.pid)]
        while not subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip().startswith("T"):
            if time.monotonic() > deadline:
                raise AssertionError(f"{WAIT_LIMIT_S:g} s passed, and the command still runs")

    def wait_until_cooked(self) -> None:
        """Wait until the line discipline is what it was at the start, so that Ctrl+C is a signal again."""
        deadline = time.monotonic() + WAIT_LIMIT_S
        while _line_discipline(self._master_fd) != self._first_attributes:
            if time.monotonic() > deadline:
                raise AssertionError(f"{WAIT_LIMIT_S:g} s passed, and keys are still not lines")

    def hang_up(self) -> None:
        """Close the window: the command gets SIGHUP, and its terminal is gone."""
        self._close_master()

    def pause_reading(self) -> None:
        """Stop taking output, as a terminal does on Ctrl+S; the command blocks once the buffers are full."""
        self._reads.clear()

    def wait_for_unread_output(self) -> None:
        """While reading is paused: wait until the command has written something that nobody took."""
        deadline = time.monotonic() + WAIT_LIMIT_S
        while time.monotonic() < deadline:
            if struct.unpack("i", fcntl.ioctl(self._master_fd, termios.FIONREAD, b"\0" * 4))[0]:
                return
        raise AssertionError(f"{WAIT_LIMIT_S:g} s passed, and the command wrote nothing")

    def resume_reading(self) -> None:
        """Take output again."""
        self._reads.set()

    # Waiting

    def wait_for(self, wanted: str | Callable[[str], bool], *, timeout_s: float = WAIT_LIMIT_S) -> str:
        """Wait until the screen holds a text or satisfies a predicate on its text; gives the screen's text.

        Half-drawn synchronised updates are not looked at.

        Raises:
            AssertionError: the command ended, or the time passed, before it did.
        """
        holds = (lambda text: wanted in text) if isinstance(wanted, str) else wanted
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while True:
                text = "\n".join(self._emulator.lines)
                if self._emulator.is_settled and holds(text):
                    return text
                left_s = deadline - time.monotonic()
                if left_s <= 0 or self._is_closed:
                    why = "the command ended" if self._is_closed else f"{timeout_s:g} s passed"
                    raise AssertionError(f"{why} while waiting for {wanted!r}; the screen:\n{text}")
                self._changed.wait(left_s)

    def wait_until(self, holds: Callable[["Terminal"], bool], *, timeout_s: float = WAIT_LIMIT_S) -> None:
        """Wait until a condition on the terminal holds: its modes, output or scrollback.

        Raises:
            AssertionError: it did not before the command ended or the time passed.
        """
        self.wait_for(lambda _: holds(self), timeout_s=timeout_s)

    def wait_for_exit(self, *, timeout_s: float = WAIT_LIMIT_S) -> int:
        """Wait for the command's end and for all its output; gives its exit status, negative for a signal.

        Raises:
            AssertionError: it was still running.
        """
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"still running after {timeout_s:g} s; the screen:\n{self.text}") from error
        self._reader.join(timeout_s)
        return status

    def assert_restored(self) -> None:
        """Every mode is off again and the line discipline is as it was.

        Raises:
            AssertionError: naming what is left on.
        """
        left = self.modes.leftovers()
        if _line_discipline(self._master_fd) != self._first_attributes:
            left.append("line discipline (raw mode or no echo)")
        assert not left, f"left on at exit: {', '.join(left)}"

    # The end

    def close(self) -> None:
        """End the command, with what it left in its process group, and the terminal."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(KILL_LIMIT_S)
        self._close_master()

    def _close_master(self) -> None:
        if self._master_fd < 0:
            return
        # A read in progress would keep the terminal open, so the reader has to stop first.
        os.close(self._wake_end_fd)
        self._reads.set()
        self._reader.join(KILL_LIMIT_S)
        os.close(self._wake_fd)
        os.close(self._master_fd)
        self._master_fd = -1

    def _read(self) -> None:
        while True:
            self._reads.wait()
            data = self._read_some()
            with self._changed:
                if data:
                    self._output += data
                    self._emulator.feed(data)
                    replies = self._emulator.take_replies()
                else:
                    self._is_closed = True
                self._changed.notify_all()
            if not data:
                return
            if replies:
                with contextlib.suppress(OSError):
                    self.send(replies)

    def _read_some(self) -> bytes:
        ready, _, _ = select.select([self._master_fd, self._wake_fd], [], [])
        if self._wake_fd in ready:
            return b""
        try:
            return os.read(self._master_fd, 1 << 16)
        except OSError as error:
            # EIO is how Linux reports that the last process has closed the terminal.
            if error.errno != errno.EIO:
                raise
            return b""


def _line_discipline(fd: int) -> list[object]:
    """The terminal's input, output, control and local flags."""
    return list(termios.tcgetattr(fd)[:4])


def _set_size(fd: int, columns: int, lines: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
