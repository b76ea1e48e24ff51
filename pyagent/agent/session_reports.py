"""The reports of one conversation: what fills its context, what it cost, what was compacted, what it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from pyagent import __version__
from pyagent.agent.context_keeper import PipelineKeeper
from pyagent.agent.context_page import context_page
from pyagent.agent.context_report import ContextFacts, context_report
from pyagent.agent.gatekeeper import SessionGatekeeper
from pyagent.agent.git_state import branch_of
from pyagent.agent.journal import Journal
from pyagent.agent.memory_keeper import MemoryKeeper
from pyagent.agent.model_access import ModelAccess
from pyagent.agent.notes import NotesKeeper
from pyagent.agent.profile_book import ProfileBook
from pyagent.agent.reports import StatusFacts, breaks_text, cost_report, status_report
from pyagent.agent.sampler import MainSampler
from pyagent.agent.server_clearing import ServerClearing
from pyagent.agent.session_folders import SessionFolders
from pyagent.agent.session_place import SessionPlace
from pyagent.agent.settings_book import SettingsBook
from pyagent.agent.spending_pages import cost_page
from pyagent.events import Report
from pyagent.pages import CacheState


@dataclass(frozen=True, slots=True)
class SessionReports:
    """Makes reports of what it is given; remembers nothing."""

    journal: Journal
    session: SessionPlace
    keeper: PipelineKeeper
    profiles: ProfileBook
    notes: NotesKeeper
    server_clearing: ServerClearing
    sampler: MainSampler
    memory: MemoryKeeper
    gatekeeper: SessionGatekeeper
    folders: SessionFolders
    book: SettingsBook
    access: Callable[[], ModelAccess]
    open_for_s: Callable[[], float]
    log_path: str

    def context(self, argument: str) -> Report:
        """`/context`, `/context all`, `/context json`."""
        keeper, state = self.keeper, self.journal.state
        context, sizer = keeper.context(), keeper.sizer
        tools = {str(tool["name"]): sizer.text(str(tool)) for tool in self.profiles.current.tools}
        facts = ContextFacts(
            view=state.view,
            gauge=keeper.gauge(),
            thresholds=context.thresholds,
            model=self.access().info.id,
            system_tokens=sizer.text(self.profiles.current.system),
            tool_tokens=tools,
            branch=state.branch,
            gates=keeper.settings.gates,
            is_disabled=keeper.settings.is_disabled,
            economy=keeper.economy(),
            policy=keeper.settings.policy,
            failures=state.compaction_failures,
            extra_lines=(*self.notes.lines(), *self.server_clearing.lines(context)),
            cache=self._cache(),
        )
        is_full = argument == "all"
        report = context_report(facts, sizer, is_full=is_full)
        if argument == "json":
            return Report("Context", json.dumps(report.data, indent=2, ensure_ascii=False), report.data)
        page = context_page(facts, sizer, is_full=is_full, origins=self.book.loaded.origins)
        return Report(report.title, report.text, report.data, page)

    def _cache(self) -> CacheState:
        last = self.journal.state.view.last_assistant
        usage = getattr(last.entry, "usage", None) if last is not None else None
        share = None
        if usage is not None and usage.prompt_tokens:
            share = usage.cache_read_input_tokens / usage.prompt_tokens
        ttl_s = {"1h": 3_600, "5m": 300}.get(self.profiles.current.cache_ttl, 0)
        return CacheState(self.keeper.cache_expires_in_s(), ttl_s, share, breaks_text(self.sampler.cache_breaks))

    def cost(self, argument: str) -> Report:
        """`/cost`."""
        state, breaks = self.journal.state, self.sampler.cache_breaks
        report = cost_report(state, self.open_for_s(), breaks)
        return Report(report.title, report.text, report.data, cost_page(state, self.open_for_s(), breaks))

    def status(self, argument: str) -> Report:
        """`/status`."""
        state, access = self.journal.state, self.access()
        facts = StatusFacts(
            version=__version__,
            session_id=self.session.session_id,
            title=state.settings.get("title", ""),
            transcript_path=str(self.session.transcript_path or ""),
            model=access.info.id,
            endpoint=access.endpoint,
            mode=self.gatekeeper.engine.mode,
            cwd=str(self.folders.cwd),
            git_branch=branch_of(self.folders.cwd),
            context_files=[file.path for file in self.memory.load_for_restore()],
            log_path=self.log_path,
        )
        return status_report(facts)
