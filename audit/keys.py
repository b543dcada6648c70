"""Keys, canonical JSON and HMACs: the only module of `audit` that hashes or makes ids.

Owns: the forms of keys and their checks, the two secrets (`IdKey` for fingerprints and pseudonyms, `ChainKey` for the
event chain). Refuses to clean up: a part outside its form is `BadKey`, because joining stays injective only while no
part can hold the separator. No key is made from what a model wrote. Pure but for the fresh random ids. Source: RFC 2104
(HMAC), RFC 8785 for the idea of canonical JSON; ours is ASCII, sorted by code point, and refuses what JSON cannot say.
"""

import hmac
import json
import math
import re
import secrets
import unicodedata
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, NewType, TypeAlias

from .errors import BadDeclaration, BadKey

__all__ = [
    "GENESIS",
    "ActionKey",
    "CallKey",
    "ChainKey",
    "IdKey",
    "JsonValue",
    "KeySource",
    "StepKey",
    "canonical",
    "check_event_part",
    "check_name",
    "check_part",
]

JsonValue: TypeAlias = "Mapping[str, JsonValue] | Sequence[JsonValue] | str | int | float | bool | None"
Fingerprint = NewType("Fingerprint", str)
KeySource: TypeAlias = Literal["meta", "header", "client", "generated"]

# The hash before the first event of a scope.
GENESIS = "0" * 64

# `~` in front is ours, so that no key from outside can equal one that we make. No `:`, `#`, `@`: they join.
_PART = re.compile(r"[A-Za-z0-9._-][A-Za-z0-9._~-]{0,127}")
# Ours may be longer: `~s20.` goes in front of a step of the host.
_OWN_PART = re.compile(r"~[A-Za-z0-9._~-]{1,160}")
_NAME = re.compile(r"[A-Za-z0-9._-][A-Za-z0-9._~-]{0,63}")
_EVENT_PART = re.compile(r"[A-Za-z0-9._~#@-]{0,200}")
_KEY_LENGTH = 255
_MIN_SECRET_BYTES = 16


def _describe(value: object) -> str:
    """A refused value for a message: its type and length only, since it may hold personal data."""
    return f"{len(value)} characters" if isinstance(value, str) else type(value).__name__


def check_part(value: object, what: str, *, ours: bool = False) -> str:
    """Return `value` when it has the form of a key part (1-128 of `A-Za-z0-9._~-`, `~` first only if it is ours).

    Else raise BadKey.
    """
    if isinstance(value, str) and (_PART.fullmatch(value) or (ours and _OWN_PART.fullmatch(value))):
        return value
    raise BadKey(
        f"{what}: {_describe(value)} outside the form; give 1-128 of A-Za-z0-9._~- not starting with ~, or"
        " opaque(value)"
    )


def check_name(value: object, what: str) -> str:
    """Return `value` when it has the form of a short name (1-64 characters, as a key part): tools, kinds, meters.

    Else raise BadKey.
    """
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise BadKey(f"{what}: {_describe(value)} outside the form; give 1-64 of A-Za-z0-9._~- not starting with ~")


def check_event_part(value: object) -> str:
    """Return `value` when it may tell events of one key and kind apart (`tool#s1@2.done`, or empty).

    Else raise BadKey.
    """
    if isinstance(value, str) and _EVENT_PART.fullmatch(value):
        return value
    raise BadKey(f"part: {_describe(value)} outside the form; give at most 200 of A-Za-z0-9._~#@-")


@dataclass(frozen=True)
class StepKey:
    """`request:step`, the position of one call in an agent's work. Made by the host before execution (I7)."""

    request: str
    step: str
    ours: bool = field(default=False, repr=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        """Check both parts; only keys that this package or `agent_tool` makes itself may start with `~`."""
        check_part(self.request, "request", ours=self.ours)
        check_part(self.step, "step", ours=self.ours)

    @classmethod
    def parse(cls, text: str) -> "StepKey":
        """Read `request:step` back, our own `~` keys too. Raises BadKey."""
        request, separator, step = text.partition(":")
        if not separator:
            raise BadKey("key: no ':' in it; give request:step")
        return cls(request, step, ours=True)

    def __str__(self) -> str:
        return f"{self.request}:{self.step}"


@dataclass(frozen=True)
class CallKey:
    """A step key and where it came from; a generated one can never be repeated, so it is never deduplicated."""

    step: StepKey
    source: KeySource

    @classmethod
    def client(cls, call_id: str) -> "CallKey":
        """The key of a client that numbers its calls by itself (`~client:<call id>`). Raises BadKey."""
        return cls(StepKey("~client", call_id, ours=True), "client")

    @classmethod
    def generated(cls) -> "CallKey":
        """A fresh key for a caller that gave none (`~generated:<uuid>`)."""
        return cls(StepKey("~generated", str(uuid.uuid4()), ours=True), "generated")


@dataclass(frozen=True)
class ActionKey:
    """`workflow:step:tool`, sample N adds `#sN`: the slot of one action."""

    workflow: str
    step: str
    tool: str
    sample: int = 0

    def __post_init__(self) -> None:
        """Check every part, the sample and the length of the whole."""
        check_part(self.workflow, "workflow")
        check_part(self.step, "step")
        check_name(self.tool, "tool")
        if self.sample < 0:
            raise BadKey(f"sample: {self.sample}; give an integer >= 0")
        if len(str(self)) > _KEY_LENGTH:
            raise BadKey(f"action key: {len(str(self))} characters; shorten workflow or step to {_KEY_LENGTH} in all")

    @classmethod
    def parse(cls, text: str) -> "ActionKey":
        """Read the text form back. Raises BadKey."""
        head, mark, sample = text.partition("#s")
        parts = head.split(":")
        if len(parts) != 3 or (mark and (not sample.isascii() or not sample.isdigit() or sample[0] == "0")):
            raise BadKey("action key: not of its form; give workflow:step:tool, or workflow:step:tool#sN")
        return cls(parts[0], parts[1], parts[2], int(sample) if mark else 0)

    @property
    def step_key(self) -> StepKey:
        """The key of the events of this action."""
        return StepKey(self.workflow, self.step)

    @property
    def usage_key(self) -> StepKey:
        """Where the action is counted: its step; each sample is a use of its own, under a step no host can name."""
        if not self.sample:
            return self.step_key
        return StepKey(self.workflow, f"~s{self.sample}.{self.step}", ours=True)

    def __str__(self) -> str:
        return f"{self.workflow}:{self.step}:{self.tool}" + (f"#s{self.sample}" if self.sample else "")


def canonical(value: object) -> str:
    """Return the one JSON text of a value: ASCII, no spaces, keys sorted by code point.

    Raises BadKey for what has no single form: NaN and infinities, keys that are not strings, other types, cycles.
    """
    try:
        _check_json(value, 0)
        return json.dumps(value, ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise BadKey(
            "value: not JSON; give only objects with string keys, arrays, strings, finite numbers, booleans, null"
        ) from error


# Deep enough for any argument list, far below the recursion limit of the interpreter.
_DEPTH = 100


def _check_json(value: object, depth: int) -> None:
    if depth > _DEPTH:
        raise BadKey(f"value: nested deeper than {_DEPTH} levels; flatten it")
    match value:
        case None | bool() | str() | int():
            return
        case float():
            if not math.isfinite(value):
                raise BadKey("value: NaN or infinity; JSON has no such number")
        case dict():
            for key, item in value.items():
                if not isinstance(key, str):
                    raise BadKey("value: an object key that is not a string; 1 and '1' would become one")
                _check_json(item, depth + 1)
        case list() | tuple():
            for item in value:
                _check_json(item, depth + 1)
        case _:
            raise BadKey(f"value: {type(value).__name__} is not JSON; convert it first")


def normal_identity(values: Mapping[str, object]) -> dict[str, JsonValue]:
    """Return identity values in their one form: strings stripped and NFC, decimals and dates as text.

    Floats are refused.

    An amount is an integer of minor units or a Decimal: `1` and `1.0` would be two identities of one effect. Raises
    BadKey.
    """
    return {name: _normal(name, value) for name, value in sorted(values.items())}


def _normal(name: str, value: object) -> JsonValue:
    match value:
        case None | bool() | int():
            return value
        case str():
            return unicodedata.normalize("NFC", value.strip())
        case Decimal():
            if not value.is_finite():
                raise BadKey(f"identity {name}: not a finite number")
            # 1.50 and 1.5 are one amount; format 'f' keeps 100 from becoming 1E+2.
            text = format(value.normalize(), "f")
            return "0" if text == "-0" else text
        case datetime():
            if value.tzinfo is None:
                raise BadKey(f"identity {name}: a time without zone; give an aware datetime")
            return value.isoformat()
        case date():
            return value.isoformat()
        case list() | tuple():
            return [_normal(name, item) for item in value]
        case dict():
            return {str(key): _normal(name, item) for key, item in value.items()}
        case float():
            raise BadKey(f"identity {name}: a float; give integer minor units or a Decimal")
        case _:
            raise BadKey(
                f"identity {name}: {type(value).__name__} has no one form; give text, integer, Decimal or date"
            )


@dataclass(frozen=True)
class IdKey:
    """The secret behind fingerprints and pseudonyms. HMACs, because short ids could be guessed from a plain hash."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse a secret that is too short to protect anything."""
        if len(self.secret) < _MIN_SECRET_BYTES:
            raise BadDeclaration(f"id key: {len(self.secret)} bytes; give at least {_MIN_SECRET_BYTES}")

    @classmethod
    def fresh(cls) -> "IdKey":
        """A new random key of 32 bytes."""
        return cls(secrets.token_bytes(32))

    def _mac(self, purpose: str, value: object) -> str:
        return hmac.digest(self.secret, canonical([purpose, value]).encode("ascii"), "sha256").hex()

    def opaque(self, value: str) -> str:
        """A pseudonym for a business id or a foreign run id.

        `id_` and 40 hex digits, a valid key part, equal for equal values.
        """
        return "id_" + self._mac("opaque", value)[:40]

    def fingerprint(self, value: object) -> Fingerprint:
        """64 hex digits, equal exactly for equal canonical JSON. Raises BadKey for what is not JSON."""
        return Fingerprint(self._mac("fingerprint", value))

    def derive(self, purpose: str) -> bytes:
        """A secret of 32 bytes for one other purpose; it tells nothing about this key or about other purposes."""
        return bytes.fromhex(self._mac("derive", purpose))

    @property
    def check_value(self) -> str:
        """What a file keeps of a key that lives elsewhere, so that a wrong one is noticed."""
        return self._mac("check", "id")


@dataclass(frozen=True)
class ChainKey:
    """The secret of the event chain and its name; `earlier` (newest first) still verify what they wrote."""

    key_id: str
    secret: bytes = field(repr=False)
    earlier: tuple["ChainKey", ...] = ()

    def __post_init__(self) -> None:
        """Check the name and refuse a short secret."""
        check_name(self.key_id, "chain key id")
        if len(self.secret) < _MIN_SECRET_BYTES:
            raise BadDeclaration(
                f"chain key {self.key_id}: {len(self.secret)} bytes; give at least {_MIN_SECRET_BYTES}"
            )

    @classmethod
    def fresh(cls, key_id: str) -> "ChainKey":
        """A new random key of 32 bytes."""
        return cls(key_id, secrets.token_bytes(32))

    def named(self, key_id: str) -> "ChainKey | None":
        """Find this key or an earlier one by name."""
        return next((key for key in (self, *self.earlier) if key.key_id == key_id), None)

    def link(self, fields: Sequence[JsonValue]) -> str:
        """The hash of one event: HMAC-SHA256 over an array, not glued text, so that no two field lists share it."""
        return hmac.digest(self.secret, canonical(list(fields)).encode("ascii"), "sha256").hex()

    @property
    def check_value(self) -> str:
        """What a file keeps of this key, so that a wrong one is noticed."""
        return self.link(["check", self.key_id])


def fresh_token() -> str:
    """32 random hex digits, for names that no two processes may share."""
    return secrets.token_hex(16)


def fresh_downstream_key() -> str:
    """The key a target gets: `ga_` and 40 hex digits. Random, so that it tells the target nothing."""
    return "ga_" + secrets.token_hex(20)


def fresh_approval_id() -> str:
    """The id of one question to a person: `ap_` and 24 hex digits."""
    return "ap_" + secrets.token_hex(12)


def same(left: str, right: str) -> bool:
    """Compare two hex digests in constant time."""
    return hmac.compare_digest(left, right)
