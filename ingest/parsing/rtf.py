"""Rich text: the paragraphs that striprtf finds; formatting, headings and pictures are not kept.

Source: the RTF specification 1.9.1 through striprtf, which knows the words of the format and its code pages.
"""

from striprtf.striprtf import rtf_to_text

from .document import Block, Document
from .failure import Refused
from .lines import paragraphs
from .normalise import deceptive_warnings, normalise
from .registry import ReaderInput

__all__ = ["read"]

# The format is ASCII; a byte above it, where a program writes one all the same, is of the file's own code page.
BYTES = "latin-1"


def read(task: ReaderInput) -> Document:
    """Return the document: a paragraph per line. It has no title."""
    try:
        found: str = rtf_to_text(  # type: ignore[no-untyped-call]  # has no annotations
            task.content.decode(BYTES), encoding=task.options.fallback_encoding, errors="replace"
        )
    except (ValueError, LookupError, IndexError) as error:
        raise Refused("damaged", f"rich text: {error}") from error
    text, deceptive = normalise(found)
    # Each paragraph is one line here; blank ones between them are spacing.
    blocks = tuple(
        Block("paragraph", start, end)
        for first, last in paragraphs(text)
        for start, end in _lines(text, first, last)
        if not text[start:end].isspace()
    )
    undecodable = text.count("\ufffd")
    warnings = (f"undecodable: {undecodable} places do not fit their code page",) if undecodable else ()
    return Document(
        kind=task.kind,
        reader=task.reader,
        text=text,
        blocks=blocks,
        warnings=warnings + deceptive_warnings(deceptive),
    )


def _lines(text: str, start: int, end: int) -> list[tuple[int, int]]:
    spans = []
    for line in text[start:end].split("\n"):
        spans.append((start, start + len(line)))
        start += len(line) + 1
    return spans
