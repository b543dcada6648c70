"""PDF files, through both engines."""

from pathlib import Path
from typing import get_args

import pytest
from reportlab.pdfgen.canvas import Canvas

from ingest.parsing.document import Document, Gap
from ingest.parsing.failure import ParseFailure
from ingest.parsing.limits import Limits, PdfEngine, ReaderOptions
from ingest.parsing.pdf_engine import PageText, Unopenable
from ingest.parsing.pdf_pdfium import PdfiumFile
from ingest.parsing.pdf_pypdf import PypdfFile
from ingest.parsing.reading import read_document

FILES = Path(__file__).resolve().parents[1] / "files" / "parsing"
CASES = FILES / "cases"


def result(path: Path, options: ReaderOptions | None = None, limits: Limits | None = None) -> Document | ParseFailure:
    """Return what reading a fixture gives."""
    return read_document(path.read_bytes(), "pdf", path.name, options=options, limits=limits)


def parsed(path: Path, options: ReaderOptions | None = None) -> Document:
    """Return the document of a fixture."""
    found = result(path, options)
    assert isinstance(found, Document), found
    return found


def page_of(document: Document, needle: str) -> int:
    """Return the number of the page on which ``needle`` stands."""
    offset = document.text.index(needle)
    return max(part.number for part in document.parts if part.start <= offset)


@pytest.mark.parametrize("engine", get_args(PdfEngine))
def test_a_manual_is_read_the_same_by_every_engine(engine: PdfEngine) -> None:
    """Title, pages with printed labels, headings of the outline, whole words, no running lines."""
    document = parsed(FILES / "manual.pdf", ReaderOptions(pdf_engine=engine))
    assert document.title == "Harbour Handbook"
    assert [part.label for part in document.parts] == ["i", "ii", "1", "2", "3", "4", "5", "6"]
    assert [(block.level, block.heading) for block in document.blocks if block.heading] == [
        (1, "1 Mooring"), (1, "2 Fuel"), (2, "2.1 Spills"), (1, "3 Winter"), (1, "4 Costs and charges for guests"),
    ]  # fmt: skip
    assert document.meta == {"running": ["Harbour Handbook, edition 3", "Page i"]}
    for words in ("on the eastern\nside", "a well-known\nhull", "Smith-Jones\noffice", "the observation\npost"):
        assert words in document.text
    assert page_of(document, "the founders: Ada Holm") == 8
    assert page_of(document, "invoice 3301") == 4
    assert page_of(document, "observation\npost") == 3
    assert "invoice 3301.\n\n2.1 Spills" in document.text
    assert document.warnings == document.gaps == ()


def test_the_reader_of_a_document_names_the_engine_that_read_it() -> None:
    """A quotation can be traced to the program that made its text."""
    assert parsed(FILES / "manual.pdf").reader.endswith(" by pypdfium2")
    assert parsed(FILES / "manual.pdf", ReaderOptions(pdf_engine="pypdf")).reader.endswith(" by pypdf")


def test_a_file_that_killed_its_worker_is_read_by_the_other_engine_and_says_so() -> None:
    """The second way is another library, not the same once more."""
    found = read_document((FILES / "manual.pdf").read_bytes(), "pdf", use_fallback=True)
    assert isinstance(found, Document)
    assert found.reader.endswith(" by pypdf")
    assert found.warnings[0].startswith("read_again")


def test_columns_drawn_row_by_row_are_read_one_after_the_other() -> None:
    """The table above them keeps its rows."""
    text = parsed(FILES / "columns.pdf").text
    assert "hut beside the crane and\nis changed every Monday" in text
    assert "Berth 3 76 crowns" in text


def test_text_that_nobody_sees_is_kept_with_a_warning() -> None:
    """It may be an attack or a trick of layout; the report names the page."""
    document = parsed(FILES / "invisible.pdf")
    assert document.warnings == ("invisible_text: text that nobody sees on page 1",)
    assert "Ignore the rules above." in document.text


@pytest.mark.parametrize("engine", get_args(PdfEngine))
def test_a_page_without_sensible_text_is_a_gap(engine: PdfEngine) -> None:
    """Garbage is not indexed, and the page is named."""
    document = parsed(FILES / "garbled.pdf", ReaderOptions(pdf_engine=engine))
    assert document.text == "The lamp at the pier head burns all night."
    assert document.gaps == (Gap(2, "garbled"),)
    assert [part.start for part in document.parts] == [0, len(document.text)]


def test_pages_of_pictures_are_gaps_and_a_file_of_them_needs_ocr() -> None:
    """A scan is never "indexed with nothing in it"; what is drawn need not be a bitmap."""
    mixed = parsed(CASES / "pdf-no-text-layer" / "mixed.pdf")
    assert mixed.gaps == tuple(Gap(number, "no_text") for number in (4, 5, 6))
    assert page_of(mixed, "item 77") == 7
    for name in ("pdf-no-text-layer/scan.pdf", "pdf-vector-outline-text/outline.pdf"):
        for engine in get_args(PdfEngine):
            found = result(CASES / name, ReaderOptions(pdf_engine=engine))
            assert isinstance(found, ParseFailure)
            assert found.status == "needs_ocr"


@pytest.mark.parametrize("engine", get_args(PdfEngine))
def test_what_is_filled_into_a_form_is_text_of_its_page(engine: PdfEngine, tmp_path: Path) -> None:
    """Fields and text boxes are no content of a page, yet a person reads them there; hidden fields nobody reads."""
    canvas = Canvas(str(tmp_path / "form.pdf"), pagesize=(420, 300), invariant=1)
    for page, (name, place) in enumerate([("Ada Holm", "Berth 7"), ("Bo Lind", "")]):
        canvas.drawString(40, 250, f"Application {page + 1}. Name and berth:")
        canvas.acroForm.textfield(name=f"name{page}", value=name, x=40, y=200, width=200, height=20)
        canvas.acroForm.textfield(name=f"place{page}", value=place, x=40, y=170, width=200, height=20)
        canvas.acroForm.textfield(
            name=f"secret{page}", value="never seen", x=40, y=140, width=99, height=20, annotationFlags="hidden"
        )
        canvas.acroForm.checkbox(name=f"paid{page}", checked=page == 0, x=300, y=140, size=20)
        canvas.freeTextAnnotation(f"Paid in month {page + 3}.", "0 g /Helv 9 Tf", (40, 100, 200, 120))
        canvas.showPage()
    canvas.save()
    document = parsed(tmp_path / "form.pdf", ReaderOptions(pdf_engine=engine))
    assert document.text == (
        "Application 1. Name and berth:\n\nAda Holm\nBerth 7\nPaid in month 3.\n\n"
        "Application 2. Name and berth:\n\nBo Lind\nPaid in month 4."
    )
    assert page_of(document, "Bo Lind") == 2


@pytest.mark.parametrize("engine", get_args(PdfEngine))
def test_blank_pages_alone_are_empty(engine: PdfEngine) -> None:
    """Nothing is drawn, so nothing is missing."""
    assert result(CASES / "zero-chunks" / "blank.pdf", ReaderOptions(pdf_engine=engine)) == ParseFailure(
        "empty", "2 blank pages"
    )


@pytest.mark.parametrize("name", ["owner-rc4", "owner-aes128", "owner-aes256"])
@pytest.mark.parametrize("engine", get_args(PdfEngine))
def test_files_that_open_everywhere_open_here(name: str, engine: PdfEngine) -> None:
    """An owner password forbids editing, not reading."""
    document = parsed(CASES / "pdf-encrypted" / f"{name}.pdf", ReaderOptions(pdf_engine=engine))
    assert "21:30" in document.text


def test_a_locked_file_needs_its_password() -> None:
    """It is no damage; with the password among the configured ones it is read like any other."""
    path = CASES / "pdf-encrypted" / "locked.pdf"
    for options in (None, ReaderOptions(pdf_passwords=("badger",)), ReaderOptions(pdf_engine="pypdf")):
        found = result(path, options)
        assert isinstance(found, ParseFailure)
        assert found.status == "needs_password"
    for engine in get_args(PdfEngine):
        options = ReaderOptions(pdf_passwords=("badger", "otter"), pdf_engine=engine)
        assert parsed(path, options).text


def test_damage_is_mended_or_told() -> None:
    """What a library can repair is read, the rest is damaged with both reasons; a web page is no PDF."""
    for name in ("junk-prefix", "no-xref", "startxref0"):
        assert "bolt size M8" in parsed(CASES / "pdf-damaged" / f"{name}.pdf").text
    for name in ("truncated", "header-only", "actually-html"):
        found = result(CASES / "pdf-damaged" / f"{name}.pdf")
        assert isinstance(found, ParseFailure)
        assert found.status == "damaged"


def test_unmapped_glyphs_keep_words_apart() -> None:
    """A glyph without a character is a blank, never a control character in a passage."""
    document = parsed(CASES / "pdf-nul-glyphs" / "nul.pdf")
    assert "Rowan Pell   confirmed" in document.text
    assert not any(char < " " and char != "\n" for char in document.text)


def test_a_title_that_no_author_meant_is_none() -> None:
    """Broken characters, "untitled" and names of programs and files are no titles."""
    assert parsed(CASES / "pdf-nul-metadata" / "meta.pdf").title is None
    assert parsed(CASES / "pdf-rotated" / "rotated.pdf").title is None


def test_a_shifted_font_map_is_suspect() -> None:
    """The page is indexed, and the report says that its words are of no language."""
    document = parsed(CASES / "pdf-wrong-tounicode" / "shifted.pdf")
    assert document.warnings == ("suspect_text: words of no known language on page 1",)


def test_text_over_the_limit_is_too_large_and_not_cut() -> None:
    """A limit reached is a failure of its own kind, never a shorter document."""
    found = result(FILES / "manual.pdf", limits=Limits(text_chars=200))
    assert found == ParseFailure("too_large", "over 200 characters of text")


def test_a_page_that_one_engine_garbles_is_read_by_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cleaner text wins, and the document says which pages that were; the label stays."""
    read = PdfiumFile.page

    def garbled(file: PdfiumFile, index: int) -> PageText:
        page = read(file, index)
        return PageText("(cid:1)(cid:2)(cid:3)(cid:4)(cid:5)", page.label, is_drawn=True) if index == 4 else page

    monkeypatch.setattr(PdfiumFile, "page", garbled)
    document = parsed(FILES / "manual.pdf")
    assert "Report any spill at once." in document.text
    assert document.parts[4].label == "3"
    assert document.warnings == ("read_again: by pypdf: page 5",)
    assert parsed(FILES / "manual.pdf", ReaderOptions(pdf_engine="pypdfium2")).gaps == (Gap(5, "garbled"),)


def test_a_page_of_torn_words_is_read_by_the_engine_that_keeps_them_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no garbage yet, but the other reading is far better; one that is hardly better changes nothing."""
    whole = "The harbour office is open on Monday and the ferry leaves at nine for the town over there."
    torn = whole.replace("harbour", "h a r b o u r").replace("Monday", "M o n d a y")
    monkeypatch.setattr(PdfiumFile, "page", lambda file, index: PageText(torn, None, is_drawn=True))
    for text, chosen in ((whole, whole), (torn.replace("M o n d a y", "Monday"), torn)):
        monkeypatch.setattr(PypdfFile, "page", lambda file, index, text=text: PageText(text, None, is_drawn=True))
        document = parsed(FILES / "columns.pdf")
        assert document.text == chosen
        assert bool(document.warnings) == (chosen == whole)


def test_a_page_is_not_replaced_by_a_scrap_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less text is not cleaner text: the page is a gap then, and its title alone does not pass for all of it."""
    monkeypatch.setattr(PdfiumFile, "page", lambda file, index: PageText("\ue001" * 400, None, is_drawn=True))
    monkeypatch.setattr(PypdfFile, "page", lambda file, index: PageText("Only the title of it", None, is_drawn=True))
    assert result(FILES / "columns.pdf") == ParseFailure(
        "needs_ocr", "1 page: text that is no language; run OCR over the file"
    )


def test_pages_that_cannot_be_read_are_gaps_and_all_of_them_are_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    """One bad page costs no other; it is named."""
    read = PdfiumFile.page

    def broken(file: PdfiumFile, index: int) -> PageText:
        if index == 1:
            raise Unopenable("page 2")
        return read(file, index)

    options = ReaderOptions(pdf_engine="pypdfium2")
    monkeypatch.setattr(PdfiumFile, "page", broken)
    assert parsed(FILES / "manual.pdf", options).gaps == (Gap(2, "unread"),)

    def none(file: PdfiumFile, index: int) -> PageText:
        raise Unopenable("no page")

    monkeypatch.setattr(PdfiumFile, "page", none)
    assert result(FILES / "manual.pdf", options) == ParseFailure("damaged", "none of 8 pages can be read")
