"""Reading a generation that must not be written: through a private view, a sparse copy in a folder of this process.

The engine has no read-only mode (qdrant-edge-py 0.9.0 maps most files of a generation writable, and rewrites a few with
the same bytes). So an index on a read-only mount, or of another user, or of a process that gave up its right to write,
is copied and read from there. Costs the disk space of a generation; 0.05 s at 20,000 chunks.
"""

import logging
import os
import shutil
import tempfile
import threading
from pathlib import Path

from .edge import EdgeReader
from .engine import FULL
from .errors import GroundedError, IndexDamaged, NotEnoughSpace
from .generation import GenerationKey, IndexLayout
from .sparse_copy import copy_folder
from .store import Snapshot, VectorReader

__all__ = ["ViewReader", "open_reader"]

logger = logging.getLogger(__name__)


def open_reader(layout: IndexLayout) -> VectorReader:
    """Return a reader of an index: a plain one, or one through a private view where this process may not write there.

    Looks at the folder, opens nothing; an index that is not there gives a plain reader, which says so when it is asked.
    """
    generations = layout.generations
    if not generations.is_dir() or os.access(generations, os.W_OK):
        return EdgeReader(layout)
    own = Path(tempfile.mkdtemp(prefix="grounded-view-"))
    logger.info("view.opened folder=%s", own)
    return ViewReader(layout, own, remove=True)


class ViewReader:
    """A ``VectorReader`` that copies the current generation into ``folder`` and reads it there. Thread-safe.

    With ``remove`` the folder goes when the reader is closed.
    """

    def __init__(self, layout: IndexLayout, folder: Path, *, remove: bool = False) -> None:
        self._layout = layout
        self._view = IndexLayout(folder)
        self._reader = EdgeReader(self._view)
        self._lock = threading.Lock()
        self._remove = remove
        self._taken: GenerationKey | None = None

    def snapshot(self) -> Snapshot:
        """Return the generation that is current now, see ``VectorReader``.

        One that cannot be copied does not take an answer away: ``CURRENT`` is read once more, since the generation may
        have been collected in between, and then the copy that is there stays in use, with a warning.
        """
        with self._lock:
            key = self._layout.current_key()
            if key != self._taken:
                try:
                    self._follow(key)
                except GroundedError as error:
                    if self._taken is None:
                        raise
                    logger.warning("view.refused generation=%s reason=%s", key.name, error)
            return self._reader.snapshot()

    def close(self) -> None:
        """Let go of the generation held."""
        self._reader.close()
        if self._remove:
            shutil.rmtree(self._view.home, ignore_errors=True)

    def _follow(self, key: GenerationKey) -> None:
        try:
            self._take(key.name)
        except IndexDamaged:
            key = self._layout.current_key()
            self._take(key.name)
        self._taken = key

    def _take(self, name: str) -> None:
        """Copy a generation, point the view at it, and remove the one before: what is open stays readable."""
        aside = self._view.generation(name + ".partial")
        shutil.rmtree(aside, ignore_errors=True)
        try:
            copy_folder(self._layout.generation(name), aside)
        except OSError as error:
            shutil.rmtree(aside, ignore_errors=True)
            if error.errno in FULL:
                raise NotEnoughSpace(f"{self._view.home}: no room for a copy of the generation; make some") from error
            raise IndexDamaged(
                f"generation {name}: cannot be copied ({error.strerror}); try again, or run `ingest repair`"
            ) from error
        shutil.rmtree(self._view.generation(name), ignore_errors=True)
        aside.rename(self._view.generation(name))
        pointer = self._view.pointer.with_suffix(".new")
        pointer.write_text(name + "\n", encoding="ascii")
        pointer.replace(self._view.pointer)
        for older in self._view.generations.iterdir():
            if older.name != name:
                shutil.rmtree(older, ignore_errors=True)
        logger.info("view.taken generation=%s", name)
