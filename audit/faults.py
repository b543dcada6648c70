"""Public test kit.

Faults around a tool, a target that counts its effects, children that die at a named point, a clock to move.

Owns: doubles and faults that hosts use to test their own tools. Effects are counted in a file of the target, never in
the ledger's. Refuses to be armed from the environment.
"""

import fcntl
import json
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Generic, Literal, TypeVar

from .audit import Audit
from .failpoints import arm, failpoint
from .keys import JsonValue
from .ledger import Call, Found, NotFound, Outcome, Tool

__all__ = [
    "Act",
    "Child",
    "Counts",
    "FakeClock",
    "Target",
    "counting",
    "crash_after_success",
    "duplicate_delivery",
    "failpoint",
    "fake_error",
    "lost_reply",
    "run_child",
    "slow_reply",
]

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
        self.ended()
        return value  # type: ignore[return-value]  # the pipe is untyped; the child sends what fn returned

    def ended(self) -> int:
        """Wait for the end: 0 returned, 1 raised, -9 killed."""
        if self._process.exitcode is None:
            # Not join with a timeout: that waits for a pipe which grandchildren inherit, and so for their end, too.
            descriptor = os.pidfd_open(self.pid)
            try:
                if not connection.wait([descriptor], PATIENCE_S):
                    raise RuntimeError(f"child {self.pid}: still running after {PATIENCE_S:.0f} s")
            finally:
                os.close(descriptor)
            self._process.join()
        return self._process.exitcode if self._process.exitcode is not None else -1

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
        child.ended()
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


@dataclass(frozen=True)
class Act:
    """One effect of a target: its arguments, the key it came with, and its number, from 1."""

    args: Mapping[str, JsonValue]
    key: str
    receipt: int


class Target:
    """A service outside: it acts by appending a durable line to a file of its own, and counts what it did.

    ability: `none`, `lookup` (it can be asked), `key` (it acts once per key), `both`.
    """

    def __init__(self, path: Path, ability: Literal["none", "lookup", "key", "both"] = "none") -> None:
        self.path = path
        self.ability = ability

    def act(self, call: Call) -> JsonValue:
        """Do the effect, unless the key was honoured before; returns a receipt. Killed at F3 it has not acted yet."""
        failpoint("F3")
        with self.path.open("a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            done = self.acts()
            known = self._by_key(call) if self.ability in ("key", "both") else None
            if known is None:
                known = Act(call.args, call.downstream_key, len(done) + 1)
                file.write(json.dumps(known.__dict__) + "\n")
                file.flush()
                os.fsync(file.fileno())
        return {"receipt": known.receipt}

    def find(self, call: Call) -> Found | NotFound:
        """Look for the effect of a call by its key."""
        known = self._by_key(call)
        return NotFound() if known is None else Found({"receipt": known.receipt})

    def acts(self) -> tuple[Act, ...]:
        """Every effect so far, in order."""
        if not self.path.exists():
            return ()
        return tuple(Act(**json.loads(line)) for line in self.path.read_text(encoding="utf-8").splitlines())

    def _by_key(self, call: Call) -> Act | None:
        return next((act for act in self.acts() if act.key == call.downstream_key), None)

    def effects(self, *identity: str) -> Counter[tuple[object, ...]]:
        """Effects per intent: per combination of the identity arguments."""
        return Counter(tuple(act.args.get(name) for name in identity) for act in self.acts())

    def tool(self, run: Callable[[Call], object] | None = None, **options: object) -> Tool:
        """A dangerous tool over this target, with the identity `order`, `purpose`; `run` and options override."""
        given: dict[str, object] = {
            "name": "send",
            "tool_class": "dangerous",
            "run": run or self.act,
            "identity": ("order", "purpose"),
            "intent": "purpose",
            "lookup": self.find if self.ability in ("lookup", "both") else None,
            "honours_key": self.ability in ("key", "both"),
            "key_ttl_s": 3600.0 if self.ability in ("key", "both") else None,
        }
        return Tool(**{**given, **options})  # type: ignore[arg-type]  # options of Tool, by name


@dataclass(frozen=True)
class Counts:
    """The four counters.

    Effects per intent, rows per key, units per request:step:meter, events per request:step:kind:part.
    """

    effects: Mapping[tuple[object, ...], int]
    rows: Mapping[str, int]
    units: Mapping[str, int]
    events: Mapping[str, int]
    problems: tuple[str, ...]

    def expect(self, *, effects: int = 1, intents: int = 1, rows: int | None = None, units: int | None = None) -> None:
        """Raise AssertionError unless every intent has that many effects and the file is sound.

        Each key, unit and event must be there once. intents: how many different ones must have been acted on. rows,
        units: how many keys there must be in all.
        """
        wanted = {effects} if effects and intents else set()
        _check(set(self.effects.values()) == wanted, f"effects: {dict(self.effects)}")
        _check(not wanted or len(self.effects) == intents, f"intents: {dict(self.effects)}")
        for name, counter in (("rows", self.rows), ("units", self.units), ("events", self.events)):
            _check(set(counter.values()) <= {1}, f"{name}: {dict(counter)}")
        _check(rows is None or len(self.rows) == rows, f"rows: {dict(self.rows)}")
        _check(units is None or len(self.units) == units, f"units: {dict(self.units)}")
        _check(not self.problems, f"problems: {self.problems}")


def _check(held: bool, message: str) -> None:
    if not held:
        raise AssertionError(message)


def counting(audit: Audit, target: Target, *identity: str) -> Counts:
    """Count effects outside the ledger's file, and rows, units and events in it; check chain and file."""
    with audit.store.read() as conn:
        rows = Counter(row[0] for row in conn.execute("SELECT idempotency_key FROM actions"))
        units = {
            f"{request}:{step}:{meter}": units
            for request, step, meter, units in conn.execute(
                "SELECT request_id, step_id, meter, units FROM usage WHERE state <> 'void'"
            )
        }
        events = Counter(
            ":".join(row) for row in conn.execute("SELECT request_id, step_id, kind, part FROM audit_events")
        )
        integrity = [row[0] for row in conn.execute("PRAGMA integrity_check")]
    problems = [f"{found.scope} {found.seq}: {found.name}" for found in audit.verify().problems]
    problems += [] if integrity == ["ok"] else integrity
    return Counts(target.effects(*identity), rows, units, events, tuple(problems))


Run = Callable[[Call], object]


def crash_after_success(run: Run) -> Run:
    """The process dies by SIGKILL after the tool has acted, before anybody hears of it."""

    def crashing(call: Call) -> object:
        run(call)
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    return crashing


def lost_reply(run: Run, *, exc: Callable[[], BaseException] = TimeoutError) -> Run:
    """The tool acts, and its reply is lost: the caller sees an exception."""

    def losing(call: Call) -> object:
        run(call)
        raise exc()

    return losing


def duplicate_delivery(run: Run) -> Run:
    """The request arrives twice, as from a network that repeats it; only a target that honours keys acts once."""

    def doubling(call: Call) -> object:
        run(call)
        return run(call)

    return doubling


def slow_reply(run: Run, until: Callable[[], object]) -> Run:
    """The tool acts, and its reply comes only when `until` returns."""

    def waiting(call: Call) -> object:
        result = run(call)
        until()
        return result

    return waiting


def fake_error(text: str) -> Callable[[Callable[..., Outcome]], Callable[..., str]]:
    """Around the function that the agent framework calls: it succeeds, and the model is told of an error."""

    def around(call: Callable[..., Outcome]) -> Callable[..., str]:
        def failing(*args: object, **options: object) -> str:
            call(*args, **options).ack("error")
            return text

        return failing

    return around
