"""What counts as a heading, the same in every format."""

from .lines import LETTER_OR_DIGIT
from .normalise import collapse

__all__ = ["MAX_HEADING_CHARS", "usable_heading"]

# A heading of more is a paragraph that somebody set in large type (document.py).
MAX_HEADING_CHARS = 200


def usable_heading(text: str) -> str | None:
    """Return ``text`` as a heading, on one line; None if it says nothing or is too long for one."""
    heading = collapse(text)
    return heading if len(heading) <= MAX_HEADING_CHARS and LETTER_OR_DIGIT.search(heading) else None
