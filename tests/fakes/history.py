"""The rules of `messages`: roles, emptiness, pairing, order of blocks, images."""

import json
from collections.abc import Collection
from typing import Any

from tests.fakes.binding import blocks_of
from tests.fakes.fields import (
    CLEAR_AT_BETA,
    COMPACTION_BETA,
    MESSAGE_CONFIG_BETA,
    ROLES_OF_BLOCK,
    SERVER_RESULTS,
    THRESHOLD_COMPACTION_BETA,
    TOOL_CHANGES_BETA,
    check_block,
    extra,
    required,
)
from tests.fakes.model_table import ModelSpec
from tests.fakes.refusal import Refusal
from tests.fakes.tokens import image_size

Json = dict[str, Any]

MAX_MESSAGES_COUNT = 100_000
MAX_IMAGE_BYTES = 10 * 1024 * 1024
"""Limit of one image on the first-party API, in bytes of base64."""
MAX_SIDE_PX = 8_000
MANY_IMAGES_COUNT = 20
"""Above this many images and documents in a request, each side is limited to `MANY_SIDE_PX`."""
MANY_SIDE_PX = 2_000
IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})

_EMPTY_MESSAGE = "all messages must have non-empty content except for the optional final assistant message"


def check_messages(
    messages: object,
    model: ModelSpec,
    betas: frozenset[str],
    *,
    has_tools: bool,
    takes_system_role: bool,
    is_compacting: bool,
    issued_unknown: Collection[str],
) -> None:
    """Check the whole history.

    A request that asks for a compaction samples no reply, so it may end with an assistant message. `issued_unknown` are
    blocks of unknown type the server itself sent, as JSON text.

    Raises:
        Refusal: naming the first rule broken.
    """
    if not isinstance(messages, list):
        raise Refusal("messages: Input should be a valid list")
    if not messages:
        raise Refusal("messages: at least one message is required")
    if len(messages) > MAX_MESSAGES_COUNT:
        raise Refusal(f"messages: List should have at most {MAX_MESSAGES_COUNT} items")
    for at, message in enumerate(messages):
        _check_message(message, at, betas, issued_unknown)
    _check_emptiness(messages, model)
    first = messages[0]
    if first["role"] != "user" and blocks_of(first["content"])[0].get("type") != "compaction":
        raise Refusal('messages: first message must use the "user" role')
    _check_system_roles(messages, model, takes_system_role=takes_system_role)
    _check_pairing(messages)
    _check_server_tools(messages)
    if not has_tools and any(
        block.get("type") in ("tool_use", "tool_result")
        for message in messages
        for block in blocks_of(message["content"])
    ):
        raise Refusal("Requests which include `tool_use` or `tool_result` blocks must define `tools`.")
    if messages[-1]["role"] == "assistant" and not is_compacting:
        _check_prefill(messages[-1], model)
    check_images(messages, model)


def _check_message(message: object, at: int, betas: frozenset[str], issued_unknown: Collection[str]) -> None:
    path = f"messages.{at}"
    if not isinstance(message, dict):
        raise Refusal(f"{path}: Input should be a valid dictionary or object to extract fields from")
    for name in ("role", "content"):
        if name not in message:
            raise required(f"{path}.{name}")
    role = message["role"]
    if role not in ("user", "assistant", "system"):
        raise Refusal(f"{path}.role: Input should be 'user', 'assistant' or 'system'")
    allowed = {"role", "content"}
    if role == "system":
        allowed |= {"clear_at"} if CLEAR_AT_BETA in betas else set()
    if MESSAGE_CONFIG_BETA in betas:
        allowed.add("output_config")
    for name in message.keys() - allowed:
        raise extra(f"{path}.{name}")
    content = message["content"]
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise Refusal(f"{path}.content: Input should be a valid list")
    for position, block in enumerate(content):
        _check_block_in_role(block, role, f"{path}.content.{position}", betas, issued_unknown)


def _check_block_in_role(
    block: object, role: str, path: str, betas: frozenset[str], issued_unknown: Collection[str]
) -> None:
    if role == "assistant" and issued_unknown and json.dumps(block, sort_keys=True) in issued_unknown:
        return
    checked = check_block(block, path)
    kind = checked["type"]
    if kind == "compaction" and not betas & {COMPACTION_BETA, THRESHOLD_COMPACTION_BETA}:
        raise Refusal(f"{path}: `compaction` blocks need one of the beta headers {COMPACTION_BETA}")
    if kind in ("tool_addition", "tool_removal") and TOOL_CHANGES_BETA not in betas:
        raise Refusal(f"{path}: `{kind}` blocks need the beta header {TOOL_CHANGES_BETA}")
    roles = ROLES_OF_BLOCK[kind]
    if role not in roles:
        where = " or ".join(f"`{name}`" for name in sorted(roles)) or "`tool_result` content of `user`"
        raise Refusal(f"{path}: `{kind}` blocks can only be in {where} messages")
    if kind == "text" and role == "user" and checked.get("citations"):
        raise Refusal(f"{path}.text.citations: citations are not permitted on user text blocks")
    if kind == "tool_use" and not checked["name"]:
        raise Refusal(f"{path}.tool_use.name: String should have at least 1 character")
    if kind == "tool_use" and len(checked["name"]) > 200:
        raise Refusal(f"{path}.tool_use.name: String should have at most 200 characters")
    for name in ("id", "tool_use_id"):
        value = checked.get(name)
        if value is not None and not (value and all(c.isascii() and (c.isalnum() or c in "_-") for c in value)):
            raise Refusal(f"{path}.{kind}.{name}: String should match pattern '^[a-zA-Z0-9_-]+$'")


def _check_emptiness(messages: list[Json], model: ModelSpec) -> None:
    for at, message in enumerate(messages):
        content = message["content"]
        is_prefill = at == len(messages) - 1 and message["role"] == "assistant" and model.accepts_prefill
        if not content:
            if is_prefill:
                continue
            raise Refusal(f"messages.{at}: {_EMPTY_MESSAGE}")
        blocks = blocks_of(content)
        for block in blocks:
            inner = block.get("content")
            parts = inner if block.get("type") == "tool_result" and isinstance(inner, list) else []
            for text in (part["text"] for part in (block, *parts) if part.get("type") == "text"):
                if not text:
                    raise Refusal("messages: text content blocks must be non-empty")
                if not text.strip():
                    raise Refusal("messages: text content blocks must contain non-whitespace text")


def _check_system_roles(messages: list[Json], model: ModelSpec, *, takes_system_role: bool) -> None:
    for at, message in enumerate(messages):
        if message["role"] != "system":
            continue
        path = f"messages.{at}"
        if not (model.accepts_system_messages or takes_system_role):
            raise Refusal(f"{path}.role: role 'system' is not supported on this model")
        previous = messages[at - 1]
        if previous["role"] != "user" and blocks_of(previous["content"])[-1].get("type") not in SERVER_RESULTS:
            raise Refusal(f"{path}: a `system` message must follow a `user` message or a server tool result")
        if at + 1 < len(messages) and messages[at + 1]["role"] != "assistant":
            raise Refusal(f"{path}: a `system` message must be last or be followed by an `assistant` message")


def _check_pairing(messages: list[Json]) -> None:
    seen: set[str] = set()
    open_ids: list[str] = []
    for at, message in enumerate(messages):
        blocks = blocks_of(message["content"])
        if open_ids:
            leading: list[str] = []
            for block in blocks if message["role"] == "user" else []:
                if block.get("type") != "tool_result":
                    break
                leading.append(block["tool_use_id"])
            missing = [tool_id for tool_id in open_ids if tool_id not in leading]
            if missing:
                raise _unanswered(at - 1, missing)
        answered: set[str] = set()
        for position, block in enumerate(blocks):
            if block.get("type") == "tool_result":
                tool_id = block["tool_use_id"]
                path = f"messages.{at}.content.{position}"
                if tool_id not in open_ids:
                    raise Refusal(
                        f"{path}: unexpected `tool_use_id` found in `tool_result` blocks: {tool_id}."
                        " Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                    )
                if tool_id in answered:
                    raise Refusal(
                        f"{path}: each tool_use must have a single result."
                        f" Found multiple `tool_result` blocks with id: {tool_id}"
                    )
                answered.add(tool_id)
        open_ids = []
        for position, block in enumerate(blocks):
            if block.get("type") == "tool_use":
                if block["id"] in seen:
                    raise Refusal(f"messages.{at}.content.{position}: `tool_use` ids must be unique")
                seen.add(block["id"])
                open_ids.append(block["id"])
    if open_ids:
        raise _unanswered(len(messages) - 1, open_ids)


def _check_server_tools(messages: list[Json]) -> None:
    """A server tool's result stands in the same assistant turn; only the newest turn may still be without it."""
    newest = max((at for at, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    for at, message in enumerate(messages):
        started: dict[str, str] = {}
        for position, block in enumerate(blocks_of(message["content"])):
            if block.get("type") == "server_tool_use":
                started[block["id"]] = block["name"]
            elif block.get("type") in SERVER_RESULTS and started.pop(block["tool_use_id"], None) is None:
                raise Refusal(
                    f"messages.{at}.content.{position}: unexpected `tool_use_id` found in `{block['type']}` blocks:"
                    f" {block['tool_use_id']}. Each `{block['type']}` block must have a corresponding"
                    " `server_tool_use` block before it."
                )
        if started and at != newest:
            tool_id, name = next(iter(started.items()))
            raise Refusal(
                f"messages.{at}: `{name}` tool use with id `{tool_id}` was found without a corresponding"
                f" `{name}_tool_result` block"
            )


def _unanswered(at: int, ids: list[str]) -> Refusal:
    return Refusal(
        f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(ids)}."
        " Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def _check_prefill(last: Json, model: ModelSpec) -> None:
    is_paused = any(block.get("type") == "server_tool_use" for block in blocks_of(last["content"]))
    if not model.accepts_prefill and not is_paused:
        raise Refusal(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    blocks = blocks_of(last["content"])
    if blocks and blocks[-1].get("type") == "text" and blocks[-1]["text"] != blocks[-1]["text"].rstrip():
        raise Refusal("messages: final assistant content cannot end with trailing whitespace")


def check_images(messages: list[Json], model: ModelSpec) -> None:
    """Media types, sizes in bytes and pixels, and how many a request may hold."""
    found: list[tuple[str, Json]] = []
    for at, message in enumerate(messages):
        for position, block in enumerate(blocks_of(message["content"])):
            path = f"messages.{at}.content.{position}"
            found.append((path, block))
            inner = block.get("content")
            if block.get("type") == "tool_result" and isinstance(inner, list):
                found += [(f"{path}.tool_result.content.{i}", part) for i, part in enumerate(inner)]
    media = [(path, block) for path, block in found if block.get("type") in ("image", "document")]
    most = 600 if model.window_tokens > 200_000 else 100
    if len(media) > most:
        raise Refusal(f"messages: Too many images and documents: {len(media)} > {most}")
    side_px = MANY_SIDE_PX if len(media) > MANY_IMAGES_COUNT else MAX_SIDE_PX
    too_large = [path for path, block in media if _check_source(path, block) > side_px]
    if too_large:
        what = "many-image requests: " if side_px == MANY_SIDE_PX else ""
        raise Refusal(
            f"{too_large[0]}.image.source.base64.data: At least one of the image dimensions exceed max allowed size"
            + (f" for {what}{side_px} pixels" if what else f": {side_px} pixels"),
            details={
                "error_code": "image_dimensions_too_large",
                "paths": too_large,
                "max_side_length_pixels": side_px,
            },
        )


def _check_source(path: str, block: Json) -> int:
    """The longest side in pixels of an image in the request; 0 where it is not known."""
    source = block["source"]
    if not isinstance(source, dict) or source.get("type") not in ("base64", "url", "file", "text", "content"):
        raise Refusal(f"{path}.{block['type']}.source: Input should be a valid source")
    if block["type"] != "image" or source["type"] != "base64":
        return 0
    where = f"{path}.image.source.base64"
    if source.get("media_type") not in IMAGE_TYPES:
        raise Refusal(f"{where}.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'")
    data = source.get("data") or ""
    if len(data) > MAX_IMAGE_BYTES:
        raise Refusal(f"{where}: image exceeds 10 MB maximum: {len(data)} bytes > {MAX_IMAGE_BYTES} bytes")
    size = image_size(data)
    if size is None:
        raise Refusal(f"{path}.image.source.base64.data: Could not process image")
    return max(size)
