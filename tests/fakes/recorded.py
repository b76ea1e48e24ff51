"""What the server keeps of each request, and the bill it adds up to."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Literal

from tests.fakes.binding import blocks_of, fingerprint

Json = dict[str, Any]

TOKENS_PER_PRICE_UNIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write_5m: float
    cache_write_1h: float

    @classmethod
    def of(cls, input: float, output: float, cache_read: float) -> "Price":
        """Cache writes at the usual 1.25 and 2 times the input price."""
        return cls(input, output, cache_read, 1.25 * input, 2.0 * input)


@dataclass(slots=True)
class Recorded:
    """One HTTP request and what came of it."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    raw: bytes
    body: Json = field(default_factory=dict)
    status: int = 0
    errors: list[str] = field(default_factory=list)
    """Texts of the errors answered, scripted or not."""
    is_refusal: bool = False
    """True if the request broke a rule, as opposed to a scripted error."""
    usage: Json = field(default_factory=dict)
    """What the request is billed; empty for refusals and errors."""
    input_tokens: int = 0
    """All input: fresh, read and written."""
    transformations: list[Json] = field(default_factory=list)
    """Thinking blocks that were left out, and why."""
    message: Json | None = None
    """The whole reply, as a client that reads it to the end gets it."""
    is_complete: bool = False
    """True once the last byte of a faultless reply was sent."""
    is_abandoned: bool = False
    """True if the client hung up before the end."""

    @property
    def betas(self) -> frozenset[str]:
        return frozenset(part.strip() for part in self.headers.get("anthropic-beta", "").split(",") if part.strip())

    @property
    def message_id(self) -> str | None:
        return self.message["id"] if self.message else None

    def forget_body(self) -> None:
        """Let go of what is large; status, errors and usage stay."""
        self.raw = b""
        self.body = {"model": self.body.get("model")}


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where a request stops continuing an earlier one."""

    kind: Literal["model_changed", "tools_changed", "system_changed", "messages_changed"]
    path: str
    """The first part that differs, as in `messages.3.content.0`."""


def divergence(earlier: Json, later: Json) -> Divergence | None:
    """The first change in what `later` has in common with `earlier`, or None if it only appends.

    Cache marks and ways of writing the same content do not count.
    """
    if earlier["model"] != later["model"]:
        return Divergence("model_changed", "model")
    for at, (old, new) in enumerate(zip_longest(earlier.get("tools") or [], later.get("tools") or [])):
        if fingerprint(old) != fingerprint(new):
            return Divergence("tools_changed", f"tools.{at}")
    for at, (old, new) in enumerate(zip_longest(blocks_of(earlier.get("system")), blocks_of(later.get("system")))):
        if fingerprint(old) != fingerprint(new):
            return Divergence("system_changed", f"system.{at}")
    for (path, old), (_, new) in zip_longest(_parts(earlier), _parts(later), fillvalue=("", "")):
        if path and old != new:
            return Divergence("messages_changed", path)
    return None


def _parts(body: Json) -> Iterator[tuple[str, str]]:
    for at, message in enumerate(body["messages"]):
        for position, block in enumerate(blocks_of(message["content"])):
            yield f"messages.{at}.content.{position}", message["role"] + fingerprint(block)


def bill(requests: Iterable[Recorded], prices: Mapping[str, Price]) -> float:
    """Dollars for the requests. `prices` is by model id.

    Raises:
        KeyError: a billed model has no price.
    """
    total = 0.0
    for request in requests:
        if not request.usage:
            continue
        price = prices[request.body["model"]]
        for part in request.usage.get("iterations") or [request.usage]:
            split = part.get("cache_creation") or {}
            written = part.get("cache_creation_input_tokens", 0)
            long_lived = split.get("ephemeral_1h_input_tokens", 0)
            total += price.input * part["input_tokens"] + price.output * part["output_tokens"]
            total += price.cache_read * part.get("cache_read_input_tokens", 0)
            total += price.cache_write_1h * long_lived + price.cache_write_5m * (written - long_lived)
    return total / TOKENS_PER_PRICE_UNIT
