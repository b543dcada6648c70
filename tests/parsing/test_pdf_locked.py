"""Encrypted PDFs of every revision of the standard, opened without a password, with one, and not at all."""

import io
from pathlib import Path
from typing import get_args

import pytest
from pypdf import PdfReader, PdfWriter

from ingest.parsing.document import Document
from ingest.parsing.failure import ParseFailure
from ingest.parsing.limits import PdfEngine, ReaderOptions
from ingest.parsing.reading import read_document

MANUAL = (Path(__file__).resolve().parents[1] / "files" / "parsing" / "manual.pdf").read_bytes()
# Revision of the security handler (ISO 32000-2, 7.6.4) to the name that pypdf has for it.
REVISIONS = {2: "RC4-40", 3: "RC4-128", 4: "AES-128", 5: "AES-256-R5", 6: "AES-256"}
ENGINES = get_args(PdfEngine)


def locked(revision: int, user_password: str) -> bytes:
    """Return the manual, encrypted; the owner's password is another."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(MANUAL)))
    writer.encrypt(user_password, "the owner's", algorithm=REVISIONS[revision])
    written = io.BytesIO()
    writer.write(written)
    content = written.getvalue()
    reader = PdfReader(io.BytesIO(content))
    assert reader.is_encrypted
    assert reader.trailer["/Encrypt"]["/R"] == revision
    return content


def read(content: bytes, engine: PdfEngine, *passwords: str) -> Document | ParseFailure:
    """Return what an engine makes of it."""
    return read_document(content, "pdf", options=ReaderOptions(pdf_engine=engine, pdf_passwords=passwords))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_file_that_anybody_may_open_is_read_like_an_open_one(revision: int, engine: PdfEngine) -> None:
    """The empty password opens it: the same text, pages, labels, headings and title."""
    whole, found = read(MANUAL, engine), read(locked(revision, ""), engine)
    assert isinstance(whole, Document)
    assert isinstance(found, Document)
    assert (found.text, found.blocks, found.parts, found.title) == (whole.text, whole.blocks, whole.parts, whole.title)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_locked_file_is_opened_by_the_password_that_fits(revision: int, engine: PdfEngine) -> None:
    """One of several, be it the reader's or the owner's, in letters of any script; without it nothing is damaged."""
    content = locked(revision, "otter")
    for passwords in ((), ("badger", ""), ("Otter",)):
        found = read(content, engine, *passwords)
        assert isinstance(found, ParseFailure)
        assert found.status == "needs_password"
    for password in ("otter", "the owner's"):
        found = read(content, engine, "badger", password)
        assert isinstance(found, Document)
        assert "The pump log ends with invoice 3301." in found.text


@pytest.mark.parametrize("engine", ENGINES)
def test_a_password_of_other_letters_opens_what_it_locked(engine: PdfEngine) -> None:
    """Since revision 5 passwords are UTF-8, so no letter is lost."""
    assert isinstance(read(locked(6, "Übergröße-Δ"), engine, "Übergröße-Δ"), Document)
