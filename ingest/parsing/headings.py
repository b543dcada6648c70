"""What counts as a heading or a title, the same in every format."""

import re

from .lines import LETTER_OR_DIGIT
from .normalise import collapse, normalise

__all__ = ["MAX_HEADING_CHARS", "usable_heading", "usable_title"]

# A heading of more is a paragraph that somebody set in large type (document.py).
MAX_HEADING_CHARS = 200
# What programs write where an author gave no title.
NO_TITLE = re.compile(
    r"untitled|title|unknown|microsoft (?:word|powerpoint|excel)\b.*|(?:document|presentation|slide|book) ?\d*|"
    r".*\.(?:docx?|pptx?|xlsx?|pdf|indd|dvi|ps|tex|qxd|rtf|odt|html?|md|fm|cdr|ai)|[\W\d_]*|(?:[a-z]:)?[\\/].*|file:.*",
    re.IGNORECASE,
)
MIN_TITLE_CHARS, MAX_TITLE_CHARS = 3, 200


def usable_heading(text: str) -> str | None:
    """Return ``text`` as a heading, on one line; None if it says nothing or is too long for one."""
    heading = collapse(text)
    return heading if len(heading) <= MAX_HEADING_CHARS and LETTER_OR_DIGIT.search(heading) else None


def usable_title(title: str) -> str | None:
    """Return a title from the properties of a file, normalised; None if a program wrote it and no author."""
    title = collapse(normalise(title)[0])
    sensible = MIN_TITLE_CHARS <= len(title) <= MAX_TITLE_CHARS and NO_TITLE.fullmatch(title) is None
    return title if sensible and "\ufffd" not in title else None
