"""Small files that make parsers do much: each ends in a status of its own, in a worker that others need too."""

from pathlib import Path

import openpyxl
import pytest

from ingest.parsing.document import Document
from ingest.parsing.pool import Job, WorkerPool
from ingest.parsing.registry import suggest_kind
from search.identity import document_id

DEEP = 20_000
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
}
# What becomes of those that are no document.
STATUSES = {"deep.json": "damaged", "fences.adoc": "empty", "parts.eml": "damaged"}


@pytest.mark.slow
def test_hostile_files_of_every_format_end_alone(tmp_path: Path) -> None:
    """One pool reads them all; none is quarantined, and the harmless one among them is read."""
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = "near", "far"
    book.save(tmp_path / "far.xlsx")
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    jobs = []
    for path in sorted(tmp_path.iterdir()):
        content = path.read_bytes()
        kind = suggest_kind(path.name.encode())
        jobs.append(Job(document_id(content), tmp_path, (path.name.encode(),), len(content), kind, path.name))
    with WorkerPool(1) as pool:
        found = {job.name: result for job, result in pool.results(jobs)}
    assert {name: getattr(result, "status", None) for name, result in found.items()} == {
        name: STATUSES.get(name) for name in [*FILES, "far.xlsx"]
    }
    plain = found["plain.txt"]
    assert isinstance(plain, Document)
    assert plain.text == "plain words"
