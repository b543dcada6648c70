"""Copies a generation: links what the engine never changes again, and copies the rest with its holes.

A segment with ``id_tracker.mappings`` is *sealed*: the engine appends no point to it, and its vectors, links, payload
pages and index files stay as they are until the whole segment is replaced (measured with qdrant-edge-py 0.9.0; the
builder proves it again for every file that it linked). They are nine tenths of a generation, so an edit costs what it
changes. The other files are copied; Edge preallocates them, so a copy without holes would write 100 MB and more.
"""

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

__all__ = ["allocated_bytes", "clone", "clone_generation"]

# A killed optimize fills this folder of a shard and nothing ever cleans it.
LEFT_OUT = frozenset({"temp_segments"})
SEALED = "id_tracker.mappings"
# copy_file_range(2) refuses between two kinds of file system: ``verify`` clones into the temporary folder.
NOT_BY_THE_KERNEL = frozenset({errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
PIECE_BYTES = 1 << 20
# Files of a sealed segment that are never changed again, by their path in the segment.
UNCHANGING = re.compile(
    r"id_tracker\.mappings"
    r"|vector_storage-[^/]+/matrix\.dat"
    r"|vector_index-.+"
    r"|(payload_storage|vector_storage-[^/]+/store)/page_\d+\.dat"
    r"|payload_index/.+\.bin"
)


def clone(source: Path, target: Path) -> None:
    """Copy the folder ``source`` to ``target``, which must not exist; holes stay holes. File times are not kept."""
    _walk(source, target, _copy)


def clone_generation(source: Path, target: Path) -> list[Path]:
    """Make ``target`` a generation of its own out of ``source``; return the files that both share, relative to both.

    The shared files must not be written; whoever opens ``target`` for writing has to make sure of that.
    """
    shared: list[Path] = []

    def link_or_copy(origin: str, copy: Path) -> None:
        inner = copy.relative_to(target)
        if _unchanging(source, inner):
            os.link(origin, copy)
            shared.append(inner)
        else:
            _copy(origin, copy)

    _walk(source, target, link_or_copy)
    return shared


def allocated_bytes(folder: Path) -> int:
    """Return what the files below ``folder`` really take on the disk, in bytes; a shared one counts once."""
    sizes: dict[tuple[int, int], int] = {}
    for base, _, names in os.walk(folder):
        for name in names:
            found = os.lstat(os.path.join(base, name))  # noqa: PTH118  # a Path per file doubles the time
            sizes[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(sizes.values())


def _unchanging(source: Path, inner: Path) -> bool:
    """True for a file of a sealed segment (``segments/<uuid>/...``) that the engine leaves as it is."""
    parts = inner.parts
    if len(parts) < 3 or parts[0] != "segments" or not UNCHANGING.fullmatch("/".join(parts[2:])):
        return False
    return (source / parts[0] / parts[1] / SEALED).exists()


def _walk(source: Path, target: Path, take: Callable[[str, Path], None]) -> None:
    target.mkdir()
    with os.scandir(source) as entries:
        for entry in entries:
            if entry.name in LEFT_OUT:
                continue
            if entry.is_dir(follow_symlinks=False):
                _walk(Path(entry.path), target / entry.name, take)
            else:
                take(entry.path, target / entry.name)


def _copy(source: str, target: Path) -> None:
    reader = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        writer = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            size = os.fstat(reader).st_size
            os.ftruncate(writer, size)
            _copy_data(reader, writer, size)
        finally:
            os.close(writer)
    finally:
        os.close(reader)


def _copy_data(reader: int, writer: int, size: int) -> None:
    position = 0
    while position < size:
        try:
            start = os.lseek(reader, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole up to the end
                return
            raise
        position = os.lseek(reader, start, os.SEEK_HOLE)
        while start < position:
            copied = _copy_range(reader, writer, start, position - start)
            if copied == 0:
                return
            start += copied


def _copy_range(reader: int, writer: int, start: int, count: int) -> int:
    """Copy up to ``count`` bytes at ``start``; return how many. The kernel does it where it can, without our memory."""
    try:
        return os.copy_file_range(reader, writer, count, start, start)
    except OSError as error:
        if error.errno not in NOT_BY_THE_KERNEL:
            raise
    return os.pwrite(writer, os.pread(reader, min(count, PIECE_BYTES), start), start)
