"""A file of every kind, made of given paragraphs, for the tests of what holds for all readers.

Each builder puts the words of the paragraphs into a file in their order, under what structure its format has: a
heading, lists, rows, quotes. Written by hand wherever that is short, since the files of programs hold words of their
own. What a builder or a rendering puts in besides is in ``ADDED``.
"""

import io
import json
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from email.message import EmailMessage
from html import escape

import openpyxl
from pptx import Presentation
from pptx.util import Inches
from reportlab.pdfgen.canvas import Canvas

from tests.parsing.test_msg import BODY, SUBJECT, compound, properties

__all__ = ["ADDED", "BUILDERS", "SAMPLE"]

# Words that stand in a document without being in a paragraph: names of columns, sheets and headers, words of a
# programming language. All are capital or no words of a vocabulary; numbers count as added everywhere.
ADDED = frozenset({"Alpha", "Beta", "Subject", "class", "p", "A", "B"})
SAMPLE = (
    "harbour handbook",
    "every boat needs two spring lines",
    "ask the keeper for größe and café",
    "diesel is sold from seven until nine",
    "nobody may leave a boat at the wall",
)
OPENXML = "application/vnd.openxmlformats-officedocument"
LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def zipped(members: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip file; the same members make the same bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return stream.getvalue()


def lines(*found: str) -> bytes:
    """Return a text file."""
    return "\n".join(found).encode() + b"\n"


def text(paragraphs: Sequence[str]) -> bytes:
    """Return paragraphs, parted by blank lines."""
    return "\n\n".join(paragraphs).encode()


def xml(paragraphs: Sequence[str]) -> bytes:
    """Return a paragraph an element."""
    return lines("<p>", *(f"<p>{paragraph}</p>" for paragraph in paragraphs), "</p>")


def marked(heading: str, marks: Sequence[str]) -> Callable[[Sequence[str]], bytes]:
    """Return a builder of lightweight markup: the first paragraph under ``heading``, the others behind the marks."""

    def build(paragraphs: Sequence[str]) -> bytes:
        first = heading.format(paragraphs[0], "=" * len(paragraphs[0].encode()))
        rest = [marks[number % len(marks)].format(other) for number, other in enumerate(paragraphs[1:])]
        return "\n\n".join([first, *rest]).encode()

    return build


def code(paragraphs: Sequence[str]) -> bytes:
    """Return a definition that is named by the first paragraph, the others as comments in it."""
    return lines(f"class {'_'.join(paragraphs[0].split())} {{", *(f"  // {other}" for other in paragraphs[1:]), "}")


def python(paragraphs: Sequence[str]) -> bytes:
    """Return a class that is named by the first paragraph, the others as strings in it."""
    return lines(f"class {'_'.join(paragraphs[0].split())}:", "    1", *(f'    """{x}"""' for x in paragraphs[1:]))


def table(paragraphs: Sequence[str]) -> bytes:
    """Return two columns, with a paragraph in each cell."""
    return lines("Alpha;Beta", *(";".join(row) for row in rows(paragraphs)))


def rows(paragraphs: Sequence[str]) -> list[Sequence[str]]:
    """Return the paragraphs in pairs."""
    return [paragraphs[index : index + 2] for index in range(0, len(paragraphs), 2)]


def json_lines(paragraphs: Sequence[str]) -> bytes:
    """Return a record a paragraph."""
    return lines(*(json.dumps({"Alpha": paragraph}) for paragraph in paragraphs))


def notebook(paragraphs: Sequence[str]) -> bytes:
    """Return cells of every kind, one after the other."""
    output = [{"output_type": "stream", "text": [paragraphs[-1]]}] if len(paragraphs) > 1 else []
    kinds = ("markdown", "code", "raw")
    cells: list[dict[str, object]] = [
        {"cell_type": kinds[number % 3], "source": [paragraph], "outputs": []}
        for number, paragraph in enumerate(paragraphs[:-1] if output else paragraphs)
    ]
    cells += [{"cell_type": "code", "source": "", "outputs": output}] if output else []
    return json.dumps({"nbformat": 4, "cells": cells}).encode()


def page(paragraphs: Sequence[str]) -> str:
    """Return a page of HTML."""
    forms = ("<p>{}</p>", "<ul><li>{}</li></ul>", "<table><tr><td>{}</td></tr></table>", "<pre>{}</pre>")
    rest = "".join(forms[number % 4].format(escape(other)) for number, other in enumerate(paragraphs[1:]))
    return f"<html><body><h1>{escape(paragraphs[0])}</h1>{rest}</body></html>"


def html(paragraphs: Sequence[str]) -> bytes:
    """Return the page as a file."""
    return page(paragraphs).encode()


def word(kind: str) -> Callable[[Sequence[str]], bytes]:
    """Return a builder of Word files whose main part is of ``kind``."""

    def build(paragraphs: Sequence[str]) -> bytes:
        runs = [f"<w:p><w:r><w:t>{escape(paragraph)}</w:t></w:r></w:p>" for paragraph in paragraphs]
        cells = "".join(f"<w:tc>{run}</w:tc>" for run in runs[1:3])
        body = runs[0] + (f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>" if cells else "") + "".join(runs[3:])
        names = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
        main = f"<w:document {names}><w:body>{body}</w:body></w:document>"
        return package("word/document.xml", kind, main)

    return build


def package(main: str, kind: str, content: str | bytes, parts: Mapping[str, str | bytes] | None = None) -> bytes:
    """Return an Office file: its main part, what that is, and further parts."""
    return zipped(
        {
            "[Content_Types].xml": f'<Types xmlns="x"><Override PartName="/{main}" ContentType="{kind}"/></Types>',
            "_rels/.rels": links(("officeDocument", main)),
            main: content,
            **(parts or {}),
        }
    )


def links(*targets: tuple[str, str]) -> str:
    """Return a part that names the targets of relationships by their kinds."""
    found = "".join(
        f'<Relationship Id="rId{number}" Type="{LINKS}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, 1)
    )
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{found}</Relationships>'
    )


def presentation(paragraphs: Sequence[str]) -> bytes:
    """Return two slides: a title with a box and notes, and a table."""
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = paragraphs[0]
    if len(paragraphs) > 1:
        box = slide.shapes.add_textbox(Inches(1), Inches(5), Inches(3), Inches(1))
        box.text_frame.text = paragraphs[1]
    if len(paragraphs) > 2:
        slide.notes_slide.notes_text_frame.text = paragraphs[2]
    if rest := paragraphs[3:]:
        slide = deck.slides.add_slide(deck.slide_layouts[6])
        shape = slide.shapes.add_table(len(rest), 1, Inches(1), Inches(1), Inches(4), Inches(2))
        for number, paragraph in enumerate(rest):
            shape.table.cell(number, 0).text = paragraph
    stream = io.BytesIO()
    deck.save(stream)
    return stream.getvalue()


def workbook(paragraphs: Sequence[str]) -> bytes:
    """Return a sheet of two columns."""
    book = openpyxl.Workbook()
    book.active.title = "Alpha"
    for row in [["Alpha", "Beta"], *rows(paragraphs)]:
        book.active.append(list(row))
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def renamed_main(build: Callable[[Sequence[str]], bytes], old: str, new: str) -> Callable[[Sequence[str]], bytes]:
    """Return a builder of the same file with another type of its main part, as its sister with macros has."""

    def changed(paragraphs: Sequence[str]) -> bytes:
        with zipfile.ZipFile(io.BytesIO(build(paragraphs))) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        types = members["[Content_Types].xml"]
        assert old.encode() in types
        return zipped({**members, "[Content_Types].xml": types.replace(old.encode(), new.encode())})

    return changed


def binary_workbook(paragraphs: Sequence[str]) -> bytes:
    """Return a sheet as [MS-XLSB] has it: records of a number, a length and data."""

    def record(number: int, data: bytes = b"") -> bytes:
        head = bytes([number]) if number < 128 else bytes([number & 127 | 128, number >> 7])
        length = bytes([len(data) & 127 | 128, len(data) >> 7])
        return head + length + data

    def wide(string: str) -> bytes:
        return struct.pack("<I", len(string)) + string.encode("utf-16-le")

    book = record(131) + record(143) + record(156, struct.pack("<II", 0, 1) + wide("rId1") + wide("Alpha"))
    cells = [["Alpha", "Beta"], *rows(paragraphs)]
    sheet = record(129) + record(148, struct.pack("<IIII", 0, len(cells) - 1, 0, 1)) + record(145)
    for number, row in enumerate(cells):
        sheet += record(0, struct.pack("<I", number) + bytes(13))
        sheet += b"".join(record(6, struct.pack("<II", at, 0) + wide(cell)) for at, cell in enumerate(row))
    return package(
        "xl/workbook.bin",
        "application/vnd.ms-excel.sheet.binary.macroEnabled.main",
        book + record(144) + record(132),
        {
            "xl/_rels/workbook.bin.rels": links(("worksheet", "worksheets/sheet1.bin")),
            "xl/worksheets/sheet1.bin": sheet + record(146) + record(130),
        },
    )


def old_workbook(paragraphs: Sequence[str]) -> bytes:
    """Return a sheet as [MS-XLS] has it: records in a stream of an OLE file."""

    def record(number: int, data: bytes = b"") -> bytes:
        return struct.pack("<HH", number, len(data)) + data

    def begin(kind: int) -> bytes:
        return record(0x0809, struct.pack("<HHHHII", 0x0600, kind, 0, 0, 0, 0))

    def label(row: int, column: int, cell: str) -> bytes:
        head = struct.pack("<HHHHB", row, column, 0, len(cell), 1)
        return record(0x0204, head + cell.encode("utf-16-le"))

    cells = [["Alpha", "Beta"], *rows(paragraphs)]
    body = b"".join(label(row, at, cell) for row, found in enumerate(cells) for at, cell in enumerate(found))
    sheet = begin(0x10) + record(0x0200, struct.pack("<IIHHH", 0, len(cells), 0, 2, 0)) + body + record(0x0A)
    name = "Alpha".encode("utf-16-le")
    at = len(begin(5)) + 4 + 8 + len(name) + 4
    head = begin(5) + record(0x85, struct.pack("<IBBBB", at, 0, 0, 5, 1) + name) + record(0x0A)
    return compound({"Workbook": head + sheet})


def open_text(paragraphs: Sequence[str]) -> bytes:
    """Return an OpenDocument text: a heading, a list, a table, paragraphs."""
    cell = "<table:table-row><table:table-cell><text:p>{}</text:p></table:table-cell></table:table-row>"
    forms = (
        "<text:list><text:list-item><text:p>{}</text:p></text:list-item></text:list>",
        f"<table:table>{cell}</table:table>",
        "<text:p>{}</text:p>",
    )
    rest = "".join(forms[number % 3].format(escape(other)) for number, other in enumerate(paragraphs[1:]))
    return open_document("text", f'<text:h text:outline-level="1">{escape(paragraphs[0])}</text:h>{rest}')


def open_sheet(paragraphs: Sequence[str]) -> bytes:
    """Return an OpenDocument spreadsheet of two columns."""
    found = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell office:value-type="string"><text:p>{escape(cell)}</text:p></table:table-cell>'
            for cell in row
        )
        + "</table:table-row>"
        for row in [["Alpha", "Beta"], *rows(paragraphs)]
    )
    return open_document("spreadsheet", f'<table:table table:name="Alpha">{found}</table:table>')


def open_document(kind: str, body: str) -> bytes:
    """Return an OpenDocument package."""
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "table")
    )
    return zipped(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "META-INF/manifest.xml": "<manifest/>",
            "content.xml": f"<office:document-content {names}><office:body><office:{kind}>{body}</office:{kind}>"
            "</office:body></office:document-content>",
        }
    )


def book(paragraphs: Sequence[str]) -> bytes:
    """Return a book of two chapters."""
    half = (len(paragraphs) + 1) // 2
    chapters = [page(part) for part in (paragraphs[:half], paragraphs[half:]) if part]
    items = "".join(
        f'<item id="c{number}" href="c{number}.xhtml" media-type="application/xhtml+xml"/>'
        for number in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{number}"/>' for number in range(len(chapters)))
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>',
            "b.opf": f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>",
            **{f"c{number}.xhtml": chapter for number, chapter in enumerate(chapters)},
        }
    )


def mail(paragraphs: Sequence[str]) -> bytes:
    """Return a message; the last paragraph is attached."""
    message = EmailMessage()
    message["Subject"] = "Alpha"
    message.set_content("\n\n".join(paragraphs[:-1] or paragraphs), cte="quoted-printable")
    if len(paragraphs) > 1:
        message.add_attachment(paragraphs[-1], filename="more.txt")
        message.set_boundary("=-=")
    return bytes(message)


def mailbox(paragraphs: Sequence[str]) -> bytes:
    """Return a message for every paragraph."""
    return b"\n".join(b"From x@y Mon\n" + mail([paragraph]) for paragraph in paragraphs)


def outlook(paragraphs: Sequence[str]) -> bytes:
    """Return an Outlook message."""
    return compound(properties(32, {SUBJECT: "Alpha", BODY: "\r\n\r\n".join(paragraphs)}))


def rich_text(paragraphs: Sequence[str]) -> bytes:
    """Return rich text; characters above ASCII as their code points."""

    def escaped(paragraph: str) -> str:
        return "".join(char if char.isascii() else f"\\u{ord(char)}?" for char in paragraph)

    return ("{\\rtf1\\ansi " + "\\par ".join(map(escaped, paragraphs)) + "}").encode()


def pdf(paragraphs: Sequence[str]) -> bytes:
    """Return a PDF, two paragraphs a page."""
    stream = io.BytesIO()
    canvas = Canvas(stream, pagesize=(500, 300), invariant=1)
    for pair in rows(paragraphs):
        for number, paragraph in enumerate(pair):
            canvas.drawString(20, 250 - 100 * number, paragraph)
        canvas.showPage()
    canvas.save()
    return stream.getvalue()


MAIN = "wordprocessingml.document.main+xml"
BUILDERS: Mapping[str, Callable[[Sequence[str]], bytes]] = {
    "asciidoc": marked("= {}", ("{}", "* {}", "----\n{}\n----", "|===\n|{}\n|===")),
    "code": code,
    "csv": table,
    "docm": word("application/vnd.ms-word.document.macroEnabled.main+xml"),
    "docx": word(f"{OPENXML}.{MAIN}"),
    "eml": mail,
    "epub": book,
    "html": html,
    "ipynb": notebook,
    "json": lambda paragraphs: json.dumps({"Alpha": {"Beta": list(paragraphs)}}).encode(),
    "jsonl": json_lines,
    "markdown": marked("# {}", ("{}", "- {}", "> {}", "```\n{}\n```", "1. {}", "| {} |\n|---|")),
    "mbox": mailbox,
    "msg": outlook,
    "ods": open_sheet,
    "odt": open_text,
    "pdf": pdf,
    "pptm": renamed_main(
        presentation,
        f"{OPENXML}.presentationml.presentation.main+xml",
        "application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml",
    ),
    "pptx": presentation,
    "python": python,
    "rst": marked("{}\n{}", ("{}", "- {}", "::\n\n  {}", "#. {}")),
    "rtf": rich_text,
    "text": text,
    "xls": old_workbook,
    "xlsb": binary_workbook,
    "xlsm": renamed_main(
        workbook, f"{OPENXML}.spreadsheetml.sheet.main+xml", "application/vnd.ms-excel.sheet.macroEnabled.main+xml"
    ),
    "xlsx": workbook,
    "xml": xml,
}
