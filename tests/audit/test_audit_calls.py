"""I7: equal request:step is one event and one unit, however often and from wherever it comes."""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import pytest

from audit import Audit, Begun, Limit, StepKey
from audit.failpoints import arm
from audit.faults import run_child

HOUR = timedelta(hours=1)


class Counts(NamedTuple):
    """What is on record for one key."""

    events: int
    units: int
    attempts: int


def call(audit: Audit, request: str, step: str = "1", *, scope: str = "acme", query: str = "leave") -> Begun:
    """One call as a tool makes it: begin, work, end."""
    begun = audit.begin(
        StepKey(request, step), kind="lookup", scope=scope, subject=scope, meter="lookup", args={"query": query}
    )
    audit.end(begun, outcome="ok", body={"passages": 2})
    return begun


def counts(audit: Audit, request: str, step: str = "1") -> Counts:
    """Events, units and attempts of one key over all principals."""
    view = audit.show(StepKey(request, step))
    return Counts(len(view.events), sum(row.units for row in view.usage), len(view.attempts))


@pytest.mark.invariant("I7")
def test_thirty_parallel_repeats_are_one_event_and_one_unit(make_audit: Callable[..., Audit]) -> None:
    """Thirty threads with one key: all are served, one counts."""
    audit = make_audit(attempts_cap=30)
    found: list[Begun] = []
    barrier = threading.Barrier(30)

    def worker() -> None:
        barrier.wait()
        found.append(call(audit, "r"))

    threads = [threading.Thread(target=worker) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(begun.attempt for begun in found) == list(range(1, 31))
    assert [begun.state for begun in found].count("new") == 1
    assert counts(audit, "r") == (1, 1, 30)
    assert audit.verify().problems == ()


@pytest.mark.invariant("I7")
def test_four_processes_with_shared_keys_count_each_once(folder: Path) -> None:
    """4 processes x 25 keys: 25 events, 25 units, 100 attempts, and an unbroken chain."""
    barrier = get_context("fork").Barrier(4)

    def worker() -> int:
        audit = Audit(folder, durable=False)
        barrier.wait()
        return sum(call(audit, "r", str(step)).admitted for step in range(25))

    with ExitStack() as stack:
        children = [stack.enter_context(run_child(worker)) for _ in range(4)]
        assert [child.result() for child in children] == [25] * 4
    audit = Audit(folder, durable=False)
    assert [counts(audit, "r", str(step)) for step in range(25)] == [(1, 1, 4)] * 25
    report = audit.verify()
    assert (report.events, report.problems) == (25, ())
    audit.close()


@pytest.mark.invariant("I7")
@pytest.mark.parametrize(
    ("point", "left"),
    [
        ("begin", (0, 0, 0)),
        ("F11", (0, 0, 0)),
        ("events.appended", (0, 0, 0)),
        ("store.commit", (0, 0, 0)),
        ("begun", (1, 1, 1)),
    ],
)
def test_a_kill_anywhere_around_begin_leaves_all_or_nothing(
    folder: Path, point: str, left: tuple[int, int, int]
) -> None:
    """Before the commit nothing is left, after it one of each; the retry ends at one event and one unit."""
    audit = Audit(folder, durable=False)

    def worker() -> None:
        call(Audit(folder, durable=False), "r")

    with run_child(worker, failpoint=point) as child:
        assert child.ended() == -9
    assert counts(audit, "r") == left
    assert call(audit, "r").attempt == left[2] + 1
    assert counts(audit, "r") == (1, 1, left[2] + 1)
    assert audit.verify().problems == ()
    audit.close()


def test_an_attempt_that_was_killed_stays_started(folder: Path) -> None:
    """The retry is attempt 2 and ends; attempt 1 says that nobody knows how it ended."""

    def worker() -> None:
        call(Audit(folder, durable=False), "r")

    with run_child(worker, failpoint="begun") as child:
        assert child.ended() == -9
    audit = Audit(folder, durable=False)
    call(audit, "r")
    attempts = audit.show(StepKey("r", "1")).attempts
    assert [(attempt.number, attempt.outcome, attempt.ended_ms is None) for attempt in attempts] == [
        (1, "started", True),
        (2, "ok", False),
    ]
    audit.close()


@pytest.mark.invariant("I7")
def test_a_reworded_retry_is_served_counted_once_and_flagged(audit: Audit) -> None:
    """A lookup has no effect to protect, so other words are answered; the flag raises the alarm."""
    assert call(audit, "r", query="leave").args_changed is False
    assert call(audit, "r", query="leave").args_changed is False
    assert call(audit, "r", query="days off").args_changed is True
    assert counts(audit, "r") == (1, 1, 3)


@pytest.mark.invariant("I7")
def test_other_steps_and_other_principals_are_other_calls(audit: Audit) -> None:
    """Two steps: two events. The same key under two principals: two, and neither sees the other's."""
    call(audit, "r", "1")
    call(audit, "r", "2")
    assert call(audit, "r", "1", scope="other").state == "new"
    assert counts(audit, "r", "1") == (2, 2, 2)
    assert audit.usage_report().units_total == 3


def test_a_call_is_ended_once(audit: Audit) -> None:
    """The first outcome stays; a second end changes nothing."""
    begun = call(audit, "r")
    audit.end(begun, outcome="error", body={})
    assert audit.show(StepKey("r", "1")).attempts[0].outcome == "ok"


@pytest.mark.invariant("I7")
def test_an_event_that_is_complete_at_once_is_recorded_once(audit: Audit) -> None:
    """A run writes its own event; writing it again after a crash changes nothing."""
    key = StepKey("57", "publish")
    assert audit.record(key, kind="run", scope="local", subject="ingest", body={"chunks": 9}) is True
    assert audit.record(key, kind="run", scope="local", subject="ingest", body={"chunks": 10}) is False
    (event,) = audit.show(key).events
    assert event.fields == {"chunks": 9, "subject": "ingest"}
    assert audit.usage_report().units_total == 0


def test_a_limit_is_exact_over_processes_of_which_some_are_killed(folder: Path) -> None:
    """8 processes want 106 units of 50, 3 are killed inside a transaction: exactly 50, each with its event."""
    limits = [Limit("lookup", 50, HOUR)]
    barrier = get_context("fork").Barrier(8)

    def worker(number: int) -> None:
        audit = Audit(folder, durable=False, limits=limits)
        barrier.wait()
        for step in range(20):
            if number < 3 and step == 2:
                arm("store.commit", lambda: os.kill(os.getpid(), signal.SIGKILL))
            call(audit, f"r{number}", str(step))

    with ExitStack() as stack:
        children = [stack.enter_context(run_child(worker, number)) for number in range(8)]
        assert [child.ended() for child in children] == [-9] * 3 + [0] * 5
    audit = Audit(folder, durable=False, limits=limits)
    report = audit.verify()
    assert (audit.usage_report().units_total, report.events, report.problems) == (50, 50, ())
    audit.close()


def test_arguments_and_content_stay_out_of_the_chain(audit: Audit) -> None:
    """Without a redactor the query is on record only as an HMAC."""
    audit.begin(
        StepKey("r", "1"),
        kind="lookup",
        scope="acme",
        subject="acme",
        meter="lookup",
        args={"query": "secret plan"},
        content={"query": "secret plan"},
    )
    dump = "\n".join(audit.store.connection().iterdump())
    assert "secret plan" not in dump
