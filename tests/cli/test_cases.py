"""Every state that broke document ingestion for real people, through real runs: status, text, search, step by step.

``tests/files/parsing/cases`` and ``tests/files/cases`` hold a ``case.json`` for each, with what is expected; cases that
do not influence each other share one run, each in a folder of its name.
"""

import base64
import contextlib
import json
import os
import shutil
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ingest.catalog.changes import unpack_text
from ingest.catalog.database import Catalog
from search.edge import EdgeReader
from search.embedding import embedder_of
from search.generation import IndexLayout
from search.lookup import Lookup
from search.records import Citation, Passage, SearchResult
from search.settings import DEFAULT_MODEL, cache_folder
from tests.cli.case_states import ODD_NAMES, STATES, lay_out_ledger, lay_out_tiny_files
from tests.cli.conftest import Mortal
from tests.harness import Ended, IndexUnderTest

FILES = Path(__file__).resolve().parents[1] / "files"
FOLDERS = {path.parent.name: path.parent for path in FILES.rglob("case.json")}
TOLD: dict[str, dict[str, Any]] = {
    name: json.loads((folder / "case.json").read_text(encoding="utf-8")) for name, folder in FOLDERS.items()
}
# Cases that are edited between runs, or are about a whole index, have one to themselves.
APART = {
    "deleted-file", "dup-content-two-names", "hidden-and-ignored", "many-chunks-one-file", "many-tiny-files",
    "renamed-file", "same-name-two-folders", "unreadable",
}  # fmt: skip
TOGETHER = sorted(FOLDERS.keys() - APART)
# At this point of a run a document was parsed: a run that dies there has parsed one.
PARSED = "parse:1"
# The model takes 256 tokens, two of which are its own marks.
MOST_TOKENS = 254

ENDINGS = ("csv", "docx", "eml", "epub", "html", "json", "md", "pdf", "pptx", "txt", "xlsx")
# What becomes of each file, by its path below the folder of its case; those that are not named are indexed.
STATUSES: Mapping[str, Mapping[str, str]] = {
    "binary-with-txt-ext": {"data.csv": "binary", "dump.md": "binary", "notes.txt": "binary"},
    "docx-not-docx": {"bundle.docx": "unsupported", "ole2.docx": "needs_password", "plain.docx": "damaged"},
    "empty-file": {f"empty.{ending}": "empty" for ending in ENDINGS},
    "jsonl-blank-lines": {"nested.json": "damaged"},
    "odd-names": {".hidden.md": "skipped", "~$lock.docx": "skipped"},
    "office-lock-files": dict.fromkeys(
        (".~lock.report.odt#", "big.pdf.part", "~$report.docx", "~WRL0001.tmp"), "skipped"
    ),
    "pdf-damaged": {
        **dict.fromkeys(("actually-html.pdf", "header-only.pdf", "truncated.pdf"), "damaged"),
        **({} if find_spec("pikepdf") else {"no-xref-no-trailer.pdf": "damaged"}),  # the extra `repair` mends it
    },
    "pdf-encrypted": {"locked.pdf": "needs_password"},
    "pdf-no-text-layer": {"scan.pdf": "needs_ocr"},
    "pdf-vector-outline-text": {"outline.pdf": "needs_ocr"},
    "whitespace-only": dict.fromkeys(
        ("bom-only.txt", "ff.txt", "nbsp.txt", "nl.txt", "spaces.md", "zerowidth.txt"), "empty"
    ),
    "xml-entity-bomb": {"bomb.docx": "damaged", "bomb.svg": "unsupported"},
    "zero-chunks": dict.fromkeys(
        (
            "blank.pdf", "empty-array.json", "empty-paragraph.docx", "empty-sheet.xlsx", "empty.json",
            "only-script.html", "separators.csv",
        ),
        "empty",
    ),
}  # fmt: skip
# What the passages of a file have to say, where ``expected`` asks for more than ``must_contain`` and ``needle``.
TEXTS: Mapping[str, Mapping[str, str]] = {
    "csv-quoted-newlines": {
        "bom.csv": "id: 1 | name: Ada\nid: 2 | name: Bo",
        "multi.csv": "comment: line one\nline two, with comma\nid: 2 | comment: normal\nid: 3",
        "ragged.csv": "a: 1 | b: 2 | c: 3 | D: 4",
        "semi.csv": "name: rope | price: 12,50\nname: tar; black | price: 3,00",
        "sep.csv": "k: a | v: 1\nk: b | v: 2",
        "tab.tsv": "a: 1 | b: x\ty\na: 2 | b: z",
    },
    "deep-nesting": {"beside.md": "torque 12 Nm"},
    "docx-not-docx": {
        "letter.doc": "Dear crew, the café opens at nine.",
        "page.doc": "Ferry leaves at six.",
        "real.bin": "Hidden docx.",
        "sheet.xls": "| rope | 12 |",
    },
    "enc-cp1252": {"depot.txt": "1987—handles “fragile” freight. Storage costs €14 per pallet–week", "rota.md": "Zoë"},
    "enc-iso8859-5-koi8": {
        "big5.txt": "第三號倉庫的冷卻設備",
        "cp1251.txt": "Ремонт насоса",
        "cp1255.txt": "יחידת הקירור",
        "euckr.txt": "창고의 냉각 장치는",
        "gb18030.txt": "第三号仓库的冷却设备",
        "iso8859_5.txt": "Ремонт насоса",
        "koi8r.txt": "Ремонт насоса",
    },
    "enc-utf16": dict.fromkeys(
        ("be-bom.txt", "le-bom.txt", "le-nobom.txt", "utf32-bom.txt", "utf8-bom.txt"), "Build 4417"
    ),
    "jsonl-blank-lines": {"array.json": "[0].a.b.c[0]: leaf 811", "bom.jsonl": "text: bom first"},
    "long-line-no-space": {"min.json": "replaced by Odell Quist", "cjk.txt": "码头的备用钥匙在蓝色门后面"},
    "nul-in-text": {"log.txt": "ERROR pump 7 stalled at 14:02\nretry scheduled"},
    "pdf-damaged": {"junk-prefix.pdf": "bolt size M8"},
    "tiny-chunks": {"ok.txt": "OK"},
    "xml-entity-bomb": {"bomb.html": "visible line", "xxe.xml": "outside: &x;"},
}
NOT_TEXTS: Mapping[str, tuple[str, ...]] = {
    "csv-quoted-newlines": ("\ufeff",),
    "enc-utf16": ("\ufeff", "\x00"),
    "pdf-damaged": ("<html", "Traceback"),
}


class State:
    """What an index holds: sources by path, and the passages of each with their text."""

    def __init__(self, index: IndexUnderTest) -> None:
        self.index = index
        self.ended = index.call("status", "--json")
        self.exported = [json.loads(line) for line in index.export().splitlines()]

    @cached_property
    def sources(self) -> dict[str, dict[str, Any]]:
        """The entries of ``status --json`` by path; no path has two."""
        entries: list[dict[str, Any]] = self.ended.json["sources"]
        found = {entry["source"]: entry for entry in entries}
        assert len(found) == len(entries)
        return found

    @property
    def chunks(self) -> list[dict[str, Any]]:
        """All chunks of the export."""
        return [line for line in self.exported if line["message_type"] == "chunk"]

    @cached_property
    def texts(self) -> dict[str, list[str]]:
        """Texts of passages by the path of a source that holds them; a source without passages has none."""
        paths: dict[str, list[str]] = {}
        for line in self.exported:
            if line["message_type"] == "source" and line["document_id"]:
                paths.setdefault(line["document_id"], []).append(line["path"])
        found: dict[str, list[str]] = {}
        for chunk in self.chunks:
            for document_id in {location["document_id"] for location in chunk["locations"]}:
                for path in paths[document_id]:
                    found.setdefault(path, []).append(chunk["text"])
        return found

    def statuses(self, folder: str) -> dict[str, str]:
        """Status of each source below a folder, by its path there."""
        prefix = f"{folder}/"
        return {
            path.removeprefix(prefix): entry["status"]
            for path, entry in self.sources.items()
            if path.startswith(prefix)
        }


@contextlib.contextmanager
def asking(home: Path) -> Iterator[Callable[[str], SearchResult]]:
    """What ``ingest search`` does, with the model loaded once for all questions."""
    embedders = partial(embedder_of, model=DEFAULT_MODEL, threads=0, cache=cache_folder())
    lookup = Lookup(EdgeReader(IndexLayout(home)), embedders)
    try:
        yield lookup.lookup
    finally:
        lookup.close()


def hit(result: SearchResult, path: str, text: str) -> tuple[Passage, Citation]:
    """The first passage that says ``text`` and is cited at ``path``."""
    for passage in result.passages:
        for citation in (passage.citation, *passage.also_at):
            if citation.path == path and text in passage.text:
                return passage, citation
    raise AssertionError(f"{result.query!r} does not lead to {text!r} in {path}")


def page_of(citation: Citation, offset: int) -> int | None:
    """The page on which a character of a passage stands: passages over a page border name where each page begins."""
    return next((page for start, page in reversed(citation.part_starts) if start <= offset), citation.page_start)


@dataclass(frozen=True)
class Together:
    """One run over all the cases that share it."""

    index: IndexUnderTest
    docs: Path
    ended: Ended
    state: State
    ask: Callable[[str], SearchResult]


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    """Cases side by side, ingested once."""
    folder = tmp_path_factory.mktemp("cases")
    docs = folder / "docs"
    for name in TOGETHER:
        shutil.copytree(FOLDERS[name], docs / name, ignore=shutil.ignore_patterns("case.json"))
        if name in STATES:
            STATES[name](docs / name)
    index = IndexUnderTest(folder)
    ended = index.run(docs)
    with asking(index.home) as ask:
        yield Together(index, docs, ended, State(index), ask)


def test_all_cases_are_here() -> None:
    """41 states were reported; each has its ``case.json``, and each is carried out below."""
    assert len(FOLDERS) == 41
    assert APART | set(TOGETHER) == set(FOLDERS)
    assert STATUSES.keys() | TEXTS.keys() | NOT_TEXTS.keys() <= set(TOGETHER)
    assert not any("order" in told for told in TOLD.values())


def test_the_run_over_all_of_them_ends_in_order(together: Together) -> None:
    """Some sources failed, none stopped it; every check of the index passes afterwards."""
    assert (together.ended.exit_code, together.ended.stderr) == (3, "")
    report = together.index.verify(full=True)
    assert report["ok"], [check for check in report["checks"] if not check["ok"]]


@pytest.mark.parametrize("name", TOGETHER)
def test_each_file_of_a_case_ends_in_its_due_status(name: str, together: Together) -> None:
    """In one status, by name; whatever is not in the index has a reason and says when it is tried again."""
    files = {
        path.relative_to(FOLDERS[name]).as_posix()
        for path in FOLDERS[name].rglob("*")
        if path.is_file() and path.name != "case.json"
    }
    wanted = {path: STATUSES.get(name, {}).get(path, "indexed") for path in files} | dict(STATUSES.get(name, {}))
    found = together.state.statuses(name)
    if name not in STATES:
        assert found == wanted
    assert {path: status for path, status in found.items() if status != "indexed"} == dict(STATUSES.get(name, {}))
    assert len(found) >= len(TOLD[name]["files"])
    for path in found:
        entry = together.state.sources[f"{name}/{path}"]
        assert entry["root"] == "docs"
        assert entry["retry"]
        assert bool(entry["reason"]) == (entry["status"] != "indexed")
        assert bool(entry.get("chunks")) == (entry["status"] == "indexed")
        assert bool(together.state.texts.get(f"{name}/{path}")) == (entry["status"] == "indexed")


@pytest.mark.parametrize("name", TOGETHER)
def test_the_passages_of_a_case_say_what_they_should(name: str, together: Together) -> None:
    """What must be there is in one passage of its file, what must not is in none; none is without a letter or digit."""
    texts = {path: found for path, found in together.state.texts.items() if path.startswith(f"{name}/")}
    for file, wanted in (*TOLD[name].get("must_contain", {}).items(), *TEXTS.get(name, {}).items()):
        for text in [wanted] if isinstance(wanted, str) else wanted:
            assert any(text in passage for passage in texts[f"{name}/{file}"]), text
    for passages in texts.values():
        for text in (*TOLD[name].get("must_not_contain", ()), *NOT_TEXTS.get(name, ())):
            assert not any(text in passage for passage in passages), text
        assert all(any(letter.isalnum() for letter in passage) for passage in passages)
        assert not any(
            unicodedata.category(letter) == "Cc" and letter not in "\n\t" for passage in passages for letter in passage
        )


@pytest.mark.parametrize("name", [name for name in TOGETHER if "needle" in TOLD[name]])
def test_the_needle_of_a_case_is_found_where_it_stands(name: str, together: Together) -> None:
    """The passage is the document's own text at the cited place, in the right file and on the right page."""
    needle = TOLD[name]["needle"]
    passage, citation = hit(together.ask(needle["query"]), f"{name}/{needle['file']}", needle["text"])
    if "page" in needle:
        assert page_of(citation, passage.text.index(needle["text"])) == needle["page"]
    with contextlib.closing(Catalog.open_read_only(IndexLayout(together.index.home).catalog)) as catalog:
        (packed,) = catalog.connection.execute(
            "SELECT text FROM documents WHERE document_id = ?", (citation.document_id,)
        ).fetchone()
    assert unpack_text(packed)[citation.char_start : citation.char_end] == passage.text


@pytest.mark.parametrize("name", [name for name in TOGETHER if "queries" in TOLD[name]])
def test_no_query_of_a_case_is_an_error(name: str, together: Together) -> None:
    """Operators of other engines, quotes and templates are words or nothing: an answer or none, never a failure."""
    for query in TOLD[name]["queries"]:
        assert together.ask(query).status in ("ok", "no_match")
        assert together.ask(f"{query} harbour").status in ("ok", "no_match")


def test_a_second_run_over_the_cases_reads_nothing(together: Together) -> None:
    """No document is parsed again, whatever became of it: at the first one the run would be killed."""
    before = together.index.generations()
    again = together.index.run(together.docs, GROUNDED_FAILPOINT=PARSED)
    assert (again.exit_code, again.json["published"]) == (3, False)
    assert again.json["sources"]["unchanged"] == again.json["sources"]["seen"] == together.ended.json["sources"]["seen"]
    assert again.json["failures"] == together.ended.json["failures"]
    assert together.index.generations() == before


# ---- what single cases ask for beyond that


def test_quotes_braces_and_templates_come_back_as_they_were(together: Together) -> None:
    """Every line of the file stands in a passage, byte for byte."""
    said = "\n".join(together.state.texts["nested-quotes/q.md"])
    for line in (FOLDERS["nested-quotes"] / "q.md").read_text(encoding="utf-8").splitlines():
        assert line in said


def test_headings_without_a_text_are_found_and_no_end_of_a_padded_paragraph_is_lost(together: Together) -> None:
    """Thousands of blanks part a paragraph and swallow none of it; a heading stays with what follows it."""
    said = "\n".join(together.state.texts["md-empty-sections/plan.md"])
    for text in ("# Plan", "## Epsilon", "#### Delta", "Header line.", "about the eastern gantry."):
        assert text in said
    assert any(
        "Epsilon" in passage.text
        for passage in together.ask("plan epsilon").passages
        if passage.citation.path == "md-empty-sections/plan.md"
    )


def test_a_printed_page_label_stands_beside_the_page_and_not_for_it(together: Together) -> None:
    """The passage begins on page 1, labelled i; the sixth sheet, labelled 2, is page 6."""
    passage, citation = hit(together.ask("SHEET-06"), "pdf-page-labels/labels.pdf", "SHEET-06")
    assert (citation.page_start, citation.page_label) == (1, "i")
    assert page_of(citation, passage.text.index("SHEET-06")) == 6


def test_text_of_turned_pages_stands_on_its_page(together: Together) -> None:
    """Pages turned by 90 and 180 degrees, and text turned on an upright page."""
    sentences = {}
    for passage in together.ask("crane limit see appendix").passages:
        if passage.citation.path == "pdf-rotated/rotated.pdf":
            for sentence in TOLD["pdf-rotated"]["must_contain"]["rotated.pdf"]:
                if sentence in passage.text:
                    sentences[sentence] = page_of(passage.citation, passage.text.index(sentence))
    assert sentences == {"the crane limit is 18 tonnes": 1, "see appendix K": 2}


def test_lines_that_are_no_json_are_counted_and_named(together: Together) -> None:
    """The good records are there, and a warning says which line is not."""
    (warning,) = together.state.sources["jsonl-blank-lines/log.jsonl"]["warnings"]
    assert warning.startswith("unread_lines: 1 ")
    assert warning.endswith("4")


def test_pages_without_text_are_named(together: Together) -> None:
    """In JSON page by page, for people as a range, by the run and by status alike."""
    entry = together.state.sources["pdf-no-text-layer/mixed.pdf"]
    assert entry["gaps"] == [{"part": page, "kind": "page", "reason": "no_text"} for page in (4, 5, 6)]
    assert "pdf-no-text-layer/mixed.pdf: pages 4-6: no text" in together.index.call("status").stdout


def test_text_that_no_language_has_is_flagged(together: Together) -> None:
    """A page whose letters were shifted is not passed off as good: status says so beside it."""
    (warning,) = together.state.sources["pdf-wrong-tounicode/shifted.pdf"]["warnings"]
    assert warning.startswith("suspect_text: ")
    assert "pdf-wrong-tounicode/shifted.pdf: suspect_text" in together.index.call("status").stdout


def test_text_that_only_seems_encoded_is_the_same_in_every_encoding(together: Together) -> None:
    """One text in five encodings gives five documents with the same passages; the guess without BOM is told apart."""
    texts = [together.state.texts[f"enc-utf16/{path.name}"] for path in FOLDERS["enc-utf16"].glob("*.txt")]
    assert len(texts) == 5
    assert all(passages == texts[0] for passages in texts)


def test_bytes_of_valid_utf8_are_never_guessed_at(together: Together) -> None:
    """However short a file is, its passage is what it holds."""
    for path in FOLDERS["enc-utf8-short"].glob("*.??*"):
        if path.name != "case.json":
            said = "\n".join(together.state.texts[f"enc-utf8-short/{path.name}"])
            assert said == path.read_text(encoding="utf-8").strip()


def test_entities_are_not_expanded_and_no_file_is_fetched(together: Together) -> None:
    """Bombs stay small, and what another file holds is in no passage."""
    said = "".join(
        "".join(passages) for path, passages in together.state.texts.items() if path.startswith("xml-entity-bomb/")
    )
    assert len(said) < 20_000
    host = Path("/etc/hostname")
    if host.is_file() and (name := host.read_text(encoding="utf-8").strip()):
        assert name not in said


def test_no_chunk_is_longer_than_what_the_model_reads(together: Together) -> None:
    """Neither of lines without a blank nor of a paragraph of thousands of words: nothing is cut off in silence."""
    assert max(chunk["n_tokens"] for chunk in together.state.chunks) <= MOST_TOKENS
    essay = together.state.texts["huge-paragraph/essay.md"]
    assert sum(passage.count("reading[") for passage in essay) == 800
    assert sum(passage.count("notes that gauge") for passage in essay) == 569


def test_the_file_below_path_max_is_cited_and_can_be_opened(together: Together) -> None:
    """A path longer than the system opens at once is a source like any other."""
    passage = together.ask("What is the deepest fact, the torque?").passages[0]
    assert "torque 41 Nm" in passage.text
    assert len(passage.citation.path) > 4096
    assert passage.citation.path.endswith("/level299_abcdefgh/bottom.md")


def test_each_odd_name_can_be_turned_back_into_its_file(together: Together) -> None:
    """From the citation of a search as from status: the exact bytes, which lead to the very file."""
    entries = [entry for path, entry in together.state.sources.items() if path.startswith("odd-names/")]
    exact = {
        base64.b64decode(entry["path_b64"]) if "path_b64" in entry else entry["source"].encode() for entry in entries
    }
    assert exact == {b"odd-names/" + name for name in ODD_NAMES}
    for number, name in enumerate(ODD_NAMES):
        if name in {b".hidden.md", b"~$lock.docx"}:
            continue
        passage = next(
            passage
            for passage in together.ask(f"Where does marker ODD-{number:03d} live?").passages
            if f"ODD-{number:03d}" in passage.text
        )
        cited = passage.citation
        path = base64.b64decode(cited.path_b64) if cited.path_b64 else cited.path.encode()
        assert b"ODD-%03d" % number in (together.docs / os.fsdecode(path)).read_bytes()


def test_nothing_that_is_printed_about_odd_names_breaks_a_line_or_a_terminal(together: Together) -> None:
    """Reports, status and search escape controls and reading-order marks, and every line of them is valid UTF-8."""
    outputs = [
        together.ended,
        together.state.ended,
        together.index.call("status"),
        together.index.call("search", "ODD"),
    ]
    for ended in outputs:
        assert not any(
            (unicodedata.category(letter) == "Cc" and letter not in "\n\t") or letter == "\u202e"
            for letter in ended.stdout
        )
        assert ended.stdout.encode().decode() == ended.stdout


def test_composed_and_decomposed_names_are_two_sources(together: Together) -> None:
    """They look alike and hold different documents."""
    twins = [
        entry
        for path, entry in together.state.sources.items()
        if unicodedata.normalize("NFC", path).endswith("학점.md")
    ]
    assert len({entry["document_id"] for entry in twins}) == len(twins) == 2


def test_lock_files_are_skipped_and_no_failures(together: Together) -> None:
    """Each is named with the rule that left it out."""
    skipped = [entry for path, entry in together.state.sources.items() if path.startswith("office-lock-files/")]
    assert {entry.get("rule") for entry in skipped} == {None, "temporary"}
    assert not [item for item in together.ended.json["failures"] if item["source"].startswith("office-lock-files/")]


# ---- cases that are edited between runs


@dataclass(frozen=True)
class Edited:
    """Four folders, ingested, edited, and ingested again."""

    index: IndexUnderTest
    docs: Path
    before: State
    second: Ended
    after: State


EDITED = ("deleted-file", "dup-content-two-names", "renamed-file", "same-name-two-folders")


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Edited:
    """The steps of each case are those of its ``case.json``; they concern a folder each."""
    folder = tmp_path_factory.mktemp("edited")
    docs = folder / "docs"
    for name in EDITED:
        if name in STATES:
            (docs / name / "tree").mkdir(parents=True)
            STATES[name](docs / name / "tree")
        else:
            shutil.copytree(FOLDERS[name] / "tree", docs / name / "tree")
    index = IndexUnderTest(folder)
    first = index.run(docs)
    assert first.exit_code == 0, first.stderr
    before = State(index)
    (docs / "deleted-file/tree/gone.md").unlink()
    (docs / "dup-content-two-names/tree/leave-policy.md").unlink()
    (docs / "renamed-file/tree/installation.md").rename(docs / "renamed-file/tree/setup.md")
    (docs / "same-name-two-folders/tree/a/README.md").unlink()
    second = index.run(docs)
    assert second.exit_code == 0, second.stderr
    return Edited(index, docs, before, second, State(index))


def test_a_deleted_file_leaves_no_passage(edited: Edited) -> None:
    """Its marker cannot be found, and what is left is what the other file has."""
    assert any("UNIQ-7741" in text for text in edited.before.texts["deleted-file/tree/gone.md"])
    assert edited.after.statuses("deleted-file") == {"tree/keep.md": "indexed"}
    assert "UNIQ-7741" not in json.dumps(edited.after.exported)
    assert not any("UNIQ-7741" in passage["text"] for passage in edited.index.search("UNIQ-7741")["passages"])
    assert len(edited.after.texts["deleted-file/tree/keep.md"]) == 1


@pytest.mark.invariant("I6")
def test_a_folder_that_is_empty_for_a_while_takes_nothing_with_it(tmp_path: Path) -> None:
    """An unmounted disk is an empty folder: nothing goes until somebody confirms it."""
    docs = tmp_path / "docs"
    shutil.copytree(FOLDERS["deleted-file"] / "tree", docs)
    index = IndexUnderTest(tmp_path)
    assert index.run(docs).exit_code == 0
    before = State(index).texts
    docs.rename(tmp_path / "elsewhere")
    docs.mkdir()
    empty = index.run(docs)
    assert (empty.exit_code, empty.json["sources"]["withheld"]) == (5, 2)
    state = State(index)
    assert state.texts == before
    assert all(entry["withheld"] and entry["status"] == "indexed" for entry in state.sources.values())
    docs.rmdir()
    gone = index.run(docs)
    assert gone.exit_code == 3
    assert State(index).texts == before
    assert index.call("status", "--json").json["unobserved"] == [
        {"shown": "docs", "reason": "ENOENT: No such file or directory", "rows": 2, "root": "docs"}
    ]
    docs.mkdir()
    assert index.run(docs, options=["--allow-removals", "2"]).exit_code == 0
    assert State(index).texts == {}


def test_equal_files_are_one_document_with_two_sources(edited: Edited) -> None:
    """Both paths are known, a hit cites one and lists the other, a third with one more newline is its own document."""
    before = edited.before.sources
    folder = "dup-content-two-names/tree"
    ids = {name: before[f"{folder}/{name}"]["document_id"] for name in ("leave-policy.md", "leave-policy-COPY.md")}
    assert len(set(ids.values())) == 1
    assert before[f"{folder}/archive/leave-policy.md"]["document_id"] not in ids.values()


def test_a_deleted_copy_leaves_its_content_under_the_other_name(edited: Edited) -> None:
    """The passage stays, is cited under the names that are left, and under no other."""
    folder = "dup-content-two-names/tree"
    assert edited.after.statuses("dup-content-two-names") == {
        "tree/archive/leave-policy.md": "indexed",
        "tree/leave-policy-COPY.md": "indexed",
    }
    needle = TOLD["dup-content-two-names"]["needle"]
    passages = [
        passage for passage in edited.index.search(needle["query"])["passages"] if needle["text"] in passage["text"]
    ]
    cited = {citation["path"] for passage in passages for citation in (passage["citation"], *passage["also_at"])}
    assert cited == {f"{folder}/archive/leave-policy.md", f"{folder}/leave-policy-COPY.md"}


def test_a_renamed_file_leaves_no_ghost_and_costs_nothing(edited: Edited) -> None:
    """One source, under the new name, with the passages it had; no text was embedded in that run."""
    assert edited.after.statuses("renamed-file") == {"tree/setup.md": "indexed"}
    assert edited.after.texts["renamed-file/tree/setup.md"] == edited.before.texts["renamed-file/tree/installation.md"]
    assert edited.second.json["sources"]["renamed"] == 1
    assert (edited.second.json["embeddings"]["computed"], edited.second.json["chunks"]["written"]) == (0, 0)


def test_files_of_one_name_in_several_folders_are_told_apart(edited: Edited) -> None:
    """Each is cited with its own path; folders that differ in case are two; deleting one leaves the others."""
    folder = "same-name-two-folders/tree"
    if len(edited.before.statuses("same-name-two-folders")) == 4:
        pytest.skip("this file system knows no difference between A and a")
    said = {
        "A/x.md": "HERON", "a/x.md": "OSPREY", "a/README.md": "30 days", "b/README.md": "90 days",
        "b/c/readme.md": "365 days",
    }  # fmt: skip
    assert {path: "".join(edited.before.texts[f"{folder}/{path}"]).count(text) for path, text in said.items()} == (
        dict.fromkeys(said, 1)
    )
    del said["a/README.md"]
    assert edited.after.statuses("same-name-two-folders") == {f"tree/{path}": "indexed" for path in said}
    needle = TOLD["same-name-two-folders"]["needle"]
    found = edited.index.search(needle["query"])["passages"][0]
    assert (found["citation"]["path"], needle["text"] in found["text"]) == (
        f"same-name-two-folders/{needle['file']}",
        True,
    )


# ---- cases that are about a whole index


def test_hidden_and_ignored_files_are_read_only_where_they_are_named(tmp_path: Path) -> None:
    """The report says what was left out by which rule; a hidden file that is given as a root is read."""
    docs = tmp_path / "tree"
    docs.mkdir()
    STATES["hidden-and-ignored"](docs)
    index = IndexUnderTest(tmp_path)
    ended = index.run(docs)
    assert ended.exit_code == 0
    wanted = {
        ".DS_Store": "never-read", ".env": "hidden", ".git": "never-read", ".gitignore": "hidden",
        ".obsidian": "hidden", "Thumbs.db": "never-read", "__pycache__": "never-read", "ignored": "gitignore",
        "node_modules": "never-read",
    }  # fmt: skip
    assert {skip["source"]: skip["rule"] for skip in ended.json["skips"]} == wanted
    state = State(index)
    assert {path: entry["status"] for path, entry in state.sources.items()} == (
        dict.fromkeys(wanted, "skipped") | {"docs/a.md": "indexed"}
    )
    assert state.ended.json["index"]["sources_skipped"] == len(wanted)
    assert f"{len(wanted)}  every run (1 gitignore, 3 hidden, 5 never-read)" in index.call("status").stdout
    for secret in TOLD["hidden-and-ignored"]["must_not_contain"]:
        assert secret not in json.dumps(state.exported)

    named = index.run(docs / ".env")
    assert (named.exit_code, named.json["sources"]["added"]) == (0, 1)
    state = State(index)
    assert state.sources[".env"]["status"] == "indexed"
    assert {path for path, entry in state.sources.items() if entry["status"] == "skipped"} == wanted.keys() - {".env"}


@pytest.mark.invariant("I6")
def test_what_must_not_be_read_is_named_kept_and_tried_again(mortal: Mortal) -> None:
    """The rest is ingested; both paths are named with EACCES; rights given back need no change of the file."""
    docs = mortal.folder / "docs"
    docs.mkdir()
    STATES["unreadable"](docs)
    (docs / "noread.md").chmod(0)
    (docs / "locked").chmod(0)
    first = mortal.run(docs)
    assert first.exit_code == 3
    denied = "EACCES: Permission denied"
    assert [(item["source"], item["status"], item["reason"]) for item in first.json["failures"]] == [
        ("noread.md", "unreadable", denied)
    ]
    assert first.json["unobserved"] == [{"shown": "locked", "reason": denied, "rows": 0, "root": "docs"}]
    state = State(mortal)
    assert {path: entry["status"] for path, entry in state.sources.items()} == {
        "noread.md": "unreadable",
        "ok.md": "indexed",
    }
    assert (state.sources["noread.md"]["reason"], state.sources["noread.md"]["retry"]) == (denied, "every run")
    shown = mortal.call("status").stdout
    assert f"noread.md: {denied}" in shown
    assert f"locked: {denied}" in shown

    (docs / "noread.md").chmod(0o600)
    (docs / "locked").chmod(0o700)
    assert mortal.run(docs).exit_code == 0
    healed = State(mortal)
    assert {entry["status"] for entry in healed.sources.values()} == {"indexed"}
    assert len(healed.sources) == 3

    (docs / "noread.md").chmod(0)
    (docs / "locked").chmod(0)
    (docs / "ok.md").write_text("# OK\n\nReadable, and changed.\n", encoding="utf-8")
    assert mortal.run(docs).exit_code == 3
    kept = State(mortal)
    assert kept.sources["noread.md"]["status"] == "unreadable"
    assert kept.sources["noread.md"]["chunks"] == 1
    assert kept.sources["locked/in.md"]["status"] == "indexed"
    for path in ("noread.md", "locked/in.md"):
        assert kept.texts[path] == healed.texts[path]
    assert "changed" in kept.texts["ok.md"][0]


@pytest.mark.slow
def test_thousands_of_tiny_files_are_read_once(tmp_path: Path) -> None:
    """Each is found; a run without a change parses and embeds nothing (of 100,000: ``tests/benchmarks/scan.py``)."""
    docs = tmp_path / "docs"
    docs.mkdir()
    lay_out_tiny_files(docs, 2000)
    index = IndexUnderTest(tmp_path)
    first = index.run(docs)
    assert first.exit_code == 0
    assert (first.json["sources"]["added"], first.json["chunks"]["total"]) == (2000, 397)
    (found,) = [passage for passage in index.search("serial T000377")["passages"] if "T000377" in passage["text"]]
    assert found["citation"]["path"] == "0003/item000377.md"
    assert len(found["also_at"]) + found["more_locations"] == 4
    statuses = [entry["status"] for entry in State(index).sources.values()]
    assert statuses == ["indexed"] * 2000
    again = index.run(docs, GROUNDED_FAILPOINT=PARSED)
    assert (again.exit_code, again.json["published"], again.json["embeddings"]["computed"]) == (0, False, 0)


@pytest.mark.slow
@pytest.mark.invariant("I5")
def test_a_long_file_is_whole_or_not_there(tmp_path: Path) -> None:
    """More chunks than a batch: killed between two, nothing of it is found; run again, only the rest is embedded."""
    docs = tmp_path / "docs"
    docs.mkdir()
    lay_out_ledger(docs, 630)
    index = IndexUnderTest(tmp_path)
    options = ["--chunk-tokens", "32"]
    killed = index.run(docs, options=options, GROUNDED_FAILPOINT="saved:2")
    assert killed.exit_code == -9
    assert index.call("search", "cargo lot").exit_code == 10
    assert State(index).sources == {}
    again = index.run(docs, options=options, GROUNDED_FAILPOINT="publish.apply:2")
    assert again.exit_code != 0
    assert State(index).sources == {}
    done = index.run(docs, options=options)
    assert done.exit_code == 0
    assert done.json["chunks"]["total"] > 512
    assert done.json["embeddings"]["computed"] == 0
    state = State(index)
    assert state.sources["ledger.txt"]["status"] == "indexed"
    said = "\n".join(state.texts["ledger.txt"])
    assert sum(said.count(f"Entry {number}: ") for number in range(0, 630, 9)) == 70
    assert index.verify(full=False)["ok"]
