"""One file, one connection rule, one clock."""

import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from audit import (
    Audit,
    AuditError,
    AuditIncompatible,
    AuditMissing,
    AuditUnavailable,
    ChainKey,
    ClockJumped,
    StepKey,
    schema,
)
from audit.clock import SystemClock
from audit.faults import FakeClock, run_child
from audit.store import Store

HOUR_S = 3600.0


def test_reading_where_nothing_is_creates_nothing(tmp_path: Path) -> None:
    """The message says where it looked, and the folder is not made."""
    with pytest.raises(AuditMissing, match="not there"):
        Audit(tmp_path / "audit", create=False)
    assert not (tmp_path / "audit").exists()


def test_the_file_is_only_for_its_owner(audit: Audit, folder: Path) -> None:
    """It may hold the keys of the chain."""
    assert stat.S_IMODE((folder / "audit.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("statement", ["ATTACH ? AS other", "VACUUM INTO ?"])
def test_no_other_file_can_be_written_through_the_store(audit: Audit, tmp_path: Path, statement: str) -> None:
    """The authorizer denies what would open a second file, and no file appears."""
    other = tmp_path / "other.db"
    with pytest.raises(sqlite3.DatabaseError, match=r"authorization denied|not authorized"):
        audit.store.connection().execute(statement, (str(other),))
    assert not other.exists()


def test_a_schema_of_a_newer_program_is_refused(folder: Path, audit: Audit) -> None:
    """An old program cannot know what it would break."""
    with audit.store.write() as tx:
        tx.conn.execute("UPDATE meta SET value = 99 WHERE name = 'schema'")
    with pytest.raises(AuditIncompatible, match="newer"):
        Audit(folder)


def test_each_older_schema_is_brought_up_to_date(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file made by the first migration alone gets the others, and keeps its rows."""
    monkeypatch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
    old = Audit(folder)
    old.record(StepKey("r", "1"), kind="note", scope="acme", body={})
    old.close()
    monkeypatch.undo()
    new = Audit(folder)
    assert schema.version(new.store.connection()) == len(schema.MIGRATIONS)
    assert [event.key for event in new.tail()] == ["r:1"]
    new.close()


def test_many_processes_may_open_a_new_folder_at_once(folder: Path) -> None:
    """Exactly one makes the file and its keys; all agree on them."""

    def open_it() -> str:
        audit = Audit(folder, durable=False)
        return audit.opaque("x")

    with ExitStack() as stack:
        children = [stack.enter_context(run_child(open_it)) for _ in range(6)]
        assert len({child.result() for child in children}) == 1


def test_a_locked_file_is_unavailable_and_counts_nothing(make_audit: Callable[..., Audit], folder: Path) -> None:
    """A caller that may not count must not go on; later it can."""
    audit = make_audit(busy_timeout_s=0.01)
    other = sqlite3.connect(folder / "audit.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(AuditUnavailable, match="locked"):
        audit.begin(StepKey("r", "1"), kind="lookup", scope="a", subject="a", meter="m", args={})
    other.execute("ROLLBACK")
    other.close()
    assert audit.begin(StepKey("r", "1"), kind="lookup", scope="a", subject="a", meter="m", args={}).state == "new"


def test_a_file_that_is_no_database_is_unavailable(folder: Path) -> None:
    """Broken bytes are named, not overwritten."""
    folder.mkdir()
    (folder / "audit.db").write_bytes(b"not a database, and longer than the header of one" * 40)
    with pytest.raises(AuditUnavailable):
        Audit(folder)
    assert (folder / "audit.db").read_bytes().startswith(b"not a database")


def test_a_full_disk_is_unavailable_and_leaves_nothing_half(audit: Audit) -> None:
    """Neither event nor unit without the other."""
    conn = audit.store.connection()
    conn.execute(f"PRAGMA max_page_count = {conn.execute('PRAGMA page_count').fetchone()[0]}")
    failed = 0
    for number in range(200):
        try:
            audit.begin(StepKey("r", str(number)), kind="lookup", scope="a", subject="a", meter="m", args={})
        except AuditUnavailable:
            failed += 1
    assert failed
    report = audit.usage_report()
    assert report.units_total == audit.verify().events == 200 - failed


def test_a_transaction_inside_another_is_refused(audit: Audit) -> None:
    """It would commit what the outer one may still roll back."""
    with audit.store.write(), pytest.raises(AuditError, match="inside another"), audit.store.write():
        pass


def test_threads_have_connections_of_their_own(audit: Audit) -> None:
    """A transaction of one thread never holds statements of another."""
    found: list[sqlite3.Connection] = [audit.store.connection()]
    thread = threading.Thread(target=lambda: found.append(audit.store.connection()))
    thread.start()
    thread.join()
    assert found[0] is not found[1]


def test_a_forked_child_opens_its_own_connection(audit: Audit) -> None:
    """It neither uses nor closes what it inherited, and its parent goes on."""
    inherited = id(audit.store.connection())

    def child() -> bool:
        audit.record(StepKey("child", "1"), kind="note", scope="acme", body={})
        other = id(audit.store.connection()) != inherited
        audit.close()
        return other

    with run_child(child) as forked:
        assert forked.result() is True
    audit.record(StepKey("parent", "1"), kind="note", scope="acme", body={})
    assert [event.request for event in audit.tail()] == ["child", "parent"]
    assert audit.verify().problems == ()


def test_a_network_file_system_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its locks cannot be trusted, so counting would not be exact."""
    read_text = Path.read_text

    def mounts(path: Path, encoding: str | None = None, errors: str | None = None) -> str:
        return "server:/x / nfs4 rw 0 0\n" if str(path) == "/proc/self/mounts" else read_text(path, encoding, errors)

    monkeypatch.setattr(Path, "read_text", mounts)
    with pytest.raises(AuditIncompatible, match="network"):
        Store(folder)


@pytest.mark.parametrize("key", ["id", "chain"])
def test_a_key_that_did_not_write_the_file_is_refused(folder: Path, key: str) -> None:
    """Another id key would count one call twice, another chain key would name every event an edit."""
    Audit(folder, id_key=b"i" * 32, chain_key=ChainKey("prod", b"c" * 32)).close()
    wrong_id, wrong_chain = (b"x" * 32, b"c" * 32) if key == "id" else (b"i" * 32, b"x" * 32)
    with pytest.raises(AuditIncompatible, match=f"another {key} key"):
        Audit(folder, id_key=wrong_id, chain_key=ChainKey("prod", wrong_chain))


def test_a_file_whose_keys_live_outside_is_not_given_new_ones(folder: Path) -> None:
    """A forgotten key is an error, not a second key."""
    Audit(folder, id_key=b"i" * 32, chain_key=ChainKey("prod", b"c" * 32)).close()
    with pytest.raises(AuditIncompatible, match="outside"):
        Audit(folder)
    assert Audit(folder, id_key=b"i" * 32, chain_key=ChainKey("prod", b"c" * 32)).verify().problems == ()


def test_a_secret_for_the_host_is_stable_and_per_purpose(folder: Path, audit: Audit) -> None:
    """A restart finds the same secret."""
    first = audit.secret("boundary")
    audit.close()
    again = Audit(folder)
    assert again.secret("boundary") == first != again.secret("other")
    again.close()


@pytest.mark.parametrize("off_s", [-365 * 24 * HOUR_S, -1.5 * HOUR_S, 1.5 * HOUR_S, 365 * 24 * HOUR_S])
def test_a_jump_of_the_wall_clock_is_noted_and_time_goes_on(audit: Audit, clock: FakeClock, off_s: float) -> None:
    """The store runs on elapsed time; one event names the jump, however long it lasts."""
    audit.record(StepKey("r", "1"), kind="note", scope="acme", body={})
    clock.set_wall(off_s)
    for number in range(3):
        clock.advance(60)
        audit.record(StepKey("r", f"after-{number}"), kind="note", scope="acme", body={})
    times = [event.at_ms for event in audit.tail() if event.kind == "note"]
    assert [time - times[0] for time in times] == [0, 60_000, 120_000, 180_000]
    jumps = [event for event in audit.tail() if event.kind == "clock_jump"]
    assert [event.fields["off_ms"] for event in jumps] == [round(off_s * 1000)]


def test_prune_refuses_while_a_jump_is_open(audit: Audit, clock: FakeClock) -> None:
    """A clock a year ahead would make everything old; once it is back, or accepted, pruning goes on."""
    audit.begin(StepKey("r", "1"), kind="lookup", scope="a", subject="a", meter="m", args={})
    clock.set_wall(365 * 24 * HOUR_S)
    with pytest.raises(ClockJumped):
        audit.prune()
    clock.set_wall(-365 * 24 * HOUR_S)
    assert audit.prune().usage == 0
    clock.set_wall(365 * 24 * HOUR_S)
    audit.store.accept_clock()
    assert audit.prune().usage == 1


def test_a_small_step_back_never_makes_time_run_backwards(audit: Audit, clock: FakeClock) -> None:
    """NTP may correct by minutes; later rows are never earlier."""
    audit.record(StepKey("r", "1"), kind="note", scope="acme", body={})
    clock.set_wall(-600)
    audit.record(StepKey("r", "2"), kind="note", scope="acme", body={})
    first, second = audit.tail()
    assert second.at_ms >= first.at_ms


def test_a_reboot_is_no_jump(audit: Audit, clock: FakeClock) -> None:
    """The boot clock starts anew, and a machine may have been off for weeks."""
    audit.record(StepKey("r", "1"), kind="note", scope="acme", body={})
    clock.reboot(off_s=14 * 24 * HOUR_S)
    audit.record(StepKey("r", "2"), kind="note", scope="acme", body={})
    assert [event.kind for event in audit.tail()] == ["note", "note"]
    assert audit.store.tick().jump_ms == 0


def test_a_clock_that_a_reboot_set_back_is_a_jump(audit: Audit, clock: FakeClock) -> None:
    """A machine without a battery starts in the past."""
    audit.record(StepKey("r", "1"), kind="note", scope="acme", body={})
    clock.reboot(off_s=-14 * 24 * HOUR_S)
    audit.record(StepKey("r", "2"), kind="note", scope="acme", body={})
    assert audit.store.tick().jump_ms < 0


def test_the_reserve_leaves_room_in_the_journal(audit: Audit, folder: Path) -> None:
    """After it the WAL holds at least the reserved pages, and no row stays behind."""
    audit.store.reserve_wal()
    assert (folder / "audit.db-wal").stat().st_size >= 256 * 1024
    assert audit.store.connection().execute("SELECT count(*) FROM meta WHERE name = 'reserve'").fetchone() == (0,)


def test_the_system_clock_tells_one_boot_from_another() -> None:
    """Within one boot the id stays, and monotonic time is shared by processes."""
    system = SystemClock()
    with run_child(system.boot_id) as child:
        assert child.result() == system.boot_id()
    before = system.mono_ms()
    with run_child(system.mono_ms) as child:
        assert before <= child.result() <= system.mono_ms()
