"""Opening and hashing of sources: the only way by which the scan or a worker reads one.

A source is opened one path component at a time, each relative to the folder before and none through a link. So paths
longer than PATH_MAX open, a link put in place after the scan leads nowhere, and a pipe never blocks. Writes nothing.
"""

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from search.identity import DocumentId, stream_sha256

from .seen import Failure, Seen, StatTuple

__all__ = [
    "Descent",
    "NotRegular",
    "hash_source",
    "hash_sources",
    "open_folder",
    "open_source",
    "reason_of",
    "stat_source",
    "stat_tuple",
]

# Going through a folder needs no right to list it, and O_PATH asks for none.
PASS = (os.O_PATH if sys.platform == "linux" else os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC

# Not there (any more), or no longer what the listing said: a link, a folder or a pipe in its place.
GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENXIO})
# Descriptors kept open along the path of a walk; far below the usual limit of 1,024 for a whole process.
OPEN_FOLDERS = 64
# A file that changes while it is read is read three times at most.
READS = 3


class NotRegular(OSError):
    """What was opened is no regular file; it was closed again unread."""


def open_folder(root: Path, parts: Sequence[bytes], *, start: int | None = None, flags: int = LIST) -> int:
    """Open a folder below ``root`` and return its descriptor; follows no link. Raises ``OSError``.

    ``start`` is an open folder to begin at instead of the root; it stays open.
    """
    for part in parts:
        if part in {b"", b".", b".."} or b"/" in part:
            raise ValueError(f"{part!r} is not a path component")
    if start is None:
        folder = os.open(root, PASS if parts else flags)
    elif parts:
        folder = os.dup(start)
    else:
        return os.open(".", flags, dir_fd=start)
    try:
        for number, part in enumerate(parts, 1):
            below = os.open(part, flags if number == len(parts) else PASS, dir_fd=folder)
            os.close(folder)
            folder = below
    except BaseException:  # cleans up and raises again: a descriptor must not leak on Ctrl-C either
        os.close(folder)
        raise
    return folder


def open_source(root: Path, parts: Sequence[bytes]) -> int:
    """Open a regular file below ``root`` for reading and return its descriptor; follows no link, never blocks.

    Raises ``NotRegular`` for anything but a regular file, else ``OSError`` as ``os.open`` does.
    """
    if not parts or parts[-1] in {b"", b".", b".."} or b"/" in parts[-1]:
        raise ValueError(f"{tuple(parts)!r} names no file below a root")
    folder = open_folder(root, parts[:-1], flags=PASS)
    try:
        source = os.open(parts[-1], READ, dir_fd=folder)
    finally:
        os.close(folder)
    if stat.S_ISREG(os.fstat(source).st_mode):
        return source
    os.close(source)
    raise NotRegular(errno.EINVAL, "not a regular file")


def stat_source(root: Path, parts: Sequence[bytes]) -> os.stat_result:
    """Return what the system says of a source, of a link itself; however long its path is. Raises ``OSError``."""
    folder = open_folder(root, parts[:-1], flags=PASS)
    try:
        return os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
    finally:
        os.close(folder)


class Descent:
    """Opens folders below one root, keeping descriptors of the way down so that each step costs one opening."""

    def __init__(self, root: Path) -> None:
        self._parts: list[bytes] = []
        self._open = [os.open(root, PASS)]

    def close(self) -> None:
        """Close all descriptors."""
        while self._open:
            os.close(self._open.pop())

    @contextmanager
    def folder(self, parts: Sequence[bytes], flags: int = LIST) -> Iterator[int]:
        """Open the folder for the time of the block. Raises ``OSError``."""
        kept = parts[:OPEN_FOLDERS]
        same = 0
        while same < min(len(kept), len(self._parts)) and kept[same] == self._parts[same]:
            same += 1
        while len(self._parts) > same:
            self._parts.pop()
            os.close(self._open.pop())
        for part in kept[same:]:
            self._open.append(os.open(part, PASS, dir_fd=self._open[-1]))
            self._parts.append(part)
        folder = open_folder(Path(), parts[OPEN_FOLDERS:], start=self._open[-1], flags=flags)
        try:
            yield folder
        finally:
            os.close(folder)


def stat_tuple(found: os.stat_result) -> StatTuple:
    """Return the part of a stat result that tells whether a file was touched."""
    return StatTuple(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev)


def hash_source(seen: Seen, limit_bytes: int | None = None) -> DocumentId | Failure:
    """Return the document that a source holds, or why there is none; a file over the limit is not opened.

    The file is read between two equal stats, three times at most; else it is ``unstable``.
    """
    if limit_bytes is not None and seen.stat.size_bytes > limit_bytes:
        return Failure("too_large", f"{seen.stat.size_bytes} bytes, over the limit of {limit_bytes}")
    try:
        with os.fdopen(open_source(seen.root, seen.parts), "rb", buffering=0) as stream:
            for _ in range(READS):
                before = stat_tuple(os.fstat(stream.fileno()))
                stream.seek(0)
                document_id = stream_sha256(stream)
                if stat_tuple(os.fstat(stream.fileno())) == before:
                    return document_id
    except NotRegular as error:
        return Failure("gone", str(error.strerror))
    except OSError as error:
        return Failure("gone" if error.errno in GONE else "unreadable", reason_of(error))
    return Failure("unstable", f"changed each of {READS} times while it was read")


def hash_sources(
    seen: Sequence[Seen], *, limit_of: Callable[[Seen], int], tick: Callable[[Seen], None] | None = None
) -> dict[bytes, DocumentId | Failure]:
    """Return document or failure by path; ``tick`` is called after each source, in the order given.

    One after the other: threads were measured slower on small files (1.3 to 1.6 times, 20,000 of them), where opening
    counts and holds the GIL, and no faster on large ones, where one core hashes more than a disk delivers.
    """
    found: dict[bytes, DocumentId | Failure] = {}
    for source in seen:
        found[source.path] = hash_source(source, limit_of(source))
        if tick is not None:
            tick(source)
    return found


def reason_of(error: OSError) -> str:
    """Return code and text of an error of the system, without the path: ``EACCES: Permission denied``."""
    code = errno.errorcode.get(error.errno or 0, "error")
    return f"{code}: {error.strerror or error}"
