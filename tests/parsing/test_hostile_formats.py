"""Files that make parsers do much: each ends in a status of its own, in a worker that others need too."""

import shutil
import sys
from pathlib import Path

import openpyxl
import pytest

from ingest import documents, pipeline
from ingest.observation import RunOptions
from ingest.parsing.document import Document
from ingest.parsing.failure import ParseFailure
from ingest.parsing.limits import Limits
from ingest.parsing.pool import Job, ParseResult, WorkerPool
from ingest.parsing.registry import suggest_kind
from ingest.progress import Silent
from ingest.status import IndexStatus
from search.identity import document_id
from search.settings import Settings, load
from tests.harness import REPOSITORY, IndexUnderTest

CASES = REPOSITORY / "tests" / "files" / "parsing" / "cases"
EVIL_WORKER = (sys.executable, "-B", str(Path(__file__).with_name("evil_worker.py")))
DEEP, MANY, MILLION = 20_000, 100_000, 1_000_000
MIB = 1 << 20
LONE = rb'{"\ud800": "\udfff and \ud83d\udea2", "a\u0000b": "c\u202ed"}'
FILES = {
    "parens.py": b"x = " + b"(" * DEEP + b")" * DEEP,
    "minus.py": b"def f(): pass\nx = " + b"-" * 200_000 + b"1",
    "deep.json": b"[" * 300_000,
    "deep.rst": b"".join(b" " * (number % 200) + b".. a::\n\n" for number in range(4_000)),
    "fences.adoc": b"----\n" * 30_001,
    "quote.csv": b'a,b\n"' + b"x,y\n" * 50_000,
    "braces.rtf": b"{\\rtf1 " + b"{" * 50_000 + b" words" + b"}" * 50_000 + b"}",
    "header.eml": b"Subject: x\nTo: " + b"a@b.example, " * 40_000 + b"\n\nwords",
    "parts.eml": b"Subject: x\nContent-Type: multipart/mixed; boundary=a\n\n" + b"--a\n\nx\n" * 2_000,
    "plain.txt": b"plain words",
    # One line of 20 MiB, a word of 20 MiB, blanks, short lines and paragraphs without end.
    "line.txt": b"word " * (4 * MIB),
    "word.txt": b"w" * (20 * MIB),
    "blank.txt": b"\n " * (2 * MIB) + b"end",
    "lines.txt": b"ab\n" * MILLION,
    "paragraphs.txt": b"ab\n\n" * 200_000,
    # Marks of order in odd places, halves of characters, characters that become several.
    "marks.txt": b"\xef\xbb\xbf\xef\xbb\xbfa \xef\xbb\xbfb\n\xff\xfe words of a boat that is red and has a mast",
    "wide.txt": b"\xff\xfe" + "words \ufeff here".encode("utf-16-le") + b"\x00",
    "combining.txt": b"a" + "\u0301\u0323".encode() * MILLION,
    "ligatures.txt": "\ufb03".encode() * MILLION,
    "escapes.txt": b"\x1b]" * MILLION + b"end",
    # Nesting that Markdown allows.
    "quotes.md": b">" * MANY + b" x",
    "items.md": b"- " * MANY + b"x",
    "brackets.md": b"# " + b"[" * MANY + b"x" + b"]" * MANY,
    "stars.md": b"# " + b"*a " * DEEP,
    "comments.md": b"<!-- x -->\n" * DEEP + b"x",
    "cells.md": b"|" + b"a|" * DEEP + b"\n|" + b"-|" * DEEP + b"\n|" + b"x|" * DEEP,
    "wide.md": b"|" + b"a|" * 2_000 + b"\n|" + b"-|" * 2_000 + b"\n" + b"|x\n" * 2_000,
    # Numbers, keys and strings of any size.
    "digits.json": b"[" + b"9" * MILLION + b", -1e" + b"9" * MILLION + b"]",
    "names.json": b'{"' + b"k" * MIB + b'": {"a": 1, "a": NaN, "b": Infinity}}',
    "keys.json": b'{"' + b"k" * MIB + b'": [' + b"1," * 1_000 + b"1]}",
    "lone.json": LONE,
    "brackets.json": b'"[' * MILLION,
    "long.jsonl": b'{"a": "' + b"x" * (16 * MIB) + b'"}\n{"a": 1}\n',
    "bad.jsonl": b'{"a": 1}\n' + b"{\n" * MANY,
    # Cells and columns.
    "field.csv": b'a,b\n"' + b"x" * (17 * MIB) + b'",2\n',
    "columns.csv": b"a," * 400_000 + b"\n" + b"b," * 400_000,
    "header.csv": b",".join(b"column %d" % number for number in range(MANY)) + b"\n" + b"1," * MANY,
    "commas.csv": b"a,b\n" + b"," * (2 * MIB) + b"x",
    # Code that is none, or too much of it.
    "nul.py": b"x = 1\x00\ndef f():\n    pass\n",
    "nested.py": b"".join(b" " * depth + b"def f():\n" for depth in range(3_000)),
    "elif.py": b"if a: pass\n" + b"elif a: pass\n" * MANY,
    "coding.py": b"# coding: \xff\xfe utf-7\nx = '\xe9t\xe9 du port'\n",
    "codec.py": b"# coding: zlib_codec\nx = '\xe9t\xe9 du port'\n",
    "stars.c": b" * x\nint f(void) {\n" * DEEP,
    "types.cpp": b"a<" * 450 + b"(x\n" * DEEP,
    "styles.rst": b"".join(bytes([mark]) * 4 + b"\nab\n" + bytes([mark]) * 4 + b"\n\n" for mark in b"=-~^+*#") * 5_000,
    "comments.rst": b"".join(b" " * depth + b".. a\n" for depth in range(2_000)),
    "adornment.rst": b"=" * (8 * MIB) + b"\nx\n",
    "growing.adoc": b"".join(b"-" * length + b"\nx\n" for length in range(4, 2_000)),
    "blanks.adoc": b"== a" + b" =" * MILLION + b"b\n",
    "tags.xml": b"<?xml version='1.0'?>" + b"<a>" * MILLION + b"x" + b"</a>" * MILLION,
    "declared.xml": b"<?xml " + b" " * MILLION + b"encoding='utf-7'?>words",
}
# What becomes of those that are no document.
STATUSES = {
    "deep.json": "damaged",
    "fences.adoc": "empty",
    "parts.eml": "damaged",
    "keys.json": "too_large",
    "brackets.json": "damaged",
    "field.csv": "damaged",
    "long.jsonl": "too_large",
    "comments.rst": "empty",
}


@pytest.mark.slow
def test_hostile_files_of_every_format_end_alone(tmp_path: Path) -> None:
    """One pool reads them all; none is quarantined, and the harmless one among them is read."""
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = "near", "far"
    book.save(tmp_path / "far.xlsx")
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    found = read_all(tmp_path)
    assert {name: getattr(result, "status", None) for name, result in found.items()} == {
        name: STATUSES.get(name) for name in [*FILES, "far.xlsx"]
    }
    assert text_of(found["plain.txt"]) == "plain words"
    # What is odd in these is kept, made harmless, or left out as the rules of the text say.
    assert text_of(found["lone.json"]) == '["\ufffd"]: \ufffd and \U0001f6a2\n["a\\u0000b"]: cd'
    assert text_of(found["marks.txt"]).startswith("a b\n")
    assert text_of(found["wide.txt"]) == "words  here\ufffd"
    assert text_of(found["codec.py"]).endswith("'été du port'\n")


def read_all(folder: Path, limits: Limits | None = None) -> dict[str, ParseResult]:
    """Return what becomes of each file of a folder, by name."""
    jobs = []
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        kind = suggest_kind(path.name.encode())
        jobs.append(Job(document_id(content), folder, (path.name.encode(),), len(content), kind, path.name))
    with WorkerPool(1, limits) as pool:
        return {job.name: result for job, result in pool.results(jobs)}


def text_of(result: ParseResult) -> str:
    """Return the text of a document."""
    assert isinstance(result, Document), result
    return result.text


def test_code_that_takes_its_parser_too_long_is_read_by_the_second_way(tmp_path: Path) -> None:
    """Python's own parser is quadratic in the fields of a string; the outline by words is not."""
    (tmp_path / "fields.py").write_bytes(b"def f():\n    pass\nx = f'" + b"{a}" * 100_000 + b"'\n")
    (tmp_path / "sound.py").write_bytes(b"def g():\n    pass\n")
    found = read_all(tmp_path, Limits(cpu_s=0.2, cpu_s_per_mib=0))
    for name, heading in {"fields.py": "def f", "sound.py": "def g"}.items():
        document = found[name]
        assert isinstance(document, Document)
        assert document.blocks[0].heading == heading


def test_text_that_grows_as_it_is_normalised_is_measured_afterwards(tmp_path: Path) -> None:
    """One ligature becomes three letters; the limit is about the text that is stored."""
    (tmp_path / "small.txt").write_text("\ufb03" * 1_000, encoding="utf-8")
    found = read_all(tmp_path, Limits(text_chars=2_999))
    assert found["small.txt"] == ParseFailure("too_large", "3000 characters of text, over 2999")
    assert text_of(read_all(tmp_path, Limits(text_chars=3_000))["small.txt"]) == "ffi" * 1_000


EVIL = {
    "signal.txt": (b"kill SIGSEGV", "was ended by SIGSEGV"),
    "memory.txt": (b"memory", "needed more than 1024 MiB of memory"),
    "cpu.txt": (b"cpu", "used more than 1 s of CPU"),
    "nonsense.txt": (b"nonsense", "answered with what is no result"),
}


@pytest.mark.model
@pytest.mark.invariant("I5")
def test_a_run_over_files_that_end_their_workers_loses_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has its reason in the report, the good ones are in the index; the next run starts no worker at all."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for name, (deed, _) in EVIL.items():
        (docs / name).write_bytes(deed)
    for number in range(5):
        (docs / f"good{number}.txt").write_bytes(b"good words about quay %d" % number)
    limits = Limits(cpu_s=0.5, address_space_bytes=1 << 30)
    monkeypatch.setattr(
        documents, "WorkerPool", lambda workers, _, options: WorkerPool(workers, limits, options, command=EVIL_WORKER)
    )
    settings = load({"workers": 2}, index=str(tmp_path / "index"))
    report = pipeline.run(settings, RunOptions(roots=(docs,)), Silent())
    assert report.exit_code == 3
    assert statuses(settings) == {
        **{name: ("quarantined", f"its reader {how}, twice") for name, (_, how) in EVIL.items()},
        **{f"good{number}.txt": ("indexed", None) for number in range(5)},
    }

    def no_pool(*_: object) -> WorkerPool:
        raise AssertionError("a worker was asked for")

    monkeypatch.setattr(documents, "WorkerPool", no_pool)
    before = statuses(settings)
    assert pipeline.run(settings, RunOptions(roots=(docs,)), Silent()).exit_code == 3
    assert statuses(settings) == before


def statuses(settings: Settings) -> dict[str, tuple[str, str | None]]:
    """Return the status and the reason of each source of an index."""
    with IndexStatus(settings) as status:
        return {entry["source"]: (entry["status"], entry["reason"]) for entry in status.sources()}


# A library in the place of a real one, that never returns.
ENDS = "import os\n\n\ndef convert_to_html(*args, **kwargs):\n    {}\n"


@pytest.mark.parametrize(
    ("deed", "how"),
    [
        ("os.kill(os.getpid(), 11)", "was ended by SIGSEGV"),
        ("bytearray(1 << 45)", "needed more than 2048 MiB of memory"),
    ],
)
def test_the_command_line_survives_a_library_that_ends_its_process(tmp_path: Path, deed: str, how: str) -> None:
    """As a user runs it: exit 3, the note beside it is found, and the next run parses nothing."""
    library = tmp_path / "library" / "mammoth"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text(ENDS.format(deed), encoding="utf-8")
    docs = tmp_path / "docs"
    docs.mkdir()
    shutil.copy(CASES / "docx-tracked-changes" / "contract.docx", docs / "letter.docx")
    (docs / "note.md").write_text("# Keys\n\nThe key of the crane hangs in the hut.\n", encoding="utf-8")
    index = IndexUnderTest(tmp_path)
    path = {"PYTHONPATH": f"{library.parent}:{REPOSITORY}", "PYTHONDONTWRITEBYTECODE": "1"}
    first = index.run(docs, **path)
    assert (first.exit_code, first.json["chunks"]["total"]) == (3, 1), first.stderr
    (failure,) = first.json["failures"]
    assert (failure["source"], failure["status"]) == ("letter.docx", "quarantined")
    assert failure["reason"] == f"its reader {how}, twice"
    second = index.run(docs, GROUNDED_FAILPOINT="parse:1", **path)
    assert (second.exit_code, second.json["failures"]) == (3, first.json["failures"]), "it was killed as it parsed"
