"""Commands about where and on what the agent works: folders, memory files, tasks, and prompts made for it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from pyagent.agent.conversation import CommandHandler
from pyagent.agent.journal import Journal
from pyagent.agent.memory_files import LoadedMemory
from pyagent.agent.restore_sources import reminder
from pyagent.agent.session_folders import ADDED_DIRS, SessionFolders
from pyagent.commands import Command, RunCommand, SubmitPrompt
from pyagent.errors import UsageError
from pyagent.events import EventSink, Report, SettingMoved
from pyagent.log import SettingChanged, UserEntry
from pyagent.messages import TextBlock, scrub_surrogates
from pyagent.pages import MemoryPage, MemoryRow, TaskRow, TasksPage
from pyagent.tools.shell import ShellSession, ShellTask

TASK_OUTPUT_CHARS = 20_000
"""Of a task's output, the end; all of it stands in a file of the session."""


class PlaceCommands:
    """Handlers of `/add-dir`, `/cd`, `/memory`, `/init`, `/plan`."""

    def __init__(
        self,
        *,
        journal: Journal,
        emit: EventSink,
        send: Callable[[Command], None],
        folders: SessionFolders,
        memory: Callable[[], LoadedMemory],
        count_tokens: Callable[[str], int],
        state_home: Path,
    ) -> None:
        """`state_home` is pyagent's own folder: a memory file there is for every project."""
        self._journal = journal
        self._emit = emit
        self._send = send
        self._folders = folders
        self._memory = memory
        self._count_tokens = count_tokens
        self._state_home = state_home

    def handlers(self) -> dict[str, CommandHandler]:
        return {
            "add-dir": self.add_dir,
            "cd": self.change_dir,
            "init": self.init,
            "plan": self.plan,
        }

    async def add_dir(self, argument: str) -> None:
        """`/add-dir PATH`: the agent may work there too, in this session."""
        if not argument.strip():
            raise UsageError("Say which folder.", hint="For example: /add-dir ../library")
        folder = await asyncio.to_thread(self._folder, argument.strip())
        if any(folder == known or known in folder.parents for known in self._folders.allowed()):
            raise UsageError(f"{folder} is one of the session's folders already.")
        self._changed(ADDED_DIRS, "\n".join(str(known) for known in (*self._folders.added, folder)))
        self._tell_model("add-dir", f"The user has added a folder to work in: {folder}")
        self._emit(Report("Folders", "\n".join(str(known) for known in self._folders.allowed())))

    async def change_dir(self, argument: str) -> None:
        """`/cd PATH`: commands and relative paths start there from now on."""
        folder = await asyncio.to_thread(self._folder, argument.strip() or str(self._folders.start))
        if not any(folder == known or known in folder.parents for known in self._folders.allowed()):
            raise UsageError(f"{folder} is none of the session's folders.", hint=f"First: /add-dir {folder}")
        if folder == self._folders.cwd:
            raise UsageError(f"The working folder is {folder} already.")
        self._changed("cwd", str(folder))
        self._tell_model("cd", f"The user has changed the working folder to {folder}.")

    def _folder(self, words: str) -> Path:
        path = Path(os.path.realpath(self._folders.cwd / os.path.expanduser(words.strip("'\""))))
        if not path.is_dir():
            raise UsageError(f"There is no folder {path}.")
        return path

    def _changed(self, name: str, value: str) -> None:
        self._journal.commit(SettingChanged(name, value))
        self._emit(SettingMoved(name, value))

    def _tell_model(self, label: str, text: str) -> None:
        block = TextBlock(reminder(scrub_surrogates(text)))
        self._journal.commit(UserEntry((block,), origin="reminder", label=label))

    async def memory(self, argument: str) -> None:
        """`/memory`: the files of standing instructions that are loaded, and those that could be made."""
        loaded = await asyncio.to_thread(self._memory)
        rows = [MemoryRow(file.path, file.scope, self._count_tokens(file.text), True) for file in loaded.files]
        known = {row.path for row in rows}
        possible = new_memory_files(self._folders.start, self._state_home)
        rows += [MemoryRow(str(path), scope, 0, False) for path, scope in possible if str(path) not in known]
        data = {"files": [{"path": row.path, "tokens": row.tokens} for row in rows if row.is_loaded]}
        self._emit(Report("Memory", data=data, page=MemoryPage(tuple(rows), loaded.problems)))

    def init(self, argument: str) -> None:
        """`/init [wishes]`: have the model write the project's file of standing instructions."""
        text = (files("pyagent.agent") / "prompts" / "init.md").read_text("utf-8").strip()
        wishes = argument.strip()
        if wishes:
            text += f"\n\nThe user adds: {wishes}"
        self._send(SubmitPrompt(text, f"/init {wishes}".rstrip()))

    def plan(self, argument: str) -> None:
        """`/plan [task]`: into plan mode, and there with the task if one is given."""
        self._send(RunCommand("mode", "plan"))
        if argument.strip():
            self._send(SubmitPrompt(argument.strip()))


def new_memory_files(cwd: Path, home: Path) -> tuple[tuple[Path, str], ...]:
    """Where memory files could be made: for the project, for this person in it, and for every project."""
    # Beside an AGENTS.md a CLAUDE.md would take its place.
    project = () if (cwd / "AGENTS.md").exists() else ((cwd / "CLAUDE.md", "project"),)
    return (*project, (cwd / "CLAUDE.local.md", "local"), (home / "CLAUDE.md", "user"))


class TaskCommands:
    """The handler of `/tasks`."""

    def __init__(self, shell: ShellSession, *, emit: EventSink) -> None:
        self._shell = shell
        self._emit = emit

    async def handle(self, argument: str) -> None:
        """`/tasks`, `/tasks kill ID`."""
        verb, _, task_id = argument.strip().partition(" ")
        remark = ""
        if verb == "kill":
            remark = await self._kill(task_id.strip())
        elif verb:
            task = self._task(verb)
            self._emit(Report(f"{task.id}: {task.command}", _output(task) or "(no output yet)"))
            return
        rows = tuple(
            TaskRow(task.id, task.command, _state(task), _output(task)) for task in reversed(self._shell.tasks)
        )
        data = {"tasks": [{"id": row.id, "command": row.command, "state": row.state} for row in rows]}
        self._emit(Report("Background tasks", data=data, page=TasksPage(rows, remark)))

    def _task(self, task_id: str) -> ShellTask:
        task = self._shell.task(task_id)
        if task is None:
            raise UsageError(f"There is no background task {task_id!r}.", hint="/tasks lists them.")
        return task

    async def _kill(self, task_id: str) -> str:
        task = self._task(task_id)
        if task.state != "running":
            return f"{task.id} has ended already."
        survivors = await self._shell.stop(task)
        return f"{task.id} is ended." if not survivors else f"{survivors} processes of {task.id} could not be ended."


def _state(task: ShellTask) -> str:
    match task.state:
        case "running":
            return "running"
        case "killed":
            return "killed"
        case _:
            return "done" if task.exit_code == 0 else f"exit {task.exit_code}"


def _output(task: ShellTask) -> str:
    return (task.output.text() + task.text.partial_line)[-TASK_OUTPUT_CHARS:]
