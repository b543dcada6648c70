"""Reading the arguments of a call: the rules of the input schema, and those that a schema cannot say.

Nothing is coerced and nothing dropped but ``null``, which strict callers send for every argument they do not use. A
refusal names the argument and the rule and repeats nothing of what was given. Pure.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from audit import JsonValue

from .cleaning import has_refused, has_refused_in_path
from .contract import ARGUMENTS, INPUT_SCHEMA, MAX_LIMIT, MAX_QUERY, MAX_QUERY_BYTES
from .failures import CouldNotLook, invalid_argument

__all__ = ["Arguments", "read_arguments"]

_VALIDATOR: Final = Draft202012Validator(dict(INPUT_SCHEMA))

_RULES: Final[Mapping[str, str]] = {
    "query": f"must be a text of 1 to {MAX_QUERY} characters that are not all white space",
    "limit": f"must be a whole number from 1 to {MAX_LIMIT}",
    "path": "must be a text of 1 to 300 characters",
}
_DRIVE: Final = re.compile(r"[A-Za-z]:(?:/|$)")
# A byte of a file name that is not UTF-8 is shown as \xNN, and may be given back so.
_BACKSLASH: Final = re.compile(r"\\(?!x[0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments that keep all rules. ``limit`` None takes the setting; ``path`` None restricts nothing."""

    query: str
    limit: int | None = None
    path: str | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """Return what was asked; absent arguments are left out."""
        values: dict[str, JsonValue] = {"query": self.query, "limit": self.limit, "path": self.path}
        return {name: value for name, value in values.items() if value is not None}


def read_arguments(given: Mapping[str, object]) -> Arguments:
    """Return the arguments, the query composed (NFC). Raises ``CouldNotLook`` for the first rule that is broken.

    A path stays as it is: it is compared with names as they are on disk, and those need not be composed.
    """
    values = {name: value for name, value in given.items() if value is not None}
    if not values.keys() <= set(ARGUMENTS):
        raise invalid_argument("An unknown argument was given")
    for name, value in values.items():
        # The validator prints what it refuses, and a deep nesting cannot be printed.
        if not isinstance(value, str | int | float):
            raise invalid_argument(_RULES[name], name)
    broken = min(_VALIDATOR.iter_errors(values), key=_order, default=None)
    if broken is not None:
        raise _refusal(broken)
    query = _query(str(values["query"]))
    limit = values.get("limit")
    path = values.get("path")
    return Arguments(
        query,
        # 3.0 is an integer to JSON Schema; int() makes it one to us.
        int(limit) if isinstance(limit, int | float) else None,
        _path(path) if isinstance(path, str) else None,
    )


def _query(given: str) -> str:
    if has_refused(given):
        raise invalid_argument("must not hold control, invisible or unpaired characters", "query")
    query = unicodedata.normalize("NFC", given)
    # Composing can lengthen a text: a few characters have longer composed forms.
    if len(query) > MAX_QUERY or len(query.encode()) > MAX_QUERY_BYTES:
        raise invalid_argument(f"must be at most {MAX_QUERY} characters and {MAX_QUERY_BYTES} bytes", "query")
    return query


def _path(given: str) -> str:
    if has_refused_in_path(given):
        raise invalid_argument("must not hold control, invisible or unpaired characters", "path")
    if given.startswith("/") or _DRIVE.match(given) or _BACKSLASH.search(given) or ".." in given.split("/"):
        raise invalid_argument("must be relative, as citations show it: no leading /, no drive, no \\, no ..", "path")
    return given


def _order(error: ValidationError) -> int:
    """As the schema lists the arguments, so that one call always gets one sentence."""
    return ARGUMENTS.index(_argument(error))


def _argument(error: ValidationError) -> str:
    # What is required is the query, and its absence is found at the root.
    return str(error.absolute_path[0]) if error.absolute_path else "query"


def _refusal(error: ValidationError) -> CouldNotLook:
    if error.validator == "required":
        return invalid_argument("is missing", "query")
    name = _argument(error)
    return invalid_argument(_RULES[name], name)
