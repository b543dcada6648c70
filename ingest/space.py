"""Room on the disk: how much there is, and the one error of a run that meets its end.

The catalog and the builder turn their own failures into ``NotEnoughSpace``; this does so for the small files that
a run writes itself (lock, pointer, folders). Frees nothing.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from search.engine import FULL
from search.errors import NotEnoughSpace

__all__ = ["free_bytes", "naming_a_full_disk"]


def free_bytes(folder: Path) -> int:
    """Return what this user can still write to the disk of ``folder``. Does not write."""
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize


@contextmanager
def naming_a_full_disk(home: Path) -> Iterator[None]:
    """Raise ``NotEnoughSpace`` where the block fails because the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        where = error.filename or home
        raise NotEnoughSpace(f"{where}: the disk is full; free some space and run again") from error
