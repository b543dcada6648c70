"""Copies folders of the engine's files, holes as holes: Edge preallocates them, and a plain copy is 100 MB."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

__all__ = ["copy_file", "copy_folder"]

# A killed optimize fills this folder of a shard and nothing ever cleans it.
LEFT_OUT = frozenset({"temp_segments"})
# copy_file_range(2) refuses between two kinds of file system, as from an index to the temporary folder.
NOT_BY_THE_KERNEL = frozenset({errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
PIECE_BYTES = 1 << 20


def copy_file(source: str, target: Path) -> None:
    """Copy one file to ``target``, which must not exist; file times are not kept. Raises ``OSError``."""
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


def copy_folder(source: Path, target: Path, take: Callable[[str, Path], None] = copy_file) -> None:
    """Copy the folder ``source`` to ``target``, which must not exist. ``take`` puts each file there."""
    target.mkdir(parents=True)
    with os.scandir(source) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name in LEFT_OUT:
                continue
            if entry.is_dir(follow_symlinks=False):
                copy_folder(Path(entry.path), target / entry.name, take)
            else:
                take(entry.path, target / entry.name)


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
            start += _copy_range(reader, writer, start, position - start)


def _copy_range(reader: int, writer: int, start: int, count: int) -> int:
    """Copy up to ``count`` bytes at ``start``; return how many, at least 1. The kernel does it where it can.

    Raises ``OSError`` where the file ends before: what it had is not what was copied, and a hole is no substitute.
    """
    try:
        if copied := os.copy_file_range(reader, writer, count, start, start):
            return copied
    except OSError as error:
        if error.errno not in NOT_BY_THE_KERNEL:
            raise
    piece = os.pread(reader, min(count, PIECE_BYTES), start)
    if not piece:
        raise OSError(errno.ESTALE, "a file became shorter while it was copied")
    return os.pwrite(writer, piece, start)
