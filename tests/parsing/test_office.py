"""Word, PowerPoint and spreadsheet files: structure kept, traps avoided, losses named."""

import datetime
import io
import zipfile
from pathlib import Path

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pptx import Presentation
from pptx.util import Inches

from ingest.parsing.document import Document, Gap
from ingest.parsing.failure import ParseFailure
from ingest.parsing.reading import read_document

FIXTURES = Path(__file__).resolve().parents[1] / "files" / "parsing"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
M = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
TYPES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"


def zipped(members: dict[str, str]) -> bytes:
    """Return a zip file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return stream.getvalue()


def links(*found: tuple[str, str, str]) -> str:
    """Return a part that lists relationships: (id, kind, target)."""
    inside = "".join(
        f'<Relationship Id="{id_}" Type="{TYPES}/{kind}" Target="{target}"/>' for id_, kind, target in found
    )
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{inside}</Relationships>'
    )


def paragraph(text: str, style: str = "", more: str = "") -> str:
    """Return a paragraph of a Word file."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{properties}<w:r><w:t xml:space="preserve">{text}</w:t></w:r>{more}</w:p>'


def word(body: str, *references: tuple[str, str, str], main: str = "word/document.xml", **parts: str) -> bytes:
    """Return a Word file; ``parts`` are further parts, by their name in the folder ``word``."""
    folder, _, name = main.rpartition("/")
    return zipped(
        {
            "[Content_Types].xml": f'<Types xmlns="x"><Override PartName="/{main}" ContentType="{MAIN}"/></Types>',
            "_rels/.rels": links(("r1", "officeDocument", main)),
            f"{folder}/_rels/{name}.rels": links(*references),
            main: f"<w:document {W} {R} {M}><w:body>{body}</w:body></w:document>",
            **{f"{folder}/{part}.xml": text for part, text in parts.items()},
        }
    )


def read(content: bytes, kind: str) -> Document:
    """Return the document of a file that has one."""
    found = read_document(content, kind)
    assert isinstance(found, Document), found
    return found


def pieces(found: Document) -> list[tuple[str, str]]:
    """Return (kind, text) of each block."""
    return [(block.kind, found.text[block.start : block.end]) for block in found.blocks]


STYLES = f"""<w:styles {W}>
<w:style w:type="paragraph" w:styleId="1st.Head">
  <w:name w:val="chapter"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr>
</w:style>
<w:style w:type="paragraph" w:styleId="Sub"><w:name w:val="sub"/><w:basedOn w:val="Mid"/></w:style>
<w:style w:type="paragraph" w:styleId="Mid"><w:name w:val="mid"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Loop"><w:name w:val="loop"/><w:basedOn w:val="Loop"/></w:style>
</w:styles>"""


def test_styles_with_an_outline_level_are_headings() -> None:
    """Also under names of a company's own, and through the style that they build on; a loop of styles ends."""
    body = paragraph("Harbour", "1st.Head") + paragraph("Fees", "Sub") + paragraph("Pay at noon.", "Loop")
    found = read(word(body, ("r2", "styles", "styles.xml"), styles=STYLES), "docx")
    assert pieces(found) == [("heading", "Harbour"), ("heading", "Fees"), ("paragraph", "Pay at noon.")]
    assert [block.level for block in found.blocks] == [1, 2, 0]
    assert found.title == "Harbour"


def test_changes_notes_boxes_and_tables_read_as_word_shows_them() -> None:
    """Inserted text is there and deleted text is not; a note, a text box and a table in a table keep their words."""
    body = (
        f'<w:p><w:ins w:id="1"><w:r><w:t>new </w:t></w:r></w:ins>'
        f'<w:del w:id="2"><w:r><w:delText>old </w:delText></w:r></w:del>'
        f'<w:r><w:t>rope</w:t><w:footnoteReference w:id="7"/></w:r></w:p>'
        f"<w:sdt><w:sdtContent>{paragraph('controlled')}</w:sdtContent></w:sdt>"
        f'<w:p><w:r><w:pict><v:shape xmlns:v="urn:schemas-microsoft-com:vml"><v:textbox>'
        f"<w:txbxContent>{paragraph('boxed')}"
        f"</w:txbxContent></v:textbox></v:shape></w:pict></w:r></w:p>"
        f"<w:tbl><w:tr><w:tc>{paragraph('a')}</w:tc><w:tc>{paragraph('b')}<w:tbl><w:tr><w:tc>{paragraph('in')}</w:tc></w:tr>"
        f"</w:tbl></w:tc></w:tr></w:tbl>"
    )
    notes = f'<w:footnotes {W}><w:footnote w:id="7">{paragraph("See the log.")}</w:footnote></w:footnotes>'
    found = read(word(body, ("r2", "footnotes", "footnotes.xml"), footnotes=notes), "docx")
    assert pieces(found) == [
        ("paragraph", "new rope"),
        ("paragraph", "controlled"),
        ("paragraph", "boxed"),
        ("table_row", "| a | b in |"),
        ("footnote", "See the log."),
    ]


def test_a_link_without_a_target_costs_no_text() -> None:
    """The library stops at it; its words are kept."""
    body = f'<w:p><w:hyperlink r:id="gone"><w:r><w:t>linked words</w:t></w:r></w:hyperlink></w:p>{paragraph("Rest.")}'
    assert read(word(body), "docx").text == "linked words\n\nRest."


def test_margins_come_once_and_losses_are_named() -> None:
    """Headers and footers stand at the end; what the text lacks is told."""
    header = f"<w:hdr {W}>{paragraph('Harbour Office')}</w:hdr>"
    body = paragraph("Text.") + "<w:p><m:oMath><m:r><m:t>x</m:t></m:r></m:oMath></w:p>"
    references = (("r2", "header", "h1.xml"), ("r3", "footer", "h2.xml"), ("r4", "comments", "comments.xml"))
    found = read(word(body, *references, h1=header, h2=header), "docx")
    assert found.text == "Text.\n\nHarbour Office"
    assert found.warnings == ("not_read: comments, equations",)


def test_the_main_part_may_have_any_name() -> None:
    """The package says where it is."""
    assert read(word(paragraph("Moved."), main="other/story.xml"), "docx").text == "Moved."


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"word/x.xml": '<!DOCTYPE a [<!ENTITY b "c">]><a/>'}, "declares"),
        ({"word/x.xml": "a" * 1_000_000 + "<!DOCTYPE a>"}, "declares"),
        ({"word/document.xml": " " * 3_000_000}, "over 200 to 1"),
        ({f"m{number}": "" for number in range(10_001)}, "10005 members"),
    ],
)
def test_bombs_are_refused_before_a_library_sees_them(members: dict[str, str], reason: str) -> None:
    """Entities anywhere in a part, impossible ratios, endless directories."""
    with zipfile.ZipFile(io.BytesIO(word(paragraph("x")))) as archive:
        whole = {name: archive.read(name).decode() for name in archive.namelist()}
    found = read_document(zipped({**whole, **members}), "docx")
    assert isinstance(found, ParseFailure)
    assert found.status == "damaged"
    assert reason in found.reason


def deck() -> bytes:
    """Return a presentation of three slides."""
    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text = "Winter berths"
    slide.placeholders[1].text = "Closed over nine metres\nKey at the office"
    slide.placeholders[1].text_frame.paragraphs[1].level = 1
    slide.notes_slide.notes_text_frame.text = "Mention the fine."
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    slide.element.set("show", "0")
    lower = slide.shapes.add_textbox(Inches(1), Inches(4), Inches(3), Inches(1))
    lower.text_frame.text = "below"
    group = slide.shapes.add_group_shape()
    upper = group.shapes.add_textbox(Inches(1), Inches(1), Inches(3), Inches(1))
    upper.text_frame.text = "above\vtwo lines"
    table = slide.shapes.add_table(2, 2, Inches(1), Inches(5), Inches(4), Inches(1)).table
    table.cell(0, 0).text, table.cell(0, 1).text, table.cell(1, 0).text = "Berth", "Price", "A\n1"
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    slide.shapes.add_textbox(0, 0, 1, 1)
    stream = io.BytesIO()
    presentation.save(stream)
    return stream.getvalue()


def test_a_document_type_is_refused_whatever_the_part_is_called() -> None:
    """The guard of the archive knows XML by its name; the parser knows it by what it is."""
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa">]>'
    with zipfile.ZipFile(io.BytesIO(word(paragraph("&a;"), main="word/document.bin"))) as archive:
        members = {name: archive.read(name).decode() for name in archive.namelist()}
    members["word/document.bin"] = bomb + members["word/document.bin"]
    found = read_document(zipped(members), "docx")
    assert found == ParseFailure("damaged", "a part declares the document type x")


def test_line_breaks_and_tabs_of_every_kind_part_words() -> None:
    """Some programs write the older ones."""
    found = read(word("<w:p><w:r><w:t>one</w:t><w:cr/><w:t>two</w:t><w:ptab/><w:t>three</w:t></w:r></w:p>"), "docx")
    assert found.text == "one\ntwo three"


def test_merged_cells_leave_the_others_in_their_columns() -> None:
    """In Word as in a presentation: the places that a cell covers are blank."""
    cell = "<w:tc><w:tcPr>{}</w:tcPr><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    rows = [[('<w:vMerge w:val="restart"/>', "north"), ("", "1")], [("<w:vMerge/>", ""), ("", "2")]]
    table = "".join(f"<w:tr>{''.join(cell.format(*values) for values in row)}</w:tr>" for row in rows)
    assert read(word(f"<w:tbl>{table}</w:tbl>"), "docx").text == "| north | 1 |\n| | 2 |"
    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    shown = slide.shapes.add_table(2, 2, Inches(1), Inches(1), Inches(1), Inches(1)).table
    for place, text in (((0, 0), "north"), ((0, 1), "1"), ((1, 1), "2")):
        shown.cell(*place).text = text
    shown.cell(0, 0).merge(shown.cell(1, 0))
    stream = io.BytesIO()
    presentation.save(stream)
    assert read(stream.getvalue(), "pptx").text == "| north | 1 |\n| | 2 |"


def listed(items: str, level: str = '<w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/>') -> str:
    """Return the text of a Word file whose items are the digits (their numbering); letters are other paragraphs."""
    numbering = (
        f'<w:numbering {W}><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0">{level}</w:lvl></w:abstractNum>'
        + "".join(f'<w:num w:numId="{name}"><w:abstractNumId w:val="0"/></w:num>' for name in (1, 2))
        + "</w:numbering>"
    )
    numbered = '<w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="{}"/></w:numPr></w:pPr>'
    body = "".join(
        f"<w:p>{numbered.format(sign) if sign.isdecimal() else ''}<w:r><w:t>x</w:t></w:r></w:p>" for sign in items
    )
    return read(word(body, ("r2", "numbering", "numbering.xml"), numbering=numbering), "docx").text


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ("11", "1. x\n2. x"),
        ("a11b22", "x\n\n1. x\n2. x\n\nx\n\n1. x\n2. x"),
        ("1a1", "- x\n\nx\n\n- x"),
        ("1122", "1. x\n2. x\n- x\n- x"),
    ],
)
def test_an_item_of_a_word_list_has_its_number_or_none(items: str, text: str) -> None:
    """Word counts over what stands between the items of a list; a list right behind another begins anew."""
    assert listed(items) == text


@pytest.mark.parametrize(
    "level",
    [
        '<w:numFmt w:val="decimal"/><w:lvlText w:val="Art. %1"/>',
        '<w:numFmt w:val="upperRoman"/><w:lvlText w:val="%1."/>',
        '<w:start w:val="4"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/>',
    ],
)
def test_a_number_that_word_writes_otherwise_is_left_out(level: str) -> None:
    """``Art. 1``, ``IV.`` and a list that begins at 4 would all be 1."""
    assert listed("1", level) == "- x"


def test_shapes_that_share_the_id_of_the_title_are_read() -> None:
    """Some programs give all shapes of a slide the same."""
    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    slide.shapes.title.text = "Harbour"
    box = slide.shapes.add_textbox(Inches(1), Inches(2), Inches(1), Inches(1))
    box.text_frame.text = "Dues"
    box.element.nvSpPr.cNvPr.set("id", str(slide.shapes.title.shape_id))
    stream = io.BytesIO()
    presentation.save(stream)
    assert read(stream.getvalue(), "pptx").text == "Harbour\n\nDues"


def test_a_presentation_is_its_slides_in_reading_order() -> None:
    """Title, shapes from top to bottom, groups in their place, tables, notes; a slide without text is a gap."""
    found = read(deck(), "pptx")
    assert pieces(found) == [
        ("heading", "Winter berths"),
        ("list_item", "- Closed over nine metres"),
        ("list_item", "  - Key at the office"),
        ("slide_note", "Mention the fine."),
        ("paragraph", "above\ntwo lines"),
        ("paragraph", "below"),
        ("table_row", "| Berth | Price |"),
        ("table_row", "| A 1 | |"),
    ]
    assert [(part.kind, part.number, part.label) for part in found.parts] == [
        ("slide", 1, None),
        ("slide", 2, "hidden"),
        ("slide", 3, None),
    ]
    assert found.parts[1].start <= found.text.index("above")
    assert found.gaps == (Gap(3, "no_text"),)


def workbook() -> bytes:
    """Return a workbook: a title above a table with a gap, a second table, a hidden sheet, an empty one."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Fees"
    sheet["B2"] = "Fees of the harbour"
    for row, values in {
        4: ("Berth", "Price", "Since"),
        5: ("A1", 12.0, datetime.date(2024, 3, 1)),
        9: ("A2", 0.1 + 0.2, None),
    }.items():
        for column, value in enumerate(values, 2):
            sheet.cell(row, column, value)
    for row, values in {12: ("Tool", "Count"), 13: ("rope", 7)}.items():
        for column, value in enumerate(values, 2):
            sheet.cell(row, column, value)
    sheet["E5"] = True
    sheet["F9"] = "#N/A"
    hidden = book.create_sheet("Keys")
    hidden.sheet_state = "hidden"
    hidden["A1"] = "only"
    book.create_sheet("Empty")
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


@pytest.mark.parametrize("use_fallback", [False, True])
def test_rows_name_their_columns_and_know_their_cells(use_fallback: bool) -> None:
    """Both libraries give the same document: titles above a table, gaps, a second table, a hidden sheet."""
    found = read_document(workbook(), "xlsx", use_fallback=use_fallback)
    assert isinstance(found, Document)
    assert [(found.text[block.start : block.end], block.cells) for block in found.blocks] == [
        ("Fees", None),
        ("Fees of the harbour", "B2:B2"),
        ("Berth: A1 | Price: 12 | Since: 2024-03-01 | E: true", "B5:E5"),
        ("Berth: A2 | Price: 0.3", "B9:C9"),
        ("Tool: rope | Count: 7", "B13:C13"),
        ("Keys (hidden)", None),
        ("only", "A1:A1"),
    ]
    assert [(part.number, part.label) for part in found.parts] == [(1, "Fees"), (2, "Keys"), (3, "Empty")]
    assert found.warnings == ("hidden_sheets: Keys",)


def test_one_far_cell_is_read_and_kills_nobody() -> None:
    """A cell in the last corner makes calamine ask for the whole rectangle; openpyxl reads such workbooks."""
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = "near", "far"
    stream = io.BytesIO()
    book.save(stream)
    found = read(stream.getvalue(), "xlsx")
    assert pieces(found)[1:] == [("paragraph", "near"), ("paragraph", "far")]
    assert found.blocks[2].cells == "XFD1048576:XFD1048576"


FILES = {
    "docx": word(paragraph("Harbour", "1st.Head") + paragraph("Words."), ("r2", "styles", "styles.xml"), styles=STYLES),
    "pptx": deck(),
    "xlsx": workbook(),
}


@pytest.mark.parametrize("kind", sorted(FILES))
@settings(derandomize=True, deadline=None, max_examples=40)
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


@pytest.mark.parametrize("kind", ["xls", "ods"])
def test_old_and_open_workbooks_read_alike(kind: str) -> None:
    """The table of ``fees.*``, as two other programs write it."""
    found = read((FIXTURES / f"fees.{kind}").read_bytes(), kind)
    assert [text for _, text in pieces(found)] == ["Fees", "Berth: A1 | Price: 12", "Berth: A2 | Price: 7.5"]
