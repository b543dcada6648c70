"""Copies a generation with its holes: Edge preallocates, so a plain copy of a small shard writes 100 MB and more."""

import errno
import os
from pathlib import Path

__all__ = ["allocated_bytes", "clone"]

# A killed optimize fills this folder of a shard and nothing ever cleans it.
LEFT_OUT = frozenset({"temp_segments"})


def clone(source: Path, target: Path, *, leave_out: frozenset[str] = LEFT_OUT) -> None:
    """Copy the folder ``source`` to ``target``, which must not exist; holes stay holes. File times are not kept."""
    target.mkdir()
    with os.scandir(source) as entries:
        for entry in entries:
            if entry.name in leave_out:
                continue
            if entry.is_dir(follow_symlinks=False):
                clone(Path(entry.path), target / entry.name, leave_out=leave_out)
            else:
                _copy(entry.path, target / entry.name)


def allocated_bytes(folder: Path) -> int:
    """Return what the files below ``folder`` really take on the disk, in bytes. Does not write."""
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            total += os.lstat(os.path.join(base, name)).st_blocks * 512  # noqa: PTH118  # a Path per file doubles the time
    return total


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
            copied = os.copy_file_range(reader, writer, position - start, start, start)
            if copied == 0:
                return
            start += copied
