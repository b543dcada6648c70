"""States of files that broke document ingestion for real people; ``tests/files/parsing/cases`` tells whose and how."""

import json
import re
from pathlib import Path

import pytest

from ingest.parsing.document import Document
from ingest.parsing.reading import read_document
from ingest.parsing.registry import optional_version, suggest_kind
from search.identity import file_sha256

CASES = Path(__file__).resolve().parents[1] / "files" / "parsing" / "cases"
FILES = sorted(path for path in CASES.rglob("*") if path.is_file() and path.name != "case.json")

# What becomes of each file that is no document; all others are.
STATUSES = {
    "binary-with-txt-ext/data.csv": "binary",
    "binary-with-txt-ext/dump.md": "binary",
    "binary-with-txt-ext/notes.txt": "binary",
    "docx-not-docx/bundle.docx": "unsupported",
    "docx-not-docx/ole2.docx": "needs_password",
    "docx-not-docx/plain.docx": "damaged",
    "jsonl-blank-lines/nested.json": "damaged",
    "pdf-damaged/actually-html.pdf": "damaged",
    "pdf-damaged/header-only.pdf": "damaged",
    **({} if optional_version("pikepdf") else {"pdf-damaged/no-xref-no-trailer.pdf": "damaged"}),
    "pdf-damaged/truncated.pdf": "damaged",
    "pdf-encrypted/locked.pdf": "needs_password",
    "pdf-no-text-layer/scan.pdf": "needs_ocr",
    "pdf-vector-outline-text/outline.pdf": "needs_ocr",
    **dict.fromkeys((f"whitespace-only/{path.name}" for path in CASES.glob("whitespace-only/*.[tm]*")), "empty"),
    "zero-chunks/blank.pdf": "empty",
    "xml-entity-bomb/bomb.docx": "damaged",
    "xml-entity-bomb/bomb.svg": "unsupported",
    "zero-chunks/empty-array.json": "empty",
    "zero-chunks/empty-paragraph.docx": "empty",
    "zero-chunks/empty-sheet.xlsx": "empty",
    "zero-chunks/empty.json": "empty",
    "zero-chunks/only-script.html": "empty",
    "zero-chunks/separators.csv": "empty",
}
# Sentences that the cases ask for beyond their own ``must_contain`` and ``needle``.
TEXTS = {
    "csv-quoted-newlines/bom.csv": "id: 1 | name: Ada\nid: 2 | name: Bo",
    "csv-quoted-newlines/multi.csv": "comment: line one\nline two, with comma\nid: 2 | comment: normal\nid: 3",
    "csv-quoted-newlines/ragged.csv": "a: 1 | b: 2\na: 1 | b: 2 | c: 3 | D: 4\na: unterminated,5,6",
    "csv-quoted-newlines/semi.csv": "name: rope | price: 12,50\nname: tar; black | price: 3,00",
    "csv-quoted-newlines/sep.csv": "k: a | v: 1\nk: b | v: 2",
    "csv-quoted-newlines/tab.tsv": "a: 1 | b: x\ty\na: 2 | b: z",
    "docx-empty-tables/tables.docx": "Only sentence: the ladder is in bay two.",
    "docx-not-docx/real.bin": "Hidden docx.",
    "docx-not-docx/letter.doc": "Dear crew, the café opens at nine.",
    "docx-not-docx/page.doc": "Ferry leaves at six.",
    "docx-not-docx/sheet.xls": "| rope | 12 |",
    "enc-cp1252/depot.txt": "opened in 1987—handles “fragile” freight. Storage costs €14 per pallet–week.",
    "enc-cp1252/rota.md": "22:00–06:00; Zoë covers",
    "enc-iso8859-5-koi8/big5.txt": "第三號倉庫的冷卻設備",
    "enc-iso8859-5-koi8/cp1251.txt": "Ремонт насоса",
    "enc-iso8859-5-koi8/cp1255.txt": "יחידת הקירור",
    "enc-iso8859-5-koi8/euckr.txt": "창고의 냉각 장치는",
    "enc-iso8859-5-koi8/gb18030.txt": "第三号仓库的冷却设备",
    "enc-iso8859-5-koi8/iso8859_5.txt": "Ремонт насоса",
    "enc-iso8859-5-koi8/koi8r.txt": "Ремонт насоса",
    **{f"enc-utf16/{path.name}": "Release ledger\n\nBuild 4417" for path in CASES.glob("enc-utf16/*.txt")},
    "jsonl-blank-lines/array.json": "[0].a.b.c[0]: leaf 811",
    "jsonl-blank-lines/bom.jsonl": "text: bom first\n\ntext: second",
    "nul-in-text/log.txt": "ERROR pump 7 stalled at 14:02\nretry scheduled",
    "pdf-damaged/junk-prefix.pdf": "bolt size M8",
    "xml-entity-bomb/bomb.html": "visible line",
    "xml-entity-bomb/xxe.xml": "outside: &x;",
}


def name_of(path: Path) -> str:
    """Return a file's name in the tables above."""
    return path.relative_to(CASES).as_posix()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_that_broke_others_has_its_due_end_here(path: Path) -> None:
    """Each file is read to the text that a person expects, or has the status that says what is the matter."""
    case = json.loads((path.parent / "case.json").read_text(encoding="utf-8"))
    found = read_document(path.read_bytes(), suggest_kind(path.name.encode()), path.name)
    status = STATUSES.get(name_of(path))
    if not isinstance(found, Document):
        assert found.status == status, found
        return
    assert status is None
    needle = case.get("needle", {})
    wanted = [TEXTS.get(name_of(path), ""), *_of_file(case.get("must_contain", {}), path)]
    if needle.get("file") == path.name:
        wanted.append(needle["text"])
        if "page" in needle:
            offset = found.text.index(needle["text"])
            assert max(part.number for part in found.parts if part.start <= offset) == needle["page"]
    for text in wanted:
        assert text in found.text
    for text in case.get("must_not_contain", []):
        assert text not in found.text
    if case.get("must_not_be_indexed_as_good"):
        assert found.warnings


def test_fixtures_are_those_of_the_table() -> None:
    """No fixture changes or comes in unnoticed: each is named with its sha256 and the reason why it is here."""
    folder = CASES.parent
    table = re.findall(
        r"^\| (\S+) \| ([0-9a-f]{64}) \| .+ \|$", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    own = {"README.md", "make_fixtures.py", "case.json"}
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in own and path.suffix != ".pyc"]
    assert dict(table) == {path.relative_to(folder).as_posix(): file_sha256(path) for path in files}


def _of_file(texts: dict[str, str | list[str]], path: Path) -> list[str]:
    found = texts.get(path.name, [])
    return [found] if isinstance(found, str) else found
