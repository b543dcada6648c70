"""Which kind a zip or an OLE container is, by what it holds and never by the order of its members.

Only members that name the kind are read, and of those no more than a bounded prefix. Nothing is unpacked, and member
names are never paths. Sources: OCF 3.3 and ODF 1.3 part 2 (``mimetype``), ECMA-376 part 2 (``[Content_Types].xml``),
[MS-CFB] and [MS-OFFCRYPTO] (stream names).
"""

import io
import struct
import zipfile

from .zipguard import BROKEN

__all__ = ["ole_kind", "zip_kind"]

# What olefile raises for a container that it cannot follow.
OLE_BROKEN = (OSError, ValueError, IndexError, KeyError, TypeError, AttributeError, struct.error)
# Both members are small; a larger one is a bomb, or says what it is in its first MiB.
MAX_MEMBER_BYTES = 1 << 20
OASIS = "application/vnd.oasis.opendocument"
MIMETYPES = {
    "application/epub+zip": "epub",
    f"{OASIS}.text": "odt",
    f"{OASIS}.text-template": "odt",
    f"{OASIS}.text-master": "odt",
    f"{OASIS}.text-web": "odt",
    f"{OASIS}.spreadsheet": "ods",
    f"{OASIS}.spreadsheet-template": "ods",
    f"{OASIS}.presentation": "odp",
    f"{OASIS}.presentation-template": "odp",
    f"{OASIS}.graphics": "odg",
    "application/vnd.sun.xml.writer": "sxw",
    "application/vnd.sun.xml.calc": "sxc",
    "application/vnd.sun.xml.impress": "sxi",
}
MAIN_PARTS = (
    ("wordprocessingml.document.main+xml", "docx"),
    ("wordprocessingml.template.main+xml", "docx"),
    ("ms-word.document.macroenabled.main+xml", "docm"),
    ("ms-word.template.macroenabledtemplate.main+xml", "docm"),
    ("spreadsheetml.sheet.main+xml", "xlsx"),
    ("spreadsheetml.template.main+xml", "xlsx"),
    ("ms-excel.sheet.macroenabled.main+xml", "xlsm"),
    ("ms-excel.template.macroenabled.main+xml", "xlsm"),
    ("ms-excel.sheet.binary.macroenabled.main", "xlsb"),
    ("presentationml.presentation.main+xml", "pptx"),
    ("presentationml.slideshow.main+xml", "pptx"),
    ("presentationml.template.main+xml", "pptx"),
    ("ms-powerpoint.slideshow.macroenabled.main+xml", "pptm"),
    ("ms-powerpoint.presentation.macroenabled.main+xml", "pptm"),
)
# What the main part of a package is called where it says nothing else, for packages too damaged to ask.
MAIN_NAMES = (
    (b"word/document.xml", "docx"),
    (b"xl/workbook.xml", "xlsx"),
    (b"xl/workbook.bin", "xlsb"),
    (b"ppt/presentation.xml", "pptx"),
    (b"META-INF/container.xml", "epub"),
)
# The first that is there counts: an encrypted package has no other, and mail may hold any of the rest.
STREAMS = (
    ("encryptedpackage", "encrypted"),
    ("__properties_version1.0", "msg"),
    ("__substg1.0_", "msg"),
    ("worddocument", "doc"),
    ("powerpoint document", "ppt"),
    ("workbook", "xls"),
    ("book", "xls"),
)
# A record of [MS-XLS]: the beginning of a workbook, and the one right behind it that says it is encrypted.
WORKBOOK_BEGINS, ENCRYPTED, RECORDS_LOOKED_AT = b"\x09\x08\x10\x00\x00\x06\x05\x00", 0x2F, 8


def zip_kind(content: bytes) -> str:
    """Return the kind of a zip file; ``zip`` where it is just an archive. A damaged one is what it was meant to be."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = set(archive.namelist())
            if "mimetype" in names:
                mimetype = _read(archive, "mimetype").strip()
                if mimetype in MIMETYPES:
                    return MIMETYPES[mimetype]
            if "[Content_Types].xml" in names:
                types = _read(archive, "[Content_Types].xml").lower()
                return next((kind for part, kind in MAIN_PARTS if part in types), "zip")
    except BROKEN:
        return _meant(content)
    return "zip"


def _meant(content: bytes) -> str:
    """Return what a damaged package was meant to be, by the names that stand before its members."""
    mimetype = content[38 : 38 + 80].decode("latin-1") if content[30:38] == b"mimetype" else ""
    declared = [kind for name, kind in MIMETYPES.items() if mimetype.startswith(name)]
    return declared[-1] if declared else next((kind for name, kind in MAIN_NAMES if name in content), "zip")


def ole_kind(content: bytes) -> str:
    """Return the kind of an OLE compound file by what stands at its top; ``ole`` where that is unknown.

    What is embedded stands deeper: a workbook may hold a Word document. An encrypted workbook is ``encrypted``.
    """
    # Here and not above: the parent process knows this module, and loads no parser.
    import olefile  # type: ignore[import-untyped]  # has no annotations

    try:
        with olefile.OleFileIO(io.BytesIO(content)) as container:
            names = {path[0].lower() for path in container.listdir(streams=True, storages=True)}
    except OLE_BROKEN:
        found = next((kind for stream, kind in STREAMS if stream.encode("utf-16-le") in content.lower()), "ole")
    else:
        found = next((kind for stream, kind in STREAMS if any(name.startswith(stream) for name in names)), "ole")
    return "encrypted" if found == "xls" and _is_encrypted_workbook(content) else found


def _is_encrypted_workbook(content: bytes) -> bool:
    position = content.find(WORKBOOK_BEGINS)
    for _ in range(RECORDS_LOOKED_AT if position >= 0 else 0):
        if int.from_bytes(content[position : position + 2], "little") == ENCRYPTED:
            return True
        position += 4 + int.from_bytes(content[position + 2 : position + 4], "little")
    return False


def _read(archive: zipfile.ZipFile, name: str) -> str:
    with archive.open(name) as member:
        return member.read(MAX_MEMBER_BYTES).decode("utf-8", "replace")
