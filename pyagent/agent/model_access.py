"""Which model answers: the server the environment names, or the offline model."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Protocol

from pyagent.agent.encoding import LocalEncoding
from pyagent.agent.server_tools import with_server_tools
from pyagent.agent.wire.capabilities import CapabilityStore
from pyagent.agent.wire.catalogue import ModelInfo, Price, resolve_model, thinking_for
from pyagent.agent.wire.client import AnthropicClient, Credentials, ModelClient, credentials_from
from pyagent.agent.wire.failures import ApiFailure, missing_credentials
from pyagent.agent.wire.profile import RequestProfile
from pyagent.errors import UsageError
from pyagent.launch import LaunchOptions
from pyagent.messages import JsonObject
from pyagent.settings import Settings

OFFLINE = "offline"
"""Name of the built-in model, for `--model` and `/model`."""

OFFLINE_WINDOW_TOKENS = 200_000
OFFLINE_OUTPUT_TOKENS = 8_000
"""The window of the small models of the day, so that gauge and thresholds look as they would with a real one."""

DEFAULT_MAX_OUTPUT_TOKENS = 32_000
"""Of one answer: enough for a long file, and a runaway answer ends in a minute or two."""


_NO_SUCH_ENDPOINT = (400, 404, 405, 501)

_log = logging.getLogger(__name__)


class ModelServer(ModelClient, Protocol):
    """A server as the desk sees it: it answers requests and tells of its models."""

    async def model_info(self, model: str) -> JsonObject: ...

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """A model and the way to it."""

    client: ModelClient
    info: ModelInfo
    is_offline: bool
    endpoint: str
    is_first_party: bool = False
    """Whether it is the first-party API, which has tools of its own."""


class ModelDesk:
    """Finds models by name and keeps one client for the server."""

    def __init__(
        self,
        options: LaunchOptions,
        settings: Settings,
        encoding: LocalEncoding,
        server: ModelServer | None = None,
    ) -> None:
        """`server` answers in place of the one the environment names."""
        self._settings = settings
        self._encoding = encoding
        self._is_headless = options.is_headless
        self.credentials: Credentials = credentials_from(options.environ)
        self._server: ModelServer = server or AnthropicClient(self.credentials)
        self.store = CapabilityStore(options.home, time.time)

    def access(self, name: str) -> ModelAccess:
        """The model of that name; without a name and without credentials, the offline model.

        Raises:
            UsageError: the name means nothing here.
            CredentialsError: there are no credentials, and either the name needs them or nobody would see the banner.
        """
        if name.strip().lower() == OFFLINE or (not name and not self.credentials.can_call and not self._is_headless):
            return self._offline()
        model = resolve_model(name, is_first_party=self.credentials.is_first_party)
        if not self.credentials.can_call:
            raise missing_credentials()
        return ModelAccess(
            self._server,
            self.store.info(self.credentials.base_url, model),
            False,
            self.credentials.base_url,
            self.credentials.is_first_party,
        )

    def _offline(self) -> ModelAccess:
        # Imported when it is wanted: with credentials it never is.
        from pyagent.agent.offline import OfflineModel

        window_tokens = self._settings.compaction.window_tokens or OFFLINE_WINDOW_TOKENS
        client = OfflineModel(window_tokens=window_tokens, count_tokens=self._encoding.count)
        info = ModelInfo(
            OFFLINE,
            window_tokens,
            OFFLINE_OUTPUT_TOKENS,
            Price(0.0, 0.0, 0.0),
            token_factor=1.0,
            cache_minimum_tokens=0,
        )
        return ModelAccess(client, info, True, "built in")

    async def ask_endpoint(self, access: ModelAccess) -> ModelInfo:
        """What the server itself says of a model, asked once a day; what is known already where it says nothing."""
        if access.is_offline:
            return access.info
        model, base_url = access.info.id, self.credentials.base_url
        if self.store.wants_endpoint(base_url, model):
            try:
                self.store.put_endpoint(base_url, model, await self._server.model_info(model))
            except ApiFailure as failure:
                _log.info("the models endpoint says nothing of %s: %s", model, failure.message)
                if failure.status in _NO_SUCH_ENDPOINT:
                    self.store.switch_off(base_url, model, "models")
        return self.store.info(base_url, model)

    async def warm_up(self) -> None:
        """Load what the first request needs, while the person is still typing."""
        await self._server.warm_up()

    async def close(self) -> None:
        await self._server.close()


def profile_for(
    access: ModelAccess, settings: Settings, *, system: str, tools: tuple[JsonObject, ...]
) -> RequestProfile:
    """The request profile of a session with this model. `tools` are pyagent's own; the server's are added here.

    Raises:
        UsageError: the effort setting means nothing.
    """
    info = access.info
    try:
        thinking = thinking_for(info, settings.effort)
    except UsageError as error:
        raise UsageError(f"The effort setting cannot be used: {error.message}", hint=error.hint) from error
    return RequestProfile(
        model=info.id,
        system=system,
        tools=with_server_tools(tools, settings, is_first_party=access.is_first_party),
        max_tokens=min(settings.max_output_tokens or DEFAULT_MAX_OUTPUT_TOKENS, info.max_output_tokens),
        thinking=thinking.thinking,
        output_config=thinking.output_config,
        cache_ttl="1h" if settings.is_cache_ttl_1h else "5m",
        block_binding_drop=info.has_preserved_thinking and not access.is_offline,
        has_system_messages=info.takes_system_messages and access.is_first_party,
    )
