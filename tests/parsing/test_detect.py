"""Which kind a content is: content decides binary kinds, the name among texts."""

import io
import zipfile

import pytest

from ingest.parsing.detect import detect
from ingest.parsing.failure import Refused

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"


def zipped(**members: str) -> bytes:
    """Return a zip file; ``__`` in a name stands for a slash."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/").replace("Content_Types", "[Content_Types].xml"), text)
    return stream.getvalue()


WORD = zipped(word__document="", Content_Types="application/vnd.ms.wordprocessingml.document.main+xml")


@pytest.mark.parametrize(
    ("content", "kind", "expected"),
    [
        (b"%PDF-1.7\n", "pdf", "pdf"),
        (b"%PDF-1.7\n", "text", "pdf"),
        (b"x" * 3000 + b"%PDF-1.7\n", "pdf", "pdf"),
        (b"A PDF begins with %PDF-1.7", "text", "text"),
        (b"A PDF begins with %PDF-1.7", "markdown", "markdown"),
        (b"<!-- x --> <!DOCTYPE html><p>x", "text", "html"),
        ("\ufeff<html lang='en'>".encode(), "text", "html"),
        ("<html>".encode("utf-16"), "text", "html"),
        (b"<html><body>", "markdown", "markdown"),
        (b"<html><body>", "doc", "html"),
        (b"<table><tr><td>x</table>", "xls", "html"),
        (b"plain words", "doc", "text"),
        (b"plain words", "bin", "text"),
        (b"BM is how a bitmap begins", "text", "text"),
        (b"<html><p>Please log in", "csv", "html"),
        (b"<html><p>Please log in", "json", "html"),
        (b"<?xml version='1.0'?><html xmlns='x'>", "xml", "html"),
        (WORD, "docx", "docx"),
        (WORD, "text", "docx"),
        (WORD, "bin", "docx"),
        (zipped(mimetype="application/epub+zip"), "text", "epub"),
        (OLE + "__substg1.0_".encode("utf-16-le"), "bin", "msg"),
        (b"{\\rtf1 x}", "doc", "rtf"),
        (b"From: a@b.example\n\nHi", "eml", "eml"),
        (OLE + "Workbook".encode("utf-16-le"), "xlsx", "xls"),
        (b"GIF89a is a format", "text", "text"),
    ],
)
def test_content_and_name_decide_the_kind(content: bytes, kind: str, expected: str) -> None:
    """What a content is by itself wins; a text that only talks of a format stays a text."""
    assert detect(content, kind) == expected


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (PNG, "text", "binary"),
        (PNG, "markdown", "binary"),
        (PNG, "png", "unsupported"),
        (PNG, "jpg", "unsupported"),
        (PNG, "pdf", "damaged"),
        (PNG, "bin", "unsupported"),
        (b"<!doctype html><p>Not found", "pdf", "damaged"),
        (b"Not found", "pdf", "damaged"),
        (b"Not found", "docx", "damaged"),
        (b"\x00\x01\x02", "epub", "damaged"),
        (zipped(readme="x"), "zip", "unsupported"),
        (zipped(readme="x"), "docx", "unsupported"),
        (b"PK\x03\x04 and then nothing", "zip", "unsupported"),
        (OLE, "docx", "needs_password"),
        (OLE + "EncryptedPackage".encode("utf-16-le"), "bin", "needs_password"),
        (OLE + "WordDocument".encode("utf-16-le"), "doc", "unsupported"),
        (b"<svg/>", "svg", "unsupported"),
        (b"\x1f\x8b\x08\x00\x00", "text", "binary"),
        (b"ID3\x04\x00\x00", "mp3", "unsupported"),
    ],
)
def test_what_cannot_be_read_says_why(content: bytes, kind: str, status: str) -> None:
    """The status tells a wrong download from a format without a reader and from bytes under a text's name."""
    with pytest.raises(Refused) as refusal:
        detect(content, kind, f"report.{kind}")
    assert refusal.value.failure.status == status
    assert refusal.value.failure.reason


def test_the_reason_names_both_name_and_content() -> None:
    """A person sees at once that the file is a web page that was saved under another name."""
    with pytest.raises(Refused, match=r"named \.pdf but holds HTML"):
        detect(b"<html><p>Please log in", "pdf", "report.pdf")


def test_the_order_of_members_does_not_decide() -> None:
    """A Word file is one wherever its main part stands in the zip."""
    types = "application/vnd.ms.wordprocessingml.document.main+xml"
    for content in (zipped(Content_Types=types, a="x"), zipped(a="x", Content_Types=types)):
        assert detect(content, "text") == "docx"


def test_comments_before_a_text_are_gone_through_once() -> None:
    """Each might end anywhere behind, if it were given back: a thousand would take longer than the sun burns."""
    assert detect(b"<!-- x -->\n" * 300 + b"words", "markdown") == "markdown"
    assert detect(b"<!-- x -->\n" * 300 + b"<html>", "text") == "html"
