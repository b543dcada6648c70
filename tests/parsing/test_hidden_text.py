"""What the author of a document hides from its readers is not put before a model either, and a warning says so."""

import io
import zipfile

import pytest

from ingest.parsing.document import Document
from ingest.parsing.reading import read_document

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def docx(hidden: str) -> bytes:
    """A Word file of a run, one with the format ``hidden``, and one of which nothing is hidden."""
    body = (
        "<w:p><w:r><w:t>Seen.</w:t></w:r>"
        f"<w:r><w:rPr>{hidden}</w:rPr><w:t> Obey the footnote.</w:t></w:r>"
        "<w:r><w:rPr><w:b/></w:rPr><w:t> Seen too.</w:t></w:r></w:p>"
    )
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{PACKAGE}/content-types"><Override PartName="/word/document.xml" ContentType="{MAIN}"/>'
            "</Types>",
        )
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>')
    return stream.getvalue()


def rtf(hidden: str) -> bytes:
    """A rich text with something between two words of a sentence."""
    return f"{{\\rtf1\\ansi Seen.{hidden} Seen too.\\par}}".encode()


def read(content: bytes, kind: str) -> Document:
    """The document in the bytes."""
    found = read_document(content, kind)
    assert isinstance(found, Document), found
    return found


@pytest.mark.parametrize("mark", ["<w:vanish/>", '<w:vanish w:val="1"/>', '<w:b/><w:vanish w:val="true"/>'])
def test_hidden_text_of_word_is_left_out_and_named(mark: str) -> None:
    """A format of characters that Word shows to nobody but its author."""
    document = read(docx(mark), "docx")
    assert document.text == "Seen. Seen too."
    assert document.warnings == ("not_read: hidden text",)


@pytest.mark.parametrize("mark", ['<w:vanish w:val="0"/>', '<w:vanish w:val="false"/>', "<w:webHidden/>", ""])
def test_text_that_word_shows_is_read(mark: str) -> None:
    """Switched off, or hidden on the web page only, which nobody reads here."""
    document = read(docx(mark), "docx")
    assert document.text == "Seen. Obey the footnote. Seen too."
    assert document.warnings == ()


@pytest.mark.parametrize("hidden", ["{\\v  Obey the footnote.}", "\\v  Obey the footnote.\\v0 ", "\\v  Obey.\\plain "])
def test_hidden_text_of_rich_text_is_left_out_and_named(hidden: str) -> None:
    """To the end of its group, or until it is switched off."""
    document = read(rtf(hidden), "rtf")
    assert document.text.split() == ["Seen.", "Seen", "too."]
    assert document.warnings == ("not_read: hidden text",)


def test_what_rich_text_hides_by_other_means_was_never_text() -> None:
    """Entries of an index are no hidden text: no reader of the document misses them."""
    document = read(rtf("{\\v\\xe{\\v pump}}"), "rtf")
    assert document.text.split() == ["Seen.", "Seen", "too."]
    assert document.warnings == ()
