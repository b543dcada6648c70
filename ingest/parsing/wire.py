"""Messages between the pool and its workers: a length, JSON, and the document text as plain UTF-8.

Never pickle: a worker runs parsers on hostile bytes, and whatever comes out of one is data that is checked here before
the writer believes it. A frame is two big-endian 32-bit lengths, then the JSON, then the text; the text stays out of
the JSON, where escaping would cost more than all the rest.
"""

import json
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar, get_args

from search.identity import DocumentId

from .document import Block, BlockKind, Document, Gap, GapReason, Part, PartKind
from .failure import FailureStatus, ParseFailure
from .limits import Limits, PdfEngine, ReaderOptions
from .reading import check_document

__all__ = [
    "Changed", "FrameReader", "Job", "ParseResult", "WireError", "pack", "pack_job", "pack_result", "pack_setup",
    "receive", "unpack_job", "unpack_result", "unpack_setup",
]  # fmt: skip

HEADER = struct.Struct("!II")
READ_BYTES = 1 << 20
BLOCK_KINDS, PART_KINDS = frozenset(get_args(BlockKind)), frozenset(get_args(PartKind))
GAP_REASONS, STATUSES = frozenset(get_args(GapReason)), frozenset(get_args(FailureStatus))
PDF_ENGINES = frozenset(get_args(PdfEngine))
T = TypeVar("T")


class WireError(Exception):
    """What came is no message of ours; the worker that sent it is not to be trusted any more."""


@dataclass(frozen=True, slots=True)
class Job:
    """One document to parse.

    The worker opens ``root`` / ``parts`` itself, through ``open_source``, and refuses bytes other than those of
    ``document_id``. ``kind`` is what the names of its sources suggest (``richest_kind``); ``name`` is for reasons only.
    """

    document_id: DocumentId
    root: Path
    parts: tuple[bytes, ...]
    size_bytes: int
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Changed:
    """The file no longer has the bytes that were planned; ``document_id`` is what it holds now."""

    document_id: DocumentId


ParseResult = Document | ParseFailure | Changed


def pack(message: Mapping[str, object], text: str = "") -> bytes:
    """Return a frame. Lone surrogates, such as those of file names that are not UTF-8, survive in both halves."""
    head = json.dumps(message, separators=(",", ":")).encode()
    body = text.encode("utf-8", "surrogatepass")
    return HEADER.pack(len(head), len(body)) + head + body


class FrameReader:
    """Puts frames together from whatever pieces arrive. Raises ``WireError`` for one longer than ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        self._buffer = bytearray()
        self._max_bytes = max_bytes

    def feed(self, piece: bytes) -> None:
        """Take the next bytes of the stream."""
        self._buffer += piece

    def take(self) -> tuple[dict[str, object], str] | None:
        """Return the next message and its text, or None until it is complete."""
        if len(self._buffer) < HEADER.size:
            return None
        head_bytes, body_bytes = HEADER.unpack_from(self._buffer)
        end = HEADER.size + head_bytes + body_bytes
        if end > self._max_bytes:
            raise WireError(f"a message of {end} bytes")
        if len(self._buffer) < end:
            return None
        with memoryview(self._buffer) as view:
            head = bytes(view[HEADER.size : HEADER.size + head_bytes])
            body = bytes(view[HEADER.size + head_bytes : end])
        del self._buffer[:end]
        try:
            message = json.loads(head)
            text = body.decode("utf-8", "surrogatepass")
        except (ValueError, RecursionError) as error:
            raise WireError("a message that is no JSON") from error
        return _mapping(message), text


def receive(connection: socket.socket, frames: FrameReader) -> dict[str, object] | None:
    """Wait for the next message; None at the end of the stream. The worker's side, which waits for one thing only."""
    while (frame := frames.take()) is None:
        piece = connection.recv(READ_BYTES)
        if not piece:
            return None
        frames.feed(piece)
    return frame[0]


def pack_setup(limits: Limits, options: ReaderOptions) -> bytes:
    """Return the first message to a worker. Passwords travel here, never in arguments that others can list."""
    return pack({"limits": asdict(limits), "options": asdict(options)})


def unpack_setup(message: Mapping[str, object]) -> tuple[Limits, ReaderOptions]:
    """Read what ``pack_setup`` wrote."""
    limits, options = _mapping(message.get("limits")), _mapping(message.get("options"))
    numbers = {name: _number(value) for name, value in limits.items()}
    engine = _string(options.get("pdf_engine"))
    if engine not in PDF_ENGINES:
        raise WireError(f"engine {engine!r}")
    return Limits(**numbers), ReaderOptions(  # type: ignore[arg-type]  # whole numbers stay whole in JSON
        fallback_encoding=_string(options.get("fallback_encoding")),
        pdf_engine=engine,  # type: ignore[arg-type]  # checked two lines above
        ocr=options.get("ocr") is True,
        pdf_passwords=tuple(_string(password) for password in _list(options.get("pdf_passwords"))),
    )


def pack_job(job: Job, *, use_fallback: bool) -> bytes:
    """Return the message that hands a worker its job. Paths are bytes, written one character a byte."""
    return pack(
        {
            "document_id": job.document_id,
            "root": bytes(job.root).decode("latin-1"),
            "parts": [part.decode("latin-1") for part in job.parts],
            "size_bytes": job.size_bytes,
            "kind": job.kind,
            "name": job.name,
            "use_fallback": use_fallback,
        }
    )


def unpack_job(message: Mapping[str, object]) -> tuple[Job, bool]:
    """Return the job and whether the reader's second way is to be taken."""
    root = _string(message.get("root")).encode("latin-1")
    job = Job(
        document_id=DocumentId(_string(message.get("document_id"))),
        root=Path(root.decode("utf-8", "surrogateescape")),
        parts=tuple(_string(part).encode("latin-1") for part in _list(message.get("parts"))),
        size_bytes=_integer(message.get("size_bytes")),
        kind=_string(message.get("kind")),
        name=_string(message.get("name")),
    )
    return job, message.get("use_fallback") is True


def pack_result(result: ParseResult) -> bytes:
    """Return the message that carries a result back."""
    if isinstance(result, Changed):
        return pack({"result": "changed", "document_id": result.document_id})
    if isinstance(result, ParseFailure):
        return pack({"result": "failure", "status": result.status, "reason": result.reason, "kind": result.kind})
    return pack(
        {
            "result": "document",
            "kind": result.kind,
            "reader": result.reader,
            "title": result.title,
            "lines": result.lines,
            "meta": dict(result.meta),
            "warnings": result.warnings,
            "blocks": [(b.kind, b.start, b.end, b.level, b.heading, b.cells) for b in result.blocks],
            "parts": [(part.kind, part.number, part.label, part.start) for part in result.parts],
            "gaps": [(gap.part, gap.reason) for gap in result.gaps],
        },
        result.text,
    )


def unpack_result(message: Mapping[str, object], text: str) -> ParseResult:
    """Check and return what ``pack_result`` wrote. Raises ``WireError``: not a result, or a document that is none."""
    match message.get("result"):
        case "changed":
            return Changed(DocumentId(_string(message.get("document_id"))))
        case "failure":
            status = _one_of(message.get("status"), STATUSES)
            return ParseFailure(
                status,  # type: ignore[arg-type]  # one of STATUSES
                _string(message.get("reason")),
                _optional_string(message.get("kind")),
            )
        case "document":
            document = Document(
                kind=_string(message.get("kind")),
                reader=_string(message.get("reader")),
                text=text,
                blocks=_each(message.get("blocks"), 6, _block),
                parts=_each(message.get("parts"), 4, _part),
                title=_optional_string(message.get("title")),
                lines=message.get("lines") is True,
                meta=_mapping(message.get("meta")),
                warnings=tuple(_string(warning) for warning in _list(message.get("warnings"))),
                gaps=_each(message.get("gaps"), 2, _gap),
            )
            try:
                check_document(document)
            except ValueError as error:
                raise WireError(str(error)) from error
            return document
        case other:
            raise WireError(f"result {other!r}")


def _block(row: list[object]) -> Block:
    kind, start, end, level, heading, cells = row
    return Block(
        _one_of(kind, BLOCK_KINDS),  # type: ignore[arg-type]  # one of the kinds
        _integer(start), _integer(end), _integer(level), _optional_string(heading), _optional_string(cells),
    )  # fmt: skip


def _part(row: list[object]) -> Part:
    kind, number, label, start = row
    return Part(
        _one_of(kind, PART_KINDS),  # type: ignore[arg-type]  # one of the kinds
        _integer(number), _optional_string(label), _integer(start),
    )  # fmt: skip


def _gap(row: list[object]) -> Gap:
    return Gap(_integer(row[0]), _one_of(row[1], GAP_REASONS))  # type: ignore[arg-type]  # one of the reasons


def _each(value: object, length: int, make: Callable[[list[object]], T]) -> tuple[T, ...]:
    rows = [_list(row) for row in _list(value)]
    if any(len(row) != length for row in rows):
        raise WireError("a row of another length")
    return tuple(make(row) for row in rows)


def _mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise WireError("not an object")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise WireError("not a list")
    return value


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise WireError("not a string")
    return value


def _optional_string(value: object) -> str | None:
    return None if value is None else _string(value)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WireError("not a number")
    return value


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise WireError("not a whole number")
    return value


def _one_of(value: object, known: frozenset[str]) -> str:
    if not isinstance(value, str) or value not in known:
        raise WireError(f"{value!r} is not one of {sorted(known)}")
    return value
