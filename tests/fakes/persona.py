"""Which server the fake plays: Anthropic's own, or a compatible one with its gaps."""

from dataclasses import dataclass
from typing import Literal

Auth = Literal["none", "any", "bearer", "x-api-key"]

FIRST_PARTY_LIMIT_BYTES = 32 * 1024 * 1024
"""Body limit of the Messages API; above it the CDN answers 413."""


@dataclass(frozen=True, slots=True)
class Persona:
    """How a server differs from the first-party API."""

    name: str
    auth: Auth = "any"
    limit_bytes: int = FIRST_PARTY_LIMIT_BYTES
    html_413: bool = True
    is_first_party: bool = True
    """Model rules, bindings and API versions are enforced."""
    refuses_unknown_fields: bool = True
    refused_fields: frozenset[str] = frozenset()
    """Dotted names refused although the first-party API takes them."""
    checks_history: bool = True
    """Pairing, emptiness and order of messages are enforced."""
    has_count_tokens: bool = True
    has_models: bool = True
    any_model: bool = False
    reports_cache: bool = True
    has_cache: bool = True
    sends_pings: bool = True
    sends_stop_reason: bool = True
    sends_usage: bool = True
    takes_system_role: bool = False
    """Takes `role: "system"` in messages whatever the model."""
    overflow_status: int = 400
    overflow_type: str = "invalid_request_error"
    overflow_text: str = "prompt is too long: {input} tokens > {window} maximum"


def first_party(*, limit_bytes: int = FIRST_PARTY_LIMIT_BYTES) -> Persona:
    """The Messages API itself."""
    return Persona("first_party", limit_bytes=limit_bytes)


def html_413(*, limit_bytes: int) -> Persona:
    """The Messages API behind a CDN that refuses bodies above `limit_bytes` with an HTML page."""
    return Persona("html_413", limit_bytes=limit_bytes)


def json_413(*, limit_bytes: int) -> Persona:
    """A server that refuses bodies above `limit_bytes` with the API's own error shape."""
    return Persona("json_413", limit_bytes=limit_bytes, html_413=False)


def ollama(*, sends_stop_reason: bool = True) -> Persona:
    """A local Ollama: no key, no token counting, no cache fields, unknown fields ignored, no pings."""
    return Persona(
        "ollama",
        auth="none",
        is_first_party=False,
        refuses_unknown_fields=False,
        checks_history=False,
        has_count_tokens=False,
        has_models=False,
        any_model=True,
        reports_cache=False,
        has_cache=False,
        sends_pings=False,
        sends_stop_reason=sends_stop_reason,
        overflow_text="input length exceeds the context length: maximum context length is {window}",
    )


def vllm() -> Persona:
    """A vLLM server: counts tokens, ignores thinking and unknown fields, words overflow its own way."""
    return Persona(
        "vllm",
        auth="none",
        is_first_party=False,
        refuses_unknown_fields=False,
        checks_history=False,
        any_model=True,
        reports_cache=True,
        has_cache=False,
        sends_pings=False,
        takes_system_role=True,
        overflow_type="BadRequestError",
        overflow_text="This model's maximum context length is {window} tokens. However, your request has {input}"
        " input tokens. Please reduce the length of the input messages.",
    )


def llama_cpp() -> Persona:
    """A llama.cpp server: counts tokens, no cache fields, its own overflow wording."""
    return Persona(
        "llama_cpp",
        auth="none",
        is_first_party=False,
        refuses_unknown_fields=False,
        checks_history=False,
        any_model=True,
        reports_cache=False,
        has_cache=False,
        sends_pings=False,
        overflow_type="exceed_context_size_error",
        overflow_text="request ({input} tokens) exceeds the available context size ({window} tokens),"
        " try increasing it",
    )


def strict_gateway(
    *,
    refused_fields: frozenset[str] = frozenset({"context_management", "thinking.block_binding", "output_config"}),
) -> Persona:
    """A gateway that wants `x-api-key` and refuses every field it has not heard of."""
    return Persona(
        "strict_gateway",
        auth="x-api-key",
        is_first_party=False,
        refused_fields=refused_fields,
        any_model=True,
        has_models=False,
        has_count_tokens=False,
        takes_system_role=False,
    )


PERSONAS = {
    "first_party": first_party,
    "ollama": ollama,
    "vllm": vllm,
    "llama_cpp": llama_cpp,
    "strict_gateway": strict_gateway,
}
