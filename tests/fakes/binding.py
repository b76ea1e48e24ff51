"""Binds thinking to the conversation before it, and finds replayed blocks whose prefix has changed.

A signature carries everything needed to check it (the model, a digest of the prefix, the thinking block before it), so
a conversation may be resumed against another instance of the server.
"""

import base64
import binascii
import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from tests.fakes.model_table import ModelSpec
from tests.fakes.refusal import Refusal

Json = dict[str, Any]
Enforcement = Literal["all", "by_model", "on_request", "off"]
"""Which requests the prefix check covers: all models, those of the 5.1 and later generation, those whose request sets
`prefix_mismatch_behavior` (older accounts), or none."""

_SECRET = b"signed by the fake server"
_THINKING = ("thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True)
class Seal:
    """What a signature says about its block."""

    block_id: str
    model: str
    prefix: str
    """Digest of system, tools and every non-thinking block before this one."""
    previous: str | None
    """`block_id` of the thinking block before this one."""
    text: str
    """Digest of the block's own text as it was shown."""
    message_id: str
    ordinal: int
    total: int
    """This is thinking block `ordinal` (from 0) of the `total` in its message."""
    tokens: int


def encode_seal(seal: Seal) -> str:
    """The signature string of a seal."""
    payload = json.dumps(asdict(seal), separators=(",", ":")).encode()
    mac = hashlib.sha256(_SECRET + payload).digest()[:12]
    return base64.b64encode(mac + payload).decode()


def decode_seal(signature: str) -> Seal | None:
    """The seal in a signature, or None if the fake did not write it."""
    try:
        raw = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return None
    if hashlib.sha256(_SECRET + raw[12:]).digest()[:12] != raw[:12]:
        return None
    return Seal(**json.loads(raw[12:]))


def digest(*parts: str) -> str:
    """A short stable digest of strings."""
    return hashlib.sha256("\x00".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def canonical(value: Any) -> Any:
    """The value without what lies outside comparisons: cache marks, nulls and equal ways to write a thing."""
    if isinstance(value, list):
        return [canonical(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: canonical(item) for key, item in value.items() if key != "cache_control" and item is not None}
    if kept.get("type") == "tool_result":
        content = kept.pop("content", None)
        if isinstance(content, str) and content:
            content = [{"type": "text", "text": content}]
        if content:
            kept["content"] = content
        if kept.get("is_error") is False:
            del kept["is_error"]
    if kept.get("type") == "tool_use":
        kept.pop("caller", None)
    return kept


def fingerprint(value: Any) -> str:
    """Canonical JSON text."""
    return json.dumps(canonical(value), sort_keys=True, separators=(",", ":"))


def blocks_of(content: Any) -> list[Json]:
    """Content as a list of blocks; a string counts as one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content or [])


@dataclass(slots=True)
class Chain:
    """The rolling state of a conversation that a new thinking block is bound to."""

    model: str
    digest: str
    base: str
    previous: str | None = None

    @classmethod
    def start(cls, body: Json) -> "Chain":
        """The state before the first message: system and the tools that are not deferred."""
        tools = [tool for tool in body.get("tools") or [] if not tool.get("defer_loading")]
        base = digest(fingerprint(blocks_of(body.get("system"))), fingerprint(tools))
        return cls(body["model"], base, base)

    def add(self, role: str, block: Json) -> None:
        """Go past a block that is not thinking."""
        if block.get("type") == "compaction" and block.get("content") is not None:
            self._restart(block)
        else:
            self.digest = digest(self.digest, role, fingerprint(block))

    def _restart(self, block: Json) -> None:
        """A compaction block stands for what it summarised, if system and tools are still the same."""
        seal = decode_seal(block.get("signature") or "")
        if seal and seal.text == digest(self.base):
            self.digest, self.previous = seal.prefix, seal.previous
        else:
            self.digest, self.previous = digest(self.base, fingerprint(block)), None

    def seal_compaction(self) -> str:
        """The signature of a compaction block that summarises everything up to here."""
        return encode_seal(Seal("", self.model, self.digest, self.previous, digest(self.base), "", 0, 0, 0))

    def seal_thinking(self, shown: str, message_id: str, ordinal: int, total: int, tokens: int) -> str:
        """Sign the next thinking block of a reply and chain it."""
        block_id = digest(message_id, str(ordinal))
        seal = Seal(block_id, self.model, self.digest, self.previous, digest(shown), message_id, ordinal, total, tokens)
        self.previous = block_id
        return encode_seal(seal)


@dataclass(slots=True)
class BindingCheck:
    """The result of a check: the state to bind new thinking to, and the blocks left out."""

    chain: Chain
    dropped: list[Json] = field(default_factory=list)
    """`input_transformations` entries."""

    @classmethod
    def unchecked(cls, body: Json) -> "BindingCheck":
        """For servers that sign nothing."""
        return cls(Chain.start({"model": body["model"]}))

    @property
    def dropped_paths(self) -> frozenset[str]:
        return frozenset(entry["path"] for entry in self.dropped)


def _readable(seal: Seal, model: ModelSpec, requested: str) -> bool:
    """Point-release models read their own thinking, and Haiku 5.5's where they are not Haiku themselves."""
    return seal.model == requested or ("haiku-5-5" in seal.model and model.line != "haiku")


def open_loop_index(messages: list[Json]) -> int | None:
    """Index of the assistant message whose tool results end the conversation, if they do."""
    if messages and messages[-1]["role"] == "system":
        messages = messages[:-1]
    if len(messages) < 2 or messages[-1]["role"] != "user" or messages[-2]["role"] != "assistant":
        return None
    answers = [block for block in blocks_of(messages[-1]["content"]) if block.get("type") == "tool_result"]
    return len(messages) - 2 if answers else None


def check_bindings(body: Json, model: ModelSpec, enforcement: Enforcement) -> BindingCheck:
    """Check every replayed thinking block.

    Raises:
        Refusal: a block is corrupt, or its prefix changed and the request does not ask for it to be dropped.
    """
    messages: list[Json] = body["messages"]
    binding = ((body.get("thinking") or {}).get("block_binding") or {}).get("prefix_mismatch_behavior")
    enforced = {
        "all": True,
        "by_model": model.has_point_release_rules,
        "on_request": model.has_point_release_rules and binding is not None,
        "off": False,
    }[enforcement]
    check = BindingCheck(Chain.start(body))
    chain = check.chain
    kept_any = False
    latest = open_loop_index(messages)
    for at, message in enumerate(messages):
        seals: list[Seal] = []
        for position, block in enumerate(blocks_of(message["content"])):
            path = f"messages.{at}.content.{position}"
            if block.get("type") not in _THINKING:
                chain.add(message["role"], block)
                continue
            seal = _intact_seal(block, path, in_open_loop=at == latest)
            seals.append(seal)
            if model.has_point_release_rules and not _readable(seal, model, body["model"]):
                check.dropped.append({"type": "thinking_dropped", "path": path, "reason": "model_binding_mismatch"})
                continue
            moved = kept_any and seal.previous != chain.previous
            if enforced and (seal.prefix != chain.digest or moved):
                if binding != "drop_block":
                    raise Refusal(_different_conversation(path, block["type"]))
                check.dropped.append({"type": "thinking_dropped", "path": path, "reason": "prefix_binding_mismatch"})
                continue
            chain.previous, kept_any = seal.block_id, True
        if at == latest and seals:
            _require_whole(seals, f"messages.{at}.content.0")
    return check


def _intact_seal(block: Json, path: str, *, in_open_loop: bool) -> Seal:
    if block["type"] == "redacted_thinking":
        seal = decode_seal(block.get("data") or "")
    else:
        seal = decode_seal(block.get("signature") or "")
        if seal and seal.text != digest(block.get("thinking") or ""):
            seal = None
    if seal is None:
        if in_open_loop:
            raise Refusal(_modified(path))
        raise Refusal(f"{path}: Invalid `signature` in `{block['type']}` block")
    return seal


def _require_whole(seals: list[Seal], path: str) -> None:
    """The latest assistant message keeps all its thinking blocks in order, or none at all."""
    whole = [seal.ordinal for seal in seals] == list(range(seals[0].total))
    if not whole or len({seal.message_id for seal in seals}) != 1:
        raise Refusal(_modified(path))


def _modified(path: str) -> str:
    return (
        f"{path}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."
        " These blocks must remain as they were in the original response."
    )


def _different_conversation(path: str, kind: str) -> str:
    return (
        f"{path}: Invalid `signature` in `{kind}` block. The block is bound to a different conversation."
        ' Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
    )
