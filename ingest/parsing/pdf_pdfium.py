"""PDF by pdfium, Chrome's engine: 14 times faster than pypdf and as good. Not thread-safe: one process, one thread.

Source: the public headers of pdfium (``fpdf_text.h``, ``fpdf_edit.h``) as bound by pypdfium2 5.
"""

import ctypes
import math
import re
from collections.abc import Iterator
from itertools import groupby

import pypdfium2
import pypdfium2.raw as pdfium

from .pdf_columns import Box, read_columns
from .pdf_engine import MAX_ANNOTATIONS, OutlineEntry, PageText, Picture, Unopenable

__all__ = ["PdfiumFile"]

# In the text of a page this stands for a hyphen at the end of a line, the line break swallowed with it, if it is
# between two letters; anywhere else for a glyph without a character.
LINE_END_HYPHEN = re.compile("(?<=[^\\W\\d_])\ufffe(?=[^\\W\\d_])")
BOUNDED_HYPHEN = "\x02"
# More objects than any page of prose has; drawings and maps have more, and their text is visible.
MAX_OBJECTS = 20_000
INVISIBLE_MODE = 3
# Characters of a page that are asked for their angle before all are, and by how many degrees one may be askew.
TURNED_SAMPLES, TURNED_WITHIN = 16, 10
NEWLINE = ord("\n")
# What a reader sees though it is no content of the page: where each kind of annotation keeps its text.
ENTRIES = {pdfium.FPDF_ANNOT_WIDGET: b"V", pdfium.FPDF_ANNOT_FREETEXT: b"Contents"}
HIDDEN = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
# A picture of this share of the page is a scan, whose text (OCR) is rightly invisible.
SCAN_SHARE = 0.5

# Letters of print are some 30 pixels high at this resolution. More pixels than these rapidocr scales down again.
OCR_DPI, OCR_PIXELS = 200, 2_000
# A stamp and the largest page of PDF 1.7 (ISO 32000-1, annex C); what is smaller or larger is no page of text.
MIN_PICTURE_POINTS, MAX_PICTURE_POINTS = 36, 14_400


class PdfiumFile:
    """An open PDF, read by pdfium. Raises ``Unopenable``, also for one without pages."""

    name = "pypdfium2"

    def __init__(self, content: bytes, password: str | None = None) -> None:
        try:
            self._file = pypdfium2.PdfDocument(content, password=password)
            self._count = len(self._file)
        except pypdfium2.PdfiumError as error:
            needs_password = error.err_code == pdfium.FPDF_ERR_PASSWORD
            raise Unopenable(f"pypdfium2: {error}", needs_password=needs_password) from error
        if not self._count:
            self._file.close()
            raise Unopenable("pypdfium2: no pages")

    def __len__(self) -> int:
        """Number of pages."""
        return self._count

    def page(self, index: int) -> PageText:
        """Return a page. Raises ``Unopenable``."""
        try:
            page = self._file[index]
        except pypdfium2.PdfiumError as error:
            raise Unopenable(f"pypdfium2: page {index + 1}: {error}") from error
        try:
            return self._read(page, index)
        except pypdfium2.PdfiumError as error:
            raise Unopenable(f"pypdfium2: page {index + 1}: {error}") from error
        finally:
            page.close()

    def picture(self, index: int) -> Picture | None:
        """Return how a page looks; None where it cannot be drawn."""
        try:
            page = self._file[index]
        except pypdfium2.PdfiumError:
            return None
        try:
            longest = max(page.get_size())
            if not MIN_PICTURE_POINTS <= longest <= MAX_PICTURE_POINTS:
                return None
            scale = min(OCR_DPI / 72, OCR_PIXELS / longest)
            # What is filled in is read as text already.
            bitmap = page.render(scale=scale, draw_annots=False, may_draw_forms=False)
            try:
                return Picture(bitmap.to_numpy()[:, :, :3].copy(), scale)
            finally:
                bitmap.close()
        except pypdfium2.PdfiumError:
            return None
        finally:
            page.close()

    def outline(self) -> Iterator[OutlineEntry]:
        """Yield the bookmarks that lead to a page."""
        for bookmark in self._file.get_toc(max_depth=32):
            target = bookmark.get_dest()
            page = target.get_index() if target else None
            if page is None or page >= self._count:
                continue
            size = pdfium.FPDFBookmark_GetTitle(bookmark, None, 0)
            buffer = ctypes.create_string_buffer(size)
            pdfium.FPDFBookmark_GetTitle(bookmark, buffer, size)
            yield OutlineEntry(_utf16(buffer.raw), bookmark.level + 1, page)

    def title(self) -> str:
        """Return the title in the document information."""
        size = pdfium.FPDF_GetMetaText(self._file, b"Title", None, 0)
        buffer = ctypes.create_string_buffer(size)
        pdfium.FPDF_GetMetaText(self._file, b"Title", buffer, size)
        return _utf16(buffer.raw)

    def close(self) -> None:
        """Close the document."""
        self._file.close()

    def _read(self, page: pypdfium2.PdfPage, index: int) -> PageText:
        textpage = page.get_textpage()
        try:
            text = textpage.get_text_range(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
            text = LINE_END_HYPHEN.sub("-\n", _turned_lines_in_order(textpage, text, page.get_rotation()))
            boxes = [Box(*textpage.get_rect(number)) for number in range(textpage.count_rects())]
            text = read_columns(text, boxes, lambda box: _line_in(textpage, box))
        finally:
            textpage.close()
        is_drawn, is_invisible = self._look(page)
        entries = tuple(self._entries(page))
        return PageText(text, self._label(index), is_drawn or bool(text.strip()), is_invisible, entries)

    def _look(self, page: pypdfium2.PdfPage) -> tuple[bool, bool]:
        """Return whether something other than text is drawn, and whether text is that nobody sees."""
        left, bottom, right, top = page.get_bbox()
        bounds = [ctypes.c_float() for _ in range(4)]
        is_drawn = is_hidden = has_scan = False
        for number in range(min(pdfium.FPDFPage_CountObjects(page), MAX_OBJECTS)):
            shape = pdfium.FPDFPage_GetObject(page, number)
            kind = pdfium.FPDFPageObj_GetType(shape)
            if kind != pdfium.FPDF_PAGEOBJ_TEXT:
                is_drawn = True
                if kind == pdfium.FPDF_PAGEOBJ_IMAGE and pdfium.FPDFPageObj_GetBounds(shape, *bounds):
                    x0, y0, x1, y1 = (edge.value for edge in bounds)
                    has_scan |= (x1 - x0) * (y1 - y0) > SCAN_SHARE * (right - left) * (top - bottom)
                continue
            if is_hidden:
                continue
            if pdfium.FPDFTextObj_GetTextRenderMode(shape) == INVISIBLE_MODE:
                is_hidden = True
            elif pdfium.FPDFPageObj_GetBounds(shape, *bounds):
                x0, y0, x1, y1 = (edge.value for edge in bounds)
                is_hidden = x1 > x0 and (x1 < left or x0 > right or y1 < bottom or y0 > top)
        return is_drawn, is_hidden and not has_scan

    def _entries(self, page: pypdfium2.PdfPage) -> Iterator[str]:
        """Yield what is filled into the page's form fields and text boxes, but for hidden ones."""
        for number in range(min(pdfium.FPDFPage_GetAnnotCount(page), MAX_ANNOTATIONS)):
            annotation = pdfium.FPDFPage_GetAnnot(page, number)
            if not annotation:
                continue
            try:
                key = ENTRIES.get(pdfium.FPDFAnnot_GetSubtype(annotation))
                if key is None or pdfium.FPDFAnnot_GetFlags(annotation) & HIDDEN:
                    continue
                if pdfium.FPDFAnnot_GetValueType(annotation, key) != pdfium.FPDF_OBJECT_STRING:
                    continue  # a button: its value is a name, such as Off
                size = pdfium.FPDFAnnot_GetStringValue(annotation, key, None, 0)
                buffer = ctypes.create_string_buffer(size)
                target = ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR))
                pdfium.FPDFAnnot_GetStringValue(annotation, key, target, size)
                yield _utf16(buffer.raw)
            finally:
                pdfium.FPDFPage_CloseAnnot(annotation)

    def _label(self, index: int) -> str | None:
        size = pdfium.FPDF_GetPageLabel(self._file, index, None, 0)
        buffer = ctypes.create_string_buffer(size)
        pdfium.FPDF_GetPageLabel(self._file, index, buffer, size)
        return _utf16(buffer.raw) or None


def _line_in(textpage: pypdfium2.PdfTextPage, box: Box) -> str:
    """Return the line in a box. A hyphen at its end is another character here than in the text of the page."""
    line: str = textpage.get_text_bounded(*box, errors="replace").rstrip()
    return line[:-1] + "-" if line.endswith(BOUNDED_HYPHEN) else line


def _turned_lines_in_order(textpage: pypdfium2.PdfTextPage, text: str, rotation: int) -> str:
    """Return the text with lines that are shown turned clockwise in the order in which a person reads them.

    pdfium puts upright lines from left to right, which is right for those turned the other way alone.
    """
    count = textpage.count_chars()
    samples = range(0, count, max(1, count // TURNED_SAMPLES))
    if not any(_is_turned(textpage, number, rotation) for number in samples):
        return text
    turned = [False]
    for number in range(count):
        if pdfium.FPDFText_GetUnicode(textpage, number) == NEWLINE:
            turned.append(False)
        elif not turned[-1]:
            turned[-1] = _is_turned(textpage, number, rotation)
    lines = text.split("\n")
    if len(lines) != len(turned):
        return text
    ordered: list[str] = []
    for is_turned, run in groupby(range(len(lines)), key=turned.__getitem__):
        numbers = list(run)
        ordered += [lines[number] for number in (reversed(numbers) if is_turned else numbers)]
    return "\n".join(ordered)


def _is_turned(textpage: pypdfium2.PdfTextPage, number: int, rotation: int) -> bool:
    """True for a character that stands on its right side as the page is shown; pdfium counts angles clockwise."""
    if pdfium.FPDFText_IsGenerated(textpage, number) == 1:
        return False  # a blank or line end that pdfium put in; it has no angle
    angle = pdfium.FPDFText_GetCharAngle(textpage, number)
    return angle >= 0 and abs((math.degrees(angle) + rotation) % 360 - 90) < TURNED_WITHIN


def _utf16(raw: bytes) -> str:
    """Decode what pdfium writes; the library's own getters raise on a lone surrogate."""
    return raw.decode("utf-16-le", "replace").rstrip("\0")
