"""Which kinds there are, what they are called by file names, and which reader reads them.

Adding a reader is a module with ``read(task: ReaderInput) -> Document`` and one line in ``FORMATS``; its extensions
leave ``WITHOUT_READER``. Nothing here imports a reader or its libraries: the parent process asks for the kinds and
fingerprints of a hundred thousand files and never parses one.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from search.identity import digest, recipe_id

from .document import Document
from .limits import Limits, ReaderOptions

__all__ = [
    "FORMATS",
    "Format",
    "ReaderInput",
    "failure_fingerprint",
    "is_text_kind",
    "media_type",
    "optional_version",
    "parse_fingerprint",
    "reading_fingerprint",
    "richest_kind",
    "suggest_kind",
]

# Versions of our own parts that shape a document. Raise one when its output changes for any input: documents are read
# again, and those whose text stays equal keep every chunk.
DETECT_VERSION, DECODE_VERSION, NORMALISE_VERSION = 2, 2, 2

# Limits that a file or its text can be over; all others are those of a worker.
SIZE_LIMITS = ("file_bytes", "text_file_bytes", "text_chars")


@dataclass(frozen=True, slots=True)
class Format:
    """A kind and its reader.

    ``module`` is a module of this package. ``version`` is raised when the reader's output changes. ``is_text``: the
    bytes are decoded as text, and among such kinds the file name decides. ``libraries`` are distributions whose
    versions shape the text. ``has_fallback``: the reader has a second way, for a file that killed its worker.
    """

    kind: str
    module: str
    version: int
    media_type: str
    extensions: tuple[str, ...]
    is_text: bool
    libraries: tuple[str, ...] = ()
    has_fallback: bool = False

    def load(self) -> Callable[["ReaderInput"], Document]:
        """Import the reader, and with it its libraries; only workers do."""
        read: Callable[[ReaderInput], Document] = importlib.import_module(f".{self.module}", __package__).read
        return read


@dataclass(frozen=True, slots=True)
class ReaderInput:
    """What a reader gets: the bytes, their kind, and the choices. ``reader`` goes into the document as it is."""

    content: bytes
    kind: str
    reader: str
    limits: Limits = field(default_factory=Limits)
    options: ReaderOptions = field(default_factory=ReaderOptions)
    use_fallback: bool = False


def _formats(*formats: Format) -> Mapping[str, Format]:
    return {known.kind: known for known in formats}


OPENXML = "application/vnd.openxmlformats-officedocument"
DOCX, PPTX, SHEETS = ("mammoth", "selectolax"), ("python-pptx",), ("openpyxl", "python-calamine")
# Languages whose definitions begin with a word or look like C; other code is plain text.
CODE_EXTENSIONS = (
    "c", "cc", "cpp", "cs", "cxx", "dart", "go", "gradle", "groovy", "h", "hh", "hpp", "java", "js", "jsx", "kt",
    "kts", "lua", "m", "mjs", "mts", "php", "pl", "pm", "proto", "r", "rb", "rs", "scala", "sh", "bash", "sql",
    "swift", "ts", "tsx", "zig",
)  # fmt: skip
FORMATS: Mapping[str, Format] = _formats(
    Format("asciidoc", "asciidoc", 1, "text/asciidoc", ("adoc", "asciidoc"), True),
    Format("code", "code", 1, "text/plain", CODE_EXTENSIONS, True),
    Format("csv", "table", 1, "text/csv", ("csv", "tsv", "tab"), True),
    Format("docm", "docx", 4, "application/vnd.ms-word.document.macroEnabled.12", ("docm", "dotm"), False, DOCX, True),
    Format("docx", "docx", 4, f"{OPENXML}.wordprocessingml.document", ("docx", "dotx"), False, DOCX, True),
    Format("eml", "mail", 3, "message/rfc822", ("eml",), False, ("selectolax",)),
    Format("epub", "epub", 3, "application/epub+zip", ("epub",), False, ("selectolax",), True),
    Format("html", "html", 3, "text/html", ("html", "htm", "xhtml"), True, ("selectolax",), True),
    Format("ipynb", "notebook", 1, "application/x-ipynb+json", ("ipynb",), True, ("markdown-it-py",)),
    Format("json", "json", 1, "application/json", ("json", "geojson", "webmanifest"), True),
    Format("jsonl", "jsonl", 1, "application/jsonl", ("jsonl", "ndjson"), True),
    Format(
        "markdown", "markdown", 1, "text/markdown", ("md", "markdown", "mdown", "mkd", "mdx"), True, ("markdown-it-py",)
    ),
    Format("mbox", "mail", 3, "application/mbox", ("mbox",), False, ("selectolax",)),
    Format("msg", "msg", 3, "application/vnd.ms-outlook", ("msg",), False, ("python-oxmsg", "selectolax")),
    Format("ods", "sheets", 2, "application/vnd.oasis.opendocument.spreadsheet", ("ods", "ots"), False),
    Format("odt", "odt", 3, "application/vnd.oasis.opendocument.text", ("odt", "ott"), False),
    Format("pdf", "pdf", 7, "application/pdf", ("pdf",), False, ("pypdfium2", "pypdf"), True),
    Format(
        "pptm",
        "pptx",
        3,
        "application/vnd.ms-powerpoint.presentation.macroEnabled.12",
        ("pptm", "ppsm", "potm"),
        False,
        PPTX,
    ),
    Format("pptx", "pptx", 3, f"{OPENXML}.presentationml.presentation", ("pptx", "ppsx", "potx"), False, PPTX),
    Format("python", "code", 1, "text/x-python", ("py", "pyi", "pyw"), True, (), True),
    Format("rst", "rst", 1, "text/x-rst", ("rst", "rest"), True),
    Format("rtf", "rtf", 4, "application/rtf", ("rtf",), False),
    Format("text", "text", 1, "text/plain", ("txt", "text", "log"), True),
    Format("xls", "sheets", 2, "application/vnd.ms-excel", ("xls",), False, SHEETS),
    Format("xlsb", "sheets", 2, "application/vnd.ms-excel.sheet.binary.macroEnabled.12", ("xlsb",), False, SHEETS),
    Format(
        "xlsm", "sheets", 3, "application/vnd.ms-excel.sheet.macroEnabled.12", ("xlsm", "xltm"), False, SHEETS, True
    ),
    Format("xlsx", "sheets", 3, f"{OPENXML}.spreadsheetml.sheet", ("xlsx", "xltx"), False, SHEETS, True),
    Format("xml", "text", 1, "application/xml", ("xml", "xsd", "xsl", "xslt", "rss", "atom", "opml", "plist"), True),
)

# What the text of OCR comes from; its models are part of rapidocr.
OCR = ("onnxruntime", "rapidocr")
# Readers that decode parts of a file like text files, or take the fallback encoding: of books, mail, rich text.
DECODING = frozenset({"epub", "mail", "rtf"})
# Kinds that are known but have no reader: what such a file is, and what would help. Names are extensions.
WITHOUT_READER: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("doc", "dot"), ("an old Word document", "save it as .docx or PDF")),
    "odp": ("a presentation", "save it as PDF"),
    "odg": ("a drawing", "save it as PDF"),
    **dict.fromkeys(("sxw", "sxc", "sxi"), ("an OpenOffice 1 file", "save it as .odt, .ods or PDF")),
    "ole": ("an Office file of an unknown kind", "save it in a current format"),
    **dict.fromkeys(("ppt", "pps"), ("an old presentation", "save it as PDF")),
    "pst": ("a mail folder", "export it as .mbox or .eml"),
    **dict.fromkeys(("mobi", "azw3"), ("an electronic book", "convert it to EPUB or HTML")),
    **dict.fromkeys(
        ("png", "jpg", "jpeg", "gif", "bmp", "tif", "tiff", "webp", "heic", "avif", "ico", "psd", "svg", "djvu"),
        ("an image", "put its text into a PDF with a text layer (OCR)"),
    ),
    **dict.fromkeys(
        ("mp3", "wav", "flac", "ogg", "m4a", "mp4", "mkv", "mov", "avi", "webm", "m4v"),
        ("sound or video", "put a transcript beside it"),
    ),
    **dict.fromkeys(
        ("zip", "tar", "gz", "tgz", "bz2", "xz", "zst", "7z", "rar", "jar", "whl", "iso", "dmg"),
        ("an archive", "unpack it into a folder"),
    ),
    **dict.fromkeys(
        ("exe", "dll", "so", "dylib", "o", "a", "class", "pyc", "wasm", "apk", "deb", "rpm"),
        ("a program", "leave it out with an ignore file"),
    ),
    **dict.fromkeys(
        ("db", "sqlite", "sqlite3", "parquet", "npy", "npz", "pkl", "onnx", "bin", "dat"),
        ("binary data", "export it as text, or leave it out with an ignore file"),
    ),
}  # fmt: skip
# Extensions above that name no one format: the content alone says what it is.
VAGUE = frozenset({"bin", "dat", "doc", "dot", "xls", "a", "o", "db"})

_BY_EXTENSION = {extension: known.kind for known in FORMATS.values() for extension in known.extensions}


def suggest_kind(name: bytes) -> str:
    """Return the kind that a file name suggests.

    Of a kind without a reader this is its extension; anything unknown is ``text`` until its content says otherwise.
    """
    _, dot, extension = name.rpartition(b".")
    known = extension.lower().decode("ascii", "replace") if dot else ""
    if known in _BY_EXTENSION:
        return _BY_EXTENSION[known]
    return known if known in WITHOUT_READER else "text"


def richest_kind(kinds: Iterable[str]) -> str:
    """Return the kind under which equal bytes with several names are read, whatever the order of ``kinds``.

    Structured text first, then ``text``, then the kinds that content decides anyway: so bytes that are text under one
    of their names are never called damaged because of another. Ties go by name. No kinds: ``text``.
    """
    return min(kinds, key=lambda kind: (not is_text_kind(kind), kind == "text", kind), default="text")


def is_text_kind(kind: str) -> bool:
    """True where the bytes are to be decoded as text; such files have the smaller size limit."""
    return kind in FORMATS and FORMATS[kind].is_text


def media_type(kind: str) -> str | None:
    """Return the media type of a kind that has a reader, else None."""
    return FORMATS[kind].media_type if kind in FORMATS else None


def parse_fingerprint(kind: str, options: ReaderOptions | None = None) -> str:
    """Return what shapes the text of a document of ``kind``: equal strings, equal documents for equal bytes.

    Readable, such as ``markdown/1 detect/1 decode/1 normalise/1 chardet/7.7.0 markdown-it-py/4.3.0``. For
    ``kind`` without a reader it names the detector alone. Reads the metadata of installed distributions, once each.
    """
    options = options or ReaderOptions()
    known = FORMATS.get(kind)
    if known is None:
        return f"{kind}/0 detect/{DETECT_VERSION}"
    parts = [f"{kind}/{known.version}", f"detect/{DETECT_VERSION}", f"normalise/{NORMALISE_VERSION}"]
    libraries = known.libraries
    if known.is_text or known.module in DECODING:
        parts += [f"decode/{DECODE_VERSION}", f"fallback_encoding={options.fallback_encoding}"]
        libraries += ("chardet",)
    if kind == "pdf":
        parts += [f"pdf_engine={options.pdf_engine}", f"repair={optional_version('pikepdf') or 'no'}"]
        libraries += OCR if options.ocr else ()
    return " ".join(parts + [f"{library}/{_library_version(library)}" for library in sorted(libraries)])


def failure_fingerprint(kind: str, status: str, limits: Limits, options: ReaderOptions | None = None) -> str:
    """Return 16 hex digits beside which a failure is kept: the same file is tried again when they change.

    They stand for what could mend a failure of this status, and for nothing else. ``kind`` is what the content turned
    out to be (``ParseFailure.kind``), else what its names suggest. Always: the reader of that kind with its libraries
    and options, and the detector; a kind without a reader may get one. Beside these:

    ``needs_password`` of a PDF: the passwords. ``too_large``: the limits of file and text. ``quarantined``: the limits
    of a worker, and the readers of all kinds that only the content shows, since nobody knows what the worker read it
    as. What was read once stays read: a limit that falls, or a password that goes, takes nothing back.
    """
    facts: dict[str, object] = {"readers": [parse_fingerprint(kind, options)]}
    if status == "needs_password" and kind == "pdf":
        facts["passwords"] = _password_mark(options)
    elif status == "too_large":
        facts["limits"] = [getattr(limits, name) for name in SIZE_LIMITS]
    elif status == "quarantined":
        facts["limits"] = [getattr(limits, name) for name in Limits.__slots__ if name not in SIZE_LIMITS]
        kinds = {kind, *(known.kind for known in FORMATS.values() if not known.is_text)}
        facts["readers"] = [parse_fingerprint(known, options) for known in sorted(kinds)]
    return str(recipe_id(facts))


def reading_fingerprint(limits: Limits, options: ReaderOptions | None = None) -> str:
    """Return 16 hex digits that change with any reader, library, limit, option or password."""
    readers = {kind: parse_fingerprint(kind, options) for kind in FORMATS}
    numbers = {name: getattr(limits, name) for name in Limits.__slots__}
    facts = {"readers": readers, "limits": numbers, "passwords": _password_mark(options)}
    return str(recipe_id({**facts, "without_reader": sorted(WITHOUT_READER)}))


def _password_mark(options: ReaderOptions | None) -> str:
    """Return 16 bits of the passwords: enough to notice a change, useless for guessing one."""
    passwords = options.pdf_passwords if options is not None else ()
    return digest(password.encode("utf-8", "surrogatepass") for password in passwords)[:4]


@cache
def optional_version(distribution: str) -> str | None:
    """Return the version of a distribution that only an extra brings; None where it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


@cache
def _library_version(distribution: str) -> str:
    return version(distribution)
