"""PDF by pypdf: slow, and at home in files that pdfium refuses (encryption R5 and R6, some damage).

pypdf raises whatever Python raises on a broken file, so all of ``BROKEN`` means: cannot be read.
"""

import io
import logging
import re
import zlib
from collections.abc import Iterator, Sequence

from pypdf import PageObject, PasswordType, PdfReader
from pypdf.errors import PyPdfError
from pypdf.generic import Destination, DictionaryObject, TextStringObject

from .pdf_engine import MAX_ANNOTATIONS, OutlineEntry, PageText, Unopenable

__all__ = ["PypdfFile"]

# pypdf says so much of fonts and broken references that 27 manuals made 1.4 MB of it.
logging.getLogger("pypdf").setLevel(logging.ERROR)

# Beside its own errors pypdf lets through what Python raises on impossible values; running out of memory is not among
# these, since it is no matter of the file. RecursionError and NotImplementedError are RuntimeErrors.
BROKEN = (
    PyPdfError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, OSError,
    AssertionError, EOFError, zlib.error,
)  # fmt: skip
# Operators that paint: paths, shadings, pictures and forms, text.
PAINTS = re.compile(rb"(?:^|[\s\])>])(?:f\*?|F|[bB]\*?|[sS]|sh|Do|BI|Tj|TJ|'|\")(?=\s|$)")
MAX_OUTLINE_DEPTH = 32
# What a reader sees though it is no content of the page: where each kind of annotation keeps its text (ISO 32000-1,
# 12.5.6.6 and 12.7.3); and the flags of those that nobody sees.
ENTRIES = {"/Widget": "/V", "/FreeText": "/Contents"}
HIDDEN = 1 << 1 | 1 << 5


class PypdfFile:
    """An open PDF, read by pypdf. Raises ``Unopenable``, also for one without pages."""

    name = "pypdf"

    def __init__(self, content: bytes, passwords: Sequence[str] = ()) -> None:
        try:
            self._reader = PdfReader(io.BytesIO(content))
            self.password = self._unlock(passwords)
            self._count = len(self._reader.pages)
            self._labels: Sequence[str] = self._read_labels()
        except BROKEN as error:
            raise Unopenable(f"pypdf: {type(error).__name__}: {error}") from error
        if not self._count:
            raise Unopenable("pypdf: no pages")

    def __len__(self) -> int:
        """Number of pages."""
        return self._count

    def page(self, index: int) -> PageText:
        """Return a page. Raises ``Unopenable``."""
        try:
            page = self._reader.pages[index]
            text = page.extract_text()
            contents = page.get_contents()
            is_drawn = contents is not None and PAINTS.search(contents.get_data()) is not None
        except BROKEN as error:
            raise Unopenable(f"pypdf: page {index + 1}: {type(error).__name__}: {error}") from error
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        return PageText(text, self._labels[index] or None, is_drawn, entries=tuple(_entries(page)))

    def picture(self, index: int) -> None:
        """Return None: pypdf draws nothing."""

    def outline(self) -> Iterator[OutlineEntry]:
        """Yield the bookmarks that lead to a page."""
        try:
            waiting: list[tuple[int, object]] = [(1, entry) for entry in reversed(self._reader.outline)]
        except BROKEN:
            return
        while waiting:
            level, entry = waiting.pop()
            if isinstance(entry, list):
                if level <= MAX_OUTLINE_DEPTH:
                    waiting += [(level + 1, below) for below in reversed(entry)]
                continue
            page = self._target(entry) if isinstance(entry, Destination) else None
            if isinstance(entry, Destination) and page is not None:
                yield OutlineEntry(str(entry.title or ""), level, page)

    def title(self) -> str:
        """Return the title in the document information."""
        try:
            return (self._reader.metadata and self._reader.metadata.title) or ""
        except BROKEN:
            return ""

    def close(self) -> None:
        """Give the reader's memory back."""
        self._reader.close()

    def _unlock(self, passwords: Sequence[str]) -> str | None:
        """Return the password that opens the file, the empty one first; None if it needs none."""
        if not self._reader.is_encrypted:
            return None
        for password in ("", *passwords):
            if self._reader.decrypt(password) != PasswordType.NOT_DECRYPTED:
                return password
        raise Unopenable("needs a password", needs_password=True)

    def _read_labels(self) -> Sequence[str]:
        try:
            labels = list(self._reader.page_labels)
        except BROKEN:
            labels = []
        return labels if len(labels) == self._count else [""] * self._count

    def _target(self, entry: Destination) -> int | None:
        try:
            page = self._reader.get_destination_page_number(entry)
        except BROKEN:
            return None
        return page if page is not None and 0 <= page < self._count else None


def _entries(page: PageObject) -> Iterator[str]:
    """Yield what is filled into the page's form fields and text boxes, but for hidden and broken ones."""
    try:
        annotations = list(page.annotations or [])[:MAX_ANNOTATIONS]
    except BROKEN:
        return
    for reference in annotations:
        try:
            annotation = reference.get_object()
            entry = _entry(annotation) if isinstance(annotation, DictionaryObject) else None
        except BROKEN:
            continue
        if entry is not None:
            yield entry


def _entry(annotation: DictionaryObject) -> str | None:
    flags = annotation.get("/F", 0)
    if isinstance(flags, int) and flags & HIDDEN:
        return None
    entry = annotation.get(ENTRIES.get(str(annotation.get("/Subtype")), ""))
    return str(entry) if isinstance(entry, TextStringObject) else None
