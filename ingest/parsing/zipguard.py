"""Zip containers of documents, checked before any library opens them.

Refused are archives that unpack to far more than they are, have a password, or hold parts that declare entities; sizes
are counted while unpacking, since what the directory says proves nothing. Member names never become paths. Source: the
limits of parsing.md 4.8.
"""

import io
import zipfile
import zlib
from collections.abc import Sequence

from .failure import Refused

__all__ = ["BROKEN", "Package", "open_package"]

MIB = 1 << 20
MAX_MEMBERS = 10_000
MAX_MEMBER_BYTES, MAX_TOTAL_BYTES = 64 * MIB, 256 * MIB
MAX_RATIO, RATIO_FROM_BYTES = 200, MIB
READ_BYTES = MIB
# A member that hardly shrinks, such as a film in a slide, is as large as the file says; the total still counts it.
MEDIA_RATIO = 1.5
XML_SUFFIXES = (".xml", ".rels", ".vml", ".opf", ".ncx", ".xhtml", ".html", ".htm", ".svg")
DOCTYPE, ENTITY = b"<!DOCTYPE", b"<!ENTITY"
ENCODINGS = ("utf-16-le", "utf-16-be")
# What zipfile raises for a damaged archive or member; NotImplementedError is a compression that it does not know.
BROKEN = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, EOFError, ValueError)


class Package:
    """The members of an archive that passed. ``names`` are in the order of its directory, each once."""

    def __init__(self, archive: zipfile.ZipFile, broken: Sequence[str]) -> None:
        self._archive = archive
        self._members = {info.filename: info for info in archive.infolist()}
        self.names = tuple(self._members)
        self.broken = tuple(broken)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def read(self, name: str) -> bytes:
        """Return the bytes of a member. Raises ``Refused`` (``damaged``): it is not there, or does not unpack."""
        if name not in self._members:
            raise Refused("damaged", f"has no part {name}")
        try:
            return self._archive.read(self._members[name])
        except BROKEN as error:
            raise Refused("damaged", f"part {name}: {error}") from error


def open_package(content: bytes, *, may_have_doctype: bool = False, may_be_broken: bool = False) -> Package:
    """Check an archive and return it.

    ``may_have_doctype``: its parts may name a document type, as XHTML does; entities they may never declare.
    ``may_be_broken``: members that do not unpack are listed in ``broken`` instead of refused. Raises ``Refused``.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except BROKEN as error:
        raise Refused("damaged", f"a zip file that does not open: {error}") from error
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise Refused("damaged", f"a zip file with {len(members)} members, over {MAX_MEMBERS}")
    if any(member.flag_bits & 1 for member in members):
        raise Refused("needs_password", "a zip file with a password; save it without one")
    total = 0
    broken: list[str] = []
    for member in members:
        try:
            total += _check(archive, member, total, may_have_doctype=may_have_doctype)
        except BROKEN as error:
            if not may_be_broken:
                raise Refused("damaged", f"part {member.filename}: {error}") from error
            broken.append(member.filename)
    return Package(archive, broken)


def _check(archive: zipfile.ZipFile, member: zipfile.ZipInfo, before: int, *, may_have_doctype: bool) -> int:
    """Unpack a member and return its size; nothing is kept but what is needed to look for declarations."""
    is_xml = member.filename.lower().endswith(XML_SUFFIXES)
    packed = max(member.compress_size, 1)
    size, tail = 0, b""
    with archive.open(member) as stream:
        while piece := stream.read(READ_BYTES):
            size += len(piece)
            if before + size > MAX_TOTAL_BYTES:
                raise Refused("damaged", f"unpacks to more than {MAX_TOTAL_BYTES // MIB} MiB")
            if size > MAX_MEMBER_BYTES and size > MEDIA_RATIO * packed:
                raise Refused("damaged", f"part {member.filename} unpacks to more than {MAX_MEMBER_BYTES // MIB} MiB")
            if size > RATIO_FROM_BYTES and size > MAX_RATIO * packed:
                raise Refused("damaged", f"part {member.filename} is packed over {MAX_RATIO} to 1")
            if is_xml:
                _refuse_declarations(tail + piece, member.filename, may_have_doctype=may_have_doctype)
                tail = piece[-32:]
    return size


def _refuse_declarations(piece: bytes, name: str, *, may_have_doctype: bool) -> None:
    for mark in (ENTITY,) if may_have_doctype else (ENTITY, DOCTYPE):
        if mark in piece or any(mark.decode().encode(encoding) in piece for encoding in ENCODINGS):
            raise Refused("damaged", f"part {name} declares a document type or entities")
