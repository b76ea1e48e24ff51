"""A record of the log as a line of the session file, and back: one JSON object, made and read from the types of its
fields.

A field that a later version adds travels along unread, and so does a whole record of a kind that is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pyagent.log import Payload, Record, UnknownPayload
from pyagent.messages import Block, JsonObject, TextBlock, Usage, block_to_record, parse_block, scrub_json

SCHEMA_VERSION = 1
"""Written on the first line. Raised when an older reader would misread a newer file, not for new kinds or fields."""

_PAYLOADS: dict[str, type[Any]] = {
    payload.kind: payload for payload in get_args(Payload) if payload is not UnknownPayload
}

_ENVELOPE = ("seq", "type", "uuid", "timestamp", "tx")


def record_to_line(record: Record) -> bytes:
    """The record as one line of JSON, newline included. ASCII only, so no character can split or break a line."""
    if isinstance(record.payload, UnknownPayload):
        line = record.payload.raw
    else:
        line = {
            "seq": record.seq,
            "type": record.payload.kind,
            "uuid": record.uuid,
            "timestamp": record.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        }
        if record.tx:
            line["tx"] = record.tx
        line |= _encode_fields(record.payload) | record.extra
    return json.dumps(line, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


def record_from_json(line: JsonObject) -> Record:
    """The record of one parsed line.

    Raises:
        ValueError: the envelope is missing or of the wrong type, or a known kind lacks one of its fields.
    """
    try:
        seq, kind, uuid = line["seq"], line["type"], line["uuid"]
        at = datetime.fromisoformat(line["timestamp"])
        if not isinstance(seq, int) or not isinstance(uuid, str) or at.tzinfo is None:
            raise ValueError("not a record: bad envelope")
        payload_type = _PAYLOADS.get(kind)
        if payload_type is None:
            return Record(seq, uuid, at, UnknownPayload(line), line.get("tx", ""))
        names = {f.name for f in fields(payload_type)}
        extra = {key: value for key, value in line.items() if key not in names and key not in _ENVELOPE}
        return Record(seq, uuid, at, _decode_dataclass(payload_type, line), line.get("tx", ""), extra)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a record: {error}") from error


def _encode_fields(value: Any) -> JsonObject:
    """A dataclass's fields as JSON; fields at their default are left out to keep lines short."""
    encoded: JsonObject = {}
    for f in fields(value):
        item = getattr(value, f.name)
        default = f.default_factory() if f.default_factory is not MISSING else f.default
        if default is MISSING or item != default:
            encoded[f.name] = _encode(item)
    return encoded


def _encode(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, Usage):
        return value.raw or _encode_fields(value)
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    if isinstance(value, Block):
        return scrub_json(block_to_record(value))
    return scrub_json(value)


def _decode_dataclass(kind: type[Any], raw: Mapping[str, Any]) -> Any:
    decoders = _decoders(kind.kind)
    return kind(**{name: decode(raw[name]) for name, decode in decoders.items() if name in raw})


@cache
def _decoders(kind: str) -> dict[str, Callable[[Any], Any]]:
    hints = get_type_hints(_PAYLOADS[kind])
    return {f.name: _decoder(hints[f.name]) for f in fields(_PAYLOADS[kind])}


def _decoder(hint: Any) -> Callable[[Any], Any]:
    """What turns a JSON value into a field of this type, checking its outer shape."""
    if hint is datetime:
        return datetime.fromisoformat
    if hint is Usage:
        return Usage.from_wire
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        if NoneType in args:
            inner = _decoder(next(arg for arg in args if arg is not NoneType))
            return lambda value: None if value is None else inner(value)
        return lambda value: value
    if origin is Literal:
        return lambda value: _one_of(value, args)
    if origin is tuple:
        if TextBlock in get_args(args[0]):
            return lambda value: tuple(parse_block(item) for item in _of_type(value, list))
        return lambda value: tuple(_of_type(value, list))
    if origin is dict:
        return lambda value: _of_type(value, dict)
    if hint is float:
        return lambda value: float(_of_type(value, (int, float)))
    return lambda value: _of_type(value, hint)


def _of_type(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind}, found {type(value).__name__}")
    return value


def _one_of(value: Any, choices: tuple[Any, ...]) -> Any:
    if value not in choices:
        raise TypeError(f"expected one of {choices}, found {value!r}")
    return value
