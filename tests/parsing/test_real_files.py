"""What broke on real files, of the test suites of LibreOffice, POI, pandoc, calamine and others, built here by hand."""

import io
import zipfile
from collections.abc import Mapping

import openpyxl
import pytest
from pptx import Presentation

from ingest.parsing.document import Document
from ingest.parsing.failure import ParseFailure
from ingest.parsing.reading import read_document

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
TYPES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
WORD_MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
NAMESPACES = (
    f'xmlns:w="{WORD}" xmlns:r="{TYPES}" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    ' xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
    ' xmlns:v="urn:schemas-microsoft-com:vml"'
)
ODF = "urn:oasis:names:tc:opendocument:xmlns"


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    """Return a zip file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def with_members(content: bytes, members: Mapping[str, str | bytes]) -> bytes:
    """Return a zip file with other members, or other content of them."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return zipped({**{name: archive.read(name) for name in archive.namelist()}, **members})


def with_bad_checksum(content: bytes, name: str) -> bytes:
    """Return a zip file in which one member does not unpack."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        checksum = archive.getinfo(name).CRC.to_bytes(4, "little")
    return content.replace(checksum, bytes(byte ^ 0xFF for byte in checksum))


def text_run(text: str) -> str:
    """Return a run of a Word file."""
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def word(body: str, **parts: str) -> bytes:
    """Return a Word file; ``parts`` are further ones, by the names that they usually have."""
    links = "".join(f'<Relationship Id="{name}" Type="{TYPES}/{name}" Target="{name}.xml"/>' for name in parts)
    return zipped(
        {
            "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
            f'<Override PartName="/word/document.xml" ContentType="{WORD_MAIN}"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
            f'<Relationship Id="r" Type="{TYPES}/officeDocument" Target="word/document.xml"/></Relationships>',
            "word/_rels/document.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>',
            "word/document.xml": f"<w:document {NAMESPACES}><w:body>{body}</w:body></w:document>",
            **{f"word/{name}.xml": text for name, text in parts.items()},
        }
    )


def spreadsheet(rows: str, *, style: str = "", manifest: str = "<m/>") -> bytes:
    """Return an OpenDocument spreadsheet of one sheet."""
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": manifest,
            "content.xml": f'<o:document-content xmlns:o="{ODF}:office:1.0" xmlns:table="{ODF}:table:1.0"'
            f' xmlns:text="{ODF}:text:1.0" xmlns:style="{ODF}:style:1.0">{style}<o:body><o:spreadsheet>'
            f'<table:table table:name="Fees" table:style-name="t">{rows}</table:table>'
            "</o:spreadsheet></o:body></o:document-content>",
        }
    )


def cell(text: str, **attributes: str) -> str:
    """Return a cell of an OpenDocument spreadsheet; underscores in names of attributes are hyphens."""
    more = "".join(
        f' {"o" if name.endswith(("value", "value_type")) else "table"}:{name.replace("_", "-")}="{value}"'
        for name, value in attributes.items()
    )
    return f"<table:table-cell{more}>{f'<text:p>{text}</text:p>' if text else ''}</table:table-cell>"


def row(*cells: str, repeated: int = 1) -> str:
    """Return a row of an OpenDocument spreadsheet."""
    return f'<table:table-row table:number-rows-repeated="{repeated}">{"".join(cells)}</table:table-row>'


def read(content: bytes, kind: str) -> Document:
    """Return the document of a file that has one."""
    found = read_document(content, kind)
    assert isinstance(found, Document), found
    return found


def refused(content: bytes, kind: str) -> ParseFailure:
    """Return why a file has no document."""
    found = read_document(content, kind, f"file.{kind}")
    assert isinstance(found, ParseFailure), found
    return found


def pieces(found: Document) -> list[tuple[str, str]]:
    """Return (kind, text) of each block."""
    return [(block.kind, found.text[block.start : block.end]) for block in found.blocks]


def test_word_fields_directions_and_ruby_keep_their_text() -> None:
    """The number of a caption is a field; Arabic stands in an element of its own; ruby is left out, its base is not."""
    body = (
        f'<w:p>{text_run("Figure ")}<w:fldSimple w:instr="SEQ Figure">{text_run("7")}</w:fldSimple></w:p>'
        f'<w:p><w:dir w:val="rtl">{text_run("على")}</w:dir><w:bdo w:val="ltr">{text_run(" abc")}</w:bdo></w:p>'
        f"<w:p><w:r><w:ruby><w:rubyPr/><w:rt>{text_run('きょう')}</w:rt><w:rubyBase>{text_run('今日')}</w:rubyBase>"
        f"</w:ruby></w:r></w:p>"
    )
    assert read(word(body), "docx").text == "Figure 7\n\nعلى abc\n\n今日"


def test_a_ticked_box_of_a_word_file_is_text() -> None:
    """A person sees which answer was given."""
    names = NAMESPACES + ' xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"'
    box = f"<w:sdt><w:sdtPr><w14:checkbox {names}/></w:sdtPr><w:sdtContent>{text_run('☒')}</w:sdtContent></w:sdt>"
    assert read(word(f"<w:p>{text_run('insured: ')}{box}</w:p>"), "docx").text == "insured: ☒"


def test_a_word_text_box_is_read_once_whichever_of_its_forms_there_is() -> None:
    """Word writes a new form and an old one; other programs only one of them."""
    box = "<w:txbxContent><w:p>{}</w:p></w:txbxContent>"
    new = f"<w:drawing><wps:wsp><wps:txbx>{box.format(text_run('new box'))}</wps:txbx></wps:wsp></w:drawing>"
    old = f"<w:pict><v:oval><v:textbox>{box.format(text_run('old box'))}</v:textbox></v:oval></w:pict>"
    both = (
        f"<mc:AlternateContent><mc:Choice Requires='wps'>{new.replace('new', 'twin')}</mc:Choice>"
        f"<mc:Fallback>{old.replace('old', 'twin')}</mc:Fallback></mc:AlternateContent>"
    )
    alone = (
        f"<mc:AlternateContent><mc:Choice Requires='wps'>{new.replace('new', 'lone')}</mc:Choice></mc:AlternateContent>"
    )
    body = "".join(f"<w:p><w:r>{form}</w:r></w:p>" for form in (new, old, both, alone))
    assert [text for _, text in pieces(read(word(body), "docx"))] == ["new box", "old box", "twin box", "lone box"]


def test_a_level_set_on_a_word_paragraph_makes_a_heading_of_it() -> None:
    """As in the outline that Word shows; in the cells of a table it is a format."""
    heading = '<w:p><w:pPr><w:outlineLvl w:val="1"/></w:pPr>{}</w:p>'
    table = f"<w:tbl><w:tr>{''.join(f'<w:tc>{heading.format(text_run(text))}</w:tc>' for text in 'ab')}</w:tr></w:tbl>"
    found = read(word(heading.format(text_run("Fees")) + f"<w:p>{text_run('Paid at noon.')}</w:p>" + table), "docx")
    assert pieces(found) == [("heading", "Fees"), ("paragraph", "Paid at noon."), ("table_row", "| a | b |")]
    assert found.blocks[0].level == 2


def test_what_a_word_file_refers_to_in_vain_costs_no_text() -> None:
    """A note, a style without a type or an id, a numbering style: the library would stop at each."""
    body = (
        f'<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="3"/></w:numPr></w:pPr>{text_run("kept")}'
        f'<w:r><w:footnoteReference w:id="9"/><w:endnoteReference/></w:r></w:p>'
    )
    styles = f'<w:styles {NAMESPACES}><w:style w:styleId="a"/><w:style w:type="paragraph"/></w:styles>'
    numbering = (
        f'<w:numbering {NAMESPACES}><w:abstractNum w:abstractNumId="1"><w:numStyleLink w:val="gone"/></w:abstractNum>'
        '<w:num w:numId="3"><w:abstractNumId w:val="1"/></w:num><w:num w:numId="4"/></w:numbering>'
    )
    notes = f"<w:footnotes {NAMESPACES}><w:footnote><w:p/></w:footnote></w:footnotes>"
    found = read(word(body, styles=styles, numbering=numbering, footnotes=notes), "docx")
    assert found.text == "kept"
    assert not found.warnings


def test_a_damaged_part_beside_the_text_of_a_word_file_is_named() -> None:
    """Notes that are no XML are missed, and the reader says so; a picture that does not unpack is not."""
    content = word(f"<w:p>{text_run('kept')}</w:p>", footnotes="<broken")
    whole = with_members(content, {"word/media/x.png": b"picture", "docProps/app.xml": "0" * 3_000_000})
    found = read(with_bad_checksum(whole, "word/media/x.png"), "docx")
    assert found.text == "kept"
    assert found.warnings == ("not_read: footnotes",)


def test_word_tables_in_tables_end_in_a_reason_for_a_person() -> None:
    """However deep; the libraries recurse."""
    body = f"<w:p>{text_run('x')}</w:p>"
    for _ in range(400):
        body = f"<w:tbl><w:tr><w:tc>{body}</w:tc></w:tr></w:tbl>"
    found = refused(word(body), "docx")
    assert found.status == "damaged"
    assert found.reason.endswith("as tables in tables in tables")


def test_a_strict_word_file_reads_like_any_other() -> None:
    """Its namespaces differ, its styles count."""
    style = '<w:style w:type="paragraph" w:styleId="s"><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style>'
    styles = f"<w:styles {NAMESPACES}>{style}</w:styles>"
    content = word(f'<w:p><w:pPr><w:pStyle w:val="s"/></w:pPr>{text_run("Fees")}</w:p>', styles=styles)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        strict = {
            name: archive.read(name)
            .replace(WORD.encode(), b"http://purl.oclc.org/ooxml/wordprocessingml/main")
            .replace(TYPES.encode(), b"http://purl.oclc.org/ooxml/officeDocument/relationships")
            for name in archive.namelist()
        }
    assert pieces(read(zipped(strict), "docx")) == [("heading", "Fees")]


def presentation() -> bytes:
    """Return a presentation of one slide."""
    show = Presentation()
    show.slides.add_slide(show.slide_layouts[5]).shapes.title.text_frame.text = "Mooring"
    stream = io.BytesIO()
    show.save(stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"presentation.main+xml", b"slideshow.main+xml"),
        (b"presentation.main+xml", b"template.main+xml"),
        (b'<Default Extension="jpeg" ContentType="image/jpeg"/>', b""),
        (b"http://schemas.openxmlformats.org/officeDocument/2006/", b"http://purl.oclc.org/ooxml/officeDocument/"),
    ],
    ids=["show", "template", "part without a type", "strict"],
)
def test_presentations_that_their_library_refuses_are_read(old: bytes, new: bytes) -> None:
    """Slide shows, templates, a picture whose type is not told, strict files."""
    content = presentation()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name).replace(old, new) for name in archive.namelist()}
    assert pieces(read(zipped({**members, "ppt/media/sound.mp3": b"x", "docProps/thumbnail.jpeg": b"x"}), "pptx")) == [
        ("heading", "Mooring")
    ]


def test_an_opendocument_sheet_shows_values_as_other_sheets_do() -> None:
    """Numbers without a fraction that is none, ISO dates, hours, merged cells once; failed formulas are empty."""
    rows = row(*(cell(name) for name in ("number", "date", "time", "long", "flag", "error", "merged"))) + row(
        cell("1.234,00 €", value_type="currency", value="1234.0"),
        cell("1/2/24", value_type="date", date_value="2024-02-01T00:00:00"),
        cell("26:30", value_type="time", time_value="PT26H29M59.9999S"),
        cell("1,E+15", value_type="float", value="1234567890123450"),
        cell("WAHR", value_type="boolean", boolean_value="true"),
        cell("#DIV/0!", value_type="string", formula="of:=1/0"),
        cell("both", number_columns_spanned="2"),
        "<table:covered-table-cell><text:p>behind</text:p></table:covered-table-cell>",
    )
    found = read(spreadsheet(rows), "ods")
    assert found.text == (
        "Fees\n\nnumber: 1234 | date: 2024-02-01 | time: 26:30:00 | long: 1234567890123450 | flag: true | merged: both"
    )
    assert found.blocks[1].cells == "A2:G2"


def test_repeated_cells_cost_nothing_and_keep_their_place() -> None:
    """A few bytes may stand for 16 billion cells; empty ones move the rest, equal ones stand once with their range."""
    wide = cell("", number_columns_repeated="16384")
    rows = (
        row(wide, repeated=1_048_000)
        + row(cell("", number_columns_repeated="3"), cell("lone"), wide)
        + row(cell("same"), cell("x"), repeated=500)
        + row(cell("twice"), cell("y"), repeated=2)
    )
    found = read(spreadsheet(rows), "ods")
    assert [(block.cells, found.text[block.start : block.end]) for block in found.blocks[1:]] == [
        ("D1048001:D1048001", "lone"),
        ("A1048002:B1048501", "A: same | B: x"),
        ("A1048502:B1048502", "A: twice | B: y"),
        ("A1048503:B1048503", "A: twice | B: y"),
    ]


def test_a_cell_beyond_any_sheet_is_refused_with_its_column() -> None:
    """Nothing is allocated for the columns before it."""
    found = refused(spreadsheet(row(cell("", number_columns_repeated="999999999"), cell("far"))), "ods")
    assert found == ParseFailure("damaged", "a cell in column 1000000000, beyond 16384")


def test_opendocument_sheets_know_passwords_hidden_sheets_and_remarks() -> None:
    """An encrypted file is no damaged one; a remark is no value, the copy of a sheet of another file is no sheet."""
    encrypted = refused(spreadsheet("", manifest="<m><encryption-data/></m>"), "ods")
    assert encrypted.status == "needs_password"
    style = '<style:style style:name="t"><style:table-properties table:display="false"/></style:style>'
    remark = (
        "<table:table-cell><o:annotation><text:p>remark</text:p></o:annotation><text:p>a<text:s text:c='2'/>b</text:p>"
    )
    found = read(spreadsheet(row(remark + "</table:table-cell>"), style=style), "ods")
    assert found.text == "Fees (hidden)\n\na  b"
    content = spreadsheet(row(cell("a copy")))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        copy = archive.read("content.xml").replace(b'"Fees"', b"\"'file:///home/other.ods'#Fees\"")
    assert refused(with_members(content, {"content.xml": copy}), "ods").status == "empty"
    assert found.warnings == ("hidden_sheets: Fees",)


def test_a_workbook_that_one_library_refuses_is_read_by_the_other() -> None:
    """One stops at a reference to row 0, the other counts by itself; with a sheet missing that is no second reading."""
    book = openpyxl.Workbook()
    book.active.append(["berth", "fee"])
    book.active.append(["north", 12])
    stream = io.BytesIO()
    book.save(stream)
    with zipfile.ZipFile(stream) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").replace(b'r="A2"', b'r="A0"')
        book_part = archive.read("xl/workbook.xml").replace(b"</sheets>", b'<sheet name="x" sheetId="7"/></sheets>')
    mended = with_members(stream.getvalue(), {"xl/worksheets/sheet1.xml": sheet})
    assert "berth: north | fee: 12" in read(mended, "xlsx").text
    assert refused(with_members(mended, {"xl/workbook.xml": book_part}), "xlsx").status == "damaged"


def test_a_panic_of_a_library_is_a_failure_of_its_file() -> None:
    """A binary workbook that names a sheet without its part makes calamine panic, which is no exception."""
    main = "application/vnd.ms-excel.sheet.binary.macroEnabled.main"
    members: dict[str, str | bytes] = {
        "[Content_Types].xml": f'<Types><Override ContentType="{main}"/></Types>',
        "xl/_rels/workbook.bin.rels": f'<Relationships xmlns="{PACKAGE}/relationships"/>',
        # BrtBundleSh: a sheet of the relationship rId1, named S.
        "xl/workbook.bin": bytes(
            [0x9C, 0x01, 26, *bytes(4), 1, 0, 0, 0, 4, 0, 0, 0, *"rId1".encode("utf-16-le"), 1, 0, 0, 0, 83, 0]
        ),
    }
    found = refused(zipped(members), "xlsb")
    assert found.status == "damaged"
    assert "its library" in found.reason


def ole(*streams: str) -> bytes:
    """Return an OLE container with empty streams; a path has its storages before a slash."""
    sector, free, end, none = 512, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF
    names = ["Root Entry"]
    for path in streams:
        names += [path] if "/" not in path else path.split("/")
    entries = b""
    for index, name in enumerate(names):
        raw = name.encode("utf-16-le")
        is_storage = any(path.startswith(f"{name}/") for path in streams)
        child = 1 if not index else index + 1 if is_storage else none
        # Siblings form a list to the right; the first of a storage is its child.
        inside = index and any(path.endswith(f"/{name}") for path in streams)
        beside = index + (2 if is_storage else 1)
        right = beside if index and not inside and beside < len(names) else none
        kind = 5 if not index else 1 if is_storage else 2
        entries += raw.ljust(64, b"\0") + (len(raw) + 2).to_bytes(2, "little") + bytes([kind, 1])
        entries += b"".join(number.to_bytes(4, "little") for number in (none, right, child)) + bytes(36)
        entries += end.to_bytes(4, "little") + bytes(8)
    entries = entries.ljust(-(-len(entries) // sector) * sector, b"\0")
    count = len(entries) // sector
    header = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16) + bytes.fromhex("3e000300feff09000600") + bytes(6)
    header += b"".join(number.to_bytes(4, "little") for number in (0, 1, 1, 0, 4096, end, 0, end, 0, 0))
    header += b"".join(free.to_bytes(4, "little") for _ in range(108))
    table = [0xFFFFFFFD, *range(2, count + 1), end] + [free] * (127 - count)
    return header + b"".join(number.to_bytes(4, "little") for number in table) + entries


def test_what_is_embedded_does_not_tell_what_an_old_office_file_is() -> None:
    """A workbook may hold a Word document; its own stream stands at the top, in whatever case."""
    found = refused(ole("MBD0001/WordDocument", "WORKBOOK"), "xls")
    assert "Word" not in found.reason
    assert refused(ole("WordDocument"), "doc").status == "unsupported"


def test_an_encrypted_old_workbook_needs_its_password() -> None:
    """The record behind the first one says so; the library only says that it does not know the format."""
    begins = bytes.fromhex("09081000000605004f54cd07c100020006080000")
    assert refused(ole("Workbook") + begins + bytes.fromhex("2f000400"), "xls").status == "needs_password"


def test_a_package_that_is_cut_off_is_damaged_not_an_archive() -> None:
    """A download that broke off has no directory; what stands before the first members tells what it was."""
    content = word("".join(f"<w:p>{text_run(f'paragraph {number}')}</w:p>" for number in range(200)))
    found = refused(content[:-200], "docx")
    assert found.status == "damaged"
    assert found.reason.startswith("a zip file that does not open")


def test_templates_and_drawings_of_opendocument_do_not_stop_it() -> None:
    """A template reads like a document; a drawing that declares a document type is not looked at."""
    text = (
        f'<o:document-content xmlns:o="{ODF}:office:1.0" xmlns:text="{ODF}:text:1.0"><o:body><o:text>'
        "<text:p>Berth.</text:p></o:text></o:body></o:document-content>"
    )
    members = {"content.xml": text, "Pictures/a.svg": "<!DOCTYPE svg><svg/>", "meta.xml": "<x:y/>"}
    for kind in ("text-template", "text-master", "text-web"):
        assert (
            read(zipped({"mimetype": f"application/vnd.oasis.opendocument.{kind}", **members}), "odt").text == "Berth."
        )
    sheets = {**members, "mimetype": "application/vnd.oasis.opendocument.spreadsheet-template"}
    assert refused(zipped(sheets), "ods").status == "empty"


@pytest.mark.parametrize("start", [b"\n", b"\r\n\n", b""])
@pytest.mark.parametrize("line_end", [b"\n", b"\r"])
def test_a_mailbox_may_begin_with_blank_lines_and_have_old_line_ends(start: bytes, line_end: bytes) -> None:
    """As old Macs wrote them."""
    content = b"From a\nSubject: One\n\nbody one\n\nFrom b\nSubject: Two\n\nbody two\n".replace(b"\n", line_end)
    found = read((start if line_end == b"\n" else b"") + content, "mbox")
    assert [block.heading for block in found.blocks if block.kind == "heading"] == ["One", "Two"]


def test_a_mailbox_without_a_message_says_so() -> None:
    """The reason is that of the format, not that of a loop."""
    assert refused(b"words\nwithout any message\n", "mbox").reason == "no message in it begins with a From line"


def rich(body: str, head: str = "") -> bytes:
    """Return a rich text."""
    return f"{{\\rtf1\\ansi\\ansicpg1252{head} {body}}}".encode("latin-1")


def test_rich_text_is_decoded_by_the_character_set_of_its_font() -> None:
    """The file says Western, the font Cyrillic or Japanese, as Word writes it; bytes of one character stay together."""
    head = (
        r"{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial CYR;}{\f2\fcharset128 Mincho;}{\f3\fcharset2 Symbol;}}"
    )
    body = r"\f0 caf\'e9 \f1\'cf\'f0\'e8\'e2\'e5\'f2\f2\'93\'fa{\f3\'b7}\f0\u8364 ?\'80\u-10179?\u-8704?\par"
    found = read(rich(body, head), "rtf")
    assert found.text == "café Привет日•€€\U0001f600"
    assert not found.warnings


def test_rich_text_keeps_what_a_person_sees_of_it() -> None:
    """Results of fields, text boxes, list numbers, notes; no instructions, pictures, deleted or header text."""
    body = (
        r"{\stylesheet{\s1\outlinelevel0 heading 1;}}{\info{\title Dues of 2024}{\author hidden}}{\header hidden\par}"
        r"\pard\plain\s1 Dues\par\pard\plain see {\field{\*\fldinst HYPERLINK hidden}{\fldrslt \*\cs1 the list}}"
        r"{\footnote\pard a note}{\deleted hidden}{\pict 00ff}{\*\unknown hidden}\bin3 }}}\par"
        r"{\listtext\pard\plain 1.\tab}First\par\pard\ilvl1{\listtext a.\tab}Inner\par\pard"
        r"{\shp{\*\shpinst{\sp{\sn hidden}{\sv 1}}{\shptxt\pard boxed\par}}{\shprslt hidden}}"
        "line\\\nbroken \\line here\\par"
    )
    found = read(rich(body), "rtf")
    assert pieces(found) == [
        ("heading", "Dues"),
        ("paragraph", "see the list"),
        ("footnote", "a note"),
        ("list_item", "1. First"),
        ("list_item", "  a. Inner"),
        ("paragraph", "boxed"),
        ("paragraph", "line"),
        ("paragraph", "broken \nhere"),
    ]
    assert found.title == "Dues of 2024"


def test_rows_of_rich_text_are_rows_and_a_header_names_its_columns() -> None:
    """Paragraphs in a cell are one cell; a row that never ends is one all the same."""
    body = (
        r"\trowd\trhdr\pard\intbl Berth\cell Fee\cell\row\trowd\pard\intbl north\par quay\cell 12\cell\row"
        r"\pard after\par\trowd\pard\intbl torn\cell"
    )
    found = read(rich(body), "rtf")
    assert pieces(found) == [
        ("table_row", "| Berth | Fee |"),
        ("table_row", "| north quay | 12 |"),
        ("paragraph", "after"),
        ("table_row", "| torn |"),
    ]
    assert [block.heading for block in found.blocks] == ["| Berth | Fee |", None, None, None]


@pytest.mark.parametrize(
    "piece", [b"{", b"}", b"\\", b"\\*", b"\\u1 ", b"\\'", b"\\cell ", b"\\bin999999999 ", b"{\\v{"]
)
def test_rich_text_of_one_thing_repeated_ends(piece: bytes) -> None:
    """No pattern of it is quadratic, no group recursion."""
    found = read_document(b"{\\rtf1 word" + piece * 50_000, "rtf")
    assert isinstance(found, Document | ParseFailure)


HEADER_ROWS = {
    "html": b"<table><thead><tr><th>Berth<th>Fee</thead><tr><th>north<td>12</table>",
    "docx": word(
        "<w:tbl><w:tr><w:trPr><w:tblHeader/></w:trPr>"
        + "".join(f"<w:tc><w:p>{text_run(text)}</w:p></w:tc>" for text in ("Berth", "Fee"))
        + "</w:tr><w:tr>"
        + "".join(f"<w:tc><w:p>{text_run(text)}</w:p></w:tc>" for text in ("north", "12"))
        + "</w:tr></w:tbl>"
    ),
    "odt": zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f'<o:document-content xmlns:o="{ODF}:office:1.0" xmlns:table="{ODF}:table:1.0"'
            f' xmlns:text="{ODF}:text:1.0"><o:body><o:text><table:table><table:table-header-rows>'
            f"{row(cell('Berth'), cell('Fee'))}</table:table-header-rows>{row(cell('north'), cell('12'))}"
            "</table:table></o:text></o:body></o:document-content>",
        }
    ),
    "rtf": rich(r"\trowd\trhdr\intbl Berth\cell Fee\cell\row\trowd\intbl north\cell 12\cell\row"),
}


def table_slide() -> bytes:
    """Return a presentation of one table, whose first row is its header."""
    show = Presentation()
    slide = show.slides.add_slide(show.slide_layouts[6])
    table = slide.shapes.add_table(2, 2, 0, 0, 100, 100).table
    for index, text in enumerate(("Berth", "Fee", "north", "12")):
        table.cell(index // 2, index % 2).text_frame.text = text
    stream = io.BytesIO()
    show.save(stream)
    return stream.getvalue()


@pytest.mark.parametrize("kind", ["docx", "html", "odt", "pptx", "rtf"])
def test_a_header_row_names_the_columns_of_its_table(kind: str) -> None:
    """Where a format marks it: chunks of later rows then stand under it, as under a heading."""
    found = read(table_slide() if kind == "pptx" else HEADER_ROWS[kind], kind)
    rows = [block for block in found.blocks if block.kind == "table_row"]
    assert [found.text[block.start : block.end] for block in rows] == ["| Berth | Fee |", "| north | 12 |"]
    assert [block.heading for block in rows] == ["| Berth | Fee |", None]


def test_terms_without_definitions_are_items_of_their_own() -> None:
    """DocBook writes tables of contents so; terms with definitions stay with them."""
    page = b"<h1>Book</h1><dl><dt>1. Berths</dt><dt>2. Fees</dt><dd><dl><dt>2.1. Dues</dt></dl></dd></dl>"
    definitions = b"<dl><dt>berth</dt><dd>a place</dd><dt>quay</dt><dt>pier</dt><dd>a wall</dd></dl>"
    found = read(page + definitions, "html")
    assert [text for _, text in pieces(found)] == [
        "Book", "1. Berths", "2. Fees", "2.1. Dues", "berth\na place", "quay", "pier\na wall",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["navheader", "navfooter", "docnav"])
def test_links_to_the_pages_around_are_no_content(name: str) -> None:
    """As DocBook and Publican write them, without an element that says so."""
    page = f'<div class="{name}"><table><tr><td>Prev<td>Up<td>Next</table></div><p>The fee is 12.</p>'
    assert read(page.encode(), "html").text == "The fee is 12."


def test_a_single_text_between_two_tables_is_no_name_of_a_column() -> None:
    """It stands above the second table as a paragraph; a single number after empty rows still belongs to its column."""
    number = {"value_type": "float"}
    rows = (
        row(cell("berth"), cell("fee"))
        + row(cell("north"), cell("12", value="12", **number))
        + row(cell(""))
        + row(cell(""), cell("12", value="12", **number))
        + row(cell(""))
        + row(cell("By the hour:"))
        + row(cell("boat"), cell("dues"))
        + row(cell("tug"), cell("3", value="3", **number))
    )
    assert [text for _, text in pieces(read(spreadsheet(rows), "ods"))] == [
        "Fees", "berth: north | fee: 12", "fee: 12", "By the hour:", "boat: tug | dues: 3",
    ]  # fmt: skip


def test_a_far_cell_of_a_binary_workbook_is_refused_before_it_is_allocated() -> None:
    """Row and column are told; the library would end its worker."""
    main = "application/vnd.ms-excel.sheet.binary.macroEnabled.main"
    far_row, far_cell = (1_048_575).to_bytes(4, "little"), (16_383).to_bytes(4, "little")
    # Records of [MS-XLSB]: number, size, content. The second begins with a number of two bytes.
    sheet = bytes([0, 4]) + far_row + bytes([0x81, 0x01, 0]) + bytes([2, 12]) + far_cell + bytes(8)
    members = {
        "[Content_Types].xml": f'<Types><Override ContentType="{main}"/></Types>',
        "xl/worksheets/sheet1.bin": sheet,
    }
    assert refused(zipped(members), "xlsb") == ParseFailure(
        "too_large", "cells as far as row 1048576 and column 16384; save it as .xlsx"
    )


@pytest.mark.parametrize(
    ("content", "kind", "reason"),
    [
        (ole("PerfectOffice_MAIN"), "ppt", "an Office file of an unknown kind; save it in a current format"),
        (zipped({"mimetype": "application/vnd.sun.xml.writer"}), "sxw", "an OpenOffice 1 file; save it as .odt, .ods"),
        (zipped({"mimetype": "application/vnd.oasis.opendocument.graphics"}), "odg", "a drawing; save it as PDF"),
    ],
)
def test_what_has_no_reader_is_called_by_its_name(content: bytes, kind: str, reason: str) -> None:
    """Not an archive or an old Word document, which it is not."""
    found = refused(content, kind)
    assert found.status == "unsupported"
    assert found.reason.startswith(reason)
