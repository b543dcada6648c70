"""Public test kit: a clock that the test moves, and child processes that die or wait at a named point.

Owns: doubles and faults that hosts use to test their own tools. Refuses to be armed from the environment.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Generic, Literal, TypeVar

from .failpoints import arm, failpoint

__all__ = ["Child", "FakeClock", "failpoint", "run_child"]

T = TypeVar("T")

# How long a test waits for an event of a child before it fails; a bound, never a pace.
PATIENCE_S = 60.0


@dataclass
class FakeClock:
    """A clock that stands still until the test moves it.

    Picklable, so that child processes can start at the same time.
    """

    wall: int = 1_700_000_000_000
    mono: int = 1_000_000
    boot: str = "boot-1"

    def wall_ms(self) -> int:
        """See Clock."""
        return self.wall

    def mono_ms(self) -> int:
        """See Clock."""
        return self.mono

    def boottime_ms(self) -> int:
        """See Clock; equal to the monotonic clock, as if the machine had never slept."""
        return self.mono

    def boot_id(self) -> str:
        """See Clock."""
        return self.boot

    def advance(self, seconds: float) -> None:
        """Let time pass as it should: wall and monotonic clock together."""
        self.wall += round(seconds * 1000)
        self.mono += round(seconds * 1000)

    def set_wall(self, by_seconds: float) -> None:
        """Somebody sets the wall clock; no time passes."""
        self.wall += round(by_seconds * 1000)

    def reboot(self, *, off_s: float = 0.0) -> None:
        """A new boot, after `off_s` seconds without power."""
        self.wall += round(off_s * 1000)
        self.mono = 1_000
        self.boot = f"boot-{int(self.boot.rpartition('-')[2]) + 1}"


class Child(Generic[T]):
    """A process that runs one function. It ends by returning, by an exception, or by SIGKILL at its failpoint."""

    def __init__(self, process: "multiprocessing.process.BaseProcess", answers: "Connection[object, object]") -> None:
        self._process = process
        self._answers = answers
        self._reached = False

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid or 0

    def wait_reached(self) -> None:
        """Wait until the child stands at its failpoint; only with `hold`."""
        self._receive("reached")
        self._reached = True

    def release(self) -> None:
        """Let a held child go on from its failpoint."""
        self._answers.send("go")

    def kill(self) -> None:
        """SIGKILL, wherever it is."""
        self._process.kill()

    def result(self) -> T:
        """What the function returned. Raises RuntimeError when it raised or was killed."""
        value = self._receive("done")
        self._process.join(PATIENCE_S)
        return value  # type: ignore[return-value]  # the pipe is untyped; the child sends what fn returned

    def ended(self) -> int:
        """Wait for the end: 0 returned, 1 raised, -9 killed."""
        self._process.join(PATIENCE_S)
        if self._process.exitcode is None:
            raise RuntimeError(f"child {self.pid}: still running after {PATIENCE_S:.0f} s")
        return self._process.exitcode

    def _receive(self, expected: str) -> object:
        if not self._answers.poll(PATIENCE_S):
            raise RuntimeError(f"child {self.pid}: no sign of life in {PATIENCE_S:.0f} s")
        try:
            said = self._answers.recv()
        except EOFError:
            raise RuntimeError(f"child {self.pid}: ended with {self.ended()} before it was {expected}") from None
        if not isinstance(said, tuple) or said[0] != expected:
            raise RuntimeError(f"child {self.pid}: {said} where {expected} was awaited")
        return said[1]


@contextmanager
def run_child(
    fn: Callable[..., T],
    *args: object,
    failpoint: str | None = None,
    hold: bool = False,
    method: Literal["fork", "spawn"] = "fork",
) -> Iterator[Child[T]]:
    """Run `fn(*args)` in a fresh process, killed by SIGKILL at the failpoint, or held there; none outlives the block.

    method "spawn" starts a new interpreter and needs a picklable function; "fork" is fast.
    """
    context = multiprocessing.get_context("fork") if method == "fork" else multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_in_child, args=(theirs, fn, args, failpoint, hold))
    process.start()
    theirs.close()
    child: Child[T] = Child(process, ours)
    try:
        yield child
        process.join(PATIENCE_S)
    finally:
        if process.is_alive():
            process.kill()
        process.join()
        ours.close()


def _in_child(
    answers: "Connection[object, object]",
    fn: Callable[..., object],
    args: tuple[object, ...],
    point: str | None,
    hold: bool,
) -> None:
    if point is not None:
        arm(point, (lambda: _hold(answers)) if hold else (lambda: os.kill(os.getpid(), signal.SIGKILL)))
    answers.send(("done", fn(*args)))


def _hold(answers: "Connection[object, object]") -> None:
    answers.send(("reached", None))
    answers.recv()
