"""The pages of a PDF, one by one: which engine reads each, whether its text can be meant, and what is said of it.

By pdfium first; by pypdf where pdfium cannot open the file or a page, or gives garbage; by OCR, if that is switched on,
where neither has text. Content and errors decide, never elapsed time, so that two runs agree (I5).
"""

import re
from dataclasses import dataclass, field, replace

from .document import Gap
from .failure import Refused
from .lines import LETTER_OR_DIGIT
from .normalise import collapse, normalise
from .pdf_engine import PageText, PdfFile, Unopenable
from .pdf_lines import join_soft_hyphens
from .pdf_pdfium import PdfiumFile
from .pdf_pypdf import PypdfFile
from .pdf_quality import DOUBT, GARBAGE, garbage_score, is_cleaner, is_suspect
from .registry import ReaderInput

__all__ = ["Pages", "PdfSource"]

# Glyphs without a character, as the engines show them: a space, so that the words on either side stay apart.
UNMAPPED = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffe\uffff]")

# pypdf refuses more (its limit on entries of a page tree); pdfium believes what the file says of itself.
MAX_PAGES = 100_000
# Pages at the end that no engine can open and pypdf does not even count: so many are a count that lies. Fewer are gaps.
MANY_IMAGINED = 1_000
# Pages of one document that go through OCR; the rest are gaps. What they cost is part of the worker's budget.
MAX_PICTURES = 300
# What is printed as a page number is short; longer ones are an attempt on whoever shows them.
MAX_LABEL_CHARS = 40


@dataclass(slots=True)
class Pages:
    """What was read so far: the text of each page, its label, what is wrong."""

    texts: list[str] = field(default_factory=list)
    labels: list[str | None] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    suspect: list[int] = field(default_factory=list)
    invisible: list[int] = field(default_factory=list)
    by_pypdf: list[int] = field(default_factory=list)
    by_ocr: list[int] = field(default_factory=list)
    pictures: int = 0
    deceptive: int = 0
    imagined: int = 0


class PdfSource:
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

    def read(self) -> Pages:
        """Read all pages, one at a time."""
        pages, chars = Pages(), 0
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

    def _drop_imagined(self, pages: Pages) -> None:
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

    def _page(self, index: int, pages: Pages) -> None:
        """Read one page and judge it; the other engine reads it where this one's text is garbage or nothing."""
        number = index + 1
        try:
            page = self.file.page(index)
        except Unopenable:
            page = None
        score = garbage_score(page.text) if page else GARBAGE
        if (page is None or score >= DOUBT) and self._engine == "auto" and self.file is not self._pypdf:
            other = self._other(index)
            if other is not None and (page is None or is_cleaner(other.text, page.text)):
                pages.by_pypdf.append(number)
                label = page.label if page else other.label
                page, score = replace(other, label=label), garbage_score(other.text)
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
        if gap is not None and gap.reason != "unread" and self._task.options.ocr:
            text = self._by_ocr(index, pages)
            gap = None if text else gap
        if gap is not None:
            pages.gaps.append(gap)
        if text and is_suspect(text):
            pages.suspect.append(number)
        if text and page is not None and page.is_invisible:
            pages.invisible.append(number)
        # No part of the judgement above: a form with a field for every letter is no garbage.
        if page is not None and (filled := "\n".join(filter(str.strip, page.entries))):
            filled, deceptive = normalise(UNMAPPED.sub(" ", filled))
            if LETTER_OR_DIGIT.search(filled):
                pages.deceptive += deceptive
                text = "\n\n".join(filter(None, (text.rstrip("\n"), filled)))
        label = collapse(normalise(page.label[: 2 * MAX_LABEL_CHARS])[0]) if page is not None and page.label else None
        pages.texts.append(text)
        pages.labels.append(label if label and label != str(number) and len(label) <= MAX_LABEL_CHARS else None)

    def _by_ocr(self, index: int, pages: Pages) -> str:
        """Return the text in the picture of a page; empty if there is none, or if the document had its share."""
        if pages.pictures >= MAX_PICTURES or (picture := self.file.picture(index)) is None:
            return ""
        from .pdf_ocr import read_picture

        pages.pictures += 1
        text, deceptive = normalise(read_picture(*picture))
        if not LETTER_OR_DIGIT.search(text):
            return ""
        pages.deceptive += deceptive
        pages.by_ocr.append(index + 1)
        return text

    def _other(self, index: int) -> PageText | None:
        try:
            return self._as_pypdf().page(index)
        except (Refused, Unopenable, IndexError):
            return None
