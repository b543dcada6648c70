"""The key of a call: ``request:step``, its position in the agent's work, made by the orchestrator and never the model.

The first source that is present wins: ``_meta``, the headers, the id that a known client gives its calls, else a fresh
key that nothing can repeat. Half a key, a malformed one, or two that differ are refused, never mended: a guessed key
would merge two calls, or count one twice (I7). Not keys, and never read as such: JSON-RPC ids, progress tokens, session
ids, ``traceparent``, ``X-Request-Id``, a hash of the arguments. Pure but for the fresh key.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from audit import BadKey, CallKey, JsonValue, StepKey

from .contract import REQUEST_META, STEP_META

__all__ = ["CLIENT_META", "REQUEST_HEADER", "STEP_HEADER", "Origin", "meta_of", "planned", "read_key", "read_origin"]

REQUEST_HEADER: Final = "Grounded-Request-Id"
STEP_HEADER: Final = "Grounded-Step"
# What Claude Code sends with every call of a tool.
CLIENT_META: Final = "claudecode/toolUseId"
_CLIENT_ID: Final = re.compile(r"toolu_[A-Za-z0-9]{16,122}")
# No part is longer than this, and str() refuses far longer integers.
_MAX_STEP: Final = 10**128
_TRACE: Final = re.compile(r"00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_CLIENT_NAME: Final = re.compile(r"[A-Za-z0-9 ._/-]{1,64}")


@dataclass(frozen=True, slots=True)
class Origin:
    """What helps to find a call again; it decides nothing. Values of another form than ours are dropped."""

    trace_id: str | None = None
    client: str | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """Return what is known."""
        values = {"trace_id": self.trace_id, "client": self.client}
        return {name: value for name, value in values.items() if value is not None}


def planned(request: str, turn: int, index: int) -> CallKey:
    """Return the key of an orchestrator's own call: message number and place among the calls of that message.

    The place keeps parallel calls of one message apart. Raises ``BadKey``.
    """
    return CallKey(StepKey(request, f"{turn}.{index}"), "meta")


def meta_of(key: CallKey) -> dict[str, str]:
    """Return what an orchestrator puts into ``_meta`` of ``tools/call`` to pass a key."""
    return {REQUEST_META: key.step.request, STEP_META: key.step.step}


def read_key(meta: Mapping[str, object], headers: Mapping[str, Sequence[str]], *, required: bool = False) -> CallKey:
    """Return the key of a call. ``headers`` holds every value of our two headers, by their names above.

    Raises ``BadKey`` for half a key, a malformed one, or two that differ; and where it is ``required`` and missing.
    """
    from_meta = _pair(
        [meta[REQUEST_META]] if REQUEST_META in meta else [], [meta[STEP_META]] if STEP_META in meta else [], "_meta"
    )
    from_headers = _pair(headers.get(REQUEST_HEADER, ()), headers.get(STEP_HEADER, ()), "headers")
    if from_meta and from_headers and from_meta != from_headers:
        raise BadKey("key: _meta and headers differ; send one of them, or the same in both")
    if from_meta:
        return CallKey(from_meta, "meta")
    if from_headers:
        return CallKey(from_headers, "header")
    own = meta.get(CLIENT_META)
    if isinstance(own, str) and _CLIENT_ID.fullmatch(own):
        return CallKey.client(own)
    if required:
        raise BadKey(
            f"key: missing; send {REQUEST_META} and {STEP_META} in _meta, or {REQUEST_HEADER} and {STEP_HEADER}"
        )
    return CallKey.generated()


def read_origin(traceparent: object, client: object) -> Origin:
    """Return trace and client name as far as they have their form."""
    trace = _TRACE.fullmatch(traceparent) if isinstance(traceparent, str) else None
    name = client if isinstance(client, str) and _CLIENT_NAME.fullmatch(client) else None
    return Origin(trace.group(1) if trace else None, name)


def _pair(requests: Sequence[object], steps: Sequence[object], where: str) -> StepKey | None:
    if not requests and not steps:
        return None
    if len(requests) != 1 or len(steps) != 1:
        raise BadKey(f"key: {where} must hold request and step, each once")
    request, step = requests[0], steps[0]
    if not isinstance(request, str):
        raise BadKey(f"request: {type(request).__name__}; give a text")
    return StepKey(request, _step(step))


def _step(step: object) -> str:
    """A step may be a JSON integer; a bool is one to Python only."""
    if isinstance(step, int) and not isinstance(step, bool) and 0 <= step < _MAX_STEP:
        return str(step)
    if isinstance(step, str):
        return step
    raise BadKey(f"step: {type(step).__name__}; give a text, or an integer >= 0")
