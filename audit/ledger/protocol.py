"""The course of one call, from binding to outcome, written once for sync and async.

Owns: the order of steps and what an interruption means at each. `course` is a generator that only says what is to be
done next (store work, a pause, the tool, a lookup); a driver does it. Claim and dispatch are two commits: a crash
between them is provably harmless. Refuses to run a tool inside a transaction, and to let an interruption part an effect
from its record.
"""

import logging
from collections.abc import Callable, Generator
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Generic, TypeAlias, TypeVar

from audit.errors import AuditUnavailable
from audit.failpoints import failpoint
from audit.store import Store

from .claims import Answer, Claims, Decision, Drain, Execute, Look, Wait
from .endings import Endings
from .errors import LedgerUnavailable
from .failures import classify
from .outcomes import Outcome
from .requests import Request
from .slots import Slot
from .tools import Call, Failure, Lookup, Tool, Unsure
from .values import Codec

__all__ = ["EXECUTING", "Course", "Inquire", "Invoke", "Pause", "Protocol", "Step", "Work"]

log = logging.getLogger(__name__)

T = TypeVar("T")

# The slots whose tools run in this context, per store file: calling one of them again from inside would wait for
# itself.
EXECUTING: ContextVar[frozenset[str]] = ContextVar("audit_executing", default=frozenset())

# Waiters look this often: often at first, since most calls are short, then rarely.
_POLL_FIRST_S, _POLL_LAST_S = 0.005, 0.2


@dataclass
class Work(Generic[T]):
    """Do this in the store's thread, whole: an interruption waits until it is done.

    `final`: and it waits until this is begun, too.
    """

    do: Callable[[], T]
    final: bool = False
    value: T | None = None

    def run(self) -> None:
        """Do it and keep what it returned."""
        self.value = self.do()


@dataclass(frozen=True)
class Pause:
    """Wait; an interruption ends it."""

    seconds: float


@dataclass
class Invoke:
    """Call the tool. The driver sets `started` before, and then either `result` with `returned`, or `error`."""

    tool: Tool
    call: Call
    slot: Slot
    started: bool = False
    returned: bool = False
    result: object = None
    error: BaseException | None = None


@dataclass
class Inquire:
    """Ask the target; whatever goes wrong is an answer too: Unsure."""

    tool: Tool
    call: Call
    answer: Lookup = field(default_factory=Unsure)

    def ask(self) -> None:
        """Ask the lookup; one that fails knows nothing."""
        if self.tool.lookup is None:
            return
        try:
            self.answer = self.tool.lookup(self.call)
        except Exception as error:  # noqa: BLE001 - a tool call: its failure is an answer of its own
            log.info("ledger.lookup tool=%s: %s", self.tool.name, type(error).__name__)


Step: TypeAlias = Work[object] | Pause | Invoke | Inquire
Course: TypeAlias = Generator[Step, None, Outcome]


class Protocol:
    """Courses of calls over one store."""

    def __init__(self, store: Store, claims: Claims, endings: Endings, codec: Codec, *, reserve: bool) -> None:
        """`reserve`: make room in the WAL before the first claim, for the outcome on a full disk."""
        self._store, self._claims, self._endings, self._codec = store, claims, endings, codec
        self._reserve = reserve

    def course(self, request: Request, *, wait_s: float, local: Callable[[Slot], Slot | None] | None = None) -> Course:
        """Everything one call does. Returns its outcome; raises what interrupted it, after recording what is known.

        local: does dispatch, effect and record in one transaction of this file, instead of calling the tool.
        """
        mono_ms = self._store.clock.mono_ms
        deadline = mono_ms() + int(wait_s * 1000)
        executing = EXECUTING.get()
        executed = False
        if self._reserve:
            yield from self._work(self._store.reserve_wal, guard=True)
            self._reserve = False
        while True:
            failpoint("F0")
            decision: Decision = yield from self._work(
                lambda: self._claims.decide(request, executing), guard=not executed
            )
            match decision:
                case Answer():
                    return replace(decision.outcome, replayed=decision.outcome.replayed and not executed)
                case Wait():
                    if not (yield from self._wait(decision, deadline)):
                        return replace(decision.outcome, replayed=False)
                case Drain():
                    yield from self._work(self._endings.drain, guard=not executed)
                case Look():
                    yield from self._look(decision, request.tool)
                case Execute():
                    if local is None:
                        sent, outcome = yield from self._execute(decision.slot, request)
                    else:
                        sent, outcome = (yield from self._execute_local(decision.slot, local)), None
                    executed = executed or sent
                    if outcome is not None:
                        return outcome

    def call_of(self, slot: Slot, tool: Tool) -> Call:
        """What the tool gets: its own copy of the arguments that the slot was claimed with."""
        args = self._codec.value(slot.args_data or "{}")
        named = {str(name): value for name, value in args.items()} if isinstance(args, dict) else {}
        return Call(named, slot.downstream_key, slot.fence, slot.attempts, tool.timeout_s)

    def _work(self, do: Callable[[], T], *, final: bool = False, guard: bool = False) -> Generator[Step, None, T]:
        work: Work[T] = Work(do, final)
        try:
            yield work  # type: ignore[misc]  # Work is invariant; drivers treat every value as object
        except AuditUnavailable as error:
            if guard and not isinstance(error, LedgerUnavailable):
                raise LedgerUnavailable(f"{error}; nothing was sent") from error
            raise
        return work.value  # type: ignore[return-value]  # set by run(), which has returned

    def _execute(self, slot: Slot, request: Request) -> Generator[Step, None, tuple[bool, Outcome | None]]:
        """Dispatch, call, record. Returns whether anything was sent, and the outcome where that settles it."""
        tool = request.tool
        try:
            sent = yield from self._work(lambda: self._endings.dispatch(slot, tool), guard=True)
        except BaseException:
            yield from self._give_back(slot)
            raise
        if sent is None:
            return False, None  # another holder took over: it answers
        failpoint("F2")
        invoke = Invoke(tool, self.call_of(sent, tool), sent)
        try:
            yield invoke
        except BaseException as interruption:  # noqa: BLE001 - recorded below, then raised again
            invoke.error = interruption
        if invoke.returned:
            failpoint("F4")
            result = invoke.result
            done = yield from self._work(lambda: self._endings.succeed(sent, result), final=True)
            if invoke.error is not None:
                raise invoke.error
            return True, replace(self._claims.render(done, request), replayed=False) if isinstance(done, Slot) else done
        error = invoke.error if invoke.error is not None else RuntimeError("the tool was never called")
        failure = classify(tool, error) if invoke.started else Failure("transient", "none", "not_started")
        yield from self._work(lambda: self._endings.fail(sent, failure), final=True)
        if not isinstance(error, Exception):
            raise error
        return True, None

    def _execute_local(self, slot: Slot, local: Callable[[Slot], Slot | None]) -> Generator[Step, None, bool]:
        """Effect and record in one transaction: what it raises has undone both."""
        try:
            return (yield from self._work(lambda: local(slot))) is not None
        except BaseException:
            yield from self._give_back(slot)
            raise

    def _give_back(self, slot: Slot) -> Generator[Step, None, None]:
        """Release a claim that sent nothing; if even that fails, remember it, so that nobody waits for this process."""
        self._claims.abandoned.add((slot.idempotency_key, slot.fence))
        try:
            yield from self._work(lambda: self._endings.release(slot), final=True)
        except AuditUnavailable:
            return

    def _look(self, look: Look, tool: Tool) -> Generator[Step, None, None]:
        inquire = Inquire(tool, self.call_of(look.slot, tool))
        yield inquire
        yield from self._work(lambda: self._endings.looked(look.slot, inquire.answer, trusted=look.trusted), final=True)

    def _wait(self, wait: Wait, deadline_ms: int) -> Generator[Step, None, bool]:
        """Wait until the slot may have changed, or it is time; False when patience ended first.

        Holds no transaction.
        """
        clock, pause_s = self._store.clock, _POLL_FIRST_S
        version = yield from self._work(self._store.version)
        # What was committed between the decision and this version would wake nobody any more.
        if (yield from self._work(lambda: self._claims.moved_on(wait.slot))):
            return True
        while (left_ms := deadline_ms - clock.mono_ms()) > 0:
            if wait.until_at is not None:
                now_ms = yield from self._work(lambda: self._store.tick().now_ms)
                if wait.until_at - now_ms > left_ms:
                    return False
                if now_ms >= wait.until_at:
                    return True
                pause_s = max(pause_s, min((wait.until_at - now_ms) / 1000, _POLL_LAST_S))
            yield Pause(min(pause_s, left_ms / 1000))
            pause_s = min(pause_s * 2, _POLL_LAST_S)
            if (yield from self._work(lambda: self._claims.wait_over(wait.slot))):
                return True
            if (yield from self._work(self._store.version)) != version:
                return True
        return False
