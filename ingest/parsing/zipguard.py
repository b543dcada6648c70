"""Zip containers of documents, checked before any library opens them.

Refused are archives that unpack to far too much, have a password, or hold parts that declare entities; sizes are
counted while unpacking, since what the directory says proves nothing. What is wrong with a single member, such as a
picture whose checksum fails, is told when that member is read: it costs no other part. Member names never become paths.
Source: the limits of parsing.md 4.8.
"""

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from .failure import Refused

__all__ = ["BROKEN", "Package", "open_package"]

MIB = 1 << 20
MAX_MEMBERS = 10_000
MAX_MEMBER_BYTES, MAX_TOTAL_BYTES = 64 * MIB, 256 * MIB
MAX_RATIO, RATIO_FROM_BYTES = 200, MIB
READ_BYTES = MIB
# A member that hardly shrinks, such as a film in a slide, is as large as the file says; the total still counts it.
MEDIA_RATIO = 1.5
# Drawings (.svg) are not among them: programs write document types and entities into them, and no reader reads them.
XML_SUFFIXES = (".xml", ".rels", ".vml", ".opf", ".ncx", ".xhtml", ".html", ".htm")
DOCTYPE, ENTITY = b"<!DOCTYPE", b"<!ENTITY"
ENCODINGS = ("utf-16-le", "utf-16-be")
# What zipfile raises for a damaged archive or member; NotImplementedError is a compression that it does not know.
BROKEN = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, EOFError, ValueError)

NOTHING_MENDED: Mapping[str, bytes] = MappingProxyType({})


class Package:
    """The members of an archive that passed. ``names`` are in the order of its directory, each once.

    ``broken`` says of members that cannot be had what is wrong with them.
    """

    def __init__(self, content: bytes, archive: zipfile.ZipFile, broken: Mapping[str, str]) -> None:
        self._content = content
        self._archive = archive
        self._members = {info.filename: info for info in archive.infolist()}
        self.names = tuple(self._members)
        self.broken = broken

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def read(self, name: str) -> bytes:
        """Return the bytes of a member. Raises ``Refused`` (``damaged``): it is not there, or cannot be had."""
        if name not in self._members:
            raise Refused("damaged", f"has no part {name}")
        if name in self.broken:
            raise Refused("damaged", self.broken[name])
        try:
            return self._archive.read(self._members[name])
        except BROKEN as error:
            raise Refused("damaged", f"part {name}: {error}") from error

    def readable(self, is_needed: Callable[[str], bool], mended: Mapping[str, bytes] = NOTHING_MENDED) -> bytes:
        """Return the archive for a library that unpacks it by itself: broken members are empty, ``mended`` ones others.

        Raises ``Refused`` (``damaged``) for a broken one that is needed.
        """
        for name, reason in self.broken.items():
            if is_needed(name):
                raise Refused("damaged", reason)
        if not self.broken and not mended:
            return self._content
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            # A name may be empty, which no archive that is written can have; no library asks for it.
            for name in filter(None, self.names):
                archive.writestr(name, mended[name] if name in mended else self._whole_or_empty(name))
        return stream.getvalue()

    def _whole_or_empty(self, name: str) -> bytes:
        return b"" if name in self.broken else self.read(name)


def open_package(content: bytes, *, may_have_doctype: bool = False) -> Package:
    """Check an archive and return it.

    ``may_have_doctype``: its parts may name a document type, as XHTML does; entities they may never declare. Raises
    ``Refused``.
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
    unpacked = 0
    broken: dict[str, str] = {}
    for member in members:
        try:
            for size in _checked(archive, member, may_have_doctype=may_have_doctype):
                unpacked += size
                if unpacked > MAX_TOTAL_BYTES:
                    raise Refused("damaged", f"unpacks to more than {MAX_TOTAL_BYTES // MIB} MiB")
        except BROKEN as error:
            broken[member.filename] = f"part {member.filename}: {error}"
    return Package(content, archive, broken)


def _checked(archive: zipfile.ZipFile, member: zipfile.ZipInfo, *, may_have_doctype: bool) -> Iterator[int]:
    """Unpack a member and yield the sizes of its pieces; no more is kept than a look for declarations needs."""
    is_xml = member.filename.lower().endswith(XML_SUFFIXES)
    packed = max(member.compress_size, 1)
    size, tail = 0, b""
    with archive.open(member) as stream:
        while piece := stream.read(READ_BYTES):
            size += len(piece)
            yield len(piece)
            if size > MAX_MEMBER_BYTES and size > MEDIA_RATIO * packed:
                raise ValueError(f"unpacks to more than {MAX_MEMBER_BYTES // MIB} MiB")
            if size > RATIO_FROM_BYTES and size > MAX_RATIO * packed:
                raise ValueError(f"is packed over {MAX_RATIO} to 1")
            if is_xml:
                _refuse_declarations(tail + piece, member.filename, may_have_doctype=may_have_doctype)
                tail = piece[-32:]


def _refuse_declarations(piece: bytes, name: str, *, may_have_doctype: bool) -> None:
    for mark in (ENTITY,) if may_have_doctype else (ENTITY, DOCTYPE):
        if mark in piece or any(mark.decode().encode(encoding) in piece for encoding in ENCODINGS):
            raise Refused("damaged", f"part {name} declares a document type or entities")
