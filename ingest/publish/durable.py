"""Making files durable, in the order that a crash needs: contents, then names, then the folder that holds them."""

import os
from pathlib import Path

__all__ = ["replace_file", "sync_folder", "sync_tree"]


def sync_tree(folder: Path) -> None:
    """Call fsync on every file and folder below ``folder``, itself included. What is on the disk costs little."""
    for base, _, names in os.walk(folder, topdown=False):
        for name in names:
            _sync(os.path.join(base, name))  # noqa: PTH118  # walked strings; a Path per file only costs
        _sync(base)


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable."""
    _sync(str(folder))


def replace_file(path: Path, content: bytes) -> None:
    """Write ``content`` under ``path`` so that a reader or a crash meets the old file or the new one, never a part."""
    temporary = path.with_name(path.name + ".tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        os.write(handle, content)
        os.fsync(handle)
    finally:
        os.close(handle)
    temporary.replace(path)
    sync_folder(path.parent)


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
