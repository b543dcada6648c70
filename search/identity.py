"""Ids and hashes: the only module of the index that makes either.

An id never holds a position, a file name, a date or chance, so that the same content has the same id on every machine,
in every run. Ids are ``NewType``s; a plain string is never passed for one.
"""

import errno
import hashlib
import json
import os
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO, NewType

__all__ = [
    "ChunkId",
    "DocumentId",
    "RecipeId",
    "RunId",
    "canonical_json",
    "chunk_id",
    "digest",
    "document_id",
    "file_sha256",
    "new_run_id",
    "payload_hash",
    "recipe_id",
    "sparse_sha256",
    "stream_sha256",
    "text_hash",
]

ChunkId = NewType("ChunkId", str)
DocumentId = NewType("DocumentId", str)
RecipeId = NewType("RecipeId", str)
RunId = NewType("RunId", str)

# Read size of file hashing: large enough that the system calls cost nothing beside sha256.
READ_BYTES = 1 << 20
# Blocks of a sparse hash: small beside what an engine preallocates, large enough that Python costs nothing.
BLOCK_BYTES = 1 << 16
ZEROS = bytes(BLOCK_BYTES)
# Variant and version bits of RFC 9562, section 5.8: version 8 is for ids of an application's own making.
UUID_VERSION = 8


def document_id(content: bytes) -> DocumentId:
    """Return the id of a byte content: 64 hex digits, the sha256 of the raw bytes."""
    return DocumentId(hashlib.sha256(content).hexdigest())


def stream_sha256(stream: BinaryIO) -> DocumentId:
    """Return the sha256 of what is left of ``stream``, read in pieces. Moves the stream to its end."""
    hasher = hashlib.sha256()
    while piece := stream.read(READ_BYTES):
        hasher.update(piece)
    return DocumentId(hasher.hexdigest())


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file as 64 hex digits. Raises ``OSError`` as ``open`` does."""
    with path.open("rb") as stream:
        return stream_sha256(stream)


def sparse_sha256(path: Path) -> str:
    """Return the sha256 of a file's size and of its blocks that are not all zero, each with its offset: 64 hex digits.

    For files that are mostly holes, as an engine preallocates them: holes are not read, and where they lie does not
    matter, since a block of zeros counts as one. Any changed byte changes it. Raises ``OSError`` as ``open`` does.
    """
    with path.open("rb", buffering=0) as stream:
        handle = stream.fileno()
        size = os.fstat(handle).st_size
        hasher = hashlib.sha256(size.to_bytes(8, "big"))
        offset = 0
        while (offset := _next_data(handle, offset, size)) < size:
            block = os.pread(handle, BLOCK_BYTES, offset)
            if block != ZEROS and block != ZEROS[: len(block)]:
                hasher.update(offset.to_bytes(8, "big"))
                hasher.update(block)
            offset += BLOCK_BYTES
    return hasher.hexdigest()


def _next_data(handle: int, offset: int, size: int) -> int:
    """Return the start of the first block at or after ``offset`` that may hold data; ``size`` where none does."""
    try:
        return max(offset, os.lseek(handle, offset, os.SEEK_DATA) // BLOCK_BYTES * BLOCK_BYTES)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return size


def chunk_id(context: str, text: str) -> ChunkId:
    """Return the id of a passage: a UUID (version 8) made from the sha256 of context and text.

    The length of the context is part of what is hashed, so no two pairs share an id by gluing (I3).
    """
    head = context.encode("utf-8", "surrogatepass")
    body = text.encode("utf-8", "surrogatepass")
    raw = hashlib.sha256(len(head).to_bytes(8, "big") + head + body).digest()[:16]
    bits = int.from_bytes(raw, "big")
    bits = bits & ~(0xF << 76) | (UUID_VERSION << 76)
    bits = bits & ~(0x3 << 62) | (0x2 << 62)
    return ChunkId(str(uuid.UUID(int=bits)))


def text_hash(context: str, text: str) -> str:
    """Return 32 hex digits that are equal for equal passages; the duplicate check of ``verify`` compares them.

    Made by another function than ``chunk_id``, so that a fault in one does not hide behind the other.
    """
    parts = (context, "\x00", text)
    hasher = hashlib.blake2b(digest_size=16)
    for part in parts:
        hasher.update(part.encode("utf-8", "surrogatepass"))
    return hasher.hexdigest()


def canonical_json(value: object) -> str:
    """Return JSON with sorted keys and no spaces: equal values give equal text. NaN and infinities are refused."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def payload_hash(payload: Mapping[str, object]) -> str:
    """Return 32 hex digits of a point's payload, to tell whether a publish has to rewrite it."""
    text = canonical_json(payload).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def digest(parts: Iterable[bytes]) -> str:
    """Return the sha256 of byte strings, each preceded by its length: 64 hex digits."""
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(len(part).to_bytes(8, "big"))
        hasher.update(part)
    return hasher.hexdigest()


def recipe_id(recipe: Mapping[str, object]) -> RecipeId:
    """Return 16 hex digits that name a recipe (or a part of one): equal recipes, equal ids."""
    return RecipeId(hashlib.sha256(canonical_json(recipe).encode()).hexdigest()[:16])


def new_run_id() -> RunId:
    """Return a fresh id of a run: 32 hex digits, random, since every run is a new one."""
    return RunId(os.urandom(16).hex())
