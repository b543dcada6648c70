"""OLE compound files, checked before a library follows their chains of sectors: no loops, no counts beyond the file.

calamine follows a chain until it ends, and allocates what the header asks for: a flipped bit takes all memory and
aborts the process (measured: each such end of 3,000 damaged workbooks). Source: [MS-CFB] 2.2 to 2.5.
"""

import struct
from collections.abc import Sequence

from .failure import Refused

__all__ = ["check_chains"]

HEADER_BYTES, NUMBER_BYTES = 512, 4
# Sectors of 512 bytes (version 3) and of 4096 (version 4); there are no others.
SECTOR_SHIFTS = frozenset({9, 12})
IN_HEADER = 109
# Numbers from here on are no sectors: free, the end of a chain, or a table's own.
LAST_SECTOR = 0xFFFFFFFA


def check_chains(content: bytes) -> None:
    """Raise ``Refused`` (``damaged``) for a compound file whose tables lead in circles or out of the file."""
    if len(content) < HEADER_BYTES:
        raise _refused("is shorter than its header")
    (shift,) = struct.unpack_from("<H", content, 30)
    if shift not in SECTOR_SHIFTS:
        raise _refused("has sectors of no known size")
    tables, _, _, _, small_start, small_count, more_start, more_count = struct.unpack_from("<8I", content, 44)
    size = 1 << shift
    sectors = -(-len(content) // size)
    if max(tables, small_count, more_count) > sectors:
        raise _refused("names more sectors than it has")
    table = _table(content, size, tables, more_start)
    if _has_loop(table):
        raise _refused("has a loop in its table of sectors")
    small: list[int] = []
    while small_start < len(table):
        small += _numbers(content, small_start, size)
        small_start = table[small_start]
    if _has_loop(small):
        raise _refused("has a loop in its table of small sectors")


def _table(content: bytes, size: int, tables: int, more_start: int) -> list[int]:
    """Return the sector that follows each sector, from the tables that the header and its continuation name."""
    places = list(struct.unpack_from(f"<{IN_HEADER}I", content, HEADER_BYTES - IN_HEADER * NUMBER_BYTES))
    seen: set[int] = set()
    while more_start < LAST_SECTOR and more_start not in seen and len(places) < tables:
        seen.add(more_start)
        *more, more_start = _numbers(content, more_start, size) or (LAST_SECTOR,)
        places += more
    table: list[int] = []
    for place in places[:tables]:
        if place < LAST_SECTOR:
            table += _numbers(content, place, size)
    return table


def _numbers(content: bytes, sector: int, size: int) -> tuple[int, ...]:
    """Return the numbers in a sector; those that are there where the file is cut."""
    start = size * (sector + 1)
    count = max(0, min(size, len(content) - start)) // NUMBER_BYTES
    return struct.unpack_from(f"<{count}I", content, start) if count else ()


def _has_loop(table: Sequence[int]) -> bool:
    """Whether any chain comes back to a sector of its own; each is gone through once."""
    owner = [0] * len(table)
    for start in range(len(table)):
        sector = start
        while sector < len(table) and not owner[sector]:
            owner[sector] = start + 1
            sector = table[sector]
        if sector < len(table) and owner[sector] == start + 1:
            return True
    return False


def _refused(what: str) -> Refused:
    return Refused("damaged", f"an OLE file that {what}")
