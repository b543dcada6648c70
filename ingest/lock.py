"""The writer lock: one run at a time writes an index (step 1 of a run).

``flock`` on ``writer.lock``: the kernel lets go of it when the holder dies, however it dies, so a lock can never be
left behind. The holder writes its pid and start time into the file for the message that the second run prints; the text
is only a message, never evidence of a living holder.

The builder process has a lock of its own, since it may outlive a run that was killed: the next run must not clear away,
or build again, what that one is still writing.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from search.errors import IndexLocked

__all__ = ["hold", "take"]


@contextmanager
def hold(path: Path, *, wait: bool) -> Iterator[None]:
    """Hold the writer lock for the length of the block. Makes the folder and the file if they are not there.

    With ``wait`` the call blocks until the holder is done. Raises ``IndexLocked``, naming the holder, otherwise.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise IndexLocked(
                f"index {path.parent.parent}: held by another run ({_holder(handle)}); "
                "wait for it (--wait does) or stop it"
            ) from None
        _sign(handle)
        yield
    finally:
        os.close(handle)


def take(path: Path) -> int:
    """Take the lock of a child process, waiting for the child that has it; return the descriptor.

    ``flock`` belongs to the open file, not to a process: handed to a child and closed here, it is held until the child
    has ended, whatever becomes of this process.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except BaseException:  # cleans up and raises again: Ctrl-C may end the wait
        os.close(handle)
        raise
    return handle


def _sign(handle: int) -> None:
    text = json.dumps({"pid": os.getpid(), "started_ms": time.time_ns() // 1_000_000})
    os.ftruncate(handle, 0)
    os.pwrite(handle, text.encode(), 0)


def _holder(handle: int) -> str:
    """Describe the holder from what it wrote; it may not have written anything yet."""
    try:
        holder = json.loads(os.pread(handle, 1000, 0))
        started = datetime.fromtimestamp(holder["started_ms"] / 1000, tz=UTC).astimezone()
    except (ValueError, KeyError, TypeError):
        return "it has just begun"
    return f"pid {holder['pid']}, started {started.isoformat(timespec='seconds')}"
