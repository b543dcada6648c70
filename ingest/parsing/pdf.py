"""PDF: pages, labels, headings from the outline; ``pdf_source`` reads the pages, here they become a document.

Pages that cannot be read are gaps of the document, never silence: a scan without text is ``needs_ocr``, a few bad pages
are named.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .document import Document, Part
from .failure import Refused
from .headings import usable_title
from .normalise import deceptive_warnings
from .pdf_engine import OutlineEntry
from .pdf_lines import drop_running_lines, ends_sentence, join_broken_words
from .pdf_outline import headings, with_paragraphs
from .pdf_source import Pages, PdfSource
from .ranges import ranges_text, spans
from .registry import ReaderInput, optional_version

__all__ = ["read"]


def read(task: ReaderInput) -> Document:
    """Return the document.

    Title: that of the document information, if an author can have meant it; of 946 files none had one in XMP alone.
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
    source = PdfSource(task)
    try:
        pages = source.read()
        outline = list(source.file.outline())
        title = usable_title(source.file.title())
    finally:
        source.close()
    if not any(pages.texts):
        if pages.gaps:
            if all(gap.reason == "unread" for gap in pages.gaps):
                raise Refused("damaged", f"none of {_counted(len(pages.texts))} can be read")
            reasons = {"no_text": "no text layer", "garbled": "text that is no language", "unread": "unreadable pages"}
            named = ", ".join(reasons[reason] for reason in sorted({gap.reason for gap in pages.gaps}))
            advice = "OCR found no words either" if pages.pictures else "run OCR over the file"
            if task.options.ocr and task.use_fallback:
                advice = "the reader did not survive this file, so there was no OCR"
            raise Refused("needs_ocr", f"{_counted(len(pages.texts))}: {named}; {advice}")
        raise Refused("empty", _counted(len(pages.texts), "blank page"))
    return _assemble(task, source.file.name, pages, outline, title)


def _assemble(
    task: ReaderInput, engine: str, pages: Pages, outline: Sequence[OutlineEntry], title: str | None
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
        meta=_meta(pages, running),
        warnings=tuple(_warnings(pages, use_fallback=task.use_fallback)),
        gaps=tuple(pages.gaps),
    )


def _meta(pages: Pages, running: Sequence[str]) -> dict[str, object]:
    meta: dict[str, object] = {}
    if running:
        meta["running"] = list(running)
    if pages.by_ocr:
        meta["ocr"] = {"engine": f"rapidocr {optional_version('rapidocr')}", "pages": ranges_text(spans(pages.by_ocr))}
    return meta


def _warnings(pages: Pages, *, use_fallback: bool) -> Iterator[str]:
    if use_fallback:
        yield "read_again: the first engine did not survive this file, the other one read it"
    if pages.imagined:
        yield f"page_count: the file claims {len(pages.texts) + pages.imagined} pages and has {len(pages.texts)}"
    if pages.by_pypdf:
        yield f"read_again: by pypdf: {_numbered(pages.by_pypdf)}"
    if pages.by_ocr:
        yield f"ocr: read from the picture: {_numbered(pages.by_ocr)}"
    if pages.suspect:
        yield f"suspect_text: words of no known language on {_numbered(pages.suspect)}"
    if pages.invisible:
        yield f"invisible_text: text that nobody sees on {_numbered(pages.invisible)}"
    yield from deceptive_warnings(pages.deceptive)


def _counted(number: int, noun: str = "page") -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _numbered(pages: Sequence[int]) -> str:
    return f"page{'' if len(pages) == 1 else 's'} {ranges_text(spans(pages))}"
