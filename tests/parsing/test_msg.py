"""Outlook messages: the same as mail, out of another container."""

import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.parsing.document import Document
from ingest.parsing.reading import read_document

SECTOR, END, FREE, FAT = 512, 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
SUBJECT, BODY, HTML, NAME, SENDER, FILE = 0x0037, 0x1000, 0x1013, 0x3001, 0x5D01, 0x3707
OWN_SECTORS_FROM, PER_SECTOR = 4096, SECTOR // 4
Tree = dict[str, "bytes | Tree"]


def compound(tree: Tree) -> bytes:
    """Return an OLE compound file ([MS-CFB]). NULs fill its streams up to the size from which they have own sectors."""
    sectors: list[bytes] = []
    chain: list[int] = []
    entries: list[list[int | str]] = [["Root Entry", 5, FREE, FREE, 0]]

    def store(content: bytes) -> int:
        first = len(sectors)
        pieces = [content[at : at + SECTOR].ljust(SECTOR, b"\0") for at in range(0, len(content), SECTOR)]
        sectors.extend(pieces)
        chain.extend([*range(first + 1, first + len(pieces)), END] if pieces else [])
        return first if pieces else END

    def add(inside: Tree, parent: int) -> None:
        before = -1
        for name, content in inside.items():
            index = len(entries)
            is_stream = isinstance(content, bytes)
            if isinstance(content, bytes):
                content = content.ljust(OWN_SECTORS_FROM, b"\0")
            start = store(content) if isinstance(content, bytes) else 0
            entries.append([name, 2 if is_stream else 1, FREE, start, len(content) if is_stream else 0, FREE])
            if before < 0:
                entries[parent][-1 if parent else 2] = index
            else:
                entries[before][2] = index
            before = index
            if not isinstance(content, bytes):
                add(content, index)

    add(tree, 0)
    directory = b""
    for number, entry in enumerate(entries):
        name = str(entry[0]).encode("utf-16-le")
        right, child, start, size = (
            (FREE, entry[2], END, 0) if number == 0 else (entry[2], entry[5], entry[3], entry[4])
        )
        directory += name.ljust(64, b"\0") + struct.pack("<HBBIII", len(name) + 2, int(entry[1]), 1, FREE, right, child)
        directory += bytes(36) + struct.pack("<IQ", start, size)
    directory_start = store(directory)
    tables = len(chain) // PER_SECTOR + 1
    table_starts = range(len(sectors), len(sectors) + tables)
    chain += [FAT] * tables
    table = struct.pack(f"<{len(chain)}I", *chain).ljust(tables * SECTOR, b"\xff")
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    header += struct.pack("<IIIIIIIII", 0, tables, directory_start, 0, OWN_SECTORS_FROM, END, 0, END, 0)
    header += struct.pack("<109I", *table_starts, *[FREE] * (109 - tables))
    return header + b"".join(sectors) + table


def properties(header: int, values: dict[int, str | bytes]) -> Tree:
    """Return the streams of a message, recipient or attachment ([MS-OXMSG] 2.4)."""
    tree: Tree = {}
    index = bytes(header)
    for number, value in values.items():
        kind = 0x001F if isinstance(value, str) else 0x0102
        content = value.encode("utf-16-le") if isinstance(value, str) else value
        index += struct.pack("<HHIQ", kind, number, 6, len(content) + 2 * isinstance(value, str))
        tree[f"__substg1.0_{number:04X}{kind:04X}"] = content
    return {"__properties_version1.0": index, **tree}


def message(*, body: str | None = "Dear Ada,\r\n\r\nthe price is twelve.", html: bytes = b"") -> bytes:
    """Return a message with an attachment."""
    values: dict[int, str | bytes] = {SUBJECT: "Prices für 2024", 0x0C1A: "Bo Lind", 0x0C1F: "bo@pier.example"}
    if body:
        values[BODY] = body
    if html:
        values[HTML] = html
    attachment = properties(8, {FILE: "plan.png", 0x3701: b"\x89PNG"})
    recipient = properties(8, {NAME: "Ada Holm", 0x3003: "ada@pier.example", 0x39FE: "ada@pier.example"})
    return compound(
        {
            **properties(32, values),
            "__attach_version1.0_#00000000": attachment,
            "__recip_version1.0_#00000000": recipient,
        }
    )


def test_a_message_is_subject_headers_and_body() -> None:
    """The attachment is named and not opened."""
    found = read_document(message(), "msg")
    assert isinstance(found, Document), found
    assert found.kind == "msg"
    assert found.title == "Prices für 2024"
    assert [(block.kind, found.text[block.start : block.end]) for block in found.blocks] == [
        ("heading", "Prices für 2024"),
        (
            "email_header",
            'From: "Bo Lind" <bo@pier.example>\nTo: Ada Holm <ada@pier.example>\nSubject: Prices für 2024',
        ),
        ("paragraph", "Dear Ada,"),
        ("paragraph", "the price is twelve."),
    ]
    assert found.warnings == ("attachments: not read: plan.png",)


def test_a_body_of_html_is_read_where_there_is_no_plain_one() -> None:
    """Its markup is gone."""
    found = read_document(message(body=None, html=b"<p>only <b>HTML</b></p>"), "msg")
    assert isinstance(found, Document), found
    assert found.text.endswith("only HTML")


def test_old_messages_are_read_in_their_code_page() -> None:
    """Names of recipients too, which do not tell it; East Asian ones, whose names Python does not know."""
    for page, name in ((1251, "Свиридов"), (950, "王小明")):
        raw = name.encode(f"cp{page}")
        values: dict[int, str | bytes] = {SUBJECT: "x", BODY: "y"}
        index = properties(32, values)
        stream = index["__properties_version1.0"]
        assert isinstance(stream, bytes)
        # PidTagInternetCodepage and PidTagMessageCodepage, both PtypInteger32.
        stream += b"".join(struct.pack("<HHIII", 0x0003, number, 6, page, 0) for number in (0x3FDE, 0x3FFD))
        recipient: Tree = {
            "__properties_version1.0": bytes(8)
            + struct.pack("<HHIQ", 0x001E, NAME, 6, len(raw) + 1)
            + struct.pack("<HHIQ", 0x001E, 0x3003, 6, 3),
            f"__substg1.0_{NAME:04X}001E": raw,
            "__substg1.0_3003001E": b"a@b",
        }
        found = read_document(
            compound({**index, "__properties_version1.0": stream, "__recip_version1.0_#00000000": recipient}), "msg"
        )
        assert isinstance(found, Document), found
        assert f"To: {name} <a@b>" in found.text


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.data())
def test_any_damage_ends_in_a_document_or_a_failure(data: st.DataObject) -> None:
    """Cut anywhere or one bit flipped anywhere."""
    content = bytearray(message())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del content[place:]
    found = read_document(bytes(content), "msg")
    assert found == read_document(bytes(content), "msg")
    assert isinstance(found, Document) or found.reason
