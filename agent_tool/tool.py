"""``lookup``: one call from arguments to result, in the order of the design's table, and nothing else.

    1 key and principal   the transport's, before this module
    2 flood meter, 3 arguments, 4 a place   in the caller's thread; refused at once, nothing is written
    5 begin   event, unit and attempt in one commit; without it there is no work (fails closed)
    6 work    follow CURRENT, embed, query, cut, clean, check
    7 end     outcome of the attempt; a failure to record is logged, and the answer goes out

5 to 7 are one function in one thread of ours. A caller that gives up cannot stop it in between, so a lookup is never
parted from its bookkeeping; killed in between, it leaves one event, one unit and an attempt that says ``started``, and
a retry adds an attempt (I7). Knows no transport and no vendor.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, TypeVar

from audit import Audit, AuditError, Begun, CallKey, JsonValue
from audit.keys import IdKey, KeySource, check_part, fresh_token
from search.errors import GroundedError, UsageError

from .admission import FloodMeter, Places
from .answers import Answer, answer, check
from .arguments import Arguments, read_arguments
from .call_keys import Origin
from .contract import CALL_META, DEADLINE_S, ERROR_META, NAME, Budgets
from .failures import CouldNotLook, Failure, failure_of, fixed, internal, invalid_argument, rate_limited
from .reading import Searcher
from .rendering import boundary_of, render

__all__ = ["LookupResult", "LookupTool"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

# More would not be faster: the engine holds the GIL while it searches (qdrant-edge-py 0.9.0).
RUNNING = 2
WAITING = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupResult:
    """What a call comes back with. ``structured`` is None, and ``error`` is not, where it could not look.

    ``attempt`` counts the tries under this key, from 1; 0 where the call was refused before it was counted.
    """

    status: Literal["ok", "no_match", "error"]
    text: str
    structured: Mapping[str, JsonValue] | None = None
    error: Failure | None = None
    repeat: bool = False
    attempt: int = 0
    args_changed: bool = False
    key_source: KeySource = "generated"

    def meta(self) -> dict[str, JsonValue]:
        """Return what goes into ``_meta`` of a result: for the orchestrator, never for the model."""
        call: dict[str, JsonValue] = {"repeat": self.repeat, "attempt": self.attempt, "keySource": self.key_source}
        if self.args_changed:
            call["argsChanged"] = True
        values: dict[str, JsonValue] = {CALL_META: call}
        if self.error is not None:
            values[ERROR_META] = self.error.to_json()
        return values


@dataclass(frozen=True, slots=True)
class _Call:
    """An admitted call."""

    arguments: Arguments
    key: CallKey
    principal: str
    origin: Origin
    until: float


class LookupTool:
    """The tool, bound to an index and an audit store. Thread-safe; ``close`` ends the calls in flight first."""

    def __init__(
        self,
        searcher: Searcher,
        audit: Audit,
        *,
        budgets: Budgets | None = None,
        meter: FloodMeter | None = None,
        deadline_s: float = DEADLINE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._searcher = searcher
        self._audit = audit
        self._budgets = budgets or Budgets()
        self._meter = meter or FloodMeter()
        self._deadline_s = deadline_s
        self._clock = clock
        self._places = Places(RUNNING + WAITING)
        self._secret = IdKey(audit.secret("boundary"))
        self._threads = ThreadPoolExecutor(RUNNING, thread_name_prefix=NAME)

    def lookup(
        self, arguments: Mapping[str, object], *, key: CallKey, principal: str, origin: Origin | None = None
    ) -> LookupResult:
        """Answer one call. Never raises for what a caller, an index or a store can do.

        ``principal`` is who is counted and limited: authenticated, or ``local``; ``BadKey`` where it has no form of a
        key part. Equal keys of one principal are one event and one unit, and every repeat looks again.
        """
        return self._begin(arguments, key, principal, origin).result()

    async def alookup(
        self, arguments: Mapping[str, object], *, key: CallKey, principal: str, origin: Origin | None = None
    ) -> LookupResult:
        """Answer one call as ``lookup`` does; cancelling the caller does not cancel the call."""
        return await asyncio.shield(asyncio.wrap_future(self._begin(arguments, key, principal, origin)))

    def close(self) -> None:
        """End the calls in flight (their rows too), then let go of index and store."""
        self._searcher.close()
        self._threads.shutdown(wait=True)
        self._audit.close()

    def _begin(
        self, arguments: Mapping[str, object], key: CallKey, principal: str, origin: Origin | None
    ) -> Future[LookupResult]:
        """Steps 2 to 4: return the result to come, which a refusal already is."""
        check_part(principal, "principal")
        admitted = self._caught(lambda: self._admit(arguments, key, principal, origin or Origin()))
        if not isinstance(admitted, CouldNotLook):
            return self._threads.submit(self._run, admitted)
        refused: Future[LookupResult] = Future()
        refused.set_result(_failed(admitted.failure, key))
        return refused

    def _admit(self, arguments: Mapping[str, object], key: CallKey, principal: str, origin: Origin) -> _Call:
        wait_s = self._meter.take(principal)
        if wait_s is not None:
            raise rate_limited(wait_s)
        call = _Call(read_arguments(arguments), key, principal, origin, self._clock() + self._deadline_s)
        if not self._places.enter():
            raise fixed("busy")
        return call

    def _run(self, call: _Call) -> LookupResult:
        """Steps 5 to 7."""
        try:
            begun = self._caught(lambda: self._record(call))
            if isinstance(begun, CouldNotLook):
                return _failed(begun.failure, call.key)
            found = self._caught(lambda: self._look(call))
            self._end(begun, found)
            if isinstance(found, CouldNotLook):
                return _failed(found.failure, call.key, begun)
            sent, text = found
            return LookupResult(
                status="no_match" if sent["status"] == "no_match" else "ok",
                text=text,
                structured=sent,
                repeat=begun.repeat,
                attempt=begun.attempt,
                args_changed=begun.args_changed,
                key_source=call.key.source,
            )
        finally:
            self._places.leave()

    def _record(self, call: _Call) -> Begun:
        if self._clock() > call.until:
            raise fixed("busy")
        begun = self._audit.begin(
            call.key.step,
            kind=NAME,
            scope=call.principal,
            subject=call.principal,
            meter=NAME,
            args=call.arguments.to_json(),
            body={"key_source": call.key.source, **call.origin.to_json()},
        )
        if begun.state == "limited":
            raise rate_limited(begun.retry_after_s)
        if begun.state == "too_many_attempts":
            raise fixed("too_many_attempts")
        if begun.args_changed:
            logger.warning("lookup.args_changed key=%s attempt=%d", begun.step, begun.attempt)
        return begun

    def _look(self, call: _Call) -> tuple[Answer, str]:
        asked = call.arguments
        try:
            result = self._searcher.search(asked.query, limit=asked.limit, path=asked.path, until=call.until)
        except UsageError:
            # What is visible to us and not to the search is still a query without a word.
            raise invalid_argument("must hold a visible character", "query") from None
        self._in_time(call)
        sent = answer(result, self._budgets)
        check(sent)
        text = render(sent, boundary_of(sent, self._secret))
        self._in_time(call)
        return sent, text

    def _in_time(self, call: _Call) -> None:
        if self._clock() > call.until:
            raise fixed("timeout")

    def _end(self, begun: Begun, found: tuple[Answer, str] | CouldNotLook) -> None:
        try:
            if isinstance(found, CouldNotLook):
                self._audit.end(begun, outcome=found.failure.code)
            else:
                self._audit.end(begun, outcome=str(found[0]["status"]), body=_outcome(found[0]))
        except AuditError as error:
            logger.warning("lookup.end_not_recorded key=%s reason=%s", begun.step, error)

    def _caught(self, step: Callable[[], T]) -> T | CouldNotLook:
        """Do a step; whatever goes wrong in it becomes a failure of the table, and the reason goes to the log."""
        try:
            return step()
        except CouldNotLook as refusal:
            return refusal
        except (GroundedError, AuditError) as error:
            failure = failure_of(error)
            logger.warning("lookup.failed code=%s reason=%s", failure.failure.code, error)
            return failure
        except Exception:
            incident = fresh_token()[:8]
            logger.exception("lookup.failed code=internal incident=%s", incident)
            return internal(incident)


def _outcome(sent: Answer) -> dict[str, JsonValue]:
    """Return what the attempt keeps of an answer: ids and the generation, never a text."""
    passages = sent["passages"]
    ids = (
        [passage["chunk_id"] for passage in passages if isinstance(passage, dict)] if isinstance(passages, list) else []
    )
    return {"generation": sent["generation"], "chunk_ids": ids}


def _failed(failure: Failure, key: CallKey, begun: Begun | None = None) -> LookupResult:
    return LookupResult(
        status="error",
        text=failure.text,
        error=failure,
        repeat=begun is not None and begun.repeat,
        attempt=begun.attempt if begun is not None else 0,
        args_changed=begun is not None and begun.args_changed,
        key_source=key.source,
    )
