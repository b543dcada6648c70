"""Arguments and results as text that reads back to the same values.

Owns: the tagged JSON of bytes, dates, decimals, tuples, sets and registered dataclasses. Refuses nothing at the end of
an effect: what cannot be written, or is over 1 MiB, becomes `omitted` with its type and hash, because a result that
cannot be stored must not turn a success into a failure.
"""

import base64
import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from audit.keys import IdKey

__all__ = ["MAX_RESULT_BYTES", "Codec", "Stored", "Unwritable"]

# The bound of one stored result; a larger one belongs into a store of its own, with its id as the result.
MAX_RESULT_BYTES = 1024 * 1024
_TAG = "~"
_DEPTH = 100


class Unwritable(ValueError):
    """A value without a text form."""


@dataclass(frozen=True)
class Stored:
    """A value as the ledger keeps it: its text, or why there is none."""

    kind: Literal["inline", "omitted"]
    digest: str
    text: str | None


class Codec:
    """Writes and reads values; knows the dataclasses it was given, by their qualified names."""

    def __init__(self, ids: IdKey, types: Sequence[type] = ()) -> None:
        self._ids = ids
        self._types: Mapping[str, type] = {f"{found.__module__}.{found.__qualname__}": found for found in types}

    def text(self, value: object) -> str:
        """One text of a value, keys sorted. Raises Unwritable: cyclic or too deep, NaN, a type without a form."""
        return json.dumps(self._encode(value, 0), ensure_ascii=True, sort_keys=True, separators=(",", ":"))

    def value(self, text: str) -> object:
        """The value of a text; a fresh object each time."""
        return self._decode(json.loads(text))

    def store(self, result: object) -> Stored:
        """A result as it is kept; never raises for the result's sake."""
        try:
            text = self.text(result)
        except Unwritable:
            return Stored("omitted", self._ids.fingerprint(type(result).__qualname__), None)
        if len(text) > MAX_RESULT_BYTES:
            return Stored("omitted", self._ids.fingerprint(text), None)
        return Stored("inline", self._ids.fingerprint(text), text)

    def _encode(self, value: object, depth: int) -> object:
        if depth > _DEPTH:
            raise Unwritable("cyclic, or nested too deep")
        match value:
            case None | bool():
                return value
            case int():
                return int(value)
            case str():
                return str(value)
            case float():
                if not math.isfinite(value):
                    raise Unwritable("NaN or infinity")
                return float(value)
            case bytes() | bytearray():
                return {_TAG: "bytes", "v": base64.b64encode(value).decode("ascii")}
            case datetime():
                return {_TAG: "datetime", "v": value.isoformat()}
            case date():
                return {_TAG: "date", "v": value.isoformat()}
            case Decimal():
                return {_TAG: "decimal", "v": str(value)}
            case list():
                return [self._encode(item, depth + 1) for item in value]
            case tuple():
                return {_TAG: "tuple", "v": [self._encode(item, depth + 1) for item in value]}
            case set() | frozenset():
                # Sets have no order of their own; their texts give one.
                texts = sorted(json.dumps(self._encode(item, depth + 1), sort_keys=True) for item in value)
                return {
                    _TAG: "set" if isinstance(value, set) else "frozenset",
                    "v": [json.loads(text) for text in texts],
                }
            case Mapping():
                return self._encode_mapping(value, depth)
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        if name in self._types and dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(value)]
            return {_TAG: "object", "t": name, "v": {n: self._encode(getattr(value, n), depth + 1) for n in names}}
        raise Unwritable(f"{type(value).__qualname__} has no text form")

    def _encode_mapping(self, value: Mapping[object, object], depth: int) -> object:
        if _TAG not in value and all(isinstance(key, str) for key in value):
            return {str(key): self._encode(item, depth + 1) for key, item in value.items()}
        pairs = [[self._encode(key, depth + 1), self._encode(item, depth + 1)] for key, item in value.items()]
        return {_TAG: "dict", "v": pairs}

    def _decode(self, value: object) -> object:
        if isinstance(value, list):
            return [self._decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        tag, inner = value.get(_TAG), value.get("v")
        if tag is None:
            return {key: self._decode(item) for key, item in value.items()}
        if isinstance(inner, str):
            return _READERS[tag](inner)
        if isinstance(inner, dict):
            return self._types[str(value["t"])](**{key: self._decode(item) for key, item in inner.items()})
        items = [self._decode(item) for item in inner] if isinstance(inner, list) else []
        if tag == "dict":
            return {_hashable(pair): held for pair, held in (item for item in items if isinstance(item, list))}
        return {"tuple": tuple, "set": set, "frozenset": frozenset}[str(tag)](items)


_READERS: Mapping[str, Callable[[str], object]] = {
    "bytes": base64.b64decode,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "decimal": Decimal,
}


def _hashable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
