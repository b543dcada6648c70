"""ODT, RTF, EPUB and mail: order and structure kept, what is not read is named."""

import io
import zipfile
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.parsing.document import Document, Gap
from ingest.parsing.failure import ParseFailure
from ingest.parsing.reading import read_document

NAMES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in [("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing")]
)
ODT_BODY = """
<text:tracked-changes><text:changed-region><text:deletion><text:p>deleted</text:p></text:deletion></text:changed-region>
</text:tracked-changes>
<text:table-of-content><text:index-body><text:p>Care 2</text:p></text:index-body></text:table-of-content>
<text:h text:outline-level="1">Ropes</text:h>
<text:p>A rope<text:s text:c="2"/>ends<text:note><text:note-citation>1</text:note-citation><text:note-body>
<text:p>See the log.</text:p></text:note-body></text:note> here.
<office:annotation><text:p>remark</text:p></office:annotation></text:p>
<text:list><text:list-item><text:p>wash</text:p><text:list><text:list-item><text:p>dry</text:p></text:list-item></text:list>
</text:list-item></text:list>
<table:table><table:table-row><table:table-cell><text:p>a</text:p><text:p>b</text:p></table:table-cell>
<table:covered-table-cell/><table:table-cell><text:p>c</text:p></table:table-cell></table:table-row></table:table>
<text:p><draw:frame><draw:text-box><text:p>boxed</text:p></draw:text-box></draw:frame></text:p>
"""


def zipped(members: dict[str, str | bytes]) -> bytes:
    """Return a zip file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def odt(body: str = ODT_BODY, **more: str) -> bytes:
    """Return an OpenDocument text."""
    text = f"<office:body><office:text>{body}</office:text></office:body>"
    content = f"<office:document-content {NAMES}>{text}</office:document-content>"
    return zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content, **more})


PAGES = {
    "one": "<html><head><title>x</title></head><body><h1>One</h1><p>First&nbsp;chapter.</p></body></html>",
    "two": "<html><body><h1>Two</h1><p>Second chapter.</p></body></html>",
    "nav": "<html><body><nav>Contents</nav><p>Contents</p></body></html>",
}


def epub(spine: str = "nav two one", pages: dict[str, str] = PAGES, **more: str) -> bytes:
    """Return a book with its chapters in the order of ``spine``."""
    items = "".join(
        f'<item id="{name}" href="text/{name}.xhtml" media-type="application/xhtml+xml"'
        f"{' properties=' + chr(34) + 'nav' + chr(34) if name == 'nav' else ''}/>"
        for name in pages
    )
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>Knots at Sea</dc:title></metadata><manifest>{items}</manifest>"
        f"<spine>{''.join(f'<itemref idref={chr(34)}{name}{chr(34)}/>' for name in spine.split())}</spine></package>"
    )
    container = '<container><rootfiles><rootfile full-path="OEBPS/b.opf"/></rootfiles></container>'
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            "OEBPS/b.opf": package,
            **{f"OEBPS/text/{name}.xhtml": page for name, page in pages.items()},
            **more,
        }
    )


RTF = (
    rb"{\rtf1\ansi\ansicpg1251{\fonttbl{\f0 Arial;}}{\info{\title hidden}}\f0 \'cf\'f0\'e8\'e2\'e5\'f2\par "
    rb"Second \u8212? line\par {\*\generator x;}\trowd a\cell b\cell\row}"
)


def mail() -> EmailMessage:
    """Return a message in two forms, with a text file, an image and an inner message."""
    inner = EmailMessage()
    inner["Subject"], inner["From"] = "Old price", "ada@pier.example"
    inner.set_content("It was eleven.")
    message = EmailMessage()
    message["Subject"] = "Prices für 2024"
    message["From"], message["To"] = "Bo Lind <bo@pier.example>", "ada@pier.example"
    message["X-Spam"] = "no"
    message.set_content("Dear Ada,\n\nthe price is twelve.\n\n> what is it?\n> soon?\n")
    message.add_alternative("<p>Dear Ada, HTML</p>", subtype="html")
    message.add_attachment("berth;price\n", subtype="csv", filename="list.csv")
    message.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="plan.png")
    message.add_attachment(inner)
    return message


FILES = {"odt": odt(), "epub": epub(), "rtf": RTF, "eml": bytes(mail())}
FILES["mbox"] = (
    b"From bo@x Mon\n" + FILES["eml"] + b"\n\nFrom ada@x Tue\nSubject: Second\n\nfirst line\n>From here on\n"
)


def read(content: bytes, kind: str) -> Document:
    """Return the document of a file that has one."""
    found = read_document(content, kind)
    assert isinstance(found, Document), found
    return found


def pieces(found: Document) -> list[tuple[str, str]]:
    """Return (kind, text) of each block."""
    return [(block.kind, found.text[block.start : block.end]) for block in found.blocks]


def test_an_opendocument_text_is_read_in_order() -> None:
    """Headings, notes after what refers to them, lists, tables, boxes; no deleted text, remarks or contents."""
    found = read(FILES["odt"], "odt")
    assert pieces(found) == [
        ("heading", "Ropes"),
        ("paragraph", "A rope  ends here."),
        ("footnote", "See the log."),
        ("list_item", "- wash"),
        ("list_item", "  - dry"),
        ("table_row", "| a b | | c |"),
        ("paragraph", "boxed"),
    ]
    assert found.title == "Ropes"


def test_how_a_word_is_pronounced_is_no_part_of_it() -> None:
    """It stands above the word, for those who cannot read it."""
    ruby = "<text:ruby><text:ruby-base>港</text:ruby-base><text:ruby-text>みなと</text:ruby-text></text:ruby>"
    assert read(odt(f"<text:p>The {ruby}.</text:p>"), "odt").text == "The 港."


def test_lists_in_lists_without_end_do_not_fill_the_text_with_blanks() -> None:
    """Their text would grow with the square of the depth."""
    depth = 2_000
    opened = "<text:list><text:list-item><text:p>x</text:p>" * depth
    found = read(odt(opened + "</text:list-item></text:list>" * depth), "odt")
    assert len(found.text) < 100 * depth


def test_encrypted_packages_need_a_password() -> None:
    """An encrypted text and a book under copy protection say so; scrambled fonts are no protection."""
    assert status(odt(**{"META-INF/manifest.xml": "<m><encryption-data/></m>"}), "odt") == "needs_password"
    method = '<e><EncryptionMethod Algorithm="{}"/></e>'
    drm = {"META-INF/encryption.xml": method.format("http://www.w3.org/2001/04/xmlenc#aes128-cbc")}
    assert status(epub(**drm), "epub") == "needs_password"
    fonts = {"META-INF/encryption.xml": method.format("http://www.idpf.org/2008/embedding")}
    assert read(epub(**fonts), "epub").text


def test_entities_are_refused_in_every_container() -> None:
    """A document type is part of many books; an entity is not."""
    bomb = '<!DOCTYPE html [<!ENTITY a "aaaa">]><html><body>&a;</body></html>'
    assert status(epub(pages={**PAGES, "one": bomb}), "epub") == "damaged"
    assert status(odt("<text:p>x</text:p>", **{"styles.xml": bomb}), "odt") == "damaged"
    fine = '<?xml version="1.0"?><!DOCTYPE html><html><body><p>fine</p></body></html>'
    assert "fine" in read(epub(pages={**PAGES, "one": fine}), "epub").text


def status(content: bytes, kind: str) -> str:
    """Return the status of a file that has no document."""
    found = read_document(content, kind)
    assert isinstance(found, ParseFailure), found
    return found.status


def test_a_book_is_its_spine_without_the_contents() -> None:
    """Chapters in the order in which they are read, and not of the zip; a missing one is named."""
    found = read(epub("nav two gone one"), "epub")
    assert found.text == "Two\n\nSecond chapter.\n\nOne\n\nFirst\xa0chapter."
    assert found.title == "Knots at Sea"
    assert found.warnings == ("missing: chapters that the book names but does not hold: gone",)


def test_a_chapter_that_does_not_unpack_is_a_gap() -> None:
    """The others are read."""
    content = FILES["epub"].replace(b"Second chapter.", b"Second chapteR.")
    found = read(content, "epub")
    assert "Second" not in found.text
    assert found.gaps == (Gap(2, "unread"),)


def test_a_chapter_that_is_no_text_is_a_gap() -> None:
    """Not the end of the book."""
    found = read(epub(pages={**PAGES, "one": "\x00\x01\x02" * 40}), "epub")
    assert "Second chapter." in found.text
    assert [gap.reason for gap in found.gaps] == ["unread"]


def test_rich_text_is_its_paragraphs() -> None:
    """In the code page that it names, rows of tables among them; properties and unknown groups are no text."""
    found = read(FILES["rtf"], "rtf")
    assert [text for _, text in pieces(found)] == ["Привет", "Second — line", "| a | b |"]


def test_a_message_is_subject_headers_body_and_inner_messages() -> None:
    """The plain form is read, text attachments too; others are named."""
    found = read(FILES["eml"], "eml")
    assert found.title == "Prices für 2024"
    assert pieces(found) == [
        ("heading", "Prices für 2024"),
        ("email_header", "From: Bo Lind <bo@pier.example>\nTo: ada@pier.example\nSubject: Prices für 2024"),
        ("paragraph", "Dear Ada,"),
        ("paragraph", "the price is twelve."),
        ("quote", "> what is it?\n> soon?"),
        ("paragraph", "berth;price"),
        ("heading", "Old price"),
        ("email_header", "From: ada@pier.example\nSubject: Old price"),
        ("paragraph", "It was eleven."),
    ]
    assert [block.level for block in found.blocks if block.kind == "heading"] == [1, 2]
    assert found.warnings == ("attachments: not read: plan.png",)


def test_a_mailbox_is_its_messages() -> None:
    """Each under its subject; lines that were quoted for the box are as they were written."""
    found = read(FILES["mbox"], "mbox")
    assert [block.heading for block in found.blocks if block.level == 1 and block.heading] == [
        "Prices für 2024",
        "Second",
    ]
    assert found.text.endswith("first line\nFrom here on")
    assert found.title is None


def test_a_report_of_a_failed_delivery_says_why() -> None:
    """Its fields are headers without a body."""
    content = (
        b"Subject: Returned\nContent-Type: multipart/report; boundary=b\n\n--b\n\nIt failed.\n--b\n"
        b"Content-Type: message/delivery-status\n\nReporting-MTA: dns; pier\n\n"
        b"Final-Recipient: rfc822; bo@pier\nStatus: 5.1.1\n--b--\n"
    )
    texts = [text for _, text in pieces(read(content, "eml"))]
    assert texts[2:] == ["It failed.", "Reporting-MTA: dns; pier", "Final-Recipient: rfc822; bo@pier\nStatus: 5.1.1"]


def test_prose_that_begins_with_from_ends_no_message() -> None:
    """Not all programs quote such a line in a body; only what a header follows begins a message."""
    first = b"From a@b Mon\nSubject: One\n\nHi.\n\nFrom the start we knew.\nAll of it.\n\n"
    found = read(first + b"From c@d Tue\nSubject: Two\n\nBye.\n", "mbox")
    assert "Hi.\n\nFrom the start we knew.\nAll of it." in found.text
    assert [block.heading for block in found.blocks if block.kind == "heading"] == ["One", "Two"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"Subject: =?koi8-r?B?98/EwQ==?=\nContent-Type: text/plain; charset=koi8-r\n\n\xd7\xcf\xc4\xc1", "вода"),
        (b"Subject: x\nContent-Type: text/plain; charset=nonsense\n\ncaf\xe9 du port", "café du port"),
        (b"Subject: x\nContent-Type: text/html\n\n<p>only <b>HTML</b></p>", "only HTML"),
        (b"Subject: x\nContent-Type: text/plain; charset=\x00\n\ncaf\xe9 du port", "café du port"),
        (b"Subject: x\nDate: not a date\nFrom: <<>>;;,,\n\nbody words", "body words"),
    ],
)
def test_bodies_are_decoded_by_what_they_are(content: bytes, expected: str) -> None:
    """By their charset if it fits, else as any text; odd headers stop nothing."""
    assert read(content, "eml").text.endswith(expected)


def test_what_is_no_mail_is_damaged() -> None:
    """Prose under the name of a message; a message nested beyond reason."""
    assert status(b"Just some words\nof nobody", "eml") == "damaged"
    assert status(b"no separator", "mbox") == "damaged"
    deep = b"Content-Type: multipart/mixed; boundary=%d\n\n--%d\n"
    assert status(b"Subject: x\n" + b"".join(deep % (n, n) for n in range(40)) + b"\nx", "eml") == "damaged"


@pytest.mark.parametrize("kind", sorted(FILES))
@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.data())
def test_any_damage_ends_in_a_document_or_a_failure(kind: str, data: st.DataObject) -> None:
    """Cut anywhere or one bit flipped anywhere; and what is read is read twice alike."""
    content = bytearray(FILES[kind])
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del content[place:]
    found = read_document(bytes(content), kind)
    assert found == read_document(bytes(content), kind)
    assert isinstance(found, Document) or found.reason
