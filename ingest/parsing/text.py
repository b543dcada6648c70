"""Plain text: paragraphs, parted by blank lines.

Also reads, for now, whatever is text under a name without a reader of its own: source code, tables, XML. XML is never
parsed here, so nothing in it is expanded or fetched. The text has the lines of the file, one for one.
"""

from .decode import decode
from .document import Block, Document
from .lines import paragraphs
from .normalise import deceptive_warnings, normalise
from .registry import ReaderInput

__all__ = ["read"]


def read(task: ReaderInput) -> Document:
    """Return the document; it has no title, since none of its lines says that it is one."""
    decoded = decode(task.content, fallback_encoding=task.options.fallback_encoding)
    text, deceptive = normalise(decoded.text)
    return Document(
        kind=task.kind,
        reader=task.reader,
        text=text,
        blocks=tuple(Block("paragraph", start, end) for start, end in paragraphs(text)),
        lines=True,
        meta=decoded.meta(),
        warnings=decoded.warnings + deceptive_warnings(deceptive),
    )
