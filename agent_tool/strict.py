"""Strict mode: the kernel, not our word, keeps this process from writing to the index.

The engine has no read-only mode (qdrant-edge-py 0.9.0 maps most files of a generation writable, and rewrites a few with
the same bytes), so a generation is read through a private view: a sparse copy in a folder of this process. The index is
then only read, and Landlock denies everything else. Also serves a read-only mount, or an index of another user. Costs
the disk space of a generation; 0.05 s at 20,000 chunks.
"""

import atexit
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from search.errors import IndexDamaged, IndexMissing
from search.generation import IndexLayout

from .landlock import deny_writes_outside

if TYPE_CHECKING:
    # Importing them at run time would load the engine before the first reply.
    from search.store import Snapshot, VectorReader

__all__ = ["Confined", "ViewReader", "confine"]

logger = logging.getLogger(__name__)


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
    return Confined(own / "cache", lambda layout: ViewReader(layout, own / "view"))


class ViewReader:
    """A ``VectorReader`` that copies the current generation into ``folder`` and reads it there. Thread-safe."""

    def __init__(self, layout: IndexLayout, folder: Path) -> None:
        from search.edge import EdgeReader

        self._layout = layout
        self._view = IndexLayout(folder)
        self._reader = EdgeReader(self._view)
        self._lock = threading.Lock()

    def snapshot(self) -> "Snapshot":
        """Return the generation that is current now, see ``VectorReader``."""
        with self._lock:
            name = self._layout.current()
            if name is None:
                raise IndexMissing(f"index {self._layout.home}: nothing was published yet; run `ingest FOLDER`")
            if not self._view.generation(name).is_dir():
                self._take(name)
            return self._reader.snapshot()

    def close(self) -> None:
        """Let go of the generation held."""
        self._reader.close()

    def _take(self, name: str) -> None:
        """Copy a generation, point the view at it, and remove the one before: what is open stays readable."""
        aside = self._view.generation(name + ".partial")
        shutil.rmtree(aside, ignore_errors=True)
        try:
            _copy(self._layout.generation(name), aside)
        except OSError as error:
            shutil.rmtree(aside, ignore_errors=True)
            raise IndexDamaged(
                f"generation {name}: cannot be copied ({error.strerror}); try again, or run `ingest repair`"
            ) from error
        aside.rename(self._view.generation(name))
        pointer = self._view.pointer.with_suffix(".new")
        pointer.write_text(name + "\n", encoding="ascii")
        pointer.replace(self._view.pointer)
        for older in self._view.generations.iterdir():
            if older.name != name:
                shutil.rmtree(older, ignore_errors=True)
        logger.info("view.taken generation=%s", name)


def _copy(source: Path, target: Path) -> None:
    """Copy a folder, holes as holes: the engine's files are mostly holes, and would fill the disk without."""
    target.mkdir(parents=True)
    with os.scandir(source) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False):
                _copy(Path(entry.path), target / entry.name)
            else:
                _copy_file(entry.path, target / entry.name)


def _copy_file(source: str, target: Path) -> None:
    with open(source, "rb", buffering=0) as reading, target.open("xb", buffering=0) as writing:  # noqa: PTH123  # a name of scandir
        size = os.fstat(reading.fileno()).st_size
        writing.truncate(size)
        position = 0
        while position < size:
            try:
                position = os.lseek(reading.fileno(), position, os.SEEK_DATA)
            except OSError:  # ENXIO: nothing but a hole up to the end
                break
            hole = os.lseek(reading.fileno(), position, os.SEEK_HOLE)
            os.lseek(writing.fileno(), position, os.SEEK_SET)
            while position < hole:
                position += os.sendfile(writing.fileno(), reading.fileno(), position, hole - position)


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        shutil.rmtree(entry, ignore_errors=True)
