"""From a rendered conversation to the bytes of a request's body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyagent.agent.wire.catalogue import MIN_BUDGET_TOKENS
from pyagent.agent.wire.encode import to_bytes
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.render import RenderedConversation, message_bytes
from pyagent.messages import JsonObject


@dataclass(frozen=True, slots=True)
class Marks:
    """Where cache marks stand: (message, block) places, and whether the system text or tools carry one."""

    places: tuple[tuple[int, int], ...] = ()
    is_prefix_marked: bool = False
    ttl: Literal["5m", "1h"] = "5m"

    @property
    def count(self) -> int:
        return len(self.places) + self.is_prefix_marked


def request_body(
    profile: RequestProfile,
    rendered: RenderedConversation,
    marks: Marks,
    *,
    extra_tail: Sequence[JsonObject] = (),
    extra_fields: Mapping[str, object] | None = None,
    stream: bool = True,
    max_tokens: int | None = None,
) -> bytes:
    """The whole request body.

    `extra_tail` are user blocks set after everything else (a fork's question); `max_tokens` overrides the profile's.
    """
    mark = _mark_bytes(marks.ttl)
    tail = [to_bytes(block) for block in extra_tail]
    output_tokens = profile.max_tokens if max_tokens is None else max_tokens
    body = [b'{"model":', to_bytes(profile.model)]
    body += [b',"max_tokens":', str(output_tokens).encode()]
    if stream:
        body.append(b',"stream":true')
    for name, value in _settings(profile, rendered, output_tokens=output_tokens, extra=extra_fields).items():
        body += [b",", to_bytes(name), b":", to_bytes(value)]
    is_system_marked = marks.is_prefix_marked and bool(profile.system_bytes)
    if profile.tools:
        tools = list(profile.tool_parts)
        if marks.is_prefix_marked and not is_system_marked:
            tools[-1] = _with_mark(tools[-1], mark)
        body += [b',"tools":[', b",".join(tools), b"]"]
    if profile.system_bytes:
        block = b'{"type":"text","text":' + profile.system_bytes + b"}"
        body += [b',"system":[', _with_mark(block, mark) if is_system_marked else block, b"]"]
    body.append(b',"messages":[')
    messages = _message_data(rendered, marks, mark, tail)
    if messages:
        # Joined once: the messages are nearly all of the body, and copying them is most of the work.
        messages[0] = b"".join([*body, messages[0]])
        messages[-1] += b"]}"
        return b",".join(messages)
    return b"".join([*body, b"]}"])


def count_body(profile: RequestProfile, rendered: RenderedConversation) -> bytes:
    """The body that asks the server how many tokens a conversation has."""
    fields: JsonObject = {"model": profile.model}
    thinking = sent_thinking(profile, rendered)
    if thinking is not None:
        fields["thinking"] = thinking
    if profile.output_config:
        fields["output_config"] = profile.output_config
    if profile.tools:
        fields["tools"] = list(profile.tools)
    if profile.system_bytes:
        fields["system"] = profile.system
    messages = b",".join(message.data for message in rendered.messages)
    return to_bytes(fields)[:-1] + b',"messages":[' + messages + b"]}"


def _message_data(rendered: RenderedConversation, marks: Marks, mark: bytes, tail: list[bytes]) -> list[bytes]:
    messages = [message.data for message in rendered.messages]
    marked: dict[int, set[int]] = {}
    for at, block in marks.places:
        marked.setdefault(at, set()).add(block)
    last = len(messages) - 1
    is_merged = bool(tail) and last >= 0 and rendered.messages[last].role == "user"
    for at in {*marked, *([last] if is_merged else [])}:
        message = rendered.messages[at]
        blocks = [
            _with_mark(part.data, mark) if position in marked.get(at, ()) else part.data
            for position, part in enumerate(message.parts)
        ]
        messages[at] = message_bytes(message.role, [*blocks, *tail] if is_merged and at == last else blocks)
    if tail and not is_merged:
        messages.append(message_bytes("user", tail))
    return messages


def _settings(
    profile: RequestProfile, rendered: RenderedConversation, *, output_tokens: int, extra: Mapping[str, object] | None
) -> JsonObject:
    settings: JsonObject = {}
    thinking = sent_thinking(profile, rendered)
    if thinking is not None and thinking.get("type") == "enabled":
        thinking = _fitting_budget(thinking, output_tokens)
    if thinking is not None:
        settings["thinking"] = thinking
    if profile.output_config:
        settings["output_config"] = profile.output_config
    is_compacting = rendered.starts_with_summary or bool(extra and "compaction" in extra)
    if profile.context_management and not is_compacting:
        # The server refuses its edits together with its summaries.
        settings["context_management"] = profile.context_management
    return {**settings, **profile.extra, **(extra or {})}


def sent_thinking(profile: RequestProfile, rendered: RenderedConversation) -> JsonObject | None:
    """The `thinking` field of a request: the profile's, unless it must pause."""
    thinking = profile.wire_thinking
    if thinking is not None and thinking.get("type") == "enabled" and _is_loop_without_thinking(rendered):
        return None
    return thinking


def _fitting_budget(thinking: JsonObject, output_tokens: int) -> JsonObject | None:
    """Manual thinking whose budget is below the output limit, as the server wants it; None where none fits."""
    budget = int(thinking.get("budget_tokens") or 0)
    if budget < output_tokens:
        return thinking
    half = output_tokens // 2
    return thinking | {"budget_tokens": half} if half >= MIN_BUDGET_TOKENS else None


def _is_loop_without_thinking(rendered: RenderedConversation) -> bool:
    """Whether a tool loop is open whose response does not begin with thinking: manual thinking is refused there, so it
    pauses until the next prompt."""
    messages = rendered.messages[-3:]
    if messages and messages[-1].role == "system":
        messages = messages[:-1]
    if len(messages) < 2:
        return False
    before, last = messages[-2:]
    is_open = last.role == "user" and before.role == "assistant" and any(p.kind == "tool_result" for p in last.parts)
    return is_open and not before.parts[0].is_thinking


def _mark_bytes(ttl: str) -> bytes:
    # 5 minutes is the default lifetime; not naming it suits servers that know no other.
    return (
        b'"cache_control":{"type":"ephemeral"}' if ttl == "5m" else b'"cache_control":{"type":"ephemeral","ttl":"1h"}'
    )


def _with_mark(block: bytes, mark: bytes) -> bytes:
    return block[:-1] + b"," + mark + b"}"
