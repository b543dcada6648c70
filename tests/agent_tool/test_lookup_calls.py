"""One call after another through the whole tool: what is counted, what is answered, what is refused."""

import asyncio
import json
import multiprocessing
import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path

import pytest

from agent_tool.admission import FloodMeter
from agent_tool.contract import CALL_META, ERROR_META
from agent_tool.tool import LookupResult, LookupTool
from audit import Audit, BadKey, CallKey, Limit, StepKey
from audit.faults import FakeClock, run_child
from search.errors import (
    GroundedError,
    IndexDamaged,
    IndexMissing,
    IndexUnavailable,
    ModelMismatch,
    ModelUnavailable,
    RecipeMismatch,
    SchemaMismatch,
    UsageError,
)
from tests.agent_tool.doubles import CannedSearcher, found, key, passage

OPEN = FloodMeter(per_second=1e9, burst=1_000_000)


def open_audit(folder: Path, limit: int | None = None, clock: FakeClock | None = None) -> Audit:
    """A store as the tool opens it."""
    limits = [] if limit is None else [Limit("lookup", limit, timedelta(hours=1))]
    return Audit(folder, durable=False, busy_timeout_s=2, limits=limits, clock=clock)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the store lies."""
    return tmp_path / "audit"


@pytest.fixture
def audit(folder: Path) -> Iterator[Audit]:
    """A store."""
    store = open_audit(folder)
    yield store
    store.close()


@pytest.fixture
def searcher() -> CannedSearcher:
    """A searcher with one answer."""
    return CannedSearcher()


@pytest.fixture
def tool(audit: Audit, searcher: CannedSearcher) -> Iterator[LookupTool]:
    """The tool over both."""
    bound = LookupTool(searcher, audit, meter=OPEN)
    yield bound
    bound.close()


def units(audit: Audit) -> int:
    """Units counted in all."""
    return audit.usage_report().units_total


def ask(tool: LookupTool, query: str = "leave", step: str = "4.0", principal: str = "local") -> LookupResult:
    """One call."""
    return tool.lookup({"query": query}, key=key(step=step), principal=principal)


def test_an_answer_has_text_structure_and_no_error(tool: LookupTool, searcher: CannedSearcher) -> None:
    """Arguments reach the search as they were read."""
    result = tool.lookup({"query": "leave", "limit": 3.0, "path": "hr/"}, key=key(), principal="local")
    assert (result.status, result.error, result.repeat, result.attempt) == ("ok", None, False, 1)
    assert result.structured is not None
    assert result.structured["generation"] == "000018"
    assert "five days" in result.text
    assert searcher.asked == [("leave", 3, "hr/")]
    assert result.meta() == {CALL_META: {"repeat": False, "attempt": 1, "keySource": "meta"}}


@pytest.mark.invariant("I7")
def test_a_repeat_looks_again_and_is_counted_once(tool: LookupTool, searcher: CannedSearcher, audit: Audit) -> None:
    """A fresh, normal success, perhaps from a newer generation; never "already done"."""
    ask(tool)
    searcher.result = found(passage(1, "Six days now."), generation="000019")
    again = ask(tool)
    assert (again.status, again.repeat, again.attempt) == ("ok", True, 2)
    assert again.structured is not None
    assert again.structured["generation"] == "000019"
    assert "Six days now." in again.text
    assert units(audit) == 1
    assert len(audit.show(key().step).events) == 1
    assert [attempt.outcome for attempt in audit.show(key().step).attempts] == ["ok", "ok"]


@pytest.mark.invariant("I7")
def test_a_reworded_retry_is_answered_counted_once_and_flagged(tool: LookupTool, audit: Audit) -> None:
    """There is no effect to protect; the flag is the alarm for a step that merges two calls."""
    ask(tool, "leave")
    result = ask(tool, "holidays")
    assert (result.status, result.args_changed) == ("ok", True)
    assert result.meta()[CALL_META]["argsChanged"] is True
    assert units(audit) == 1


@pytest.mark.invariant("I7")
def test_other_steps_and_other_principals_are_other_calls(tool: LookupTool, audit: Audit) -> None:
    """A principal cannot collide with another one's keys, nor use up its quota."""
    for step, principal in (("4.0", "ann"), ("4.1", "ann"), ("4.0", "bob")):
        assert not ask(tool, step=step, principal=principal).repeat
    assert units(audit) == 3
    assert {row.name: row.units for row in audit.usage_report().rows} == {"ann": 2, "bob": 1}


@pytest.mark.invariant("I7")
def test_thirty_parallel_calls_of_one_key_are_one(tool: LookupTool, audit: Audit) -> None:
    """Twins do not wait for each other's answer; the cap lets 20 look, the others are told to go on."""
    barrier = threading.Barrier(30)

    def call(_: int) -> LookupResult:
        barrier.wait(60)
        return ask(tool)

    with ThreadPoolExecutor(30) as threads:
        results = list(threads.map(call, range(30)))
    codes = [result.error.code if result.error else result.status for result in results]
    assert sorted(set(codes)) == ["ok", "too_many_attempts"]
    assert codes.count("ok") == 20
    assert sum(not result.repeat for result in results if result.status == "ok") == 1
    assert units(audit) == 1
    assert audit.verify().problems == ()


def _many(folder: Path, keys: int, start: "multiprocessing.synchronize.Barrier") -> list[str]:
    tool = LookupTool(CannedSearcher(), open_audit(folder), meter=OPEN)
    start.wait(60)
    answers = [ask(tool, step=f"{n}.0").status for n in range(keys)]
    tool.close()
    return answers


@pytest.mark.invariant("I7")
def test_four_processes_with_25_shared_keys_make_25_events(folder: Path, audit: Audit) -> None:
    """Every caller gets an answer."""
    start = multiprocessing.get_context("fork").Barrier(4)
    with (
        run_child(_many, folder, 25, start) as one,
        run_child(_many, folder, 25, start) as two,
        run_child(_many, folder, 25, start) as three,
        run_child(_many, folder, 25, start) as four,
    ):
        answers = one.result() + two.result() + three.result() + four.result()
    assert answers == ["ok"] * 100
    assert units(audit) == 25
    assert len(audit.tail(limit=1000)) == 25
    assert audit.verify().problems == ()


def _one(folder: Path) -> str:
    tool = LookupTool(CannedSearcher(), open_audit(folder), meter=OPEN)
    return ask(tool).status


def _killed_at_work(folder: Path) -> str:
    from audit.failpoints import failpoint

    tool = LookupTool(CannedSearcher(before=lambda: failpoint("work")), open_audit(folder), meter=OPEN)
    return ask(tool).status


@pytest.mark.invariant("I7")
@pytest.mark.parametrize(("point", "left"), [("begin", 0), ("F11", 0), ("store.commit", 0), ("begun", 1), ("work", 1)])
def test_killed_anywhere_and_retried_a_call_is_one(point: str, left: int, folder: Path, audit: Audit) -> None:
    """Before begin commits nothing is left; after it one event, one unit, and an attempt that says started."""
    child = _killed_at_work if point == "work" else _one
    with run_child(child, folder, failpoint=point) as killed:
        assert killed.ended() == -9
    assert (units(audit), len(audit.tail())) == (left, left)
    with run_child(_one, folder) as retry:
        assert retry.result() == "ok"
    view = audit.show(key().step)
    assert (units(audit), len(view.events)) == (1, 1)
    assert [attempt.outcome for attempt in view.attempts] == ["started"] * left + ["ok"]
    assert audit.verify().problems == ()


@pytest.mark.invariant("I7")
def test_a_cancelled_caller_does_not_part_a_lookup_from_its_bookkeeping(
    tool: LookupTool, searcher: CannedSearcher, audit: Audit
) -> None:
    """Neither one that runs nor one that waits: all end in a thread of the tool, and their attempts are closed."""
    entered, go_on = threading.Event(), threading.Event()
    searcher.before = lambda: (entered.set(), go_on.wait(60))
    steps = ["1", "2", "3", "4"]

    async def cancel() -> None:
        calls = [
            asyncio.create_task(tool.alookup({"query": "leave"}, key=key(step=step), principal="local"))
            for step in steps
        ]
        await asyncio.to_thread(entered.wait, 60)
        for call in calls:
            call.cancel()
        ends = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(end) for end in ends] == [asyncio.CancelledError] * len(steps)

    asyncio.run(cancel())
    go_on.set()
    tool.close()
    for step in steps:
        assert [attempt.outcome for attempt in audit.show(key(step=step).step).attempts] == ["ok"]


def _fill(folder: Path, name: str, together: "multiprocessing.synchronize.Barrier", dies: bool) -> int:
    """Look up 12 steps. All are together once more in the third; who ``dies`` is killed in the midst of it."""
    searcher = CannedSearcher()

    def meet() -> None:
        if len(searcher.asked) == 3:
            together.wait(60)
            if dies:
                os.kill(os.getpid(), signal.SIGKILL)

    searcher.before = meet
    tool = LookupTool(searcher, open_audit(folder, limit=50), meter=OPEN)
    together.wait(60)
    for n in range(12):
        tool.lookup({"query": "leave"}, key=CallKey(StepKey(name, str(n)), "meta"), principal="ann")
    tool.close()
    return len(searcher.asked)


@pytest.mark.invariant("I7")
def test_a_limit_is_exact_over_processes_some_of_them_killed(folder: Path) -> None:
    """Fifty units, whoever they were of; a counted step is served when the window is full."""
    together = multiprocessing.get_context("fork").Barrier(8)
    open_audit(folder).close()
    with ExitStack() as running:
        children = [running.enter_context(run_child(_fill, folder, f"req-{n}", together, n < 3)) for n in range(8)]
        ends = [child.ended() for child in children]
    assert ends == [-signal.SIGKILL] * 3 + [0] * 5
    audit = open_audit(folder, limit=50)
    tool = LookupTool(CannedSearcher(), audit, meter=OPEN)
    assert units(audit) == 50
    refused = tool.lookup({"query": "leave"}, key=key("one-more", "0"), principal="ann")
    assert refused.error is not None
    assert (refused.error.code, refused.attempt) == ("rate_limited", 0)
    assert 0 < refused.error.retry_after_ms <= 3_600_000
    assert "do not reword" in refused.error.sentence
    known = audit.tail(limit=1)[0]
    repeated = tool.lookup({"query": "leave"}, key=CallKey(StepKey(known.request, known.step), "meta"), principal="ann")
    assert (repeated.status, repeated.repeat) == ("ok", True)
    assert units(audit) == 50
    assert audit.verify().problems == ()
    tool.close()


@pytest.mark.invariant("I7")
def test_a_limited_call_burns_no_key_and_a_repeat_over_the_edge_counts_once(folder: Path) -> None:
    """The same key is served as new when the window has room; a retry keeps the time of the first."""
    clock = FakeClock()
    audit = open_audit(folder, limit=1, clock=clock)
    tool = LookupTool(CannedSearcher(), audit, meter=OPEN)
    assert ask(tool, step="1").status == "ok"
    limited = ask(tool, step="2")
    assert limited.error is not None
    assert limited.error.code == "rate_limited"
    assert len(audit.tail()) == 1
    clock.advance(3599)
    assert ask(tool, step="1").repeat
    clock.advance(2)
    assert ask(tool, step="1").repeat
    assert units(audit) == 1
    served = ask(tool, step="2")
    assert (served.status, served.repeat, served.attempt) == ("ok", False, 1)
    tool.close()


def test_a_thousand_repeats_of_one_key_meet_the_cap(folder: Path, searcher: CannedSearcher) -> None:
    """Twenty look; the others are refused, cost no unit and touch nobody else."""
    audit = open_audit(folder)
    tool = LookupTool(searcher, audit, meter=OPEN)
    codes = [(result.error.code if result.error else result.status) for result in (ask(tool) for _ in range(1000))]
    assert codes == ["ok"] * 20 + ["too_many_attempts"] * 980
    assert (units(audit), len(searcher.asked)) == (1, 20)
    assert ask(tool, step="other").status == "ok"
    tool.close()


def test_the_flood_meter_sees_every_attempt_and_burns_no_key(audit: Audit, searcher: CannedSearcher) -> None:
    """Repeats and bad arguments too; it writes nothing."""
    tool = LookupTool(searcher, audit, meter=FloodMeter(per_second=0.001, burst=2))
    ask(tool)
    assert tool.lookup({}, key=key(), principal="local").error.code == "invalid_argument"
    result = ask(tool)
    assert result.error.code == "rate_limited"
    assert result.error.retry_after_ms > 1000
    assert ask(tool, principal="other").status == "ok"
    assert len(audit.show(key().step).attempts) == 2
    tool.close()


def test_bad_arguments_write_nothing(tool: LookupTool, audit: Audit) -> None:
    """They are refused before the key is used."""
    result = tool.lookup({"query": "x", "tenant": "SECRET"}, key=key(), principal="local")
    assert (result.status, result.structured, result.attempt) == ("error", None, 0)
    assert result.meta()[ERROR_META] == {"code": "invalid_argument", "retryable": False}
    assert (units(audit), audit.tail()) == (0, ())


def test_a_full_house_is_busy(tool: LookupTool, searcher: CannedSearcher, audit: Audit) -> None:
    """Two run, 32 wait; the next is told to try again, and its key is not used."""
    go_on = threading.Event()
    searcher.before = lambda: go_on.wait(60)

    async def crowd() -> list[LookupResult]:
        waiting = [
            asyncio.create_task(tool.alookup({"query": "leave"}, key=key(step=str(n)), principal="local"))
            for n in range(34)
        ]
        await asyncio.sleep(0)
        refused = await tool.alookup({"query": "leave"}, key=key(step="late"), principal="local")
        go_on.set()
        return [refused, *await asyncio.gather(*waiting)]

    refused, *served = asyncio.run(crowd())
    assert refused.error.code == "busy"
    assert refused.meta()[ERROR_META] == {"code": "busy", "retryable": True, "retry_after_ms": 1000}
    assert [result.status for result in served] == ["ok"] * 34
    assert units(audit) == 34


FAILURES: list[tuple[Exception, str]] = [
    (IndexMissing("index /srv/x: not there"), "index_missing"),
    (RecipeMismatch("a"), "index_incompatible"),
    (ModelMismatch("a"), "index_incompatible"),
    (SchemaMismatch("a"), "index_incompatible"),
    (ModelUnavailable("a"), "index_incompatible"),
    (IndexDamaged("/srv/x/segment.json: missing"), "index_unavailable"),
    (IndexUnavailable("a"), "index_unavailable"),
    (GroundedError("a"), "index_unavailable"),
    (sqlite3.OperationalError("SELECT secret FROM t"), "internal"),
    (RuntimeError("/srv/x"), "internal"),
    (RecursionError("deep"), "internal"),
    (MemoryError(), "internal"),
]


@pytest.mark.parametrize(("error", "code"), FAILURES, ids=lambda value: type(value).__name__)
def test_could_not_look_is_an_error_of_the_table_and_counted(
    error: Exception, code: str, tool: LookupTool, searcher: CannedSearcher, audit: Audit
) -> None:
    """Never an empty answer; the sentence is fixed, and holds nothing of the reason."""

    def fail() -> None:
        raise error

    searcher.before = fail
    result = ask(tool)
    assert (result.status, result.structured, result.error.code) == ("error", None, code)
    assert result.text.startswith(f"{code}: ")
    for leak in ("/srv", "SELECT", "Error", "Traceback", "segment"):
        assert leak not in result.text + json.dumps(result.meta())
    assert units(audit) == 1
    assert [attempt.outcome for attempt in audit.show(key().step).attempts] == [code]


def test_a_query_without_a_visible_character_for_the_search_is_a_bad_argument(
    tool: LookupTool, searcher: CannedSearcher
) -> None:
    """The search has the last word on what is visible."""

    def fail() -> None:
        raise UsageError("query: empty")

    searcher.before = fail
    assert ask(tool).error.code == "invalid_argument"


def test_an_answer_that_breaks_the_schema_is_an_incident(tool: LookupTool, searcher: CannedSearcher) -> None:
    """Our fault is never sent as a result."""
    searcher.result = found(passage(score=3.0))
    assert ask(tool).error.code == "internal"


def test_incidents_can_be_told_apart(
    tool: LookupTool, searcher: CannedSearcher, caplog: pytest.LogCaptureFixture
) -> None:
    """The reply holds the incident, the log the reason under it."""

    def fail() -> None:
        raise RuntimeError("reason of the log")

    searcher.before = fail
    one, two = ask(tool).text, ask(tool).text
    assert one != two
    incident = one.split("incident ")[1][:8]
    assert any(incident in record.getMessage() and record.exc_info for record in caplog.records)


def test_a_lookup_beyond_its_deadline_is_a_timeout(audit: Audit, searcher: CannedSearcher) -> None:
    """Checked between the stages: a running one cannot be stopped. One that waited too long never begins."""
    now = [0.0]
    tool = LookupTool(searcher, audit, meter=OPEN, deadline_s=20, clock=lambda: now[0])
    searcher.before = lambda: now.__setitem__(0, 21.0)
    assert ask(tool).error.code == "timeout"
    assert [attempt.outcome for attempt in audit.show(key().step).attempts] == ["timeout"]
    times = iter([30.0, 51.0])
    late = LookupTool(searcher, audit, meter=OPEN, deadline_s=20, clock=lambda: next(times))
    assert ask(late, step="late").error.code == "busy"
    assert audit.show(key(step="late").step).events == ()
    tool.close()
    late.close()


def test_no_match_is_an_answer(tool: LookupTool, searcher: CannedSearcher, audit: Audit) -> None:
    """Looked, found nothing: counted as such, no error."""
    searcher.result = found()
    result = ask(tool)
    assert (result.status, result.error) == ("no_match", None)
    assert result.structured is not None
    assert [attempt.outcome for attempt in audit.show(key().step).attempts] == ["no_match"]


def test_a_locked_store_fails_closed_before_the_work(folder: Path, searcher: CannedSearcher, audit: Audit) -> None:
    """What cannot be recorded is not done."""
    impatient = LookupTool(searcher, Audit(folder, durable=False, busy_timeout_s=0.05), meter=OPEN)
    with closing(sqlite3.connect(folder / "audit.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        result = ask(impatient)
        other.execute("ROLLBACK")
    assert result.error.code == "audit_unavailable"
    assert searcher.asked == []
    assert (units(audit), ask(impatient).attempt) == (0, 1)
    impatient.close()


def test_a_full_disk_fails_closed_before_the_work(folder: Path, searcher: CannedSearcher) -> None:
    """SQLite says full at the first page that it cannot have; nothing is counted, and room makes it work again."""
    store = Audit(folder, durable=False)
    tool = LookupTool(searcher, store, meter=OPEN)
    # Of the connection: both threads of the tool open their own, so the file is filled through one of them.
    with_limit = tool._threads.submit(store.store.connection).result()
    ask(tool)
    most = with_limit.execute("PRAGMA page_count").fetchone()[0]
    with_limit.execute(f"PRAGMA max_page_count = {most}")
    store.store.connection = lambda: with_limit  # type: ignore[method-assign]  # one connection, the full one
    codes = []
    for n in range(400):
        result = ask(tool, step=f"s{n}")
        codes.append(result.error.code if result.error else result.status)
    assert set(codes) == {"ok", "audit_unavailable"}
    assert len(searcher.asked) == codes.count("ok") + 1
    with_limit.execute("PRAGMA max_page_count = 1000000")
    assert ask(tool, step="room").status == "ok"
    assert store.usage_report().units_total == codes.count("ok") + 2
    tool.close()


def test_an_end_that_cannot_be_recorded_does_not_keep_the_answer_back(
    folder: Path, searcher: CannedSearcher, audit: Audit, caplog: pytest.LogCaptureFixture
) -> None:
    """The attempt stays started, and the log says why."""
    tool = LookupTool(searcher, Audit(folder, durable=False, busy_timeout_s=0.05), meter=OPEN)
    with closing(sqlite3.connect(folder / "audit.db", isolation_level=None, check_same_thread=False)) as other:
        searcher.before = lambda: other.execute("BEGIN IMMEDIATE")
        result = ask(tool)
        other.execute("ROLLBACK")
    assert result.status == "ok"
    assert [attempt.outcome for attempt in audit.show(key().step).attempts] == ["started"]
    assert "end_not_recorded" in caplog.text
    tool.close()


def test_the_store_keeps_ids_and_never_a_question_or_a_passage(
    tool: LookupTool, audit: Audit, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Event, attempt and log are free of content."""
    caplog.set_level("DEBUG")
    ask(tool, "CANARYQUESTION")
    ask(tool, "CANARYREWORDED")
    view = audit.show(key().step)
    assert view.events[0].fields["key_source"] == "meta"
    tool.close()
    kept = b"".join(path.read_bytes() for path in folder.iterdir())
    for canary in (b"CANARYQUESTION", b"CANARYREWORDED", b"capped at five"):
        assert canary not in kept
        assert canary.decode() not in caplog.text


def test_a_principal_must_have_the_form_of_a_key_part(tool: LookupTool) -> None:
    """A wrong one is a mistake of the host, not of the caller."""
    with pytest.raises(BadKey):
        ask(tool, principal="ann@example.org:x")
