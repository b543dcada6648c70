"""Looking at the processes of a run from outside, through ``/proc``: which there are, and how far they have come.

A test that kills needs a moment, and a moment is something that can be seen: a process is there, has read a file, holds
a lock. Every wait ends with that, or with the end of the process, or after a bound.
"""

import contextlib
import fcntl
import os
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from tests.harness import PATIENCE_S, Ended

__all__ = [
    "BUILDER",
    "WORKER",
    "Work",
    "child",
    "end",
    "frozen_builder",
    "go_on",
    "has_all_its_input",
    "has_ended",
    "has_read",
    "has_work_to_do",
    "stop",
    "until",
    "waits_for_a_lock",
]

# The module that each kind of child runs.
BUILDER = "ingest.publish.builder"
WORKER = "ingest.parsing.worker"
# Between two looks; short against any step of a run.
LOOK_S = 0.001
PROC = Path("/proc")

Found = TypeVar("Found")


def until(look: Callable[[], Found | None], process: subprocess.Popen[str]) -> Found:
    """Look until there is something to see, and return it. Fails when the process ends first."""
    bound = time.monotonic() + PATIENCE_S
    while time.monotonic() < bound:
        has_ended_before = process.poll() is not None
        if found := look():
            return found
        if has_ended_before:
            output, errors = process.communicate()
            raise AssertionError(f"ended with {process.returncode} before it was seen: {output}{errors}")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_S)
    raise AssertionError("not seen in time")


def end(process: subprocess.Popen[str]) -> Ended:
    """Wait for a command to end."""
    output, errors = process.communicate(timeout=PATIENCE_S)
    return Ended(process.returncode, output, errors)


def child(process: subprocess.Popen[str], module: str, *, but: Collection[int] = ()) -> Callable[[], int | None]:
    """Return a look for a child that runs ``module`` and is not among ``but``: its pid."""

    def look() -> int | None:
        pids = (pid for pid in _descendants(process.pid) if pid not in but)
        return next((pid for pid in pids if module.encode() in _command(pid)), None)

    return look


def stop(pid: int) -> None:
    """Freeze a process; it is frozen on return."""
    os.kill(pid, signal.SIGSTOP)
    bound = time.monotonic() + PATIENCE_S
    while _stat(pid)[:1] not in (["T"], ["Z"]):
        assert time.monotonic() < bound, f"process {pid} goes on"


def go_on(pid: int) -> None:
    """Let a frozen process go on; one that is gone by now is no error."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def has_ended(pid: int) -> bool:
    """Tell whether a process, not necessarily a child of ours, is gone."""
    return _stat(pid)[:1] in ([], ["Z"])


def has_read(pid: int, size_bytes: int) -> Callable[[], bool]:
    """Return a look for the moment when a process has read so many bytes, from whatever files."""
    return lambda: _io(pid).get("rchar", 0) >= size_bytes


def frozen_builder(process: subprocess.Popen[str]) -> int:
    """Freeze the builder of a run when it has just said that it is ready, and return its pid; the run goes on."""
    builder = until(child(process, BUILDER), process)
    # The run stands still meanwhile, or it would have taken the message, and might have sent the first work.
    stop(process.pid)
    until(lambda: any(_unread_bytes(builder, fd) for fd in _pipes(builder) - {0}), process)
    stop(builder)
    go_on(process.pid)
    return builder


def has_work_to_do(pid: int) -> bool:
    """Tell whether something waits in the pipe that is the stdin of a process."""
    return _unread_bytes(pid, 0) > 0


def has_all_its_input(pid: int, writer: int) -> bool:
    """Tell whether ``writer`` has closed its end of the pipe that is the stdin of a process."""
    pipe = str((PROC / str(pid) / "fd" / "0").readlink())
    held: set[str] = set()
    for handle in (PROC / str(writer) / "fd").iterdir():
        with contextlib.suppress(OSError):  # closed since it was listed
            held.add(str(handle.readlink()))
    return pipe not in held


def waits_for_a_lock(pid: int) -> bool:
    """Tell whether the kernel lists a process among those that wait for a flock."""
    lines = (PROC / "locks").read_text(encoding="ascii").splitlines()
    return any("->" in line and "FLOCK" in line and f" {pid} " in line for line in lines)


class Work:
    """How much a process and its children have done: system calls that read or write, and ticks of CPU.

    It stands still while all of them do, and unlike a clock it does not run on while another process has the CPU. So
    "at the n-th unit of work" is about the same moment in every repetition of a run.
    """

    # A tick is 10 ms; so many calls a run makes in that time where it reads and writes.
    TICK = 50

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._most: dict[int, int] = {}

    def done(self) -> int:
        """Return the work up to now; what ended children did still counts."""
        for pid in (self._process.pid, *_descendants(self._process.pid)):
            self._most[pid] = max(self._most.get(pid, 0), self._of(pid))
        return sum(self._most.values())

    def _of(self, pid: int) -> int:
        counts, fields = _io(pid), _stat(pid)
        ticks = int(fields[11]) + int(fields[12]) if fields else 0
        return counts.get("syscr", 0) + counts.get("syscw", 0) + ticks * self.TICK


def _descendants(pid: int) -> list[int]:
    """Return children and their children; none where the process has ended."""
    try:
        words = (PROC / str(pid) / "task" / str(pid) / "children").read_text(encoding="ascii").split()
    except OSError:
        return []
    found = [int(word) for word in words]
    return found + [below for one in found for below in _descendants(one)]


def _pipes(pid: int) -> set[int]:
    """Return the descriptors of a process that are pipes."""
    found: set[int] = set()
    for handle in (PROC / str(pid) / "fd").iterdir():
        with contextlib.suppress(OSError):  # closed since it was listed
            if str(handle.readlink()).startswith("pipe:"):
                found.add(int(handle.name))
    return found


def _unread_bytes(pid: int, fd: int) -> int:
    """Return how many bytes wait in a pipe that a process holds, at either end; none is taken out of it."""
    handle = os.open(PROC / str(pid) / "fd" / str(fd), os.O_RDONLY | os.O_NONBLOCK)
    try:
        (waiting,) = struct.unpack("i", fcntl.ioctl(handle, termios.FIONREAD, b"\0" * 4))
    finally:
        os.close(handle)
    return int(waiting)


def _io(pid: int) -> dict[str, int]:
    """Return what ``/proc/PID/io`` counts; nothing where the process is gone."""
    try:
        lines = (PROC / str(pid) / "io").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    return {name: int(number) for name, _, number in (line.partition(": ") for line in lines)}


def _command(pid: int) -> bytes:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


def _stat(pid: int) -> list[str]:
    """Return the fields of ``/proc/PID/stat`` from the state on."""
    try:
        return (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
