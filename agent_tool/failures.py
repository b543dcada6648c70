"""Why a lookup could not look: the table of codes, and the fixed sentence that the model reads for each.

"Looked, found nothing" is an answer and stands in ``answers``; this is the other outcome, and the two never share a
shape. Sentences are fixed: no path, query, document text, SQL or class name is ever put into one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Final, Literal, TypeAlias

from audit import AuditError, JsonValue
from search.errors import GroundedError, IndexMissing, ModelUnavailable, RecipeMismatch

from .contract import ARGUMENTS

__all__ = ["Code", "CouldNotLook", "Failure", "failure_of", "internal", "invalid_argument", "rate_limited"]

Code: TypeAlias = Literal[
    "audit_unavailable",
    "busy",
    "index_incompatible",
    "index_missing",
    "index_unavailable",
    "internal",
    "invalid_argument",
    "rate_limited",
    "timeout",
    "too_many_attempts",
]


@dataclass(frozen=True, slots=True)
class Failure:
    """One row of the table. ``retry_after_ms`` is known where trying again may help."""

    code: Code
    sentence: str
    retryable: bool = False
    retry_after_ms: int | None = None
    argument: str | None = None

    @property
    def text(self) -> str:
        """What the model reads."""
        return f"{self.code}: {self.sentence}"

    def to_json(self) -> dict[str, JsonValue]:
        """Return what the orchestrator reads, unknown fields left out."""
        values: dict[str, JsonValue] = {"code": self.code, "retryable": self.retryable}
        if self.retry_after_ms is not None:
            values["retry_after_ms"] = self.retry_after_ms
        if self.argument is not None:
            values["argument"] = self.argument
        return values


class CouldNotLook(Exception):
    """Ends a lookup with a failure, from any depth."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


_FIXED: Final[Mapping[Code, Failure]] = {
    failure.code: failure
    for failure in (
        Failure("busy", "Too many lookups at once. Try once more after 1 s.", True, 1_000),
        Failure("too_many_attempts", "This step was looked up too often. Go on with what you have."),
        Failure("audit_unavailable", "The lookup could not be recorded. Try once more after 2 s.", True, 2_000),
        Failure("index_missing", "There is no index of documents. Do not retry; tell the user."),
        Failure(
            "index_incompatible",
            "The index was made for another program version or embedding model, or its model is absent. "
            "Do not retry; tell the user.",
        ),
        Failure("index_unavailable", "The index cannot be read right now. Try once more after 2 s.", True, 2_000),
        Failure("timeout", "The lookup took too long. Try once more after 2 s.", True, 2_000),
    )
}


def fixed(code: Code) -> CouldNotLook:
    """Return the failure of a code whose sentence never varies."""
    return CouldNotLook(_FIXED[code])


def invalid_argument(rule: str, argument: str | None = None) -> CouldNotLook:
    """Return the refusal of an argument; ``rule`` is one of ours and repeats nothing of what was given."""
    subject = f"{argument} {rule}" if argument else rule
    sentence = f"{subject}. Allowed arguments: {', '.join(ARGUMENTS)}."
    return CouldNotLook(Failure("invalid_argument", sentence, argument=argument))


def rate_limited(retry_after_s: float | None) -> CouldNotLook:
    """Return the refusal of a caller who looks up too much; None: no waiting would help."""
    if retry_after_s is None:
        return CouldNotLook(Failure("rate_limited", "No lookups are left for this caller. Go on with what you have."))
    wait_s = max(ceil(retry_after_s), 1)
    sentence = f"Too many lookups. Wait {wait_s} s, then send the same query; do not reword it."
    return CouldNotLook(
        Failure("rate_limited", sentence, retryable=True, retry_after_ms=max(ceil(retry_after_s * 1000), 1))
    )


def internal(incident: str) -> CouldNotLook:
    """Return the failure that is our fault; the log holds the rest under the same incident."""
    return CouldNotLook(Failure("internal", f"The lookup failed (incident {incident}). Try once more.", True, 1_000))


def failure_of(error: GroundedError | AuditError) -> CouldNotLook:
    """Return the failure that an error of the layers below means to a caller."""
    match error:
        case AuditError():
            return fixed("audit_unavailable")
        case IndexMissing():
            return fixed("index_missing")
        case RecipeMismatch() | ModelUnavailable():
            return fixed("index_incompatible")
        case _:
            return fixed("index_unavailable")
