"""Rows 16 to 19 of the fault catalogue: the store locked, full, read-only or gone, and clocks that jump."""

import fcntl
import os
import resource
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from datetime import timedelta
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

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
from audit.faults import FakeClock, Target, run_child
from tests.audit.ledger_desk import WEEK, Desk, history, key, phase, send

MakeDesk = Callable[..., Desk]


class Locker:
    """Another process that takes and gives back locks on a file, as told."""

    def __init__(self, pipe: "Connection[str, bool]") -> None:
        self._pipe = pipe

    def take(self, how: Literal["write", "exclusive", "pending"], path: Path) -> bool:
        """Try to take a lock; False when somebody else holds it."""
        return self._ask(f"{how} {path}")

    def give(self) -> None:
        """Give back whatever is held."""
        self._ask("give")

    def _ask(self, command: str) -> bool:
        self._pipe.send(command)
        assert self._pipe.poll(60)
        return self._pipe.recv()


def _lock_as_told(pipe: "Connection[bool, str]") -> None:
    """`write`: the write lock. `exclusive`: the file to itself. `pending`: no new connection can read."""
    with ExitStack() as held:
        while True:
            how, _, path = pipe.recv().partition(" ")
            held.close()
            if how == "end":
                return
            taken = True
            if how == "pending":
                file = held.enter_context(open(path, "r+b"))  # noqa: PTH123 - a descriptor for lockf
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, PENDING_BYTE)
            elif how != "give":
                conn = held.enter_context(closing(sqlite3.connect(path, isolation_level=None, timeout=0)))
                try:
                    conn.execute("PRAGMA locking_mode = " + ("EXCLUSIVE" if how == "exclusive" else "NORMAL"))
                    conn.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError:
                    held.close()
                    taken = False
            pipe.send(taken)


# sqlite3 os.h: who holds this byte lets nobody begin to read.
PENDING_BYTE = 0x40000000


@pytest.fixture(scope="module")
def other_process() -> Iterator[Locker]:
    """One process for all tests here; it holds nothing between them."""
    ours, theirs = get_context("fork").Pipe()
    process = get_context("fork").Process(target=_lock_as_told, args=(theirs,))
    process.start()
    yield Locker(ours)
    ours.send("end")
    process.join()


@pytest.fixture
def locker(other_process: Locker) -> Iterator[Locker]:
    """Another process, which gives back its lock before the counters are read."""
    yield other_process
    other_process.give()


@pytest.mark.invariant("I8")
def test_row_16_locked_before_the_claim_nothing_is_sent(make_desk: MakeDesk, locker: Locker) -> None:
    """LedgerUnavailable: the host may try again, and does, with one effect. Readers are not held up."""
    desk = make_desk()
    audit = desk.open(busy_timeout_s=0.01)
    assert locker.take("write", audit.store.path)
    with pytest.raises(LedgerUnavailable, match="nothing was sent"):
        send(audit, desk.tool())
    assert desk.target.acts() == ()
    assert audit.ledger.get(key()) is None
    assert audit.ledger.attention() == ()
    locker.give()
    assert send(audit, desk.tool()).kind == "done"
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_16_when_not_even_reading_is_possible_nothing_is_sent(make_desk: MakeDesk, locker: Locker) -> None:
    """A new connection cannot begin to read: no answer is taken for "there is nothing yet"."""
    desk = make_desk()
    audit = desk.open(busy_timeout_s=0.01)
    send(audit, desk.tool(), order="P-0", step="1.0")
    audit.store.close()  # connections that are open have begun long ago
    assert locker.take("pending", audit.store.path)
    for work in (lambda: audit.ledger.get(key("1.0")), audit.ledger.attention):
        with pytest.raises(AuditUnavailable, match="locked"):
            work()
    with pytest.raises(LedgerUnavailable, match="nothing was sent"):
        send(audit, desk.tool())
    assert len(desk.target.acts()) == 1
    locker.give()
    assert send(audit, desk.tool()).kind == "done"
    desk.counts(audit).expect(intents=2, rows=2, units=2)


def test_row_16_a_file_that_another_process_has_to_itself_is_not_opened(make_desk: MakeDesk, locker: Locker) -> None:
    """Exclusive locking mode: the ledger cannot even be opened, so nothing is sent."""
    desk = make_desk()
    desk.open().close()
    assert locker.take("exclusive", desk.folder / "audit.db")
    with pytest.raises(AuditUnavailable, match="locked"):
        desk.open(busy_timeout_s=0.01)
    locker.give()
    assert send(desk.open(), desk.tool()).kind == "done"


@pytest.mark.invariant("I8")
def test_row_16_locked_before_the_dispatch_nothing_is_sent_and_the_claim_is_not_stuck(
    make_desk: MakeDesk, locker: Locker
) -> None:
    """The claim could not even be given back; the same process does not wait for itself."""
    desk = make_desk()
    audit = desk.open(busy_timeout_s=0.01)
    arm("F1", lambda: locker.take("write", audit.store.path))
    with pytest.raises(LedgerUnavailable):
        send(audit, desk.tool())
    disarm()
    locker.give()
    assert (phase(audit), desk.target.acts()) == ("claimed", ())
    assert send(audit, desk.tool()).kind == "done"
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_16_locked_after_the_effect_the_outcome_goes_to_the_spool(make_desk: MakeDesk, locker: Locker) -> None:
    """The caller gets its result, and so does everybody later: the spool is read before the slot is judged."""
    desk = make_desk()
    audit = desk.open(busy_timeout_s=0.01)
    arm("F4", lambda: locker.take("write", audit.store.path))
    outcome = send(audit, desk.tool())
    disarm()
    assert (outcome.kind, outcome.result) == ("done", {"receipt": 1})
    locker.give()
    assert (desk.folder / "outcomes.spool").stat().st_mode & 0o777 == 0o600
    assert phase(audit) == "dispatched"
    again = send(desk.open(), desk.tool())
    assert (again.result, again.replayed) == ({"receipt": 1}, True)
    assert (desk.folder / "outcomes.spool").read_bytes() == b""
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_16_a_repeat_finds_the_outcome_in_the_spool_at_once(make_desk: MakeDesk, locker: Locker) -> None:
    """The winner lives and could only spool: nobody waits for a row that will never change."""
    desk = make_desk()
    audit = desk.open(busy_timeout_s=0.01)

    def act(call: Call) -> object:
        result = desk.target.act(call)
        assert locker.take("write", audit.store.path)
        return result

    assert send(audit, desk.tool(act)).kind == "done"
    locker.give()
    assert phase(audit) == "dispatched"
    for loser in (audit, desk.open()):
        assert send(loser, desk.tool(), wait_s=0).result == {"receipt": 1}
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_16_a_failure_that_could_not_be_recorded_is_not_forgotten(make_desk: MakeDesk, locker: Locker) -> None:
    """A clear no goes to the spool too, and is answered from there."""
    desk = make_desk()
    audit = desk.open(busy_timeout_s=0.01)

    class NotFoundError(Exception):
        status = 404

    def refuse(call: Call) -> object:
        assert locker.take("write", audit.store.path)
        raise NotFoundError

    with pytest.raises(AuditUnavailable):
        send(audit, desk.tool(refuse))
    locker.give()
    assert send(desk.open(), desk.tool()).kind == "failed"
    desk.counts(audit).expect(effects=0, rows=1, units=1)


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_row_16_locked_at_any_statement_there_is_at_most_one_effect(
    make_desk: MakeDesk, locker: Locker, first: int
) -> None:
    """From the n-th statement on, reading or writing, another process tries for the lock and keeps it.

    Before the effect: LedgerUnavailable, nothing sent. After it: the caller has its result, from store or spool.
    """
    desk = make_desk("none")
    audit = desk.open(busy_timeout_s=0.001)
    conn, taken = audit.store.connection(), 0
    for number in range(first, first + 10):
        order, step, seen, held = f"P-{number}", f"{number}.0", 0, False

        def before_statement(_: str, at: int = number) -> None:
            nonlocal seen, held
            seen += 1
            if seen > at and not held:
                held = locker.take("write", audit.store.path)

        conn.set_trace_callback(before_statement)
        try:
            outcome = send(audit, desk.tool(), order=order, step=step)
        except LedgerUnavailable:
            assert desk.target.effects("order")[order,] == 0
        else:
            assert (outcome.kind, desk.target.effects("order")[order,]) == ("done", 1)
        conn.set_trace_callback(None)
        locker.give()
        assert send(audit, desk.tool(), order=order, step=step).kind == "done"
        taken += held
    assert taken or first >= 30  # the last statements are one transaction, which nobody can lock
    desk.counts(audit).expect(intents=10, rows=10, units=10)


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


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB, mounted for this test."""
    place = tmp_path / "tiny"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount a tmpfs")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def _fill(place: Path) -> None:
    with suppress(OSError), (place / "filler").open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("durable", [True, False], ids=["reserve", "no reserve"])
@pytest.mark.parametrize("size", [10, 100_000, 900_000])
def test_row_17_on_a_tiny_file_system_that_is_full_the_outcome_is_recorded_or_kept(
    tiny_disk: Path, tmp_path: Path, durable: bool, size: int
) -> None:
    """Full between dispatch and record. With the reserve in the WAL the fact is recorded there and then.

    Without it, store and spool may both be full: then the error carries the result, and nothing is sent again.
    """
    desk = Desk(tiny_disk / "audit", Target(tmp_path / "target.jsonl"))
    audit = desk.open(durable=durable)

    def act(call: Call) -> object:
        desk.target.act(call)
        _fill(tiny_disk)
        return "x" * size

    kept: object = None
    try:
        kept = send(audit, desk.tool(act)).kind
        recorded = phase(audit) == "done"
    except OutcomeNotRecorded as error:
        kept, recorded = error.result, False
    assert kept in ("done", "x" * size)
    assert recorded or not durable
    (tiny_disk / "filler").unlink()
    audit = desk.open()
    assert send(audit, desk.tool(), wait_s=0).kind == ("done" if kept == "done" else "running")
    desk.counts(audit).expect(rows=1, units=1)
    desk.close()
    desk.check()


@pytest.mark.invariant("I8")
def test_row_17_on_a_disk_that_is_full_before_nothing_is_sent(tiny_disk: Path, tmp_path: Path) -> None:
    """No claim, no effect; with room again the call is new."""
    desk = Desk(tiny_disk / "audit", Target(tmp_path / "target.jsonl"))
    audit = desk.open(durable=True)
    _fill(tiny_disk)
    with pytest.raises(LedgerUnavailable, match="nothing was sent"):
        send(audit, desk.tool())
    assert desk.target.acts() == ()
    (tiny_disk / "filler").unlink()
    assert send(audit, desk.tool()).kind == "done"
    desk.close()
    desk.check()


@pytest.mark.invariant("I8")
def test_row_17_when_nothing_takes_the_record_the_error_carries_the_result(make_desk: MakeDesk, locker: Locker) -> None:
    """Store locked and spool not writable: OutcomeNotRecorded, and the slot stays as sent."""
    desk = make_desk()
    audit = desk.open(busy_timeout_s=0.01)
    (desk.folder / "outcomes.spool").mkdir()
    arm("F4", lambda: locker.take("write", audit.store.path))
    with pytest.raises(OutcomeNotRecorded) as caught:
        send(audit, desk.tool())
    disarm()
    locker.give()
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


@pytest.mark.invariant("I8")
def test_row_18_a_connection_that_may_only_read_fails_closed(
    make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`mode=ro`: reading works, sending does not."""
    desk = make_desk()
    desk.open().close()
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda name, **options: connect(name.replace("mode=rw", "mode=ro"), **options)
    )
    audit = Audit(desk.folder, durable=False)
    assert audit.tail() == ()
    with pytest.raises(LedgerUnavailable, match="readonly"):
        send(audit, desk.tool())
    audit.close()
    assert desk.target.acts() == ()


NOBODY = 65534


@pytest.mark.invariant("I8")
@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become another user")
@pytest.mark.parametrize("mode", [0o444, 0o644, 0o000], ids=["read-only", "another owner's", "unreadable"])
def test_row_18_an_ordinary_user_who_may_not_write_the_file_sends_nothing(tmp_path: Path, mode: int) -> None:
    """As user `nobody` beside a file of root; root itself would not be stopped by modes."""
    with TemporaryDirectory() as name:  # the folders of pytest are closed to other users
        place = Path(name)
        desk = Desk(place / "audit", Target(place / "target.jsonl"))
        desk.open()
        desk.close()
        place.chmod(0o755)
        desk.folder.chmod(0o755)
        for path in desk.folder.glob("audit.db*"):
            path.chmod(mode)

        def worker() -> str:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            try:
                audit = Audit(desk.folder, durable=False)
                audit.ledger.open_run("w", scope="acme", agent="desk", resume_within=WEEK)
                send(audit, desk.tool())
            except AuditUnavailable as error:
                return type(error).__name__
            return "sent"

        with run_child(worker) as child:
            assert child.result() == "AuditUnavailable"
        assert desk.target.acts() == ()
        desk.check()


def _crashed(desk: Desk, *, folded: bool) -> None:
    """A process that sent and recorded twice, then died; what it did first is in the main file if folded."""

    def worker() -> None:
        arm("F6", _die_at(2))
        audit = desk.open()
        send(audit, desk.tool(), step="1.0", order="P-0")
        if folded:
            assert audit.store.checkpoint()
        send(audit, desk.tool(), step="4.0")

    with run_child(worker) as child:
        assert child.ended() == -9
    assert len(desk.target.acts()) == 2


def _die_at(times: int) -> Callable[[], None]:
    left = iter(range(times - 1))

    def die() -> None:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    return die


def _keep_empty(wal: Path) -> None:
    wal.write_bytes(b"")


def _tear(wal: Path) -> None:
    wal.write_bytes(wal.read_bytes()[:4_000])


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("loss", [Path.unlink, _keep_empty, _tear], ids=["deleted", "emptied", "cut off"])
def test_row_18_a_wal_that_was_lost_after_a_crash_is_noticed_and_nothing_is_sent(
    make_desk: MakeDesk, loss: Callable[[Path], None]
) -> None:
    """SQLite opens the main file alone without a word; the holder file of the dead knows that more was committed."""
    desk = make_desk()
    _crashed(desk, folded=True)
    loss(desk.folder / "audit.db-wal")
    for _ in range(2):
        with pytest.raises(LedgerUnavailable, match="WAL was lost"):
            desk.open()
    assert len(desk.target.acts()) == 2
    (witness,) = (desk.folder / "holders").iterdir()
    witness.unlink()  # a person has checked the target and decided
    desk.most_effects = 2
    assert send(desk.open(), desk.tool(), step="4.0").kind == "done"


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("ability", ["none", "lookup"])
def test_row_18_a_loss_after_the_last_dispatch_is_doubt_not_a_second_effect(
    make_desk: MakeDesk, ability: Literal["none", "lookup"]
) -> None:
    """Only the record of the success was in the lost WAL: no alarm, and the action is looked up or in doubt."""
    desk = make_desk(ability)

    def worker() -> None:
        audit = desk.open()

        def act(call: Call) -> object:
            assert audit.store.checkpoint()  # the dispatch is in the main file
            return desk.target.act(call)

        send(audit, desk.tool(act))

    with run_child(worker, failpoint="F6") as child:
        assert child.ended() == -9
    (desk.folder / "audit.db-wal").unlink()
    audit = desk.open()
    assert send(audit, desk.tool(), wait_s=0).kind == ("in_doubt" if ability == "none" else "done")
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_18_an_old_copy_that_is_put_back_is_noticed(make_desk: MakeDesk) -> None:
    """A backup of the file beside the holder files of today: what was sent since is not sent again."""
    desk = make_desk()
    desk.open().close()
    backup = (desk.folder / "audit.db").read_bytes()
    audit = desk.open()
    send(audit, desk.tool())
    audit.close()
    (desk.folder / "audit.db").write_bytes(backup)
    with pytest.raises(LedgerUnavailable, match="old copy"):
        desk.open()
    assert len(desk.target.acts()) == 1


def test_row_18_a_crash_that_lost_nothing_raises_no_alarm(make_desk: MakeDesk) -> None:
    """With its WAL, after a clean end, and after sweep has removed the holder files."""
    desk = make_desk()
    _crashed(desk, folded=False)
    audit = desk.open()
    assert send(audit, desk.tool()).kind == "done"
    audit.close()
    audit = desk.open()
    assert audit.ledger.sweep().holders == 1
    audit.close()
    assert send(desk.open(), desk.tool()).kind == "done"


@pytest.mark.invariant("I8")
def test_row_18_sweep_keeps_the_witness_while_only_the_wal_holds_what_it_saw(make_desk: MakeDesk) -> None:
    """A reader keeps the WAL from being folded in: the holder file stays, and a loss is still noticed."""
    desk = make_desk()
    _crashed(desk, folded=True)
    reader = sqlite3.connect(desk.folder / "audit.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM actions").fetchone()
    audit = desk.open()
    assert audit.ledger.sweep().holders == 0
    reader.close()
    assert audit.ledger.sweep().holders == 1


@pytest.mark.invariant("I8")
def test_row_18_a_wal_replaced_under_a_living_process_fails_closed(make_desk: MakeDesk) -> None:
    """Another file of the same name is not the one this process writes to."""
    desk = make_desk()
    audit = desk.open()
    wal = desk.folder / "audit.db-wal"
    wal.rename(desk.folder / "elsewhere")
    wal.write_bytes(b"")
    with pytest.raises(LedgerUnavailable, match="replaced"):
        send(audit, desk.tool())
    assert desk.target.acts() == ()
    wal.unlink()
    (desk.folder / "elsewhere").rename(wal)
    assert send(audit, desk.tool()).kind == "done"


def test_row_18_a_missing_file_is_not_made_by_a_reader(make_desk: MakeDesk, folder: Path) -> None:
    """Only a writer makes one."""
    with pytest.raises(AuditMissing):
        Audit(folder, create=False)


@pytest.mark.invariant("I8")
def test_row_18_broken_bytes_fail_closed(make_desk: MakeDesk) -> None:
    """A damaged page is named as such, and nothing is sent on its word."""
    desk = make_desk()
    desk.destroyed = "its pages are garbage"
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
def test_row_16_an_outcome_in_the_spool_answers_while_its_process_lives(make_desk: MakeDesk) -> None:
    """The lock came after the effect and is gone again: nobody waits for the row that could not be written."""
    desk = make_desk()
    audit = desk.open(busy_timeout_s=0.01)
    with closing(sqlite3.connect(audit.store.path, isolation_level=None)) as other:
        arm("F4", lambda: other.execute("BEGIN IMMEDIATE"))
        assert send(audit, desk.tool()).kind == "done"
        disarm()
        other.execute("ROLLBACK")
    again = send(audit, desk.tool(), wait_s=0)
    assert (again.kind, again.replayed) == ("done", True)
    desk.counts(audit).expect(rows=1, units=1)


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
