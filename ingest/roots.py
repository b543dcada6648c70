"""The roots of a run: which folders it covers, and under which outermost root and label their sources are shown.

A root is a real folder; links are resolved once, here. Roots that overlap collapse to the outermost one known, whatever
the order in which they were given and whichever was known first. Reads the file system, opens and writes nothing.
"""

import os
import stat
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .opening import reason_of
from .rules import Rules
from .seen import Root, RootError, Scope, is_under, shown_text

__all__ = ["Settled", "settle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Roots that stand, and the scopes of a run. ``outer`` do not overlap; ``inner`` lie in them, given by name too."""

    roots: tuple[Root, ...]
    superseded: Mapping[str, Root]
    outer: tuple[Scope, ...]
    inner: tuple[Scope, ...]
    errors: tuple[RootError, ...]

    def home(self, path: bytes) -> Root | None:
        """Return the root under which a real path is shown, or None."""
        return next((root for root in self.roots if is_under(path, os.fsencode(root.path))), None)


def settle(given: Sequence[Path], known: Sequence[Root], rules: Rules) -> Settled:
    """Return the roots and scopes of a run, equal for every order of ``given``. Does not write, raises nothing.

    A file as root covers itself alone and is shown below its folder. Folders of ``link_targets`` are roots as well,
    where links are followed, but no scopes.
    """
    index = os.fsencode(os.path.realpath(rules.index)) if rules.index is not None else None
    found: dict[bytes, bool] = {}  # real path to whether it is a file
    errors = []
    for typed in given:
        try:
            real = _real(typed)
            mode = os.stat(real).st_mode  # noqa: PTH116  (bytes: Path would decode them)
        except OSError as error:
            errors.append(_error(typed, reason_of(error)))
            continue
        if index is not None and is_under(real, index):
            errors.append(_error(typed, "is inside the index folder"))
        elif stat.S_ISDIR(mode) or stat.S_ISREG(mode):
            found[real] = stat.S_ISREG(mode)
        else:
            errors.append(_error(typed, "is neither a folder nor a regular file"))

    folders = {os.path.dirname(path) if file else path for path, file in found.items()}  # noqa: PTH120  (bytes)
    if rules.follow_symlinks:
        folders.update(_link_targets(rules.link_targets))
    roots, superseded = _outermost(folders, known)
    settled = Settled(roots=roots, superseded=superseded, outer=(), inner=(), errors=())
    outer: list[Scope] = []
    inner: list[Scope] = []
    for path in sorted(found, key=lambda path: (len(path), path)):
        home = settled.home(path)
        assert home is not None, "every folder given lies under a root"  # noqa: S101  (_outermost made it so)
        scope = Scope(path, home, found[path])
        (inner if any(other.covers(path) for other in outer) else outer).append(scope)
    return Settled(
        roots=roots,
        superseded=superseded,
        outer=tuple(sorted(outer)),
        inner=tuple(sorted(inner)),
        errors=tuple(sorted(set(errors))),
    )


def _outermost(folders: Iterable[bytes], known: Sequence[Root]) -> tuple[tuple[Root, ...], dict[str, Root]]:
    """Return the roots that no other root contains, by path, and for the labels of all others the root they went to."""
    by_path = {os.fsencode(root.path): root for root in known}
    taken = {root.name for root in known}
    roots: list[Root] = []
    superseded: dict[str, Root] = {}
    for path in sorted({*by_path, *folders}):  # a folder sorts before all that it contains
        outer = next((root for root in roots if is_under(path, os.fsencode(root.path))), None)
        if outer is None:
            roots.append(by_path[path] if path in by_path else Root(Path(os.fsdecode(path)), _label(path, taken)))
            taken.add(roots[-1].name)
        elif path in by_path:
            superseded[by_path[path].name] = outer
    return tuple(roots), superseded


def _label(path: bytes, taken: Iterable[str]) -> str:
    """Return the folder's name, or with the first free number behind it; never more of the path than that."""
    name = shown_text(os.path.basename(path)) or "root"  # noqa: PTH119  (bytes)
    label, number = name, 2
    while label in taken:
        label, number = f"{name}-{number}", number + 1
    return label


def _real(path: Path) -> bytes:
    """Return the real path of what a user typed: as given, else by NFC where exactly one listed name agrees."""
    try:
        return os.fsencode(os.path.realpath(path, strict=True))
    except FileNotFoundError:
        spelled = _spelled_as_listed(path)
        if spelled is None:
            raise
        return os.fsencode(os.path.realpath(spelled, strict=True))


def _spelled_as_listed(path: Path) -> Path | None:
    found = Path(path.anchor)
    for part in path.parts[1 if path.anchor else 0 :]:
        if not (found / part).exists():
            wanted = unicodedata.normalize("NFC", part)
            try:
                listed = [name for name in os.listdir(found) if unicodedata.normalize("NFC", name) == wanted]  # noqa: PTH208
            except OSError:
                return None
            if len(listed) != 1:
                return None
            part = listed[0]
        found /= part
    return found


def _link_targets(folders: Iterable[Path]) -> set[bytes]:
    real = (os.path.realpath(folder) for folder in folders)
    return {os.fsencode(folder) for folder in real if os.path.isdir(folder)}  # noqa: PTH112  (as the line before)


def _error(path: Path, reason: str) -> RootError:
    return RootError(shown_text(os.fsencode(path)), os.fsencode(os.path.realpath(path)), reason)
