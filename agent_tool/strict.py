"""Strict mode: the kernel, not our word, keeps this process from writing to the index.

The engine writes where it reads, so generations are read through a private view (``search.view``) in a folder of this
process. The index is then only read, and Landlock denies everything else.
"""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from search.generation import IndexLayout

from .landlock import deny_writes_outside

if TYPE_CHECKING:
    # Importing them at run time would load the engine before the first reply.
    from search.store import VectorReader

__all__ = ["Confined", "confine"]


@dataclass(frozen=True, slots=True)
class Confined:
    """What a confined process reads by: where derived files may go, and its reader of generations."""

    cache: Path
    reader: "Callable[[IndexLayout], VectorReader]"


def confine(audit_folder: Path) -> Confined:
    """Deny this process, for good, every write outside the audit folder and a folder of its own.

    Call it before any thread exists. Temporary files go to the own folder from here on. What is in that folder is
    removed at exit; the empty folder stays, since removing it would be a write to its parent. Raises ``GroundedError``
    where the kernel cannot do it.
    """
    audit_folder.mkdir(parents=True, exist_ok=True)
    own = Path(tempfile.mkdtemp(prefix="agent-tool-"))
    deny_writes_outside([audit_folder, own])
    tempfile.tempdir = str(own)
    atexit.register(_empty, own)
    return Confined(own / "cache", lambda layout: _viewed(layout, own / "view"))


def _viewed(layout: IndexLayout, folder: Path) -> "VectorReader":
    from search.view import ViewReader

    return ViewReader(layout, folder)


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        shutil.rmtree(entry, ignore_errors=True)
