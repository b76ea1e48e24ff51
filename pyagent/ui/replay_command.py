"""`pyagent context replay`: what a recorded session would have cost under each policy of the context pipeline."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from pyagent.errors import UsageError

USAGE = "pyagent context replay SESSION [--window N] [--model MODEL] [--set key=value]… [--totals]"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message[:1].upper() + message[1:] + ".", hint=f"Usage: {USAGE}")


def run_context_command(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run `context …`; the words after it are given.

    Raises:
        PyagentError: the session cannot be read, or the arguments mean nothing.
    """
    if not argv or argv[0] != "replay":
        raise UsageError("The context command is: context replay.", hint=f"Usage: {USAGE}")
    parser = _Parser(prog="pyagent context replay", usage=USAGE, allow_abbrev=False)
    parser.add_argument("session", help="a session file, an id, or words of its title")
    parser.add_argument("--window", type=int, metavar="N", help="context window in tokens (the model's by default)")
    parser.add_argument("--model", default="", metavar="MODEL", help="prices and limits of this model")
    parser.add_argument("--set", dest="changes", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--totals", action="store_true", help="only the last table")
    args = parser.parse_args(list(argv[1:]))
    for line in asyncio.run(_report(args, environ)):
        print(line)
    return 0


async def _report(args: argparse.Namespace, environ: Mapping[str, str]) -> list[str]:
    from pyagent.agent.encoding import LocalEncoding
    from pyagent.agent.replay import Replayed, replay, standard_policies
    from pyagent.agent.session_store import read_session
    from pyagent.agent.setting_schema import with_settings_text
    from pyagent.agent.wire.catalogue import model_info
    from pyagent.choices import MIN_WINDOW_TOKENS
    from pyagent.log import AssistantEntry
    from pyagent.settings import Settings

    path = await asyncio.to_thread(_session_path, args.session, environ)
    loaded = await asyncio.to_thread(read_session, path)
    models = [r.payload.model for r in loaded.records if isinstance(r.payload, AssistantEntry)]
    if not models:
        raise UsageError(f"{os.fspath(path)} holds no answer to replay.")
    model = model_info(args.model or models[-1])
    window = args.window or model.window_tokens
    if window < MIN_WINDOW_TOKENS:
        raise UsageError(f"--window needs at least {MIN_WINDOW_TOKENS:,} tokens.")
    settings = Settings()
    for change in args.changes:
        settings = with_settings_text(settings, change)
    encoding = LocalEncoding()
    await encoding.ready()
    runs: list[Replayed] = [
        await replay(loaded.records, policy, encoding, model, window_tokens=window)
        for policy in standard_policies(settings.compaction)
    ]
    lines = [f"{path.name} · {model.id} · window {window:,} · {len(runs[0].calls):,} calls (local estimate)", ""]
    if not args.totals:
        for run in runs:
            lines += [f"── {run.policy}", f"{'call':>5} {'sent':>9} {'cached':>9} {'billed $':>9}"]
            for number, call in enumerate(run.calls, start=1):
                billed = call.usd + call.background_usd
                events = "  " + "; ".join(call.events) if call.events else ""
                lines.append(f"{number:>5} {call.sent_tokens:>9,} {call.cached_tokens:>9,} {billed:>9.4f}{events}")
            lines.append("")
    lines.append(
        f"{'policy':<12} {'refused':>7} {'sent':>13} {'cached':>7} {'summaries':>9} {'notes':>6} {'bill $':>9}"
    )
    lines += [
        f"{run.policy:<12} {run.refusals:>7} {run.sent_tokens:>13,} {run.cached_share:>7.1%} {run.summaries:>9} "
        f"{run.notes:>6} {run.usd:>9.4f}"
        for run in runs
    ]
    return lines


def _session_path(wanted: str, environ: Mapping[str, str]) -> Path:
    """The file of that name, else the session of this folder that the words name."""
    from pyagent.agent.session_store import find_session, project_dir

    path = Path(wanted).expanduser()
    if path.is_file():
        return path
    home = Path(environ.get("PYAGENT_HOME") or "~/.pyagent").expanduser().absolute()
    return find_session(project_dir(home, Path.cwd()), wanted).path
