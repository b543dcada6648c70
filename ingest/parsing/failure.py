"""Why a byte content has no document: the statuses of a source that parsing can give, as data.

A source that cannot be read is never an exception of a run: it is a ``ParseFailure`` with a status and a reason that a
person can act on. Inside the readers a refusal travels as ``Refused``; ``reading.read_document`` is where it ends.
"""

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["FailureStatus", "ParseFailure", "Refused", "shorten"]

FailureStatus = Literal[
    "empty", "unsupported", "binary", "too_large", "needs_password", "needs_ocr", "damaged", "quarantined",
    "unreadable", "unstable",
]  # fmt: skip
# Enough for any one-line message of a library, too little to fill a report or a catalog row with garbage.
REASON_CHARS = 200


@dataclass(frozen=True, slots=True)
class ParseFailure:
    """A document that cannot be had, and why.

    ``empty``: no bytes, or nothing with a letter or digit. ``unsupported``: no reader for this kind. ``binary``: text
    by name but not by content. ``too_large``, ``needs_password``, ``needs_ocr``: as they say. ``damaged``: the reader
    or a guard refused, or name and content disagree. ``quarantined``: killed its worker twice. ``unreadable``: the
    system refused (errno). ``unstable``: changed while it was read; given by the run, after a second ``Changed``.

    ``kind`` is what the content turned out to be, or whose reader refused it; None where nobody came to know. It says
    which readers could mend the failure, and is no part of what a failure is.
    """

    status: FailureStatus
    reason: str
    kind: str | None = field(default=None, compare=False)


class Refused(Exception):
    """A reader or the detector refuses a content. Holds the failure that it becomes; never leaves ``read_document``."""

    def __init__(self, status: FailureStatus, reason: str, kind: str | None = None) -> None:
        super().__init__(reason)
        self.failure = ParseFailure(status, shorten(reason), kind)


def shorten(reason: str) -> str:
    """Return ``reason`` on one line, printable, at most ``REASON_CHARS`` long."""
    line = " ".join("".join(char if char.isprintable() else " " for char in reason[: 4 * REASON_CHARS]).split())
    return line if len(line) <= REASON_CHARS else line[: REASON_CHARS - 1] + "…"
