"""What the server is asked to leave out: API-native clearing, and the instructions of cached microcompact.

Both change what the server reads, never the log. Where the server clears old results, no local layer does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyagent.agent.profile_book import ProfileBook
from pyagent.agent.wire.capabilities import CapabilityStore
from pyagent.agent.wire.context_management import (
    CLEAR_TOOL_USES,
    CONTEXT_MANAGEMENT_BETA,
    AppliedEdits,
    applied_edits,
    context_edits,
)
from pyagent.agent.wire.stream import Response
from pyagent.compaction.cached import TRIGGER_SHARE, CacheEditing, ClearingAdapter, NativeClearing, NoClearing
from pyagent.compaction.cached_state import CachedEdits
from pyagent.compaction.context import PipelineContext, is_cache_warm
from pyagent.messages import JsonObject
from pyagent.settings import CompactionSettings


class ServerClearing:
    """One conversation's. `endpoint` is the server now in use."""

    def __init__(
        self,
        *,
        profiles: ProfileBook,
        store: CapabilityStore,
        settings: CompactionSettings,
        endpoint: Callable[[], str],
        cache_edit_servers: tuple[str, ...],
    ) -> None:
        self._profiles = profiles
        self._store = store
        self._settings = settings
        self._endpoint = endpoint
        self._servers = tuple(server.rstrip("/") for server in cache_edit_servers)
        self._edits = CachedEdits()
        self.applied = AppliedEdits()
        """Everything the server reported to have left out so far."""

    # ── which way ────────────────────────────────────────────────────────────────────────────────────────────────

    def use(self, settings: CompactionSettings) -> None:
        """Follow changed settings from the next request on."""
        self._settings = settings

    @property
    def _can_clear(self) -> bool:
        model = self._profiles.model
        return CLEAR_TOOL_USES in model.context_edits and self._store.is_on(
            self._endpoint(), model.id, "context_management"
        )

    @property
    def is_native(self) -> bool:
        """Whether the server clears old results by itself."""
        return self._settings.gates.api_context_management and not self._settings.is_disabled and self._can_clear

    def adapter(self, ctx: PipelineContext) -> ClearingAdapter:
        """How this server is told to drop results."""
        if self._endpoint().rstrip("/") in self._servers:
            return CacheEditing()
        if self._can_clear:
            return NativeClearing(max(int(ctx.thresholds.trigger * TRIGGER_SHARE), 1))
        return NoClearing()

    def settings(self) -> CompactionSettings:
        """The settings for the local layers: what the server clears, they leave alone."""
        if not self.is_native:
            return self._settings
        gates = replace(self._settings.gates, time_based_microcompact=False, cached_microcompact=False)
        return replace(self._settings, gates=gates)

    def edits_for(self, ctx: PipelineContext) -> CachedEdits | None:
        """The state of cached microcompact; None where nothing could be told to the server."""
        gates = ctx.settings.gates
        if not gates.cached_microcompact or isinstance(self.adapter(ctx), NoClearing):
            return None
        return self._edits

    # ── around a request ─────────────────────────────────────────────────────────────────────────────────────────

    def take(self, edits: CachedEdits | None) -> None:
        """What the pipeline decided; pending edits stay so until a request that carried them was answered."""
        if edits is not None:
            self._edits = edits

    def prepare(self, ctx: PipelineContext) -> None:
        """Bring the request profile in line with what the server shall do."""
        profile = self._profiles.current
        wanted = self._field(ctx)
        betas = tuple(beta for beta in profile.betas if beta != CONTEXT_MANAGEMENT_BETA)
        if wanted is not None:
            betas = (*betas, CONTEXT_MANAGEMENT_BETA)
        if (profile.context_management, profile.betas) != (wanted, betas):
            self._profiles.replace(profile.with_changes(context_management=wanted, betas=betas), self._profiles.model)

    def _field(self, ctx: PipelineContext) -> JsonObject | None:
        profile, model = self._profiles.current, self._profiles.model
        if self.is_native:
            thinking = profile.thinking or {}
            return context_edits(
                trigger_tokens=self._settings.api_trigger_tokens,
                target_tokens=self._settings.api_target_tokens,
                compact_trigger_tokens=ctx.thresholds.trigger,
                mode=self._settings.api_clearing,
                tool_names=[str(tool["name"]) for tool in profile.tools],
                supported=model.context_edits,
                is_cache_warm=is_cache_warm(ctx.view, ctx.now),
                has_thinking=thinking.get("type", "disabled") != "disabled",
            )
        if self.edits_for(ctx) is None:
            return None
        field = self.adapter(ctx).request_fields(self._edits).get("context_management")
        return field if isinstance(field, dict) else None

    def extra_fields(self, ctx: PipelineContext) -> JsonObject:
        """Fields of the next request alone: only a server declared to take `cache_edits` ever sees them."""
        if self.edits_for(ctx) is None:
            return {}
        fields = self.adapter(ctx).request_fields(self._edits)
        return {name: value for name, value in fields.items() if name != "context_management"}

    def answered(self, response: Response) -> None:
        self._edits = self._edits.answered()
        done = applied_edits(response)
        self.applied = AppliedEdits(
            self.applied.cleared_tool_uses_count + done.cleared_tool_uses_count,
            self.applied.cleared_thinking_turns_count + done.cleared_thinking_turns_count,
            self.applied.cleared_tokens + done.cleared_tokens,
        )

    def lines(self, ctx: PipelineContext) -> list[str]:
        """For `/context`."""
        lines: list[str] = []
        gates = self._settings.gates
        if gates.api_context_management:
            why = "" if self.is_native else " (not by this server and model)"
            lines.append(f"The server clears old results by itself: {'yes' if self.is_native else 'no'}{why}")
        if gates.cached_microcompact and not self.is_native:
            dropped = len(self._edits.dropped_ids)
            lines.append(f"Cached microcompact: {self.adapter(ctx).explanation()}; {dropped:,} results dropped so far")
        if self.applied.has_any:
            done = self.applied
            lines.append(
                f"Left out by the server, over all requests: {done.cleared_tool_uses_count:,} tool uses, "
                f"{done.cleared_thinking_turns_count:,} turns' thinking, {done.cleared_tokens:,} tokens"
            )
        return lines
