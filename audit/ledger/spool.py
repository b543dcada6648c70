"""Outcomes that the store could not take: one JSON line each, in `outcomes.spool` beside it.

Owns: adding a line durably and reading all of them once. Refuses to lose what it cannot read: such a line (torn by a
crash) is kept behind a `#`, for a person. The file may hold results, so it is only for its owner.
"""

import fcntl
import json
import logging
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from .tools import Failure
from .values import Stored

__all__ = ["Spool", "SpoolLine"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SpoolLine:
    """One outcome: a stored result or a failure, under the fence that it belongs to."""

    key: str
    fence: int
    stored: Stored | None
    failure: Failure | None


class Spool:
    """The spool file of one folder; made when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "outcomes.spool"

    def pending(self) -> bool:
        """True when lines wait to be read. Does not write."""
        try:
            return any(line and not line.startswith(b"#") for line in self._path.read_bytes().split(b"\n"))
        except FileNotFoundError:
            return False

    def add(self, line: SpoolLine) -> None:
        """Append one line; durable on return. Raises OSError."""
        text = json.dumps(asdict(line), ensure_ascii=True, separators=(",", ":")) + "\n"
        descriptor = os.open(self._path, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            os.write(descriptor, (b"\n" if torn else b"") + text.encode("ascii"))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def drain(self, apply: Callable[[SpoolLine], None]) -> int:
        """Apply every line, then empty the file; returns how many there were.

        An exception of `apply` leaves the file as it is.
        """
        try:
            descriptor = os.open(self._path, os.O_RDWR)
        except FileNotFoundError:
            return 0
        count, kept = 0, b""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
            for raw in data.split(b"\n"):
                if not raw or raw.startswith(b"#"):
                    kept += raw + b"\n" if raw else b""
                    continue
                try:
                    line = _read(raw)
                except (ValueError, KeyError, TypeError):
                    log.warning("ledger.spool: a line of %d bytes cannot be read; kept in %s", len(raw), self._path)
                    kept += b"# " + raw + b"\n"
                    continue
                apply(line)
                count += 1
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, kept, 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return count


def _read(raw: bytes) -> SpoolLine:
    value = json.loads(raw)
    stored = Stored(**value["stored"]) if value["stored"] is not None else None
    failure = Failure(**value["failure"]) if value["failure"] is not None else None
    return SpoolLine(str(value["key"]), int(value["fence"]), stored, failure)
