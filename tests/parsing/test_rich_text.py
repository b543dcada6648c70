"""Rich text as programs other than Word write it: nothing of it lost, each byte in the code page of its own font."""

import pytest

from ingest.parsing.document import Document
from ingest.parsing.reading import read_document

FONTS = r"{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial CYR;}}"


def blocks(body: str) -> list[tuple[str, str]]:
    """Return (kind, text) of each block of a rich text."""
    found = read_document(f"{{\\rtf1\\ansi\\ansicpg1252{body}}}".encode("latin-1"), "rtf")
    assert isinstance(found, Document), found
    return [(block.kind, found.text[block.start : block.end]) for block in found.blocks]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            r"\trowd\intbl a\cell b\cell\row behind\par it\par",
            [("table_row", "| a | b |"), ("paragraph", "behind"), ("paragraph", "it")],
        ),
        (
            r"\trowd\intbl a\cell\row behind\par\trowd\intbl b\cell\row\pard end\par",
            [("table_row", "| a |"), ("paragraph", "behind"), ("table_row", "| b |"), ("paragraph", "end")],
        ),
        (r"\trowd\intbl a\cell b\row\pard end\par", [("table_row", "| a | b |"), ("paragraph", "end")]),
        (r"\trowd\intbl a\cell torn\par", [("table_row", "| a | torn |")]),
        (r"\trowd\intbl alone\par", [("paragraph", "alone")]),
    ],
)
def test_text_that_says_it_is_in_a_table_is_never_lost(body: str, expected: list[tuple[str, str]]) -> None:
    r"""``\intbl`` holds until ``\pard``, which some programs leave out; a cell or a row need not end."""
    assert blocks(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (rf"{FONTS}{{\f1 \'e4}}\'e4\u8364?", "дä€"),
        (rf"{FONTS}{{\f1 \'e4}}\'e4\emdash ", "дä—"),
        (rf"\deff1{FONTS}\'e4{{\f0 \'e4}}\f0\'e4\plain\'e4", "дääд"),
    ],
)
def test_bytes_are_read_in_the_font_of_their_own_group(body: str, expected: str) -> None:
    """Also before a character that is written out, and in the font of the file where a group names none."""
    assert blocks(body) == [("paragraph", expected)]


def test_two_notes_side_by_side_are_two() -> None:
    """Nothing but a brace stands between them."""
    assert blocks(r"A{\footnote one}{\footnote two} B\par") == [
        ("paragraph", "A B"),
        ("footnote", "one"),
        ("footnote", "two"),
    ]


def test_a_title_in_many_pieces_is_one() -> None:
    """Each change of a format begins another."""
    found = read_document(rb"{\rtf1{\info{\title Dues\b  of\b0  the harbour}}words}", "rtf")
    assert isinstance(found, Document)
    assert found.title == "Dues of the harbour"
