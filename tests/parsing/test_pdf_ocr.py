"""Pages that are pictures, read by OCR where it is switched on; with a stand-in for it, and with the real one."""

import io
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pypdfium2
import pytest
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from ingest.observation import Observer, RunOptions
from ingest.parsing import pdf_source, registry
from ingest.parsing.document import Document, Gap
from ingest.parsing.failure import ParseFailure
from ingest.parsing.limits import Limits, ReaderOptions
from ingest.parsing.pdf_columns import Box
from ingest.parsing.reading import read_document
from ingest.parsing.registry import failure_fingerprint, parse_fingerprint
from search.errors import UsageError
from search.settings import Settings
from tests.benchmarks.pdf import f1, page_words

FILES = Path(__file__).resolve().parents[1] / "files" / "parsing"
MIXED = (FILES / "cases" / "pdf-no-text-layer" / "mixed.pdf").read_bytes()
SCAN = (FILES / "cases" / "pdf-no-text-layer" / "scan.pdf").read_bytes()
OCR = ReaderOptions(ocr=True)
DPI = 200
NEEDS_EXTRA = "needs the extra `ocr`"


def parsed(content: bytes, options: ReaderOptions = OCR) -> Document:
    """Return the document."""
    found = read_document(content, "pdf", options=options)
    assert isinstance(found, Document), found
    return found


def scanned(path: Path) -> bytes:
    """Return the pages of a PDF as pictures, as a scanner makes them: grey, 200 dpi, JPEG."""
    written = io.BytesIO()
    canvas = Canvas(written, invariant=1)
    with pypdfium2.PdfDocument(path) as file:
        for page in file:
            width, height = page.get_size()
            picture = io.BytesIO()
            page.render(scale=DPI / 72).to_pil().convert("L").save(picture, "JPEG", quality=80)
            canvas.setPageSize((width, height))
            canvas.drawImage(ImageReader(io.BytesIO(picture.getvalue())), 0, 0, width, height)
            canvas.showPage()
    canvas.save()
    return written.getvalue()


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[tuple[int, ...]]]:
    """Puts in the place of rapidocr what finds ``text`` in every picture; returns the shapes it was given."""

    def install(text: str) -> list[tuple[int, ...]]:
        shapes: list[tuple[int, ...]] = []
        module = ModuleType("ingest.parsing.pdf_ocr")

        def read_picture(pixels: memoryview, pixels_per_point: float) -> str:
            shapes.append(tuple(pixels.shape or ()))
            assert pixels_per_point == pytest.approx(DPI / 72, rel=0.2)
            return text

        module.__dict__["read_picture"] = read_picture
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(registry, "_library_version", lambda name: "1")
        return shapes

    return install


def test_only_pages_without_text_are_read_from_their_pictures(
    stand_in: Callable[[str], list[tuple[int, ...]]],
) -> None:
    """Three of the seven; the document says which, and has no gap left."""
    shapes = stand_in("Words of a picture.")
    document = parsed(MIXED)
    assert len(shapes) == 3
    assert all(len(shape) == 3 and max(shape) <= 2_000 for shape in shapes)
    assert document.text.count("Words of a picture.") == 3
    assert document.gaps == ()
    assert document.warnings == ("ocr: read from the picture: pages 4-6",)
    assert isinstance(document.meta["ocr"], dict)
    assert document.meta["ocr"]["pages"] == "4-6"


def test_without_the_switch_nothing_is_read_from_pictures(stand_in: Callable[[str], list[tuple[int, ...]]]) -> None:
    """It is off unless it is asked for."""
    shapes = stand_in("Words of a picture.")
    assert [gap.part for gap in parsed(MIXED, ReaderOptions()).gaps] == [4, 5, 6]
    assert shapes == []


def test_a_picture_without_words_stays_a_gap(stand_in: Callable[[str], list[tuple[int, ...]]]) -> None:
    """A file of such pages needs better OCR than this, and the reason says that it was tried."""
    stand_in(" - ")
    assert parsed(MIXED).gaps == tuple(Gap(number, "no_text") for number in (4, 5, 6))
    found = read_document(SCAN, "pdf", options=OCR)
    assert isinstance(found, ParseFailure)
    assert found.status == "needs_ocr"
    assert found.reason.endswith("OCR found no words either")


def test_a_garbled_page_is_read_from_its_picture(stand_in: Callable[[str], list[tuple[int, ...]]]) -> None:
    """What is drawn is right where only the font's map is wrong."""
    stand_in("Nobody can tell what this line once said.")
    document = parsed((FILES / "garbled.pdf").read_bytes())
    assert document.text.endswith("once said.")
    assert document.gaps == ()


def test_pages_beyond_the_share_of_a_document_stay_gaps(
    stand_in: Callable[[str], list[tuple[int, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The count decides, never the time, so that two runs agree; what is missing is named."""
    shapes = stand_in("Words of a picture.")
    monkeypatch.setattr(pdf_source, "MAX_PICTURES", 2)
    document = parsed(MIXED)
    assert len(shapes) == 2
    assert document.gaps == (Gap(6, "no_text"),)
    assert document.warnings == ("ocr: read from the picture: pages 4-5",)


def test_after_a_crash_there_is_no_ocr(stand_in: Callable[[str], list[tuple[int, ...]]]) -> None:
    """The second way is pypdf alone, which draws nothing; the reason does not advise what was just tried."""
    shapes = stand_in("Words of a picture.")
    found = read_document(SCAN, "pdf", options=OCR, use_fallback=True)
    assert isinstance(found, ParseFailure)
    assert found.status == "needs_ocr"
    assert found.reason.endswith("so there was no OCR")
    assert shapes == []


def test_the_switch_reads_pdfs_again_and_what_needed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch and versions are part of the fingerprint of PDFs and of their failures; of no other kind."""
    monkeypatch.setattr(registry, "_library_version", lambda name: "1")
    assert "rapidocr/1" in parse_fingerprint("pdf", OCR)
    assert "rapidocr" not in parse_fingerprint("pdf")
    assert parse_fingerprint("docx", OCR) == parse_fingerprint("docx")
    assert failure_fingerprint("pdf", "needs_ocr", Limits(), OCR) != failure_fingerprint("pdf", "needs_ocr", Limits())


def test_a_switch_without_its_library_is_a_mistake_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is told before anything is read, with what to install; with the library workers have the room it takes."""
    options = RunOptions(roots=(tmp_path,))
    monkeypatch.setattr("ingest.observation.optional_version", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'grounded-ingest\[ocr\]'"):
        Observer(Settings(home=tmp_path, ocr=True), options)
    monkeypatch.setattr("ingest.observation.optional_version", lambda name: "1")
    limits = Observer(Settings(home=tmp_path, ocr=True), options).limits
    usual = Observer(Settings(home=tmp_path), options).limits
    assert limits.address_space_bytes > usual.address_space_bytes
    assert limits.cpu_budget_s("pdf", 0) > usual.cpu_budget_s("pdf", 0)
    assert limits.cpu_budget_s("html", 0) == usual.cpu_budget_s("html", 0)


def test_boxes_are_put_into_the_order_of_reading() -> None:
    """Lines from the top, pieces of a line from the left, columns of prose one after the other."""
    pytest.importorskip("rapidocr", reason=NEEDS_EXTRA)
    from ingest.parsing.pdf_ocr import in_reading_order

    left = ["The tide table hangs in the", "small hut beside the crane and", "is changed every Monday by", "its keeper"]
    right = ["Nobody may leave a boat at", "the stone wall for more than", "two nights since the ferry", "turns there"]
    boxes = [(Box(220, 271, 380, 280), "Fees of the harbour"), (Box(40, 271, 200, 280), "Berth 3")]
    for row, (one, other) in enumerate(zip(left, right, strict=True)):
        top = 250.0 - 14 * row
        boxes += [(Box(220, top - 9, 380, top), other), (Box(40, top - 9, 200, top), one)]
    assert in_reading_order(boxes) == "\n".join(["Berth 3 Fees of the harbour", *left, *right])
    assert in_reading_order([]) == ""


@pytest.mark.slow
def test_a_scanned_manual_is_read_and_its_pages_cited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its words 98 % come out of the pictures, on their pages; twice the same; nothing is fetched."""
    pytest.importorskip("rapidocr", reason=NEEDS_EXTRA)

    def refuse(*args: object) -> None:
        raise AssertionError("the network was asked for something")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    content = scanned(FILES / "manual.pdf")
    document = parsed(content)
    whole = parsed((FILES / "manual.pdf").read_bytes(), ReaderOptions())
    assert sum(page_words(document), Counter()).total() > 100
    assert f1(sum(page_words(document), Counter()), sum(page_words(whole), Counter())) > 0.98
    assert document.warnings == ("ocr: read from the picture: pages 1-8",)
    offset = document.text.index("invoice 9917")
    assert max(part.number for part in document.parts if part.start <= offset) == 5
    assert parsed(content) == document
