"""Copies a generation: links what the engine never changes again, and copies the rest with its holes.

A segment with ``id_tracker.mappings`` is *sealed*: the engine appends no point to it, and its vectors, links, payload
pages and index files stay as they are until the whole segment is replaced (measured with qdrant-edge-py 0.9.0; the
builder proves it again for every file that it linked). They are nine tenths of a generation, so an edit costs what it
changes. The other files are copied; Edge preallocates them, so a copy without holes would write 100 MB and more.
"""

import os
import re
from pathlib import Path

from search.sparse_copy import copy_file, copy_folder

__all__ = ["allocated_bytes", "clone_generation"]

SEALED = "id_tracker.mappings"
# Files of a sealed segment that are never changed again, by their path in the segment.
UNCHANGING = re.compile(
    r"id_tracker\.mappings"
    r"|vector_storage-[^/]+/matrix\.dat"
    r"|vector_index-.+"
    r"|(payload_storage|vector_storage-[^/]+/store)/page_\d+\.dat"
    r"|payload_index/.+\.bin"
)


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
            copy_file(origin, copy)

    copy_folder(source, target, link_or_copy)
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
