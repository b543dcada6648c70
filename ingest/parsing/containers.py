"""Which kind a zip or an OLE container is, by what it holds and never by the order of its members.

Only members that name the kind are read, and of those no more than a bounded prefix. Nothing is unpacked, and member
names are never paths. Sources: OCF 3.3 and ODF 1.3 part 2 (``mimetype``), ECMA-376 part 2 (``[Content_Types].xml``),
[MS-CFB] and [MS-OFFCRYPTO] (stream names).
"""

import io
import zipfile

from .zipguard import BROKEN

__all__ = ["ole_kind", "zip_kind"]

# Both members are small; a larger one is a bomb, or says what it is in its first MiB.
MAX_MEMBER_BYTES = 1 << 20
MIMETYPES = {
    "application/epub+zip": "epub",
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.oasis.opendocument.text-template": "odt",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
    "application/vnd.oasis.opendocument.presentation": "odp",
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
# The first that is there counts: an encrypted package has no other, and mail may hold any of the rest.
STREAMS = (
    ("EncryptedPackage", "encrypted"),
    ("__substg1.0_", "msg"),
    ("WordDocument", "doc"),
    ("PowerPoint Document", "ppt"),
    ("Workbook", "xls"),
    ("Book", "xls"),
)


def zip_kind(content: bytes) -> str:
    """Return the kind of a zip file; ``zip`` where it is just an archive, or too damaged to tell."""
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
        # Whatever is wrong with it, it is a zip by its first bytes; RuntimeError is an encrypted member.
        return "zip"
    return "zip"


def ole_kind(content: bytes) -> str:
    """Return the kind of an OLE compound file by the names of its streams; ``doc`` stands for any unknown one."""
    return next((kind for stream, kind in STREAMS if stream.encode("utf-16-le") in content), "doc")


def _read(archive: zipfile.ZipFile, name: str) -> str:
    with archive.open(name) as member:
        return member.read(MAX_MEMBER_BYTES).decode("utf-8", "replace")
