"""The walk of a scan: iterative, on folder descriptors, names in the order of their bytes, pruned before descent.

It never opens a file (but for ignore files), follows no link unless told to, and never fails for something below a
root: what it could not read is an unobserved prefix, of which nothing may be removed (I6). Writes nothing.
"""

import errno
import logging
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from .opening import GONE, PASS, READ, Descent, NotRegular, reason_of
from .roots import Settled
from .rules import IGNORE_FILES, IgnoreFile, Patterns, Rules, name_rule
from .seen import Root, RootError, Scan, Scope, Seen, Skip, StatTuple, Unobserved, is_under, parts_of, shown_text

__all__ = ["Walk"]

logger = logging.getLogger(__name__)

# A tree deeper than this is a mistake or an attack; no real one was met beyond a few dozen.
MAX_DEPTH = 1000
# Coarsest time stamps still in use (FAT: 2 s). A file changed within this span before a scan may change again without
# a new time stamp.
RACY_NS = 2_000_000_000
# An ignore file beyond this is no ignore file; git reads larger ones, nobody writes them.
MAX_IGNORE_FILE_BYTES = 1 << 20

# What the constructor of a named tuple calls in the end; without its frame, made 200,000 times in a large tree.
new_tuple = tuple.__new__
ENCODING, ENCODE_ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()


class _Folder(NamedTuple):
    """A folder still to be listed: its components below the root, and the patterns that hold in it."""

    parts: tuple[bytes, ...]
    patterns: Patterns


class Walk:
    """The state of one scan."""

    def __init__(self, settled: Settled, rules: Rules, now_ns: int) -> None:
        self._settled = settled
        self._rules = rules
        self._index = os.fsencode(os.path.realpath(rules.index)) if rules.index is not None else None
        self._ignore_names = [name for name in IGNORE_FILES if rules.use_gitignore or name != ".gitignore"]
        self._racy_from = now_ns - RACY_NS
        self._scopes: list[Scope] = []
        self._seen: list[Seen] = []
        self._skips: list[Skip] = []
        self._unobserved: list[Unobserved] = []
        self._errors = list(settled.errors)
        self._gone: list[bytes] = []
        self._folders: list[bytes] = []
        # Real folders already listed. A real path is listed once, so links cannot lead in circles; without links and
        # overlapping roots no path is reached twice, and nothing is noted.
        self._listed: set[bytes] = set()
        self._noting = rules.follow_symlinks or bool(settled.inner)
        self._links: list[Scope] = []

    def cover(self, scope: Scope, *, link: bool = False) -> None:
        """Read a scope. What cannot be opened at all is an error of the root, or unobserved where a link led there."""
        home = scope.home
        parts = parts_of(scope.prefix, home.path)
        try:
            with closing(Descent(home.path)) as descent:
                patterns = self._patterns_above(descent, parts, file=scope.file)
                if scope.file:
                    self._file(descent, scope, parts, patterns)
                else:
                    self._tree(descent, home, _Folder(parts, patterns))
        except OSError as error:
            if link:
                self._unobserved.append(Unobserved(scope.prefix, home, reason_of(error)))
            else:
                self._errors.append(RootError(shown_text(scope.prefix), scope.prefix, reason_of(error)))
        else:
            self._scopes.append(scope)

    def cover_inner(self) -> None:
        """Read what was given by name inside an outer root and was left out there by a rule."""
        seen = {source.path for source in self._seen} if self._settled.inner else set()
        for scope in self._settled.inner:
            if scope.prefix not in (seen if scope.file else self._listed):
                self.cover(scope)

    def follow_links(self) -> None:
        """Read what links led to, until no new links turn up."""
        while self._links:
            targets, self._links = sorted(set(self._links), key=lambda scope: scope.prefix), []
            for scope in targets:
                self.cover(scope, link=True)

    def result(self) -> Scan:
        """Return what was met, sorted, each real path once."""
        given = {scope.prefix for scope in (*self._settled.outer, *self._settled.inner)}
        failed = [Unobserved(error.prefix, self._settled.home(error.prefix), error.reason) for error in self._errors]
        if self._noting:
            self._seen = list({source.path: source for source in self._seen}.values())
        self._seen.sort()
        return Scan(
            roots=self._settled.roots,
            superseded=self._settled.superseded,
            scopes=tuple(_outer_scopes(self._scopes)),
            seen=tuple(self._seen),
            skips=tuple(skip for _, skip in sorted({s.path: s for s in self._skips if s.path not in given}.items())),
            unobserved=tuple(item for _, item in sorted({u.prefix: u for u in [*failed, *self._unobserved]}.items())),
            errors=tuple(sorted(set(self._errors))),
            gone=tuple(sorted(set(self._gone))),
            folders=tuple(sorted(set(self._folders))),
        )

    def _patterns_above(self, descent: Descent, parts: tuple[bytes, ...], *, file: bool) -> Patterns:
        """Return the patterns that hold in a scope, from the ignore files between its root and it.

        Ignore files that leave the scope itself out do not count, since it was given by name.
        """
        patterns = Patterns.of(self._rules)
        for depth in range(len(parts)):
            with descent.folder(parts[:depth], PASS) as folder:
                patterns = self._with_ignore_files(folder, self._ignore_names, parts[:depth], patterns)
            path = os.fsdecode(b"/".join(parts[: depth + 1]))
            if patterns.ignored(path, folder=not (file and depth == len(parts) - 1)):
                patterns = Patterns.of(self._rules)
        return patterns

    def _file(self, descent: Descent, scope: Scope, parts: tuple[bytes, ...], patterns: Patterns) -> None:
        self._folders.append(_join(scope.home.path, parts[:-1]))
        with descent.folder(parts[:-1], PASS) as folder:
            found = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode):
            raise NotRegular(errno.EINVAL, "not a regular file")
        rule = patterns.setting_rule(os.fsdecode(b"/".join(parts)), folder=False)
        if rule is not None:
            self._skips.append(Skip(scope.prefix, scope.home, rule))
        else:
            self._meet(scope.prefix, scope.home, found)

    def _tree(self, descent: Descent, home: Root, top: _Folder) -> None:
        """List a folder and all below it. Raises ``OSError`` if that fails for the folder itself."""
        pending = self._list(descent, home, top)
        while pending:
            folder = pending.pop()
            try:
                pending.extend(self._list(descent, home, folder))
            except OSError as error:
                self._miss(_join(home.path, folder.parts), home, error)

    def _list(self, descent: Descent, home: Root, folder: _Folder) -> list[_Folder]:
        """Take in the files of one folder; return its folders, the first one last. Raises ``OSError``."""
        parts = folder.parts
        real = _join(home.path, parts)
        if self._noting:
            if real in self._listed:
                return []
            self._listed.add(real)
        self._folders.append(real)
        prefix = real if real.endswith(b"/") else real + b"/"
        shown = os.fsdecode(b"/".join((*parts, b"")))
        below: list[_Folder] = []
        with descent.folder(parts) as opened:
            with os.scandir(opened) as entries:
                listing = {entry.name.encode(ENCODING, ENCODE_ERRORS): entry for entry in entries}
            ignore_names = [name for name in self._ignore_names if os.fsencode(name) in listing]
            patterns = self._with_ignore_files(opened, ignore_names, parts, folder.patterns)
            matching, hidden = patterns.active, self._rules.hidden
            for raw in sorted(listing):
                entry = listing[raw]
                path = prefix + raw
                try:
                    is_folder = entry.is_dir(follow_symlinks=False)
                    rule = name_rule(entry.name, is_folder, hidden)
                    if rule is None and matching:
                        rule = patterns.rule(shown + entry.name, folder=is_folder)
                    if rule is None:
                        if is_folder:
                            rule = self._enter(home, path, _Folder((*parts, raw), patterns), below)
                        elif entry.is_symlink():
                            rule = self._link(opened, raw, real)
                        else:
                            rule = self._meet(path, home, entry.stat(follow_symlinks=False))
                except OSError as error:
                    self._miss(path, home, error)
                else:
                    if rule is not None:
                        self._skips.append(Skip(path, home, rule))
        below.reverse()
        return below

    def _enter(self, home: Root, path: bytes, folder: _Folder, below: list[_Folder]) -> str | None:
        if path == self._index:
            return "index"
        if len(folder.parts) > MAX_DEPTH:
            self._unobserved.append(Unobserved(path, home, f"more than {MAX_DEPTH} folders deep"))
        else:
            below.append(folder)
        return None

    def _meet(self, path: bytes, home: Root, found: os.stat_result) -> str | None:
        if not stat.S_ISREG(found.st_mode):
            return "special"
        mtime, ctime = found.st_mtime_ns, found.st_ctime_ns
        racy = mtime >= self._racy_from or ctime >= self._racy_from
        stats = new_tuple(StatTuple, (found.st_size, mtime, ctime, found.st_ino, found.st_dev))
        self._seen.append(new_tuple(Seen, (path, home, stats, racy)))
        return None

    def _link(self, folder: int, name: bytes, real: bytes) -> str | None:
        """Return why a link is not followed, or None and remember where it leads."""
        try:
            mode = os.stat(name, dir_fd=folder).st_mode
            if not self._rules.follow_symlinks:
                return "symlink"
            target = os.path.realpath(os.path.join(real, os.readlink(name, dir_fd=folder)), strict=True)  # noqa: PTH118  (bytes)
        except OSError:
            return "broken-symlink"
        home = self._settled.home(target)
        if home is None:
            return "link-target"
        if self._index is not None and is_under(target, self._index):
            return "index"
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            return "special"
        self._links.append(Scope(target, home, stat.S_ISREG(mode)))
        return None

    def _miss(self, path: bytes, home: Root, error: OSError) -> None:
        """Note what was listed and could not be looked at."""
        if error.errno in GONE:
            logger.debug("scan.gone reason=%s", reason_of(error))
            self._gone.append(path)
        else:
            self._unobserved.append(Unobserved(path, home, reason_of(error)))

    def _with_ignore_files(
        self, folder: int, names: Sequence[str], parts: Sequence[bytes], patterns: Patterns
    ) -> Patterns:
        """Return the patterns with those of the folder's ignore files.

        Raises ``OSError`` for one that cannot be read: what it would leave out must not be taken in by mistake. A link
        is none, as for git.
        """
        base = os.fsdecode(b"/".join((*parts, b"")))
        files = []
        for name in names:
            try:
                opened = os.open(name, READ, dir_fd=folder)
            except OSError as error:
                if error.errno in GONE:
                    continue
                raise
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                os.close(opened)
                continue
            with os.fdopen(opened, "rb") as stream:
                content = stream.read(MAX_IGNORE_FILE_BYTES + 1)
            if len(content) > MAX_IGNORE_FILE_BYTES:
                raise OSError(errno.EFBIG, f"{name} is larger than {MAX_IGNORE_FILE_BYTES} bytes")
            file = IgnoreFile.parse(name, base, content)
            if file is not None:
                files.append(file)
        return patterns.with_ignore_files(files) if files else patterns


def _join(root: Path, parts: Sequence[bytes]) -> bytes:
    start = os.fsencode(root)
    return b"/".join((start if parts and start != b"/" else start.rstrip(b"/"), *parts)) or b"/"


def _outer_scopes(scopes: Sequence[Scope]) -> Iterator[Scope]:
    """Yield the scopes that no other one covers, by path."""
    outer: list[Scope] = []
    for scope in sorted(set(scopes), key=lambda scope: (len(scope.prefix), scope.prefix)):
        if not any(other.covers(scope.prefix) for other in outer):
            outer.append(scope)
    yield from sorted(outer, key=lambda scope: scope.prefix)
