"""What happens to files: they are cut short, bits flip, pieces are lost, doubled or of another file, packages torn.

Every choice is drawn from ``chance``, so that hypothesis can steer and shrink it. Also what an attacker would try: a
number grown, a piece repeated a thousand times, a part of a package put in the place of another.
"""

import io
import random
import re
import zipfile
from collections.abc import Callable

from ingest.parsing.zipguard import BROKEN

__all__ = ["damaged"]

NUMBER = re.compile(rb"[0-9]+")
NUMBERS = (b"0", b"-1", b"65536", b"99999999", b"4294967295", b"18446744073709551616")
# Bytes that mean something to some format, or are no text in any encoding.
MEANINGFUL = (
    b"\x00",
    b"\xff\xfe",
    b"<",
    b"&",
    b"{",
    b"[",
    b'"',
    b"\\",
    b"\n\n",
    b"/",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\x1b$B",
)
MOST_REPEATS, MOST_PIECE = 1000, 64


def damaged(content: bytes, other: bytes, chance: random.Random) -> bytes:
    """Return ``content`` with one to four damages; ``other`` is a file of which it may get a piece."""
    for _ in range(chance.randrange(1, 5)):
        if content.startswith(b"PK") and chance.randrange(3):
            content = _torn_package(content, other, chance)
        elif content:
            content = chance.choice(DAMAGES)(content, other, chance)
    return content


def _cut(content: bytes, other: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content))]


def _flipped(content: bytes, other: bytes, chance: random.Random) -> bytes:
    found = bytearray(content)
    for _ in range(chance.randrange(1, 9)):
        found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    return bytes(found)


def _overwritten(content: bytes, other: bytes, chance: random.Random) -> bytes:
    found = bytearray(content)
    found[chance.randrange(len(found))] = chance.choice([0, 1, 127, 128, 254, 255])
    return bytes(found)


def _inserted(content: bytes, other: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) + 1)
    return content[:at] + chance.choice(MEANINGFUL) * chance.choice([1, 1, 2, MOST_REPEATS]) + content[at:]


def _lost(content: bytes, other: bytes, chance: random.Random) -> bytes:
    start, end = _piece(content, chance)
    return content[:start] + content[end:]


def _repeated(content: bytes, other: bytes, chance: random.Random) -> bytes:
    start, end = _piece(content, chance)
    return content[:end] + content[start:end] * chance.choice([1, 2, MOST_REPEATS]) + content[end:]


def _spliced(content: bytes, other: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)] + other[chance.randrange(len(other) + 1) :]


def _grown_number(content: bytes, other: bytes, chance: random.Random) -> bytes:
    numbers = [match.span() for match in NUMBER.finditer(content)]
    if not numbers:
        return content
    start, end = chance.choice(numbers)
    return content[:start] + chance.choice(NUMBERS) + content[end:]


def _piece(content: bytes, chance: random.Random) -> tuple[int, int]:
    start = chance.randrange(len(content))
    return start, min(len(content), start + chance.randrange(1, MOST_PIECE))


DAMAGES: tuple[Callable[[bytes, bytes, random.Random], bytes], ...] = (
    _cut, _flipped, _overwritten, _inserted, _lost, _repeated, _spliced, _grown_number,
)  # fmt: skip


def _torn_package(content: bytes, other: bytes, chance: random.Random) -> bytes:
    """Return a package that opens, with members lost, doubled, renamed, swapped, or damaged before they are packed."""
    try:
        members, others = _members(content), _members(other) if other.startswith(b"PK") else []
    except BROKEN:
        return content
    if not members:
        return content
    at, instead = chance.randrange(len(members)), chance.randrange(len(members))
    name, inside = members[at]
    match chance.randrange(7):
        case 0:
            del members[at]
        case 1:
            members.append((name, members[instead][1]))
        case 2:
            members[at] = (chance.choice([name.upper(), f"../{name}", "", f"{name}/", name[::-1]]), inside)
        case 3:
            members[at], members[instead] = (name, members[instead][1]), (members[instead][0], inside)
        case 4 if others:
            members[at] = (name, chance.choice(others)[1])
        case _ if inside:
            members[at] = (name, chance.choice(DAMAGES)(inside, members[instead][1], chance))
    return _packed(members)


def _members(content: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [(info.filename, archive.read(info)) for info in archive.infolist()]


def _packed(members: list[tuple[str, bytes]]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, inside in members:
            # Written as they are, doubled names too; ZipFile would warn of those.
            archive.NameToInfo.pop(name, None)
            archive.writestr(zipfile.ZipInfo(name), inside, zipfile.ZIP_DEFLATED)
    return stream.getvalue()
