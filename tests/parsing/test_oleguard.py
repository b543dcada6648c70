"""Compound files whose tables lead in circles or out of the file."""

import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.parsing.failure import ParseFailure, Refused
from ingest.parsing.oleguard import check_chains
from ingest.parsing.reading import read_document

FEES = (Path(__file__).resolve().parents[1] / "files" / "parsing" / "fees.xls").read_bytes()
TABLES, SMALL_TABLES, FIRST_TABLE = 44, 64, 76


def changed(*numbers: tuple[int, int]) -> bytes:
    """Return the workbook with other 32-bit numbers at some offsets."""
    content = bytearray(FEES)
    for offset, number in numbers:
        struct.pack_into("<I", content, offset, number)
    return bytes(content)


def table_at(sector: int) -> int:
    """Return the offset of the number that tells what follows a sector."""
    (table,) = struct.unpack_from("<I", FEES, FIRST_TABLE)
    return 512 * (table + 1) + 4 * sector


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (changed((table_at(0), 0)), "has a loop in its table of sectors"),
        (changed((table_at(0), 1), (table_at(1), 0)), "has a loop in its table of sectors"),
        (changed((TABLES, 1 << 20)), "names more sectors than it has"),
        (changed((SMALL_TABLES, 0xFFFFFFFF)), "names more sectors than it has"),
        (changed((30, 0x00060003)), "has sectors of no known size"),
        (FEES[:100], "is shorter than its header"),
    ],
)
def test_a_workbook_that_would_take_all_memory_is_refused(content: bytes, what: str) -> None:
    """The library would follow the loop, or allocate what the header asks for, until the process aborts."""
    check_chains(FEES)
    with pytest.raises(Refused, match=what):
        check_chains(content)


def test_a_loop_is_damage_of_the_workbook() -> None:
    """With a reason that says so, and the worker lives on."""
    found = read_document(changed((table_at(0), 0)), "xls")
    assert found == ParseFailure("damaged", "an OLE file that has a loop in its table of sectors")


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.integers(0, len(FEES) - 1), st.integers(0, 7), st.integers(0, len(FEES)))
def test_any_damage_is_refused_or_passed(place: int, bit: int, end: int) -> None:
    """Nothing else comes out of the guard, and it always comes to an end."""
    content = bytearray(FEES)
    content[place] ^= 1 << bit
    with suppress(Refused):
        check_chains(bytes(content[:end]))
