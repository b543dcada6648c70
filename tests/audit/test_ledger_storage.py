"""Rows 16 to 19 of the fault catalogue: the store locked, full, read-only or gone, and clocks that jump."""

import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from audit import (
    Approval,
    Audit,
    AuditMissing,
    AuditUnavailable,
    BadDeclaration,
    Call,
    ClockJumped,
    LedgerUnavailable,
    OutcomeNotRecorded,
)
from audit.failpoints import arm, disarm
from audit.faults import FakeClock, run_child
from tests.audit.ledger_desk import Desk, history, key, phase, send

MakeDesk = Callable[..., Desk]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Another connection holds the write lock."""
    other = sqlite3.connect(folder / "audit.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@pytest.mark.invariant("I8")
def test_row_16_locked_before_the_claim_nothing_is_sent(make_desk: MakeDesk) -> None:
    """LedgerUnavailable: the host may try again, and does, with one effect."""
    desk = make_desk()
    audit = desk.open(busy_timeout_s=0.01)
    with locked(desk.folder), pytest.raises(LedgerUnavailable, match="nothing was sent"):
        send(audit, desk.tool())
    assert desk.target.acts() == ()
    assert send(audit, desk.tool()).kind == "done"
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_16_locked_before_the_dispatch_nothing_is_sent_and_the_claim_is_not_stuck(make_desk: MakeDesk) -> None:
    """The claim could not even be given back; the same process does not wait for itself."""
    desk = make_desk()
    audit = desk.open(busy_timeout_s=0.01)
    other = sqlite3.connect(desk.folder / "audit.db", isolation_level=None)
    arm("F1", lambda: other.execute("BEGIN IMMEDIATE"))
    with pytest.raises(LedgerUnavailable):
        send(audit, desk.tool())
    disarm()
    other.execute("ROLLBACK")
    other.close()
    assert (phase(audit), desk.target.acts()) == ("claimed", ())
    assert send(audit, desk.tool()).kind == "done"
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_16_locked_after_the_effect_the_outcome_goes_to_the_spool(make_desk: MakeDesk) -> None:
    """The caller gets its result, and so does everybody later: the spool is read before the slot is judged."""
    desk = make_desk()
    audit = desk.open(busy_timeout_s=0.01)
    other = sqlite3.connect(desk.folder / "audit.db", isolation_level=None)
    arm("F4", lambda: other.execute("BEGIN IMMEDIATE"))
    outcome = send(audit, desk.tool())
    disarm()
    assert (outcome.kind, outcome.result) == ("done", {"receipt": 1})
    other.execute("ROLLBACK")
    other.close()
    assert (desk.folder / "outcomes.spool").stat().st_mode & 0o777 == 0o600
    assert phase(audit) == "dispatched"
    again = send(desk.open(), desk.tool())
    assert (again.result, again.replayed) == ({"receipt": 1}, True)
    assert (desk.folder / "outcomes.spool").read_bytes() == b""
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_16_a_failure_that_could_not_be_recorded_is_not_forgotten(make_desk: MakeDesk) -> None:
    """A clear no goes to the spool too, and is answered from there."""
    desk = make_desk()
    audit = desk.open(busy_timeout_s=0.01)
    other = sqlite3.connect(desk.folder / "audit.db", isolation_level=None)

    class NotFoundError(Exception):
        status = 404

    def refuse(call: Call) -> object:
        other.execute("BEGIN IMMEDIATE")
        raise NotFoundError

    with pytest.raises(AuditUnavailable):
        send(audit, desk.tool(refuse))
    other.execute("ROLLBACK")
    other.close()
    assert send(desk.open(), desk.tool()).kind == "failed"
    desk.counts(audit).expect(effects=0, rows=1, units=1)


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("statement", range(1, 30))
def test_row_16_locked_at_any_transaction_there_is_at_most_one_effect(make_desk: MakeDesk, statement: int) -> None:
    """The n-th transaction finds the file locked: before the effect nothing is sent, after it nothing is sent again."""
    desk = make_desk("none")
    audit = desk.open(busy_timeout_s=0.01)
    left = statement
    other = sqlite3.connect(desk.folder / "audit.db", isolation_level=None)

    def maybe_lock() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            other.execute("BEGIN IMMEDIATE")
        elif left < 0 and other.in_transaction:
            other.execute("ROLLBACK")

    arm("store.begin", maybe_lock)
    for step in ("4.0", "5.0"):
        try:
            send(audit, desk.tool(), step=step)
        except AuditUnavailable:
            assert len(desk.target.acts()) <= 1
    disarm()
    if other.in_transaction:
        other.execute("ROLLBACK")
    other.close()
    assert send(audit, desk.tool(), step="5.0").kind == "done"
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_17_on_a_full_disk_the_outcome_is_recorded_or_spooled(make_desk: MakeDesk) -> None:
    """The file may not grow between dispatch and record; the result is large; one effect, and it is known."""
    desk = make_desk()
    audit = desk.open()
    conn = audit.store.connection()

    def large(call: Call) -> object:
        desk.target.act(call)
        conn.execute(f"PRAGMA max_page_count = {conn.execute('PRAGMA page_count').fetchone()[0]}")
        return "x" * 500_000

    outcome = send(audit, desk.tool(large))
    assert outcome.kind == "done"
    conn.execute("PRAGMA max_page_count = 1000000")
    again = send(desk.open(), desk.tool())
    assert (again.kind, again.effect) == ("done", "done")
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_17_a_write_that_the_system_refuses_is_spooled(make_desk: MakeDesk) -> None:
    """No file may grow any more, as on a full disk: the reserve in the WAL or the spool takes the outcome."""
    desk = make_desk()

    def worker() -> tuple[str, object]:
        audit = desk.open(durable=True)

        def act(call: Call) -> object:
            desk.target.act(call)
            largest = max(path.stat().st_size for path in desk.folder.iterdir() if path.is_file())
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
            return "x" * 900_000

        outcome = send(audit, desk.tool(act))
        return outcome.kind, outcome.effect

    with run_child(worker) as child:
        assert child.result() == ("done", "done")
    audit = desk.open()
    again = send(audit, desk.tool())
    assert (again.kind, again.replayed) == ("done", True)
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_17_when_nothing_takes_the_record_the_error_carries_the_result(
    make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Store locked and spool not writable: OutcomeNotRecorded, and the slot stays as sent."""
    desk = make_desk()
    audit = desk.open(busy_timeout_s=0.01)
    (desk.folder / "outcomes.spool").mkdir()
    other = sqlite3.connect(desk.folder / "audit.db", isolation_level=None)
    arm("F4", lambda: other.execute("BEGIN IMMEDIATE"))
    with pytest.raises(OutcomeNotRecorded) as caught:
        send(audit, desk.tool())
    disarm()
    other.execute("ROLLBACK")
    other.close()
    assert caught.value.result == {"receipt": 1}
    assert phase(audit) == "dispatched"


@pytest.mark.invariant("I8")
def test_row_18_a_read_only_file_fails_closed(make_desk: MakeDesk) -> None:
    """What cannot be recorded is not sent."""
    desk = make_desk()
    audit = desk.open()
    audit.store.connection().execute("PRAGMA query_only = ON")
    with pytest.raises(LedgerUnavailable):
        send(audit, desk.tool())
    assert desk.target.acts() == ()


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("name", ["audit.db", "audit.db-wal"])
def test_row_18_a_file_that_vanished_under_the_process_fails_closed(make_desk: MakeDesk, name: str) -> None:
    """SQLite would go on writing to a file that nobody else sees."""
    desk = make_desk()
    audit = desk.open()
    (desk.folder / name).rename(desk.folder / "elsewhere")
    with pytest.raises(LedgerUnavailable, match="restart"):
        send(audit, desk.tool())
    assert desk.target.acts() == ()
    (desk.folder / "elsewhere").rename(desk.folder / name)
    assert send(audit, desk.tool()).kind == "done"


def test_row_18_a_missing_file_is_not_made_by_a_reader(make_desk: MakeDesk, folder: Path) -> None:
    """Only a writer makes one."""
    with pytest.raises(AuditMissing):
        Audit(folder, create=False)


@pytest.mark.invariant("I8")
def test_row_18_broken_bytes_fail_closed(make_desk: MakeDesk) -> None:
    """A damaged page is named as such, and nothing is sent on its word."""
    desk = make_desk()
    audit = desk.open()
    send(audit, desk.tool(), step="1.0", order="P-0")
    audit.store.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    audit.close()
    path = desk.folder / "audit.db"
    data = bytearray(path.read_bytes())
    for start in range(4096, len(data), 4096):
        data[start : start + 64] = bytes(byte ^ 0xFF for byte in data[start : start + 64])
    path.write_bytes(data)
    acts = len(desk.target.acts())
    with pytest.raises(AuditUnavailable):
        send(desk.open(), desk.tool())
    assert len(desk.target.acts()) == acts


@pytest.mark.invariant("I8")
def test_row_18_a_torn_line_of_the_spool_is_kept_for_a_person(make_desk: MakeDesk) -> None:
    """The whole lines count; the torn one is neither lost nor believed."""
    desk = make_desk()
    with run_child(lambda: send(desk.open(), desk.tool()), failpoint="F4") as child:
        assert child.ended() == -9
    (desk.folder / "outcomes.spool").write_bytes(b'{"key":"w:4.0:send","fence":1,"sto')
    audit = desk.open()
    assert send(audit, desk.tool()).kind == "in_doubt"
    assert (desk.folder / "outcomes.spool").read_bytes().startswith(b'# {"key"')
    desk.counts(audit).expect(rows=1, units=1)


YEAR_S = 365 * 86_400.0


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("off_s", [-YEAR_S, -7_200.0, 7_200.0, YEAR_S])
def test_row_19_a_lease_does_not_follow_the_wall_clock(make_desk: MakeDesk, off_s: float) -> None:
    """Leases are monotonic: a jump neither ends nor extends them."""
    clock = FakeClock()
    desk = make_desk(clock=clock)
    audit = desk.open()
    with run_child(lambda: send(desk.open(), desk.tool()).kind, failpoint="F1", hold=True) as child:
        child.wait_reached()
        clock.set_wall(off_s)
        assert send(audit, desk.tool(), wait_s=1).kind == "running"
        clock.advance(121)
        assert send(audit, desk.tool()).fence == 2
        child.release()
        assert child.result() == "done"
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.parametrize("off_s", [-YEAR_S, YEAR_S])
def test_row_19_an_approval_does_not_expire_by_a_jump(make_desk: MakeDesk, off_s: float) -> None:
    """It has its three days of elapsed time."""
    clock = FakeClock()
    desk = make_desk(clock=clock)
    audit = desk.open()
    tool = desk.tool(approval=Approval(expires_s=3 * 86_400))
    asked = send(audit, tool)
    clock.set_wall(off_s)
    clock.advance(2 * 86_400)
    assert audit.ledger.sweep().expired == 0
    (view,) = audit.ledger.attention()
    audit.ledger.approve(str(asked.approval_id), args_hash=str(view.args_hash), by="jane")
    assert send(audit, tool).kind == "done"


def test_row_19_a_jump_prunes_nothing(make_desk: MakeDesk) -> None:
    """A clock a year ahead would make everything old: refused until accepted."""
    clock = FakeClock()
    desk = make_desk(clock=clock)
    audit = desk.open()
    send(audit, desk.tool())
    audit.ledger.close_run("w")
    clock.set_wall(YEAR_S)
    with pytest.raises(ClockJumped):
        audit.ledger.prune()
    assert phase(audit) == "done"
    audit.store.accept_clock()
    assert audit.ledger.prune().actions == 1


def test_retention_below_the_longest_resume_is_refused(make_desk: MakeDesk) -> None:
    """Otherwise a resumed run would find its keys gone, and act again."""
    desk = make_desk(clock=FakeClock())
    desk.open()
    with pytest.raises(BadDeclaration, match="retention"):
        _ = Audit(desk.folder, clock=desk.clock, retention=timedelta(days=1), durable=False).ledger
    assert history(desk.open(), str(key().step)) == []
