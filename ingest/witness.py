"""The witness: one digest over all that a scan looks at, by which a run sees at a glance that nothing changed.

A scan, a catalog load and a plan of 100,000 sources cost six times what ``git status`` does. So a run that found every
source the same leaves a digest of all names and stat tuples in the catalog, with what it was made under; the next run
walks the folders once, and where both are equal there is nothing to plan. Anything else, however small, and the run
goes the long way: the witness decides nothing but that. It never opens a file and follows no link.
"""

import marshal
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from search.identity import digest

from .catalog.database import Catalog
from .report import FailedSource, RunReport, SkippedSource
from .rules import Rules, name_rule

__all__ = ["Witness", "keep", "look", "vouches"]

SETTING = "witness"

# Files changed this shortly before the look may change again without a new stat tuple (parsing.md, 1).
RACY_NS = 2_000_000_000
# The format without references between objects: equal rows give equal bytes.
MARSHAL_VERSION = 2


class Witness(NamedTuple):
    """What was seen (``digest``), and under which roots, rules, readers and recipe (``key``)."""

    key: str
    digest: str


class Unseen(Exception):
    """Something that a digest cannot vouch for; the reason is of no interest, the run goes the long way."""


def look(roots: Sequence[Path], rules: Rules, *, now_ns: int) -> str | None:
    """Return a digest of the names and stat tuples below the folders ``roots``, or None where none can be given.

    None where links are followed, a folder cannot be read, a root is no folder, or a file is so new that it may change
    again unnoticed. Looks into folders that ignore files name, too: a change in there only costs the long way.
    """
    if rules.follow_symlinks:
        return None
    index = os.path.realpath(os.fsencode(rules.index)) if rules.index is not None else b""
    folders = sorted({os.path.realpath(os.fsencode(root)) for root in roots})
    try:
        return digest(part for folder in folders for part in _folders(folder, index, rules, now_ns - RACY_NS))
    except (OSError, Unseen):
        return None


def _folders(root: bytes, index: bytes, rules: Rules, newest_ns: int) -> Iterator[bytes]:
    """Yield the path and the packed rows of every folder below ``root``, in the order of their bytes."""
    hidden = rules.hidden
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        rows: list[tuple[object, ...]] = []
        inner: list[bytes] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                found = entry.stat(follow_symlinks=False)
                mode = found.st_mode
                if stat.S_ISDIR(mode):
                    rows.append((name, mode))
                    left_out = entry.path == index or name_rule(os.fsdecode(name), True, hidden) is not None
                    if not left_out:
                        inner.append(entry.path)
                    continue
                mtime_ns, ctime_ns = found.st_mtime_ns, found.st_ctime_ns
                if mtime_ns >= newest_ns or ctime_ns >= newest_ns:
                    raise Unseen
                rows.append((name, mode, found.st_size, mtime_ns, ctime_ns, found.st_ino, found.st_dev))
        rows.sort()
        yield folder
        yield marshal.dumps(rows, MARSHAL_VERSION)
        inner.sort(reverse=True)
        waiting += inner


def vouches(catalog: Catalog, witness: Witness, report: RunReport) -> bool:
    """True when an earlier run saw just this and had nothing to do; then ``report`` says so. Does not write."""
    kept = cast("dict[str, object] | None", catalog.setting(SETTING))
    if kept is None or (kept["key"], kept["digest"], kept["revision"]) != (*witness, catalog.revision):
        return False
    report.sources.seen = report.sources.unchanged = cast("int", kept["seen"])
    report.skips = [SkippedSource(*row) for row in cast("list[list[str]]", kept["skips"])]
    report.failures = [FailedSource(*row) for row in cast("list[list[str]]", kept["failures"])]
    report.sources.skipped, report.sources.failed = len(report.skips), len(report.failures)
    return True


def keep(catalog: Catalog, witness: Witness, report: RunReport) -> None:
    """Store the witness of a run that found every source the same; a transaction of its own."""
    values = {
        "key": witness.key,
        "digest": witness.digest,
        "revision": catalog.revision,
        "seen": report.sources.seen,
        "skips": report.skips,
        "failures": report.failures,
    }
    with catalog.transaction():
        catalog.set_setting(SETTING, values)
