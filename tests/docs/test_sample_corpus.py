"""What data/ says about its sample corpus is true: the files and their origins, the script, the golden questions."""

import hashlib
import html.parser
import importlib.metadata
import io
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pypdf
import pypdfium2
import pytest

from data.make_sample import SAMPLE, Manual, PageRefused, main, read_manuals, typeset

DATA = SAMPLE.parent
SOURCES = tomllib.loads((DATA / "SOURCES.toml").read_text(encoding="utf-8"))
LISTED = {source["path"]: source for source in SOURCES["source"]}
QUESTIONS = [json.loads(line) for line in (DATA / "golden.jsonl").read_text(encoding="utf-8").splitlines()]
ANSWERABLE = [question for question in QUESTIONS if question["answerable"]]
MANUALS = {manual.file: manual for manual in read_manuals()}


def squeezed(text: str) -> str:
    """The text with each run of white space as one blank, so that line breaks do not matter."""
    return " ".join(text.split())


def pages_of(pdf: bytes) -> list[str]:
    """The text of each page, as pypdf reads it, with white space squeezed."""
    return [squeezed(page.extract_text()) for page in pypdf.PdfReader(io.BytesIO(pdf)).pages]


class MainText(html.parser.HTMLParser):
    """Collects the text inside `main`: what is left when navigation, cookie notice and footer are not read."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = False
        self.pieces: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.inside = self.inside or tag == "main"

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "main"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.pieces.append(data)


@cache
def readable(path: str, page: int | None = None) -> str:
    """What a reader of the file, or of one page of a PDF, would see, with white space squeezed."""
    file = SAMPLE / path
    if file.suffix == ".pdf":
        assert page is not None, f"{path}: a question about a PDF names its page"
        return pages_of(file.read_bytes())[page - 1]
    assert page is None, f"{path}: only a PDF has pages"
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".html":
        parser = MainText()
        parser.feed(text)
        text = "".join(parser.pieces)
    return squeezed(text)


def paragraph_under(heading: str, path: str) -> str:
    """The one paragraph between the heading and the next heading, with white space squeezed."""
    text = (SAMPLE / path).read_text(encoding="utf-8")
    found = re.search(rf"(?:## |<h2>){re.escape(heading)}(?:</h2>)?\n(.*?)(?=\n## |<h2>)", text, re.DOTALL)
    assert found is not None, f"{path}: no section {heading!r}"
    return squeezed(re.sub(r"</?p>", "", found[1]))


def files_in(folder: Path) -> Iterator[str]:
    """The paths of all files below the folder, relative to it."""
    return (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_the_list_of_sources_names_every_file_and_no_other() -> None:
    """A file without an origin is not shipped, and an origin without a file is not claimed."""
    assert sorted(LISTED) == sorted(files_in(SAMPLE))
    assert len(SOURCES["source"]) == len(LISTED), "a path is listed twice"


@pytest.mark.parametrize("path", LISTED)
def test_a_file_has_the_bytes_that_its_origin_was_written_for(path: str) -> None:
    """The sha256, the licence and the reason are those of the bytes that are here."""
    source = LISTED[path]
    assert hashlib.sha256((SAMPLE / path).read_bytes()).hexdigest() == source["sha256"]
    assert source["licence"] == "Apache-2.0"
    assert source["origin"].startswith("own words")
    assert source["why"]


@pytest.mark.parametrize("file", MANUALS)
def test_the_script_makes_the_committed_manual(file: str) -> None:
    """Under the reportlab version of the list the bytes are equal; under another one the words of each page are."""
    made, committed = typeset(MANUALS[file]), (SAMPLE / file).read_bytes()
    if importlib.metadata.version("reportlab") == SOURCES["reportlab"]:
        assert made == committed, "run python -m data.make_sample, and update the sha256 in data/SOURCES.toml"
    else:
        assert pages_of(made) == pages_of(committed)


def test_check_names_a_manual_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--check` writes nothing and exits 1; once the manuals are made it exits 0."""
    monkeypatch.setattr("data.make_sample.SAMPLE", tmp_path)
    assert main(["--check"]) == 1
    assert capsys.readouterr().out.splitlines() == [f"{file}: differs" for file in MANUALS]
    assert list(tmp_path.iterdir()) == []
    assert main([]) == 0
    assert main(["--check"]) == 0


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("word\n\n" * 60, "is too long"),
        ("| " + "wide " * 40 + "| cell |", "too wide"),
        ("Dvořák", "font cannot draw"),
    ],
    ids=["long", "wide", "glyph"],
)
def test_words_that_a_page_cannot_show_are_refused(body: str, reason: str) -> None:
    """Nothing runs off a page, into the next one, or into a black box: page numbers and words are part of the data."""
    manual = Manual("a.pdf", "A", "A", "A", "A", front_pages=0, pages=(body,))
    with pytest.raises(PageRefused, match=f"a.pdf: page 1 .*{reason}"):
        typeset(manual)


@pytest.mark.parametrize("file", MANUALS)
def test_both_pdf_engines_read_the_same_words(file: str) -> None:
    """The manual extracts cleanly: pypdf and pypdfium2 agree on every page, and no glyph is unmapped."""
    pdf = (SAMPLE / file).read_bytes()
    document = pypdfium2.PdfDocument(pdf)
    try:
        by_pdfium = [squeezed(page.get_textpage().get_text_range()) for page in document]
    finally:
        document.close()
    assert by_pdfium == pages_of(pdf)
    assert all(page.isprintable() for page in by_pdfium)


def test_the_long_manual_has_front_matter_labels_and_an_outline() -> None:
    """Physical page 5 is printed as page 1, and each chapter is in the outline with the page where it begins."""
    reader = pypdf.PdfReader(SAMPLE / "manuals/marigold-operating-manual.pdf")
    assert reader.page_labels == ["i", "ii", "iii", "iv", *map(str, range(1, 14))]
    chapters = [entry for entry in reader.outline if not isinstance(entry, list)]
    assert [reader.get_destination_page_number(chapter) for chapter in chapters] == list(range(17))
    for number, chapter in enumerate(chapters):
        assert chapter.title in reader.pages[number].extract_text().splitlines()


def test_one_passage_stands_in_three_files_word_for_word() -> None:
    """In two of them title and heading are equal as well, so that it is one chunk; in the third they are not."""
    shared = SOURCES["shared_passage"]
    paths = [*shared["one_chunk"], *shared["another_chunk"]]
    assert len(paths) == 3
    (passage,) = {paragraph_under(shared["heading"], path) for path in paths}
    assert len(passage.split()) >= 60
    titles = {(SAMPLE / path).read_text(encoding="utf-8").splitlines()[0] for path in shared["one_chunk"]}
    assert titles == {"# Notice to passengers"}
    assert not any(passage in readable(path) for path in LISTED if path not in paths and not path.endswith(".pdf"))


def test_golden_questions_are_enough_and_each_has_its_own_id() -> None:
    """Thirty or more can be answered, ten or more cannot, and none is asked twice."""
    assert len(ANSWERABLE) >= 30
    assert len(QUESTIONS) - len(ANSWERABLE) >= 10
    for field in ("id", "question"):
        assert [value for value, times in Counter(q[field] for q in QUESTIONS).items() if times > 1] == []


def test_every_file_is_asked_about() -> None:
    """No file of the corpus is there for nothing."""
    assert {question["path"] for question in ANSWERABLE} == set(LISTED)


@pytest.mark.parametrize("question", ANSWERABLE, ids=lambda question: question["id"])
def test_the_quote_of_a_golden_question_stands_in_its_file(question: dict[str, object]) -> None:
    """Word for word, on the page named, and in what is to be read: not in a menu, a cookie notice or a footer."""
    path, page, quote, also = (question.get(field) for field in ("path", "page", "quote", "also"))
    assert isinstance(path, str)
    assert isinstance(quote, str)
    assert isinstance(page, int | None)
    assert isinstance(also, list | None)
    for each in (path, *(also or ())):
        assert squeezed(quote) in readable(each, page)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["id"])
def test_a_golden_question_has_the_fields_of_its_kind(question: dict[str, object]) -> None:
    """A misspelt field would be a promise that nothing checks."""
    base = {"id", "question", "answerable"}
    if question["answerable"]:
        assert base | {"path", "quote"} <= set(question) <= base | {"path", "quote", "page", "also"}
    else:
        assert set(question) == base
        assert str(question["id"]).startswith(("off-", "absent-"))
