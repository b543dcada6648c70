"""Every passage can be checked where its citation says, and the golden questions are answered."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import pypdf
import pytest

from ingest.catalog.changes import unpack_text
from ingest.catalog.database import Catalog
from search.edge import EdgeReader
from search.embedding import embedder_of
from search.generation import IndexLayout
from search.lookup import Lookup
from search.records import Citation, Passage, SearchResult
from search.settings import DEFAULT_MODEL, Settings, cache_folder
from tests.harness import REPOSITORY, SAMPLE, IndexUnderTest

GOLDEN = [json.loads(line) for line in (REPOSITORY / "data" / "golden.jsonl").read_text(encoding="utf-8").splitlines()]
ANSWERABLE = [question for question in GOLDEN if question["answerable"]]
# About other things altogether; what only this corpus lacks ("absent-") may find its neighbours.
FOREIGN = [question for question in GOLDEN if question["id"].startswith("off-")]
LIMIT = 5


@dataclass(frozen=True)
class Sample:
    """The sample corpus in an index, and a lookup over it in this process."""

    index: IndexUnderTest
    lookup: Lookup

    def ask(self, question: str) -> SearchResult:
        """Look a question up as ``ingest search`` does."""
        return self.lookup.lookup(question, limit=LIMIT)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    """The sample corpus, where it stands, ingested once."""
    index = IndexUnderTest(tmp_path_factory.mktemp("citations"))
    ended = index.run(SAMPLE)
    assert ended.exit_code == 0, ended.stdout + ended.stderr
    settings = Settings(home=index.home)
    embedders = partial(embedder_of, model=DEFAULT_MODEL, threads=0, cache=cache_folder())
    with contextlib.closing(EdgeReader(IndexLayout(index.home))) as reader:
        yield Sample(index, Lookup(reader, embedders, limit=LIMIT, floor=settings.relevance_floor))


def squeezed(text: str) -> str:
    """The text with each run of white space as one blank."""
    return " ".join(text.split())


@cache
def pages(path: Path) -> tuple[str, ...]:
    """The text of each page as pypdf reads it, without any white space: engines differ in where they put it."""
    return tuple("".join(page.extract_text().split()) for page in pypdf.PdfReader(path).pages)


def exported(index: IndexUnderTest) -> tuple[dict[str, list[Path]], list[dict[str, object]]]:
    """The files of each document, and the chunks."""
    lines = [json.loads(line) for line in index.export().splitlines()]
    files: dict[str, list[Path]] = {}
    for line in lines:
        if line["message_type"] == "source":
            files.setdefault(line["document_id"], []).append(SAMPLE / line["path"])
    return files, [line for line in lines if line["message_type"] == "chunk"]


def test_every_passage_stands_verbatim_at_its_cited_span(sample: Sample) -> None:
    """Of each location of each chunk: the slice of the stored document text is the passage, to the character."""
    with contextlib.closing(Catalog.open_read_only(IndexLayout(sample.index.home).catalog)) as catalog:
        texts = {
            document_id: unpack_text(packed)
            for document_id, packed in catalog.connection.execute("SELECT document_id, text FROM documents")
        }
        rows = catalog.connection.execute(
            "SELECT c.text, l.document_id, l.char_start, l.char_end FROM locations l JOIN chunks c USING(chunk_id)"
        ).fetchall()
    assert len(rows) >= 90
    assert [text for text, document, start, end in rows if texts[document][start:end] != text] == []


def test_every_line_citation_names_the_lines_of_the_file(sample: Sample) -> None:
    """In text files the passage stands in the lines named, first and last line included, and in no fewer."""
    checked = 0
    files, chunks = exported(sample.index)
    for chunk in chunks:
        for location in _locations(chunk):
            if location.get("line_start") is None:
                continue
            for path in files[str(location["document_id"])]:
                lines = path.read_text(encoding="utf-8").split("\n")
                first, last = int(str(location["line_start"])), int(str(location["line_end"]))
                cited = "\n".join(lines[first - 1 : last])
                text = str(chunk["text"])
                assert text in cited
                assert lines[first - 1].strip()
                assert text.startswith(text.split("\n")[0])
                assert text.split("\n")[0] in lines[first - 1]
                assert text.split("\n")[-1] in lines[last - 1]
                checked += 1
    assert checked >= 40


def test_every_page_citation_names_the_pages_of_the_pdf(sample: Sample) -> None:
    """Read by another program, the pages named hold the words of the passage, and each page named holds some."""
    checked = 0
    files, chunks = exported(sample.index)
    for chunk in chunks:
        for location in _locations(chunk):
            (path, *_) = files[str(location["document_id"])]
            if path.suffix != ".pdf":
                continue
            first, last = int(str(location["part_first"])), int(str(location["part_last"]))
            text = str(chunk["text"])
            cuts = [*(offset for offset, _ in location.get("part_starts") or []), len(text)]  # type: ignore[attr-defined]
            begin = 0
            for number, end in zip(range(first, last + 1), cuts, strict=True):
                part = "".join(text[begin:end].split())
                assert part
                assert part in pages(path)[number - 1], (path.name, number, text[begin:end])
                begin = end
            checked += 1
    assert checked >= 25


def _locations(chunk: dict[str, object]) -> list[dict[str, object]]:
    found = chunk["locations"]
    assert isinstance(found, list)
    return found


def answers(passage: Passage, question: dict[str, object]) -> bool:
    """True where a passage holds the quote, and one of its citations names the file, and for a PDF the page."""
    places: list[Citation] = [passage.citation, *passage.also_at]
    wanted = {question["path"], *question.get("also", ())}  # type: ignore[misc]  # golden.jsonl has lists of paths there
    named = [place for place in places if place.path in wanted]
    if "page" in question:
        page = int(str(question["page"]))
        named = [place for place in named if (place.page_start or 0) <= page <= (place.page_end or 0)]
    return bool(named) and squeezed(str(question["quote"])) in squeezed(passage.text)


@pytest.mark.parametrize("question", ANSWERABLE, ids=lambda question: question["id"])
def test_a_golden_question_is_answered_among_the_first_five(question: dict[str, object], sample: Sample) -> None:
    """The passage that holds the quote is there, cited at the file and the page that the question names."""
    passages = sample.ask(str(question["question"])).passages
    assert any(answers(passage, question) for passage in passages), [passage.text[:80] for passage in passages]


def test_questions_about_another_world_find_no_match(sample: Sample) -> None:
    """All but one of them: a low word or two in common lifts a stray passage over the floor (sourdough and bread)."""
    answered = [question["id"] for question in FOREIGN if sample.ask(question["question"]).status != "no_match"]
    assert set(answered) <= {"off-sourdough"}


@pytest.mark.parametrize("question", ANSWERABLE[::13], ids=lambda question: question["id"])
def test_the_command_line_answers_as_the_lookup_does(question: dict[str, object], sample: Sample) -> None:
    """``ingest search --json`` prints exactly what the lookup returns."""
    asked = str(question["question"])
    assert sample.index.search(asked, limit=LIMIT) == json.loads(json.dumps(sample.ask(asked).to_json()))


def test_the_passage_that_stands_in_three_files_is_found_once(sample: Sample) -> None:
    """Two of the files share a chunk, the third has its own; a lookup shows one passage with all three places."""
    passages = sample.ask("What happens if the fog comes down?").passages
    found = [passage for passage in passages if "fog" in passage.text.lower() and passage.also_at]
    paths = {place.path for passage in found[:1] for place in (passage.citation, *passage.also_at)}
    assert paths == {"notices/alder-point.md", "notices/kestrel-quay.md", "site/visitors.html"}
