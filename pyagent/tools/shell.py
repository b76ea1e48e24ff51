"""The session's shell: one environment, commands as process trees with bounded output, and the background tasks."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import fcntl
import os
import secrets
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from pyagent.errors import PyagentError
from pyagent.settings import Settings
from pyagent.tools.login_shell import LoginShell, ask_login_shell
from pyagent.tools.output import BoundedOutput
from pyagent.tools.paths import is_within
from pyagent.tools.process_list import ProcessLister, system_lister
from pyagent.tools.processes import MARKER_VARIABLE, ProcessTree
from pyagent.tools.shell_environment import child_environment
from pyagent.tools.shell_words import ShellWords, shell_words
from pyagent.tools.terminal_text import TerminalText
from pyagent.tools.tool import ToolContext

READ_BYTES = 65_536
DRAIN_BYTES = 1024 * 1024
"""Most read after the shell has exited: the largest a pipe may hold. A child that keeps writing must not hold us."""
TIMEOUT_GRACE_S = 2.0
"""Time between SIGTERM and SIGKILL at a timeout: enough for a test runner to print what it has."""
CANCEL_GRACE_S = 0.1
"""The same when the user pressed Esc, who sees everything stopped within 200 ms."""
LIVE_CHARS = 4_000
"""Most text handed to the screen at once; a screen shows less anyway."""
LIVE_INTERVAL_S = 0.1
QUIET_INTERVALS = 5
"""After so many intervals without output an unfinished line is shown too: it may be a question."""
UNREAD_CHARS = 30_000
"""Output of a background task kept for the next look at it; of more, head and tail."""
LEFTOVER_POLL_S = 1.0
"""How often it is looked whether a job left behind by a command still lives: only the list of tasks depends on it."""
FIRST_PRIVATE_FD = 100
"""The descriptor over which a command tells its last working directory lies above those scripts use."""

TaskState: TypeAlias = Literal["running", "finished", "killed"]
ResultT = TypeVar("ResultT")


@dataclass(slots=True, eq=False)
class ShellTask:
    """One command, running or done. Foreground calls and background tasks are the same thing."""

    id: str
    command: str
    tree: ProcessTree
    output: BoundedOutput
    unread: BoundedOutput
    text: TerminalText
    state: TaskState = "running"
    exit_code: int | None = None
    """Negative for a signal, as `subprocess` has it."""
    final_cwd: Path | None = None
    has_open_output: bool = True
    is_background: bool = False
    _live: str = ""
    _partial_shown: str = ""
    done: asyncio.Event = field(default_factory=asyncio.Event)
    """The shell has exited and what it wrote is read, even if a job it left behind still runs."""
    let_go: asyncio.Event = field(default_factory=asyncio.Event)
    """The person wants it to go on in the background: nobody waits for it any more."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    watcher: asyncio.Task[None] | None = None

    def take_live(self) -> str:
        """Lines completed since the last call, the newest `LIVE_CHARS` of them."""
        live, self._live = self._live, ""
        if live.startswith(self._partial_shown):
            live = live[len(self._partial_shown) :]
            self._partial_shown = "" if live else self._partial_shown
        return live

    def take_partial(self) -> str:
        """The unfinished last line, as far as it was not shown yet."""
        partial = self.text.partial_line[-LIVE_CHARS:]
        fresh = partial[len(self._partial_shown) :] if partial.startswith(self._partial_shown) else partial
        self._partial_shown = partial
        return fresh

    def take_unread(self) -> str:
        """Output since the last look, with the line that is not finished yet."""
        self.text.flush_lines()
        seen = self.unread.text()
        self.unread.close()
        self.unread = BoundedOutput(UNREAD_CHARS)
        return seen + (self.text.partial_line if self.state == "running" else "")

    def keep_live(self, text: str) -> None:
        self._live = (self._live + text)[-LIVE_CHARS:]

    def keep(self, text: str) -> None:
        self.output.add(text)
        self.unread.add(text)


class ShellSession:
    """Runs commands for one conversation and owns every process they start, until `close`."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        use_login: bool = True,
        lister: ProcessLister | None = None,
    ) -> None:
        self._lister = lister or system_lister()
        self._settings = settings or Settings()
        self._environ = dict(os.environ if environ is None else environ)
        self._use_login = use_login
        self._login: asyncio.Task[LoginShell] | None = None
        self.on_change: Callable[[], None] = lambda: None
        """Called when a background task begins or ends."""
        self._tasks: dict[str, ShellTask] = {}
        self._running: set[ShellTask] = set()
        self._count = 0
        _SESSIONS.add(self)

    @property
    def tasks(self) -> tuple[ShellTask, ...]:
        """Background tasks, oldest first."""
        return tuple(self._tasks.values())

    def task(self, task_id: str) -> ShellTask | None:
        return self._tasks.get(task_id)

    async def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """What commands see. The login shell is asked once, when the first command needs it."""
        login = await self._asked()
        return child_environment(self._environ, login.environment, extra, self._settings.bash_allowed_secrets)

    async def _asked(self) -> LoginShell:
        if not self._use_login:
            return LoginShell()
        if self._login is None:
            self._login = asyncio.create_task(ask_login_shell(self._environ))
        return await asyncio.shield(self._login)

    async def start(self, command: str, *, cwd: Path, env: Mapping[str, str], results_dir: Path) -> ShellTask:
        """Start a command in its own session, without a terminal and with nothing to read.

        Raises:
            PyagentError: the shell could not be started.
        """
        environment = await self.environment(env)
        definitions = (await self._asked()).definitions
        self._count += 1
        task_id = f"bash_{self._count}"
        marker = secrets.token_hex(16)
        environment[MARKER_VARIABLE] = marker
        environment["PWD"] = str(cwd)
        read_end, write_end = os.pipe()
        cwd_read, cwd_write = os.pipe()
        try:
            private_end = fcntl.fcntl(cwd_write, fcntl.F_DUPFD_CLOEXEC, FIRST_PRIVATE_FD)
        except OSError:
            private_end = os.dup(cwd_write)
        os.close(cwd_write)
        try:
            with shell_words(command, definitions, private_end) as words:
                process = await _spawned(words, cwd, environment, write_end, private_end)
        except BaseException as error:
            os.close(read_end)
            os.close(cwd_read)
            if isinstance(error, OSError | ValueError):
                reason = error.strerror if isinstance(error, OSError) else str(error)
                raise PyagentError(f"The command could not be started: {reason}.") from error
            raise
        finally:
            os.close(write_end)
            os.close(private_end)

        output = BoundedOutput(
            self._settings.bash_max_output_chars, lambda: results_dir / f"{task_id}-{marker[:8]}.txt"
        )
        task = ShellTask(
            task_id,
            command,
            ProcessTree(process.pid, marker, lister=self._lister),
            output,
            BoundedOutput(UNREAD_CHARS),
            TerminalText(lambda text: task.keep(text), lambda text: task.keep_live(text)),
        )
        os.set_blocking(read_end, False)
        os.set_blocking(cwd_read, False)
        asyncio.get_running_loop().add_reader(read_end, _read_once, task, read_end)
        self._running.add(task)
        task.watcher = asyncio.create_task(self._watch(task, process, read_end, cwd_read))
        return task

    def keep_in_background(self, task: ShellTask) -> None:
        """From now on the task is listed, and can be read and killed by its id."""
        task.is_background = True
        self._tasks[task.id] = task
        self.on_change()

    @property
    def running_count(self) -> int:
        """Background tasks that have not ended."""
        return sum(task.state == "running" for task in self._tasks.values())

    def let_run_on(self) -> tuple[ShellTask, ...]:
        """Leave every command that is waited for to the background; which these were."""
        waited_for = tuple(task for task in self._running if not task.is_background and not task.done.is_set())
        for task in waited_for:
            self.keep_in_background(task)
            task.let_go.set()
        return waited_for

    async def stop(self, task: ShellTask, *, grace_s: float = TIMEOUT_GRACE_S) -> int:
        """End the whole tree; returns how many processes survived even SIGKILL. A cancel waits until it is done."""
        if task.state == "running":
            task.state = "killed"
        return await uninterrupted(self._stop(task, grace_s))

    async def _stop(self, task: ShellTask, grace_s: float) -> int:
        survivors = await in_own_thread(lambda: task.tree.end(grace_s))
        task.stopping.set()
        if task.watcher is not None and not survivors:
            await task.watcher
        return survivors

    async def close(self) -> None:
        """End everything that still runs."""
        await asyncio.gather(*(self.stop(task, grace_s=CANCEL_GRACE_S) for task in tuple(self._running)))
        if self._login is not None:
            self._login.cancel()
            await asyncio.gather(self._login, return_exceptions=True)
        _SESSIONS.discard(self)

    def kill_all(self) -> None:
        """The last resort at interpreter exit, when no loop runs any more. Blocks."""
        for task in tuple(self._running):
            task.tree.end(CANCEL_GRACE_S)

    async def _watch(self, task: ShellTask, process: asyncio.subprocess.Process, read_end: int, cwd_read: int) -> None:
        task.exit_code = await process.wait()
        task.tree.is_leader_reaped = True
        task.final_cwd = _last_directory(cwd_read)
        os.close(cwd_read)
        _drain(task, read_end)
        if task.state == "running" and (task.has_open_output or task.tree.has_group()):
            find = task.tree.members if task.has_open_output else task.tree.in_session
            leftovers = await asyncio.to_thread(find)
            if leftovers:
                self.keep_in_background(task)
                task.done.set()
            while leftovers and not task.stopping.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(task.stopping.wait(), LEFTOVER_POLL_S)
                leftovers = await asyncio.to_thread(find)
        if task.has_open_output:
            _drain(task, read_end)
            asyncio.get_running_loop().remove_reader(read_end)
            task.has_open_output = False
        os.close(read_end)
        task.text.finish()
        task.output.close()
        task.unread.close()
        if task.state == "running":
            task.state = "finished"
        self._running.discard(task)
        task.done.set()
        if task.is_background:
            self.on_change()


async def _spawned(
    words: ShellWords, cwd: Path, environment: dict[str, str], output_fd: int, private_fd: int
) -> asyncio.subprocess.Process:
    """The started shell. A cancel in this very moment ends what has been started by then."""
    started: list[asyncio.subprocess.Process] = []

    async def spawn() -> None:
        process = await asyncio.create_subprocess_exec(
            *words.words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output_fd,
            stderr=output_fd,
            cwd=cwd,
            env=environment,
            start_new_session=True,
            pass_fds=(private_fd,) if words.file is None else (private_fd, words.file),
        )
        started.append(process)

    async def end(process: asyncio.subprocess.Process) -> None:
        tree = ProcessTree(process.pid, environment[MARKER_VARIABLE])
        await in_own_thread(lambda: tree.end(0))
        await process.wait()

    try:
        await uninterrupted(spawn())
    except asyncio.CancelledError:
        for process in started:
            await uninterrupted(end(process))
        raise
    return started[0]


async def in_own_thread(work: Callable[[], ResultT]) -> ResultT:
    """Run it in a thread of its own: stopping a command must not queue behind searches in the shared pool."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[ResultT] = loop.create_future()

    def run() -> None:
        try:
            value = work()
        except BaseException as error:
            loop.call_soon_threadsafe(result.set_exception, error)
        else:
            loop.call_soon_threadsafe(result.set_result, value)

    threading.Thread(target=run, name="pyagent-stop", daemon=True).start()
    return await result


async def uninterrupted(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Finish `work` even if the caller is cancelled meanwhile; the cancel is raised afterwards."""
    inner = asyncio.ensure_future(work)
    cancel: asyncio.CancelledError | None = None
    while not inner.done():
        try:
            await asyncio.shield(inner)
        except asyncio.CancelledError as error:
            cancel = error
    if cancel is not None:
        raise cancel
    return inner.result()


def next_directory(task: ShellTask, context: ToolContext) -> tuple[Path | None, str]:
    """Where the next command starts if that changes, and what to say if it is not where this one went."""
    final = task.final_cwd
    if final is None or final == context.cwd:
        return None, ""
    if os.path.isdir(final) and is_within(final, context.allowed_dirs):
        return final, ""
    project = context.allowed_dirs[0]
    return project, f"The working directory was reset to {project}: {final} is not inside the project."


def _read_once(task: ShellTask, descriptor: int) -> int:
    """Take in what the pipe holds, one piece of it; 0 at its end, -1 when it is empty for now."""
    try:
        data = os.read(descriptor, READ_BYTES)
    except BlockingIOError:
        return -1
    if data:
        task.text.feed(data)
    elif task.has_open_output:
        asyncio.get_running_loop().remove_reader(descriptor)
        task.has_open_output = False
    return len(data)


def _drain(task: ShellTask, descriptor: int) -> None:
    left_bytes = DRAIN_BYTES
    while task.has_open_output and left_bytes > 0 and (count := _read_once(task, descriptor)) > 0:
        left_bytes -= count


def _last_directory(descriptor: int) -> Path | None:
    try:
        text = os.read(descriptor, READ_BYTES)
    except BlockingIOError:
        return None
    # Subshells end too, but run no trap of their own; the last complete line is the shell's.
    lines = text.split(b"\n")
    return Path(os.fsdecode(lines[-2])) if len(lines) > 1 and lines[-2].startswith(b"/") else None


_SESSIONS: weakref.WeakSet[ShellSession] = weakref.WeakSet()


@atexit.register
def _end_all_sessions() -> None:
    for session in tuple(_SESSIONS):
        session.kill_all()
