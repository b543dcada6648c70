"""What a scan tells of the files it met, and how their paths are shown.

The identity of a source is its real path, as bytes: nothing is normalised, decoded or folded, so twins that differ in
composition or case stay two sources. What people read is derived from it. The records are named tuples: a scan keeps
100,000 of them, and comparing two stat tuples costs one call into C. Pure data: nothing here touches the disk.
"""

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

__all__ = [
    "Failure",
    "Root",
    "RootError",
    "Scan",
    "Scope",
    "Seen",
    "Skip",
    "StatTuple",
    "Unobserved",
    "parts_of",
    "path_b64",
    "shown_path",
    "shown_text",
]

# Characters that would break a line, a terminal or the reading order of a report: controls (C0, DEL, C1), line and
# paragraph separators, and the bidirectional embeddings, overrides and isolates of UAX #9.
UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class StatTuple(NamedTuple):
    """What tells that a file was touched. With ctime, since tools that put mtime back cannot put ctime back."""

    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    ino: int
    dev: int


@dataclass(frozen=True, slots=True)
class Root:
    """A folder below which sources are shown: its real path, and a stable label that no other root has."""

    path: Path
    name: str


class Seen(NamedTuple):
    """One regular file that a scan met. ``racy``: changed so shortly before the scan that its tuple proves nothing."""

    path: bytes
    home: Root
    stat: StatTuple
    racy: bool

    @property
    def root(self) -> Path:
        """Real folder from which the source is opened."""
        return self.home.path

    @property
    def parts(self) -> tuple[bytes, ...]:
        """Components below the root."""
        return parts_of(self.path, self.home.path)

    @property
    def shown(self) -> str:
        """Path below the root, for people."""
        return shown_path(self.path, self.home.path)

    @property
    def path_b64(self) -> str | None:
        """Exact path below the root, where ``shown`` is not exact."""
        return path_b64(self.path, self.home.path)


class Skip(NamedTuple):
    """A file or folder that a rule left out; what a left out folder holds was not looked at."""

    path: bytes
    home: Root
    rule: str

    @property
    def shown(self) -> str:
        """Path below the root, for people."""
        return shown_path(self.path, self.home.path)

    def to_json(self) -> dict[str, object]:
        """Return source and rule."""
        return {"source": self.shown, "rule": self.rule}


class Unobserved(NamedTuple):
    """A prefix of real paths of which the scan knows nothing, so that nothing under it may be removed (I6)."""

    prefix: bytes
    home: Root | None
    reason: str

    @property
    def shown(self) -> str:
        """Path below the root, for people; that of the root itself is its label."""
        if self.home is None:
            return shown_text(self.prefix)
        return shown_path(self.prefix, self.home.path) or self.home.name


class RootError(NamedTuple):
    """A root that could not be read: as it was given, the prefix that stays unobserved, and why."""

    given: str
    prefix: bytes
    reason: str


class Scope(NamedTuple):
    """What a run covers, and so the most that it may remove: everything under a folder, or one file."""

    prefix: bytes
    home: Root
    file: bool

    def covers(self, path: bytes) -> bool:
        """True when the path lies in the scope."""
        return path == self.prefix if self.file else is_under(path, self.prefix)


class Failure(NamedTuple):
    """Why a source has no document. ``gone`` is no failure of the source: the next run decides."""

    status: Literal["unreadable", "unstable", "too_large", "gone"]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """All that a scan saw, and all that it could not see.

    ``roots`` is what the catalog shall know afterwards: earlier roots that still stand, and new ones. ``superseded``
    maps the label of an earlier root to the outer root that it went into. ``scopes`` do not overlap. ``seen`` is sorted
    by path and holds each real path once. ``gone`` are paths that were listed and not there a moment later. ``folders``
    are the real paths of all folders that were listed, sorted; a new source can only turn up in one of them.
    """

    roots: tuple[Root, ...]
    superseded: Mapping[str, Root]
    scopes: tuple[Scope, ...]
    seen: tuple[Seen, ...]
    skips: tuple[Skip, ...]
    unobserved: tuple[Unobserved, ...]
    errors: tuple[RootError, ...]
    gone: tuple[bytes, ...]
    folders: tuple[bytes, ...] = ()


def is_under(path: bytes, prefix: bytes) -> bool:
    """True when ``path`` is ``prefix`` or lies below it, on a ``/`` boundary."""
    return path == prefix or path.startswith(prefix if prefix.endswith(b"/") else prefix + b"/")


def below(path: bytes, root: Path) -> bytes:
    """Return the path relative to the root; of the root itself the empty one. ``ValueError`` if it is not under it."""
    prefix = os.fsencode(root)
    if not is_under(path, prefix):
        raise ValueError(f"{shown_text(path)} is not under {shown_text(prefix)}")
    return path[len(prefix) :].lstrip(b"/")


def parts_of(path: bytes, root: Path) -> tuple[bytes, ...]:
    """Return the components of a real path below a root."""
    relative = below(path, root)
    return tuple(relative.split(b"/")) if relative else ()


def shown_path(path: bytes, root: Path) -> str:
    r"""Return the path below the root as people read it: bytes that are not UTF-8 and controls as ``\xNN``."""
    return shown_text(below(path, root))


def path_b64(path: bytes, root: Path) -> str | None:
    """Return the exact bytes below the root as standard base64 where ``shown_path`` is not exact, else None."""
    relative = below(path, root)
    if relative == shown_text(relative).encode():
        return None
    return base64.b64encode(relative).decode("ascii")


def shown_text(raw: bytes) -> str:
    r"""Return bytes of a path as text without lone surrogates and without characters that could deceive a reader."""
    return UNSHOWABLE.sub(_escaped, raw.decode("utf-8", "backslashreplace"))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"
