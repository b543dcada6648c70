"""Who owns a slot, and whether that process is still alive.

Owns: the holder file of this process and the judgement about others. In this order: another boot is dead; a holder file
whose lock can be had is dead, seen at once after kill -9 and immune to pid reuse and clocks; a lease that is over is
lapsed, which is not dead. A missing file is not death. Refuses to call a hung process dead.
The file also bears witness: after each dispatch its process writes there how far the ledger's history had come. A store
that knows less has lost committed dispatches (its WAL was removed after a crash, an old copy was put back), and what it
takes for new may have been sent.
Source: flock(2): the lock belongs to the open file description, so a forked child must close its copy, or it would keep
its parent alive. sqlite.org/howtocorrupt.html 4.4: a database without its WAL opens without a word.
"""

import fcntl
import logging
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias

from audit.clock import Clock
from audit.keys import fresh_token

from .slots import Slot

__all__ = ["Holders", "Liveness"]

log = logging.getLogger(__name__)

Liveness: TypeAlias = Literal["alive", "lapsed", "dead"]

# Descriptors of this process's holder files; a forked child closes its copies before anything else.
_descriptors: dict[str, int] = {}
# Digits of the witness: as many as a 64-bit row id has. Written over itself, so that it needs no room on a full disk.
_WITNESS_DIGITS = 19


def _close_in_child() -> None:
    for descriptor in _descriptors.values():
        os.close(descriptor)
    _descriptors.clear()


os.register_at_fork(after_in_child=_close_in_child)


class Holders:
    """Holder files in one folder."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        """Makes nothing before the first claim."""
        self._folder = folder / "holders"
        self._clock = clock
        self._names: dict[int, str] = {}
        self._lock = threading.Lock()
        self._witnessed = 0

    def own(self) -> str:
        """The name of this process as a holder; its file is made and locked at the first use in a process."""
        pid = os.getpid()
        # Two threads may both be first: one name wins, the other file stays locked and unused until the process ends.
        return self._names.get(pid) or self._names.setdefault(pid, self._make())

    def witness(self, holder: str, seq: int) -> None:
        """Note beside the store that its history had come to `seq` when `holder` was about to send.

        No fsync: it must outlive the process, not the machine.
        """
        with self._lock:  # threads may come in another order than their commits
            self._witnessed = max(self._witnessed, seq)
            try:
                os.pwrite(_descriptors[holder], f"{self._witnessed:0{_WITNESS_DIGITS}d}".encode("ascii"), 0)
            except (OSError, KeyError) as error:
                # Evidence against a second fault is no reason to leave a committed dispatch unsent.
                log.warning("ledger.witness holder=%s: %s", holder, error)

    def furthest(self) -> tuple[int, str]:
        """How far the history had come by the word of any holder file, and which; (0, "") where nobody says.

        Does not write.
        """
        found = [(_witnessed(path), path.name) for path in self._folder.glob("*.*")] if self._folder.is_dir() else []
        return max(found, default=(0, ""))

    def liveness(self, slot: Slot) -> Liveness:
        """What is known of the holder of a claimed, dispatched or in-doubt slot. Does not write."""
        if slot.boot_id != self._clock.boot_id():
            return "dead"
        if slot.holder is not None and self._dead(slot.holder):
            return "dead"
        return "alive" if self._clock.mono_ms() < (slot.lease_mono_ms or 0) else "lapsed"

    def tidy(self, needed: Iterable[str]) -> int:
        """Remove the files of dead holders that no slot names any more; returns how many."""
        keep = set(needed)
        removed = 0
        for path in sorted(self._folder.glob("*.*")) if self._folder.is_dir() else []:
            if path.name not in keep and self._dead(path.name):
                path.unlink(missing_ok=True)
                removed += 1
        return removed

    def _dead(self, name: str) -> bool:
        try:
            descriptor = os.open(self._folder / name, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
        return True

    def _make(self) -> str:
        self._folder.mkdir(parents=True, exist_ok=True)
        while True:
            name = f"{os.getpid()}.{fresh_token()}"
            path = self._folder / name
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            try:
                # Between making and locking, somebody who tidies may have taken the file for a dead holder's.
                kept = path.stat().st_ino == os.fstat(descriptor).st_ino
            except FileNotFoundError:
                kept = False
            if kept:
                os.pwrite(descriptor, b"0" * _WITNESS_DIGITS, 0)
                _descriptors[name] = descriptor
                return name
            os.close(descriptor)


def _witnessed(path: Path) -> int:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return 0
    return int(text) if text.isdigit() else 0
