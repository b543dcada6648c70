"""PDF: pages, labels, headings from the outline; by pdfium first, by pypdf where that is better.

Which engine reads what follows content and errors alone, never elapsed time, so that two runs agree (I5). Pages that
cannot be read are gaps of the document, never silence: a scan without text is ``needs_ocr``, a few bad pages are named.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from .document import Document, Gap, Part
from .failure import Refused
from .headings import usable_title
from .lines import LETTER_OR_DIGIT
from .normalise import collapse, deceptive_warnings, normalise
from .pdf_engine import OutlineEntry, PageText, PdfFile, Unopenable
from .pdf_lines import drop_running_lines, ends_sentence, join_broken_words, join_soft_hyphens
from .pdf_outline import headings, with_paragraphs
from .pdf_pdfium import PdfiumFile
from .pdf_pypdf import PypdfFile
from .pdf_quality import GARBAGE, garbage_score, is_suspect, visible_chars
from .registry import ReaderInput, optional_version

__all__ = ["read"]

# Glyphs without a character, as the engines show them: a space, so that the words on either side stay apart.
UNMAPPED = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffe\uffff]")

# pypdf refuses more (its limit on entries of a page tree); pdfium believes what the file says of itself.
MAX_PAGES = 100_000
# Pages at the end that no engine can open and pypdf does not even count: so many are a count that lies. Fewer are gaps.
MANY_IMAGINED = 1_000
# What is printed as a page number is short; longer ones are an attempt on whoever shows them.
MAX_LABEL_CHARS = 40


@dataclass(slots=True)
class _Pages:
    """What was read so far: the text of each page, its label, what is wrong."""

    texts: list[str] = field(default_factory=list)
    labels: list[str | None] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    suspect: list[int] = field(default_factory=list)
    invisible: list[int] = field(default_factory=list)
    by_pypdf: list[int] = field(default_factory=list)
    deceptive: int = 0
    imagined: int = 0


def read(task: ReaderInput) -> Document:
    """Return the document. Title: that of the document information, if an author can have meant it.

    A damaged file is rewritten, where the extra ``repair`` is installed, and read once more; not where an engine did
    not survive it, since one more library would only be the next to fall.
    """
    try:
        return _read(task)
    except Refused as refusal:
        if refusal.failure.status != "damaged" or task.use_fallback or optional_version("pikepdf") is None:
            raise
        repaired = _repaired(task)
        if repaired is None:
            raise
        return repaired


def _repaired(task: ReaderInput) -> Document | None:
    """Return the document in what pikepdf makes of the bytes; None where there is no text in that: proof of nothing."""
    from .pdf_repair import rewrite

    content = rewrite(task.content, task.options.pdf_passwords)
    if content is None:
        return None
    try:
        document = _read(replace(task, content=content))
    except Refused:
        return None
    warning = "repaired: the file is damaged; this is what pikepdf could restore of it, and pages may be missing"
    return replace(document, warnings=(warning, *document.warnings))


def _read(task: ReaderInput) -> Document:
    source = _Source(task)
    try:
        pages = source.read()
        outline = list(source.file.outline())
        title = usable_title(source.file.title())
    finally:
        source.close()
    if not any(pages.texts):
        if pages.gaps:
            if all(gap.reason == "unread" for gap in pages.gaps):
                raise Refused("damaged", f"none of {len(pages.texts)} pages can be read")
            reasons = {"no_text": "no text layer", "garbled": "text that is no language", "unread": "unreadable pages"}
            named = ", ".join(reasons[reason] for reason in sorted({gap.reason for gap in pages.gaps}))
            raise Refused("needs_ocr", f"{len(pages.texts)} pages: {named}; run OCR over the file")
        raise Refused("empty", f"{len(pages.texts)} blank pages")
    return _assemble(task, source.file.name, pages, outline, title)


class _Source:
    """The bytes, open in the engine that the options and the content ask for; the other one when it is needed."""

    def __init__(self, task: ReaderInput) -> None:
        self._task = task
        self._pypdf: PypdfFile | None = None
        self._engine = task.options.pdf_engine
        if task.use_fallback:
            self._engine = "pypdfium2" if self._engine == "pypdf" else "pypdf"
        self.file: PdfFile = self._open()
        if len(self.file) > MAX_PAGES:
            self.file = self._counted_by_pypdf()

    def close(self) -> None:
        """Close what is open."""
        self.file.close()
        if self._pypdf is not None and self._pypdf is not self.file:
            self._pypdf.close()

    def read(self) -> _Pages:
        """Read all pages, one at a time."""
        pages, chars = _Pages(), 0
        for index in range(len(self.file)):
            self._page(index, pages)
            chars += len(pages.texts[-1])
            if chars > self._task.limits.text_chars:
                raise Refused("too_large", f"over {self._task.limits.text_chars} characters of text")
        self._drop_imagined(pages)
        return pages

    def _counted_by_pypdf(self) -> PypdfFile:
        """Return the file with the pages that it has, where it has no more than it may: pdfium only repeats a claim."""
        claimed = len(self.file)
        self.file.close()
        too_many = Refused("too_large", f"{claimed} pages, over {MAX_PAGES}; split it")
        if self._engine != "auto":
            raise too_many
        try:
            file = self._as_pypdf()
        except Refused:
            raise too_many from None
        if len(file) > MAX_PAGES:
            raise too_many
        return file

    def _drop_imagined(self, pages: _Pages) -> None:
        """Take away the pages that there are only by the count that the file gives."""
        if self._pypdf is None or self._pypdf is self.file:
            return
        last, unread = len(pages.texts), {gap.part for gap in pages.gaps if gap.reason == "unread"}
        while last > len(self._pypdf) and last in unread:
            last -= 1
        imagined = len(pages.texts) - last
        if imagined >= MANY_IMAGINED:
            pages.imagined = imagined
            pages.gaps = [gap for gap in pages.gaps if gap.part <= last]
            del pages.texts[last:], pages.labels[last:]

    def _open(self) -> PdfFile:
        if self._engine == "pypdf":
            return self._as_pypdf()
        try:
            return PdfiumFile(self._task.content)
        except Unopenable as error:
            if self._engine == "pypdfium2" and not error.needs_password:
                raise Refused("damaged", str(error)) from error
            if not error.needs_password:
                return self._as_pypdf(first=str(error))
        # pypdf finds out which password fits, since it knows encryptions that pdfium does not.
        file = self._as_pypdf()
        try:
            return PdfiumFile(self._task.content, file.password)
        except Unopenable:
            return file

    def _as_pypdf(self, first: str = "") -> PypdfFile:
        try:
            self._pypdf = self._pypdf or PypdfFile(self._task.content, self._task.options.pdf_passwords)
        except Unopenable as error:
            if error.needs_password:
                raise Refused("needs_password", "encrypted; put its password into the settings") from error
            raise Refused("damaged", "; ".join(filter(None, (first, str(error))))) from error
        return self._pypdf

    def _page(self, index: int, pages: _Pages) -> None:
        """Read one page and judge it; the other engine reads it where this one's text is garbage or nothing."""
        number = index + 1
        try:
            page = self.file.page(index)
        except Unopenable:
            page = None
        score = garbage_score(page.text) if page else GARBAGE
        if (page is None or score >= GARBAGE) and self._engine == "auto" and self.file is not self._pypdf:
            other = self._other(index)
            if other is not None and (page is None or _is_cleaner(other.text, page.text)):
                pages.by_pypdf.append(number)
                label = page.label if page else other.label
                page, score = PageText(other.text, label, other.is_drawn), garbage_score(other.text)
        text, gap = "", None
        if page is None:
            gap = Gap(number, "unread")
        elif score >= GARBAGE:
            gap = Gap(number, "garbled")
        else:
            text, deceptive = normalise(UNMAPPED.sub(" ", join_soft_hyphens(page.text)))
            pages.deceptive += deceptive
            if not LETTER_OR_DIGIT.search(text):
                text, gap = "", Gap(number, "no_text") if page.is_drawn else None
        if gap is not None:
            pages.gaps.append(gap)
        if text and is_suspect(text):
            pages.suspect.append(number)
        if text and page is not None and page.is_invisible:
            pages.invisible.append(number)
        label = collapse(normalise(page.label[: 2 * MAX_LABEL_CHARS])[0]) if page is not None and page.label else None
        pages.texts.append(text)
        pages.labels.append(label if label and label != str(number) and len(label) <= MAX_LABEL_CHARS else None)

    def _other(self, index: int) -> PageText | None:
        try:
            return self._as_pypdf().page(index)
        except (Refused, Unopenable, IndexError):
            return None


def _is_cleaner(text: str, than: str) -> bool:
    """True where ``text`` is less garbage and not just less text."""
    return garbage_score(text) < garbage_score(than) and 2 * visible_chars(text) >= visible_chars(than)


def _assemble(
    task: ReaderInput, engine: str, pages: _Pages, outline: Sequence[OutlineEntry], title: str | None
) -> Document:
    texts, running = drop_running_lines(pages.texts, pages.labels)
    texts = ["\n".join(line.rstrip() for line in text.split("\n")).strip("\n") for text in join_broken_words(texts)]
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    length, before = 0, ""
    for text in texts:
        if text and before:
            gap = "\n\n" if ends_sentence(before) else "\n"
            pieces.append(gap)
            length += len(gap)
        pieces.append(text)
        starts.append(length)
        length += len(text)
        ends.append(length)
        before = text or before
    text = "".join(pieces)
    return Document(
        kind=task.kind,
        reader=f"{task.reader} by {engine}",
        text=text,
        blocks=tuple(with_paragraphs(text, headings(text, starts, ends, outline))),
        parts=tuple(
            Part("page", number, label, start)
            for number, (label, start) in enumerate(zip(pages.labels, starts, strict=True), 1)
        ),
        title=title,
        meta={"running": running} if running else {},
        warnings=tuple(_warnings(pages, use_fallback=task.use_fallback)),
        gaps=tuple(pages.gaps),
    )


def _warnings(pages: _Pages, *, use_fallback: bool) -> Iterator[str]:
    if use_fallback:
        yield "read_again: the first engine did not survive this file, the other one read it"
    if pages.imagined:
        yield f"page_count: the file claims {len(pages.texts) + pages.imagined} pages and has {len(pages.texts)}"
    if pages.by_pypdf:
        yield f"read_again: pages read by pypdf: {_numbers(pages.by_pypdf)}"
    if pages.suspect:
        yield f"suspect_text: words of no known language on pages {_numbers(pages.suspect)}"
    if pages.invisible:
        yield f"invisible_text: text that nobody sees on pages {_numbers(pages.invisible)}"
    yield from deceptive_warnings(pages.deceptive)


def _numbers(pages: Sequence[int]) -> str:
    """Return page numbers as ranges: ``4-6, 9``."""
    ranges: list[list[int]] = []
    for page in pages:
        if ranges and page == ranges[-1][-1] + 1:
            ranges[-1] = [ranges[-1][0], page]
        else:
            ranges.append([page])
    return ", ".join("-".join(map(str, span)) for span in ranges)
