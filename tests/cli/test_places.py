"""Where a passage stands, as a person reads it: slides, cells, lines, whatever a format counts by."""

import datetime
import json
from pathlib import Path

import openpyxl
import pptx
import pytest

from tests.harness import IndexUnderTest

pytestmark = pytest.mark.slow

BERTHS, SLIDES = 60, 8


def workbook(path: Path) -> None:
    """A price list from the second row on, and a sheet with one far note."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Fees 2026"
    sheet.append([])
    sheet.append(["Service", "Price", "Since"])
    for number in range(BERTHS):
        sheet.append([f"Mooring berth {number}", 12.5 + number, datetime.date(2026, 1, 1)])
    book.create_sheet("Notes")["C5"] = "The harbour master is called Zoë and lives above the sail loft."
    book.save(path)


def deck(path: Path) -> None:
    """Slides long enough to stand in passages of their own."""
    made = pptx.Presentation()
    for number in range(1, SLIDES + 1):
        slide = made.slides.add_slide(made.slide_layouts[1])
        slide.shapes.title.text = f"Drill {number}"
        told = f"Station {number} is manned by the crew of watch {number}. " * 9
        slide.placeholders[1].text = told + f"The password of drill {number} is heron-{number}."
    made.save(str(path))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> IndexUnderTest:
    """An index of one file of each."""
    folder = tmp_path_factory.mktemp("places")
    docs = folder / "docs"
    docs.mkdir()
    workbook(docs / "fees.xlsx")
    deck(docs / "drills.pptx")
    lines = [json.dumps({"id": number, "text": f"winch {number} is greased in week {number}"}) for number in range(40)]
    (docs / "log.jsonl").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    made = IndexUnderTest(folder)
    ended = made.run(docs)
    assert ended.exit_code == 0, ended.stdout
    return made


@pytest.mark.parametrize(
    ("question", "path", "place"),
    [
        ("price of mooring berth 33", "fees.xlsx", "sheet Fees 2026 A"),
        ("who is the harbour master", "fees.xlsx", "sheet Notes C5"),
        ("password of drill 6 heron-6", "drills.pptx", "slide "),
    ],
)
def test_a_person_is_told_the_slide_or_the_cells(index: IndexUnderTest, question: str, path: str, place: str) -> None:
    """The first line of a passage says where to look."""
    ended = index.call("search", question, "--limit", "1")
    assert ended.exit_code == 0
    assert ended.stdout.startswith(f"[1] docs/{path}, {place}")


def test_the_cells_of_a_citation_hold_the_passage(index: IndexUnderTest) -> None:
    """Row by row: what the cited range holds in the workbook is what the passage says."""
    passage = index.search("price of mooring berth 33", limit=1)["passages"][0]
    cells = openpyxl.load_workbook(index.folder / "docs" / "fees.xlsx")["Fees 2026"][passage["citation"]["cells"]]
    rows = [f"Service: {name.value} | Price: {price.value} | Since: 2026-01-01" for name, price, _ in cells]
    assert passage["text"].split("\n") == rows
    assert "Mooring berth 33" in passage["text"]


@pytest.mark.parametrize("number", range(1, SLIDES + 1))
def test_the_slides_of_a_citation_hold_the_passage(index: IndexUnderTest, number: int) -> None:
    """The slide that says it lies in the cited span, and the span is no longer than the passage."""
    passages = index.search(f"password of drill {number} heron-{number}")["passages"]
    passage = next(item for item in passages if f"heron-{number}." in item["text"])
    first = passage["citation"]["slide"]
    last = passage["citation"].get("slide_end", first)
    assert first <= number <= last
    named = {int(word.removeprefix("heron-").rstrip(".")) for word in passage["text"].split() if "heron-" in word}
    assert named <= set(range(first, last + 1))


def test_the_lines_of_a_citation_hold_the_records(index: IndexUnderTest) -> None:
    """JSON lines with blank ones between them: line numbers are those of the file."""
    passage = index.search("when is winch 17 greased", limit=1)["passages"][0]
    lines = (index.folder / "docs" / "log.jsonl").read_text(encoding="utf-8").split("\n")
    place = passage["citation"]
    records = [json.loads(line) for line in lines[place["line_start"] - 1 : place["line_end"]] if line]
    assert passage["text"] == "\n\n".join(f"id: {record['id']}\ntext: {record['text']}" for record in records)
