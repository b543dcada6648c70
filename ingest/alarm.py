"""Tells that something changed in the folders that a run lists: what ``ingest run --watch`` wakes up by.

An alarm decides nothing but when the next run begins. Each folder of a scan is watched by itself: so rules prune it as
they prune a run, links are not followed into the rest of the disk (a recursive watch does, measured), and the index
does not wake its own writer. Whatever cannot be watched is left to the runs that begin by the clock. Writes nothing.
"""

import logging
import os
import time
from collections.abc import Callable, Collection, Generator, Sequence
from pathlib import Path

from .rules import IGNORE_FILES, name_rule

__all__ = ["Alarm"]

log = logging.getLogger(__name__)

# How long the watcher collects before it hands over, and so how soon Ctrl-C is heard.
STEP_MS = 100
# How often folders are listed anew because one of them vanished before it could be watched.
ATTEMPTS = 3

Changes = set[tuple[object, str]]


class Alarm:
    """Watches the folders that ``folders`` names when it is armed, and whether each root is still the one it was.

    ``blind`` says why nothing, or not everything, can be watched; or is None.
    """

    def __init__(
        self,
        folders: Callable[[], Collection[bytes]],
        roots: Sequence[Path],
        *,
        hidden: bool,
        settle_s: float,
        patience_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folders = folders
        self._roots = tuple(roots)
        # A file that is named as a root is read whatever it is called.
        self._named = frozenset(os.path.realpath(root) for root in roots)
        self._hidden = hidden
        self._settle_s = settle_s
        self._patience_s = patience_s
        self._clock = clock
        self._identities: tuple[tuple[int, int] | None, ...] = ()
        self._changes: Generator[Changes, None, None] | None = None
        self.blind: str | None = None

    def arm(self) -> None:
        """Watch the folders as they are now. What changes from here on is told; what changed before is not."""
        self.close()
        self._identities = self._look()
        for _ in range(ATTEMPTS):
            try:
                self.blind = self._set_up()
            except FileNotFoundError as error:  # a folder vanished after it was listed
                self.blind = _reason(error)
            except (OSError, RuntimeError) as error:  # the last: what the library has of its own
                self.blind = _reason(error)
                break
            else:
                return
        self.close()
        log.info("watch.blind reason=%s", self.blind)

    def wait(self, timeout_s: float) -> bool:
        """Wait for a change, then until none came for ``settle_s``, but no longer than ``patience_s``.

        False after about ``timeout_s`` without one.
        """
        first = last = None
        begun = self._clock()
        while True:
            told = self._told()
            now = self._clock()
            if told:
                first, last = now if first is None else first, now
            if first is not None and last is not None:
                if now - last >= self._settle_s or now - first >= self._patience_s:
                    return True
            elif now - begun >= timeout_s:
                return False

    def close(self) -> None:
        """Watch nothing any more. May be called twice."""
        if self._changes is not None:
            self._changes.close()
            self._changes = None

    def _set_up(self) -> str | None:
        """Watch what can be watched; return why some of it cannot."""
        folders = self._folders()
        paths = [path for folder in folders if (path := _text(folder)) is not None]
        self.close()
        if paths:
            self._changes = _watch(paths)
            next(self._changes)  # the first step sets up the watches
        odd = len(folders) - len(paths)
        return f"folders whose names are not UTF-8: {odd}" if odd else None

    def _told(self) -> bool:
        """Return whether anything changed within one step."""
        if self._changes is None:
            time.sleep(STEP_MS / 1000)
            changes: Changes = set()
        else:
            try:
                changes = next(self._changes)
            except (OSError, RuntimeError, StopIteration) as error:  # such as a name that is not UTF-8
                log.debug("watch.lost reason=%s", _reason(error))
                self.close()
                return True
        identities = self._look()
        moved, self._identities = identities != self._identities, identities
        return moved or any(self._matters(path) for _, path in changes)

    def _matters(self, path: str) -> bool:
        name = os.path.basename(path)  # noqa: PTH119  (for a name alone)
        if name in IGNORE_FILES or path in self._named:
            return True
        return name_rule(name, os.path.isdir(path), self._hidden) is None  # noqa: PTH112

    def _look(self) -> tuple[tuple[int, int] | None, ...]:
        """Return what each root is; a root that vanished, came back or was replaced has no watch that would tell."""
        return tuple(_identity(root) for root in self._roots)


def _watch(paths: Sequence[str]) -> Generator[Changes, None, None]:
    """Yield what changed in each step, an empty set where nothing did."""
    from watchfiles import watch

    return watch(  # type: ignore[return-value]  # the kind of a change is of no interest here
        *paths, watch_filter=None, recursive=False, debounce=STEP_MS, step=STEP_MS, rust_timeout=STEP_MS,
        yield_on_timeout=True, ignore_permission_denied=True,
    )  # fmt: skip


def _text(folder: bytes) -> str | None:
    """Return a path as the library takes it, or None."""
    try:
        return folder.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
