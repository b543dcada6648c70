"""From bytes to a document: detection, the reader, and the checks that every document must pass.

Pure with respect to the disk: nothing is opened, written or fetched. This is the boundary at which whatever a library
raises becomes a failure of this one source (conventions 13); only running out of memory goes on, since the worker that
met it has to be replaced.
"""

from collections.abc import Mapping
from dataclasses import replace

from .detect import detect
from .document import Document
from .failure import ParseFailure, Refused, shorten
from .limits import Limits, ReaderOptions
from .lines import LETTER_OR_DIGIT
from .registry import FORMATS, Format, ReaderInput, parse_fingerprint

__all__ = ["check_document", "read_document"]

# Raised where a library did not foresee what it met; their messages are names and no sentences.
UNSAID = (LookupError, AttributeError, TypeError, AssertionError, NameError, ArithmeticError, StopIteration)
# Rows, records and paragraphs of a document. A worker may hold three times as many, but the run takes some 800 bytes
# for each (measured), and has no limit that would end it alone.
MAX_BLOCKS = 2_000_000


def read_document(
    content: bytes,
    kind: str,
    name: str = "",
    *,
    limits: Limits | None = None,
    options: ReaderOptions | None = None,
    use_fallback: bool = False,
    formats: Mapping[str, Format] = FORMATS,
) -> Document | ParseFailure:
    """Return the document in ``content``, or why there is none. Equal arguments give equal results.

    ``kind`` is what its file names suggest (``richest_kind``); the content may decide otherwise. ``name`` is used in
    reasons only. ``use_fallback`` takes the reader's second way, for a file that killed a worker in the first. Raises
    ``MemoryError``.
    """
    limits, options = limits or Limits(), options or ReaderOptions()
    if not content:
        return ParseFailure("empty", "no bytes")
    read_as: str | None = None
    try:
        found = formats[detect(content, kind, name)]
        read_as = found.kind
        too_large = limits.size_failure(len(content), text=found.is_text)
        if too_large is not None:
            return replace(too_large, kind=read_as)
        reader = parse_fingerprint(found.kind, options)
        document = found.load()(ReaderInput(content, found.kind, reader, limits, options, use_fallback))
        if len(document.text) > limits.text_chars:
            over = f"{len(document.text)} characters of text, over {limits.text_chars}"
            return ParseFailure("too_large", over, read_as)
        if len(document.blocks) > MAX_BLOCKS:
            return ParseFailure("too_large", f"{len(document.blocks)} blocks, over {MAX_BLOCKS}; split it", read_as)
        check_document(document)
    except Refused as refusal:
        return replace(refusal.failure, kind=refusal.failure.kind or read_as)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # one source in the worker pool: the boundary of conventions 13
        return ParseFailure("damaged", _stopped(read_as or kind, error), read_as)
    if not _has_text(document):
        return ParseFailure("empty", "nothing with a letter or digit", read_as)
    return document


def _stopped(kind: str, error: Exception) -> str:
    """Return a sentence about a reader that raised: for a person, with what somebody who mends it needs."""
    said = str(error).strip()
    if isinstance(error, RecursionError):
        return f"nested too deep for the {kind} reader"
    if isinstance(error, UNSAID) or not said:
        name = type(error).__name__
        return shorten(f"the {kind} reader stopped at something that it does not expect ({name}: {said})")
    return shorten(f"the {kind} reader stopped: {said}")


def check_document(document: Document) -> None:
    """Raise ``ValueError`` unless blocks and parts stand in order, within the text, and do not overlap."""
    end = 0
    for block in document.blocks:
        if not end <= block.start <= block.end:
            raise ValueError(f"block {block.start}..{block.end} after {end}")
        end = block.end
    if end > len(document.text):
        raise ValueError(f"block ends at {end}, text at {len(document.text)}")
    start = 0
    for number, part in enumerate(document.parts, 1):
        if part.number != number or not start <= part.start <= len(document.text):
            raise ValueError(f"part {part.number} at {part.start} after {start}")
        start = part.start


def _has_text(document: Document) -> bool:
    return any(
        LETTER_OR_DIGIT.search(document.text, block.start, block.end)
        for block in document.blocks
        if block.kind != "front_matter"
    )
