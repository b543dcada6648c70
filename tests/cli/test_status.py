"""What becomes of every source: one named status, a reason that a person understands, and when it is tried again."""

import base64
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from fcntl import ioctl
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest

from ingest import documents, pipeline
from ingest.observation import RunOptions
from ingest.parsing.failure import FailureStatus
from ingest.parsing.pool import WorkerPool
from ingest.progress import Silent
from ingest.status import IndexStatus
from ingest.statuses import FINE, STATUSES, retry_rule
from search.settings import load
from tests.cli.conftest import Mortal
from tests.cli.prose import note
from tests.harness import Ended, IndexUnderTest, ending

CASES = Path(__file__).resolve().parents[1] / "files" / "parsing" / "cases"
EVIL = (sys.executable, "-B", str(Path(__file__).resolve().parents[1] / "parsing" / "evil_worker.py"))
LIMITS = {"GROUNDED_MAX_TEXT_FILE_BYTES": "5000", "GROUNDED_MAX_DOCUMENT_CHARS": "4000"}

# One file that ends in each status of the table (parsing.md, 4.3), by what is in it, and what the report says of it.
ENDS: dict[str, tuple[str, str, str]] = {
    "note.md": ("indexed", "", "when the file, its kind or the recipe changes"),
    "nothing.txt": ("empty", "no bytes", "when the file, its kind or the recipe changes"),
    "blank.pdf": ("empty", "2 blank pages", "when the file, its kind or the recipe changes"),
    "photo.png": (
        "unsupported",
        "image; put its text into a PDF with a text layer (OCR)",
        "when the file changes or its kind gets a reader",
    ),
    "program.txt": ("binary", "", "when the file or its reader changes"),
    "long.txt": ("too_large", "over the limit of 5000", "when the file changes or the limit is raised"),
    "wordy.txt": ("too_large", "4500 characters", "when the file changes or the limit is raised"),
    "locked.pdf": (
        "needs_password",
        "encrypted; put its password into the settings",
        "when the file changes, or the passwords for a PDF",
    ),
    "scan.pdf": (
        "needs_ocr",
        "no text layer; run OCR over the file",
        "when the file or its reader changes, or OCR is switched on",
    ),
    "page.pdf": ("damaged", "named .pdf but holds HTML", "when the file or its reader changes"),
    "forbidden.md": ("unreadable", "EACCES: Permission denied", "every run"),
    "half.pdf.part": ("skipped", "a temporary, backup or lock file", "every run"),
}


def lay_out(docs: Path) -> None:
    """Write the files of ``ENDS``."""
    docs.mkdir()
    copies = {
        "blank.pdf": "zero-chunks/blank.pdf", "locked.pdf": "pdf-encrypted/locked.pdf",
        "scan.pdf": "pdf-no-text-layer/scan.pdf", "page.pdf": "pdf-damaged/actually-html.pdf",
        "photo.png": "binary-with-txt-ext/notes.txt",
    }  # fmt: skip
    for name, case in copies.items():
        (docs / name).write_bytes((CASES / case).read_bytes())
    (docs / "note.md").write_text(note(1), encoding="utf-8")
    (docs / "nothing.txt").touch()
    (docs / "program.txt").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(3_000))
    (docs / "long.txt").write_text("A sentence that is said again. " * 200, encoding="utf-8")
    (docs / "wordy.txt").write_text("A sentence is said again again." * 145 + "12345", encoding="utf-8")
    (docs / "forbidden.md").write_text("# Forbidden\n", encoding="utf-8")
    (docs / "forbidden.md").chmod(0)
    (docs / "half.pdf.part").write_bytes(b"%PDF-1.7")


def entries_of(ended: Ended) -> dict[str, dict[str, Any]]:
    """The entries of ``status --json`` by source; none has two."""
    entries: list[dict[str, Any]] = ended.json["sources"]
    found = {entry["source"]: entry for entry in entries}
    assert len(found) == len(entries)
    return found


def in_terminal(index: IndexUnderTest, *words: str, columns: int) -> str:
    """What a command writes to a terminal of so many columns, without its escape codes."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        index.command(*words), env=index.environment(TERM="xterm"), stdout=theirs, stderr=subprocess.PIPE,
        encoding="utf-8", cwd=index.folder,
    )  # fmt: skip
    os.close(theirs)
    with ending(process):
        written = b"".join(pieces_of(ours)).decode()
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written).replace("\r\n", "\n")


def pieces_of(terminal: int) -> Iterator[bytes]:
    """What is written to a terminal until its last writer has gone."""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # Linux says EIO at the end
            return
        if not piece:
            return
        yield piece


def test_the_statuses_are_those_that_there_are() -> None:
    """What parsing may say, what a scan leaves out, and indexed; each says when it is tried again."""
    assert set(STATUSES) == {*get_args(FailureStatus), "indexed", "skipped"}
    assert set(FINE) <= set(STATUSES)
    assert all(retry_rule(status).startswith(("when the file", "every run")) for status in STATUSES)


def test_each_status_comes_with_its_reason_and_its_retry_rule(mortal: Mortal) -> None:
    """By the run, by status as JSON, and by status for people; whatever yields no text is not called indexed."""
    docs = mortal.folder / "docs"
    lay_out(docs)
    ended = mortal.run(docs, **LIMITS)
    assert ended.exit_code == 3
    told = mortal.call("status", "--json", **LIMITS)
    found = entries_of(told)
    assert {source: entry["status"] for source, entry in found.items()} == {
        source: status for source, (status, _, _) in ENDS.items()
    }
    for source, (status, reason, retry) in ENDS.items():
        entry = found[source]
        assert (entry["root"], entry["retry"]) == ("docs", retry)
        assert reason in (entry["reason"] or "")
        assert bool(entry["reason"]) == (status != "indexed")
        if status != "skipped":
            assert bool(entry["chunks"]) == (status == "indexed")
    failed = {source for source, (status, _, _) in ENDS.items() if status not in FINE}
    for failures in (ended.json["failures"], told.json["failures"]):
        assert {item["source"]: item["retry"] for item in failures} == {source: ENDS[source][2] for source in failed}
    assert told.json["index"]["sources"] == {
        status: sum(entry["status"] == status for entry in found.values())
        for status in sorted({status for status, _, _ in ENDS.values()} - {"skipped"})
    }
    assert told.json["index"]["sources_skipped"] == 1
    shown = mortal.call("status", **LIMITS).stdout
    for source in failed:
        assert f"    {source}: {found[source]['reason']}\n" in shown
    assert "1  every run (1 temporary)" in shown


def test_a_file_that_kills_its_worker_is_quarantined_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what killed it and how to try again; other files are read, and the next usual run does not try again."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "bad.txt").write_text("kill SIGSEGV", encoding="utf-8")
    (docs / "good.txt").write_text("good words about the quay", encoding="utf-8")
    settings = load({"workers": 1}, index=str(tmp_path / "index"))
    monkeypatch.setattr(documents, "WorkerPool", partial(WorkerPool, command=EVIL))
    report = pipeline.run(settings, RunOptions(roots=(docs,)), Silent())
    assert report.exit_code == 3
    with IndexStatus(settings) as status:
        found = {entry["source"]: entry for entry in status.sources()}
    assert (found["good.txt"]["status"], found["bad.txt"]["status"]) == ("indexed", "quarantined")
    assert found["bad.txt"]["reason"] == "its reader was ended by SIGSEGV, twice"
    assert found["bad.txt"]["retry"] == "when the file, its reader or a limit changes, or with --retry-quarantined"
    monkeypatch.undo()
    assert pipeline.run(settings, RunOptions(roots=(docs,)), Silent()).exit_code == 3
    again = pipeline.run(settings, RunOptions(roots=(docs,), retry_quarantined=True), Silent())
    assert again.exit_code == 0


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[IndexUnderTest, Path]:
    """Thirty programs among documents, one with pages without text, one with a name that is no UTF-8; two roots."""
    folder = tmp_path_factory.mktemp("many")
    docs, more = folder / "docs", folder / "more"
    docs.mkdir()
    more.mkdir()
    for number in range(30):
        (docs / f"program-with-a-rather-long-name-{number:02}.txt").write_bytes(
            b"\x7fELF" + bytes(2_000) + b"%d" % number
        )
    (docs / "mixed.pdf").write_bytes((CASES / "pdf-no-text-layer" / "mixed.pdf").read_bytes())
    (docs / os.fsdecode(b"caf\xe9\n.md")).write_text(note(2), encoding="utf-8")
    (docs / ".hidden.md").touch()
    (more / "note.md").write_text(note(3), encoding="utf-8")
    (more / "draft.tmp").touch()
    index = IndexUnderTest(folder)
    assert index.run(docs, more).exit_code == 3
    return index, docs


def test_status_is_one_line_of_json_with_every_source(many: tuple[IndexUnderTest, Path]) -> None:
    """It ends with the sources, by root and path; a name that is no UTF-8 has its exact bytes beside it."""
    ended = many[0].call("status", "--json")
    assert (ended.exit_code, ended.stdout.count("\n")) == (0, 1)
    told = ended.json
    assert list(told)[-1] == "sources"
    kept = [entry for entry in told["sources"] if entry["status"] != "skipped"]
    assert [(entry["root"], entry["source"]) for entry in kept] == sorted(
        (entry["root"], entry["source"]) for entry in kept
    )
    assert {"root": "more", "source": "draft.tmp"}.items() <= told["sources"][-1].items()
    (odd,) = [entry for entry in kept if "path_b64" in entry]
    assert base64.b64decode(odd["path_b64"]) == b"caf\xe9\n.md"
    assert odd["source"] == "caf\\xe9\\x0a.md"
    assert {name for entry in kept for name in entry} == {
        "source", "root", "path_b64", "status", "reason", "retry", "document_id", "kind", "media_type", "size_bytes",
        "chunks", "withheld", "warnings", "gaps",
    }  # fmt: skip
    mixed = next(entry for entry in kept if entry["source"] == "mixed.pdf")
    assert (mixed["kind"], mixed["media_type"], mixed["status"]) == ("pdf", "application/pdf", "indexed")
    assert mixed["gaps"] == [{"part": page, "kind": "page", "reason": "no_text"} for page in (4, 5, 6)]


def test_lists_for_people_are_bounded_and_say_how_many_more(many: tuple[IndexUnderTest, Path]) -> None:
    """Totals first, then failures by status, then gaps as ranges; with several roots each source names its own."""
    index, docs = many
    shown = index.call("status").stdout
    places = [shown.index(text) for text in ("status", "not in the index: 30", "indexed with gaps or doubts: 1")]
    assert places == sorted(places)
    assert "  binary: 30\n    docs/program-with-a-rather-long-name-00.txt: " in shown
    assert "... and 22 more; `ingest status --json` lists all" in shown
    assert shown.count("program-with") == 8
    assert "  docs/mixed.pdf: pages 4-6: no text\n" in shown
    ran = index.call("run", str(docs)).stdout
    assert "not in the index: 30; `ingest status` tells more\n  binary: 30\n" in ran
    assert ran.count("program-with") == 3
    assert "... and 27 more" in ran


def test_a_narrow_terminal_folds_reasons_and_cuts_no_path(many: tuple[IndexUnderTest, Path]) -> None:
    """80 columns and 60: no line is longer, every path is whole; a pipe gets lines as long as they are."""
    index = many[0]
    whole = index.call("status").stdout
    for columns in (80, 60):
        shown = in_terminal(index, "status", columns=columns)
        sources = shown.split("not in the index")[1].split("setting")[0]
        assert max(map(len, sources.splitlines())) <= columns
        for number in range(8):
            assert f"program-with-a-rather-long-name-{number:02}.txt:" in sources
        assert " ".join(sources.split()) == " ".join(whole.split("not in the index")[1].split("setting")[0].split())
        assert "watch_settle_s" in shown
        assert "…" not in sources


def test_what_rules_left_out_is_known_of_each_root_from_its_last_run(tmp_path: Path) -> None:
    """A run over one root forgets nothing of the other, nor does one that saw that nothing changed."""
    first, second = tmp_path / "first", tmp_path / "second"
    for root in (first, second):
        root.mkdir()
        (root / "note.md").write_text(note(4), encoding="utf-8")
        (root / ".hidden.md").touch()
        (root / "b.tmp").touch()
    index = IndexUnderTest(tmp_path)
    assert index.run(first).exit_code == 0
    assert index.run(second).exit_code == 0

    def skipped() -> list[tuple[str, str, str]]:
        told = index.call("status", "--json").json["sources"]
        return sorted((entry["root"], entry["source"], entry["rule"]) for entry in told if entry["status"] == "skipped")

    rules = {".hidden.md": "hidden", "b.tmp": "temporary"}
    everything = [(root, name, rule) for root in ("first", "second") for name, rule in rules.items()]
    assert skipped() == everything
    for _ in range(3):
        assert index.run(first).exit_code == 0
    assert skipped() == everything
    (first / "b.tmp").unlink()
    assert index.run(first).exit_code == 0
    everything.remove(("first", "b.tmp", "temporary"))
    assert skipped() == everything
    assert index.run(second, options=["--hidden"]).exit_code == 0
    everything.remove(("second", ".hidden.md", "hidden"))
    assert skipped() == everything


def test_without_an_index_status_lists_no_source(tmp_path: Path) -> None:
    """The JSON has the same names, and the settings are shown all the same."""
    index = IndexUnderTest(tmp_path)
    told = index.call("status", "--json")
    assert (told.exit_code, told.json["sources"], told.json["failures"], told.json["unobserved"]) == (10, [], [], [])
    shown = index.call("status")
    assert shown.exit_code == 10
    assert "make it with `ingest FOLDER`" in shown.stdout
    assert "fallback_encoding" in shown.stdout
    assert json.loads(told.stdout)["index"] is None
