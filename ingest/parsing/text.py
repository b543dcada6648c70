"""Plain text: paragraphs, parted by blank lines; and XML, which is text here.

Also reads whatever is text under a name without a reader of its own: logs, YAML, settings. XML is never parsed, so
nothing in it is expanded or fetched; only the encoding that it declares is believed. The text has the lines of the
file, one for one.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from .decode import decode
from .document import Block, Document
from .lines import paragraphs
from .normalise import deceptive_warnings, normalise
from .registry import ReaderInput

__all__ = ["lined_document", "paragraph_blocks", "read"]

# An XML declaration stands at the very beginning, and is short.
XML_ENCODING = re.compile(rb"\s*<\?xml[^>]{0,100}?encoding\s*=\s*[\"']([\w.:-]{1,40})")


def read(task: ReaderInput) -> Document:
    """Return the document; it has no title, since none of its lines says that it is one."""
    declared = XML_ENCODING.match(task.content) if task.kind == "xml" else None
    return lined_document(task, paragraph_blocks, declared=declared[1].decode("ascii") if declared else None)


def lined_document(
    task: ReaderInput,
    blocks_of: Callable[[str], Iterable[Block]],
    *,
    declared: str | None = None,
    is_titled: bool = False,
    warnings: tuple[str, ...] = (),
) -> Document:
    """Return a document whose text has the lines of the file.

    ``blocks_of`` finds the blocks in the normalised text, ``declared`` is the encoding that the file names. With
    ``is_titled`` the first heading is the title if its level is 1.
    """
    decoded = decode(task.content, declared=declared, fallback_encoding=task.options.fallback_encoding)
    text, deceptive = normalise(decoded.text)
    blocks = tuple(blocks_of(text))
    first = next((block for block in blocks if block.kind == "heading"), None)
    return Document(
        kind=task.kind,
        reader=task.reader,
        text=text,
        blocks=blocks,
        title=first.heading if is_titled and first is not None and first.level == 1 else None,
        lines=True,
        meta=decoded.meta(),
        warnings=warnings + decoded.warnings + deceptive_warnings(deceptive),
    )


def paragraph_blocks(text: str) -> Iterator[Block]:
    """Yield a paragraph for every run of lines that are not blank."""
    for start, end in paragraphs(text):
        yield Block("paragraph", start, end)
