"""Kinds, their names, and the fingerprints that say when to read again."""

import subprocess
import sys
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from ingest.parsing import registry
from ingest.parsing.limits import Limits, ReaderOptions
from ingest.parsing.registry import (
    FORMATS,
    WITHOUT_READER,
    failure_fingerprint,
    is_text_kind,
    media_type,
    parse_fingerprint,
    reading_fingerprint,
    richest_kind,
    suggest_kind,
)

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (b"a.md", "markdown"),
        (b"A.MARKDOWN", "markdown"),
        (b"a.b/page.mdx", "markdown"),
        (b"a.txt", "text"),
        (b"README", "text"),
        (b"dir.pdf/README", "text"),
        (b"main.py", "python"),
        (b"main.go", "code"),
        (b"a.tsv", "csv"),
        (b"\xff\xfe.\xff", "text"),
        (b"a.xhtml", "html"),
        (b"a.PDF", "pdf"),
        (b"a.docx", "docx"),
        (b"a.png", "png"),
    ],
)
def test_a_name_suggests_a_kind(name: bytes, kind: str) -> None:
    """The extension decides, in any case; what nobody knows may be text."""
    assert suggest_kind(name) == kind


def test_the_richest_kind_does_not_depend_on_the_order_of_sources() -> None:
    """Equal bytes under several names are read in the one way that can work, whoever came first."""
    assert {richest_kind(kinds) for kinds in permutations(["text", "markdown", "html", "pdf"])} == {"html"}
    assert {richest_kind(kinds) for kinds in permutations(["text", "pdf", "docx"])} == {"text"}
    assert {richest_kind(kinds) for kinds in permutations(["pdf", "docx"])} == {"docx"}
    assert richest_kind([]) == "text"


def test_every_kind_has_a_reader_a_media_type_and_names_of_its_own() -> None:
    """The table is whole: readers load, no extension stands twice, none has and lacks a reader."""
    extensions = [extension for known in FORMATS.values() for extension in known.extensions]
    assert len(set(extensions)) == len(extensions)
    assert not set(extensions) & WITHOUT_READER.keys()
    for kind, known in FORMATS.items():
        assert callable(known.load())
        assert media_type(kind)
        assert is_text_kind(kind) == known.is_text
    assert media_type("png") is None


def test_a_fingerprint_names_versions_and_changes_with_what_shapes_text() -> None:
    """The fallback encoding concerns text kinds, the engine PDF; passwords and limits no text at all."""
    assert "markdown-it-py/" in parse_fingerprint("markdown")
    assert "pypdfium2/" in parse_fingerprint("pdf")
    other = ReaderOptions(fallback_encoding="cp1250", pdf_engine="pypdf", pdf_passwords=("otter",))
    for kind in FORMATS:
        assert parse_fingerprint(kind) == parse_fingerprint(kind, ReaderOptions())
        is_shaped = kind in ("pdf", "eml", "mbox", "epub", "rtf") or is_text_kind(kind)
        assert (parse_fingerprint(kind) != parse_fingerprint(kind, other)) == is_shaped
        assert parse_fingerprint(kind, other) == parse_fingerprint(kind, replace(other, pdf_passwords=()))


# What may be changed between two runs, and the failures (by kind and status) that this may mend. All others stay.
CHANGES: dict[str, tuple[Limits, ReaderOptions, set[tuple[str, str]]]] = {
    "passwords": (Limits(), ReaderOptions(pdf_passwords=("otter",)), {("pdf", "needs_password")}),
    "size of a file": (Limits(file_bytes=1), ReaderOptions(), {("pdf", "too_large"), ("text", "too_large")}),
    "size of a text": (Limits(text_chars=1), ReaderOptions(), {("pdf", "too_large"), ("text", "too_large")}),
    "memory of a worker": (Limits(address_space_bytes=1), ReaderOptions(), {("text", "quarantined")}),
    "time of a worker": (Limits(cpu_s=1), ReaderOptions(), {("text", "quarantined")}),
    "PDF engine": (
        Limits(),
        ReaderOptions(pdf_engine="pypdf"),
        {("pdf", status) for status in ("needs_password", "needs_ocr", "damaged", "too_large")}
        | {("text", "quarantined")},
    ),
    "encoding": (
        Limits(),
        ReaderOptions(fallback_encoding="cp1250"),
        {("text", "damaged"), ("text", "too_large"), ("text", "quarantined")},
    ),
}
FAILURES = [
    *[("pdf", status) for status in ("needs_password", "needs_ocr", "damaged", "too_large")],
    *[("text", status) for status in ("damaged", "too_large", "quarantined")],
    ("docx", "needs_password"),
    ("docx", "damaged"),
    ("png", "unsupported"),
    ("png", "binary"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_failure_is_tried_again_only_when_that_changes_which_could_mend_it(change: str) -> None:
    """Of a quarantined file nobody knows how it was read, so the readers of all that content shows count there."""
    limits, options, mended = CHANGES[change]
    tried = {
        failure
        for failure in FAILURES
        if failure_fingerprint(*failure, limits, options) != failure_fingerprint(*failure, Limits())
    }
    assert tried == mended
    assert reading_fingerprint(limits, options) != reading_fingerprint(Limits())


def test_a_new_library_mends_failures_of_its_own_readers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release of mammoth is no reason to open a broken PDF once more."""
    before = {failure: failure_fingerprint(*failure, Limits()) for failure in FAILURES}
    version = registry._library_version
    monkeypatch.setattr(registry, "_library_version", lambda name: "0" if name == "mammoth" else version(name))
    tried = {failure for failure in FAILURES if failure_fingerprint(*failure, Limits()) != before[failure]}
    assert tried == {("docx", "needs_password"), ("docx", "damaged"), ("text", "quarantined")}


def test_a_kind_without_a_reader_is_tried_again_when_it_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its files have the name of a text; the detector's version counts for all."""
    before = {failure: failure_fingerprint(*failure, Limits()) for failure in FAILURES}
    monkeypatch.setattr(registry, "FORMATS", {**FORMATS, "png": replace(FORMATS["pdf"], kind="png")})
    tried = {failure for failure in FAILURES if failure_fingerprint(*failure, Limits()) != before[failure]}
    assert tried == {("png", "unsupported"), ("png", "binary"), ("text", "quarantined")}
    monkeypatch.setattr(registry, "DETECT_VERSION", 0)
    assert all(failure_fingerprint(*failure, Limits()) != before[failure] for failure in FAILURES)


def test_nothing_of_a_password_can_be_read_from_a_key() -> None:
    """Sixteen bits of its digest go into the digest: many passwords have the same."""
    passwords = [f"{number}" for number in range(70_000)]
    marks = {registry._password_mark(ReaderOptions(pdf_passwords=(password,))) for password in passwords}
    assert len(marks) < len(passwords)
    assert failure_fingerprint("pdf", "needs_password", Limits()) == failure_fingerprint(
        "pdf", "needs_password", Limits(), ReaderOptions()
    )


def test_the_parent_process_loads_no_parser() -> None:
    """Planning a hundred thousand files imports none of the libraries that read them, nor does the pool."""
    program = (
        "import sys, ingest.parsing.pool, ingest.parsing.registry as r;"
        "r.suggest_kind(b'a.md'); r.parse_fingerprint('pdf');"
        "print(sorted({'pypdf', 'pikepdf', 'pypdfium2', 'selectolax', 'markdown_it', 'chardet', 'mammoth', 'pptx',"
        " 'lxml', 'openpyxl', 'python_calamine', 'oxmsg', 'olefile'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_size_over_the_limit_fails_without_opening() -> None:
    """Text kinds have the smaller limit; the reason names size and limit."""
    limits = Limits(file_bytes=4 << 20, text_file_bytes=1 << 20)
    failure = limits.size_failure(2 << 20, text=True)
    assert failure is not None
    assert failure.status == "too_large"
    assert "2.0 MiB, over the limit of 1 MiB" in failure.reason
    assert limits.size_failure(2 << 20, text=False) is None
