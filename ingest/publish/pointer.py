"""``CURRENT``, the old generations, and what an earlier crash left behind (steps 2 and 8, under the writer lock)."""

import logging
import os
import shutil
from pathlib import Path

from ingest.failpoints import Failpoints
from ingest.lock import take
from search.errors import IndexDamaged
from search.generation import IndexLayout, generation_name

from .durable import replace_file, sync_folder

__all__ = ["PARTIAL", "builder_lock", "clear_leftovers", "collect", "next_revision", "point", "pointed", "recover"]

log = logging.getLogger(__name__)

PARTIAL = ".partial"
# The newest two stay: a reader that has just read the pointer may still be opening the one before.
KEPT = 2


def point(layout: IndexLayout, revision: int) -> None:
    """Tell readers: replace ``CURRENT`` by rename, durable on return (I1)."""
    replace_file(layout.pointer, f"{generation_name(revision)}\n".encode("ascii"))


def builder_lock(layout: IndexLayout) -> Path:
    """Return the file that a builder holds locked while it lives."""
    return layout.lock.with_name("builder.lock")


def next_revision(layout: IndexLayout, published: int) -> int:
    """Return the revision of the next generation: above the catalog's and above every folder there is."""
    return max(published, *(number for number, _ in _generations(layout)), 0) + 1


def recover(layout: IndexLayout, revision: int) -> None:
    """Bring folder and pointer in line with the catalog's ``revision``; repeatable, and usually nothing to do.

    Half-made generations go. A commit whose ``CURRENT`` was not written is rolled forward. A generation that was made
    but not committed goes, once ``CURRENT`` no longer names it. Where the catalog is new (revision 0), published
    generations stay: readers go on with them until the first publish.

    Raises ``IndexDamaged`` when the catalog's generation is missing.
    """
    clear_leftovers(layout)
    if revision == 0:
        return
    current = generation_name(revision)
    if not layout.generation(current).is_dir():
        raise IndexDamaged(f"generation {current} of {layout.home}: missing; `ingest repair` rebuilds it")
    if pointed(layout) != current:
        log.info("recover.rolled_forward generation=%s", current)
        point(layout, revision)
    for number, folder in _generations(layout):
        if number > revision:
            log.info("recover.removed generation=%s", folder.name)
            _discard(layout, folder)


def clear_leftovers(layout: IndexLayout) -> None:
    """Remove half-made generations, and what an earlier collection could not delete.

    Waits for a builder that outlived its run: it ends by itself, and until then it writes what would be removed.
    """
    os.close(take(builder_lock(layout)))
    for place, pattern in ((layout.generations, f"*{PARTIAL}"), (layout.trash, "*")):
        for folder in sorted(place.glob(pattern)) if place.is_dir() else ():
            log.info("recover.removed folder=%s", folder.name)
            _remove(folder)


def collect(layout: IndexLayout, failpoints: Failpoints) -> None:
    """Remove all but the newest generations: renamed away first, so that none is ever met half deleted."""
    for _, folder in _generations(layout)[:-KEPT]:
        layout.trash.mkdir(exist_ok=True)
        aside = folder.rename(layout.trash / folder.name)
        failpoints.reach("publish.collect")
        _remove(aside)


def pointed(layout: IndexLayout) -> str | None:
    """Return what ``CURRENT`` names, or None where it names nothing that could be read. Does not write."""
    try:
        return layout.current()
    except IndexDamaged:
        return None


def _generations(layout: IndexLayout) -> list[tuple[int, Path]]:
    """All complete generation folders, oldest first."""
    if not layout.generations.is_dir():
        return []
    return sorted((int(folder.name), folder) for folder in layout.generations.iterdir() if folder.name.isdigit())


def _discard(layout: IndexLayout, folder: Path) -> None:
    """Remove a complete generation: renamed into the trash first."""
    layout.trash.mkdir(exist_ok=True)
    aside = folder.rename(layout.trash / folder.name)
    sync_folder(layout.generations)
    _remove(aside)


def _remove(folder: Path) -> None:
    """Delete a folder that nobody needs; what cannot be deleted now is met again by the next ``recover``."""

    def note(_function: object, path: str, error: BaseException) -> None:
        log.warning("trash.kept path=%s error=%s", path, error)

    shutil.rmtree(folder, onerror=lambda function, path, info: note(function, path, info[1]))
