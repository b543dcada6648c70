"""CSV and TSV: what a row says, and where it stands."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.parsing.document import Document
from ingest.parsing.failure import ParseFailure
from ingest.parsing.reading import read_document


def rows(text: str | bytes) -> list[str]:
    """Return the rows of a table."""
    content = text.encode() if isinstance(text, str) else text
    found = read_document(content, "csv")
    assert isinstance(found, Document), found
    return [found.text[block.start : block.end] for block in found.blocks]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n", ["a: 1 | b: 2"]),
        ("a;b\n1,5;2\n", ["a: 1,5 | b: 2"]),
        ("a\tb\r\n1\t2\r\n", ["a: 1 | b: 2"]),
        ("a|b\n1|2\n", ["a: 1 | b: 2"]),
        ("sep=;\na;b\n1;2\n", ["a: 1 | b: 2"]),
        ("\ufeffid,x\n1,2\n", ["id: 1 | x: 2"]),
        ("1,2\n3,4\n", ["A: 1 | B: 2", "A: 3 | B: 4"]),
        (",a,b\n0,x,y\n", ["A: 0 | a: x | b: y"]),
        ("a,b,,,\n1,2,3,,\n", ["a: 1 | b: 2 | C: 3"]),
        ("a,,,b\n1,2,3,4\n", ["A: a | D: b", "A: 1 | B: 2 | C: 3 | D: 4"]),
        ("a,a\nx,y\n", ["A: a | B: a", "A: x | B: y"]),
        ("a,b\n1\n1,2,3\n", ["a: 1", "a: 1 | b: 2 | C: 3"]),
        ("a,b\n,\n1,\n", ["a: 1"]),
        ("only,names\n", ["only | names"]),
        ("note\nfirst, then second\nthird\n", ["note: first, then second", "note: third"]),
        ('id,t\n1,"say ""x"", then\ngo"\n', ['id: 1 | t: say "x", then\ngo']),
    ],
)
def test_a_row_names_its_columns(text: str, expected: list[str]) -> None:
    """By the first row if that holds names, else by letters; nothing is lost where rows are ragged."""
    assert rows(text) == expected


def test_rows_know_their_lines() -> None:
    """Also where a cell holds a line break, so that a citation leads to the record in the file."""
    found = read_document(b'a,b\n\n1,2\n3,"x\ny"\n4,5', "csv")
    assert isinstance(found, Document)
    assert found.meta["lines"] == [[3, 3], [4, 5], [6, 6]]
    assert not found.lines


def test_a_long_cell_is_read_whole() -> None:
    """The parser's own limit of 128 KiB is no limit here; 16 MiB are, with the line named."""
    long = "word " * 60_000
    assert rows(f"a,b\n1,{long}x\n") == [f"a: 1 | b: {long}x"]
    found = read_document(b"a,b\n1," + b"x" * ((16 << 20) + 1), "csv")
    assert isinstance(found, ParseFailure)
    assert (found.status, "line 2" in found.reason) == ("damaged", True)


CELL = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=6)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(st.lists(CELL, min_size=2, max_size=4), min_size=1, max_size=6), st.sampled_from([",", ";", "\t", "|"]))
def test_every_cell_of_every_row_is_in_the_text(table: list[list[str]], delimiter: str) -> None:
    """Whatever the delimiter, and however ragged the rows; but for a name above nothing."""
    content = "\n".join(delimiter.join(row) for row in table).encode()
    found = read_document(content, "csv")
    assert isinstance(found, Document)
    source = read_document(content, "text")
    assert isinstance(source, Document)
    below = source.text.partition("\n")[2] or source.text
    cells = "".join(char if char.isalnum() else " " for char in below).split()
    assert [cell for cell in cells if cell not in found.text] == []
