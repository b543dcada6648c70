"""The chain of events: append-only, and every tampering has a name."""

import csv
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from audit import Audit, ChainKey, JsonValue, StepKey, seal_file
from audit.events import CLOCK_SCOPE, Event, Seal
from audit.export import ExportFormat, read_seals, seal_line
from audit.faults import FakeClock, run_child

MakeAudit = Callable[..., Audit]


def note(audit: Audit, *steps: int, scope: str = "acme") -> None:
    """Record one event for each step."""
    for step in steps:
        audit.record(StepKey("r", str(step)), kind="note", scope=scope, subject="jane", body={"n": step})


def tamper(folder: Path, *statements: str) -> None:
    """Do what somebody with the file, but without the chain key, can do: drop every guard, then write."""
    conn = sqlite3.connect(folder / "audit.db", isolation_level=None)
    conn.execute("DROP TRIGGER IF EXISTS audit_events_no_update")
    conn.execute("DROP TRIGGER IF EXISTS audit_events_no_delete")
    conn.execute("CREATE TABLE loose AS SELECT * FROM audit_events ORDER BY scope, seq")
    conn.execute("DROP TABLE audit_events")
    conn.execute("ALTER TABLE loose RENAME TO audit_events")
    for statement in statements:
        conn.execute(statement)
    conn.close()


def named(audit: Audit, heads: Sequence[Seal] = ()) -> list[tuple[int, str]]:
    """What verify says: where and what."""
    return [(problem.seq, problem.name) for problem in audit.verify(heads=heads).problems]


def test_an_untouched_chain_has_no_problems(audit: Audit) -> None:
    """Several scopes are several chains, each numbered from 1."""
    note(audit, 1, 2, 3)
    note(audit, 1, 2, scope="other")
    report = audit.verify()
    assert (report.events, report.scopes, report.problems) == (5, 2, ())
    assert [event.seq for event in audit.events.walk("other")] == [1, 2]


@pytest.mark.parametrize("statement", ["UPDATE audit_events SET body = '{}' WHERE seq = 1", "DELETE FROM audit_events"])
def test_the_table_itself_refuses_to_change(audit: Audit, statement: str) -> None:
    """A mistake in a program cannot rewrite history."""
    note(audit, 1)
    with pytest.raises(sqlite3.IntegrityError, match="append only"), audit.store.write() as tx:
        tx.conn.execute(statement)
    assert audit.verify().events == 1


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE audit_events SET body = '{\"n\":9}' WHERE seq = 3", [(3, "edit")]),
        ("UPDATE audit_events SET at = at + 1 WHERE seq = 3", [(3, "edit")]),
        ("UPDATE audit_events SET step_id = 'x' WHERE seq = 5", [(5, "edit")]),
        ("UPDATE audit_events SET key_id = 'stranger' WHERE seq = 3", [(3, "edit")]),
        ("DELETE FROM audit_events WHERE seq IN (3, 4)", [(3, "gap")]),
        ("DELETE FROM audit_events WHERE seq = 1", [(1, "gap")]),
        ("UPDATE audit_events SET seq = 7 - seq WHERE seq IN (3, 4)", [(3, "edit"), (4, "edit")]),
        ("UPDATE audit_events SET scope = 'other' WHERE seq = 5", [(1, "gap"), (5, "edit"), (5, "missing tail")]),
        ("INSERT INTO audit_events SELECT * FROM audit_events WHERE seq = 3", [(3, "fork")]),
    ],
)
def test_each_tampering_is_named_with_the_first_bad_place(
    audit: Audit, folder: Path, statement: str, expected: list[tuple[int, str]]
) -> None:
    """Edits, deletions in the middle or at the front, reordering, moving, doubling."""
    note(audit, 1, 2, 3, 4, 5)
    audit.close()
    tamper(folder, statement)
    found = named(audit)
    assert found[: len(expected)] == expected or sorted(found) == sorted(expected)


def test_a_branch_is_named_a_fork(audit: Audit, folder: Path, make_audit: MakeAudit, tmp_path: Path) -> None:
    """Two histories from one event, each signed with the right key: the second one does not follow."""
    note(audit, 1, 2, 3)
    audit.close()
    for name in ("audit.db",):
        (tmp_path / "copy").mkdir()
        (tmp_path / "copy" / name).write_bytes((folder / name).read_bytes())
    other = Audit(tmp_path / "copy")
    note(other, 10, 11)
    foreign = [event for event in other.events.walk("acme") if event.seq == 5]
    other.close()
    note(audit, 4, 5, 6)
    audit.close()
    tamper(folder, "DELETE FROM audit_events WHERE seq = 5")
    conn = sqlite3.connect(folder / "audit.db")
    conn.execute(
        "INSERT INTO audit_events VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", tuple(foreign[0].__dict__.values())
    )
    conn.commit()
    conn.close()
    assert named(audit)[0] == (5, "fork")


def test_a_cut_tail_is_seen_only_with_a_head_from_outside(audit: Audit, folder: Path) -> None:
    """Inside the file nothing is missing; the exported seal knows better."""
    note(audit, 1, 2, 3, 4, 5)
    heads = audit.seal(lambda seals: "safe")
    audit.close()
    tamper(folder, "DELETE FROM audit_events WHERE seq > 3", "DELETE FROM audit_seals")
    assert named(audit) == []
    assert named(audit, heads) == [(4, "missing tail")]


def test_a_cut_tail_is_seen_by_a_seal_that_was_left_in_the_file(audit: Audit, folder: Path) -> None:
    """Losing rows by accident leaves the seal."""
    note(audit, 1, 2, 3)
    audit.events.seal()
    audit.close()
    tamper(folder, "DELETE FROM audit_events WHERE seq > 1")
    assert named(audit) == [(2, "missing tail")]


def test_a_rebuilt_chain_contradicts_an_exported_seal(audit: Audit, folder: Path, tmp_path: Path) -> None:
    """Who has the chain key can rebuild everything, but not what stands elsewhere."""
    note(audit, 1, 2, 3)
    heads = audit.seal(lambda seals: "safe")
    rebuilt = Audit(tmp_path / "rebuilt")
    note(rebuilt, 7, 8, 9)
    assert named(rebuilt, heads) == [(3, "fork")]
    rebuilt.close()


@pytest.mark.invariant("I7")
def test_eight_writers_make_one_chain(folder: Path) -> None:
    """Head and insert share one transaction, so no two events follow the same one."""

    def write(number: int) -> None:
        audit = Audit(folder, durable=False)
        for step in range(12):
            note(audit, number * 100 + step)

    with ExitStack() as stack:
        children = [stack.enter_context(run_child(write, number)) for number in range(8)]
        assert [child.ended() for child in children] == [0] * 8
    audit = Audit(folder, durable=False)
    assert (audit.verify().events, audit.verify().problems) == (96, ())
    audit.close()


def test_a_rotated_chain_key_still_verifies_what_came_before(folder: Path) -> None:
    """Events name the key that signed them; old keys stay known."""
    old, new = ChainKey("k1", b"1" * 32), ChainKey("k2", b"2" * 32, (ChainKey("k1", b"1" * 32),))
    for key, step in ((old, 1), (new, 2)):
        audit = Audit(folder, chain_key=key)
        note(audit, step)
        audit.close()
    audit = Audit(folder, chain_key=new)
    assert [event.key_id for event in audit.tail()] == ["k1", "k2"]
    assert named(audit) == []
    audit.close()


def test_a_chain_that_began_with_the_files_own_key_verifies_after_the_move_outside(folder: Path) -> None:
    """Production passes the key from outside later; nothing is rewritten."""
    audit = Audit(folder)
    note(audit, 1)
    audit.close()
    audit = Audit(folder, chain_key=ChainKey("prod", b"p" * 32))
    note(audit, 2)
    assert named(audit) == []
    audit.close()


def test_a_forgotten_old_key_is_named(folder: Path) -> None:
    """An event whose key nobody has proves nothing."""
    for key, step in ((ChainKey("k1", b"1" * 32), 1), (ChainKey("k2", b"2" * 32), 2)):
        audit = Audit(folder, chain_key=key)
        note(audit, step)
        audit.close()
    audit = Audit(folder, chain_key=ChainKey("k2", b"2" * 32))
    (problem,) = audit.verify().problems
    assert (problem.seq, problem.name) == (1, "edit")
    assert "k1 is not known" in problem.detail
    audit.close()


def keep_query(content: Mapping[str, JsonValue]) -> Mapping[str, JsonValue] | None:
    """Keep the query alone."""
    return {"query": content["query"]}


def test_content_is_kept_only_as_the_redactor_says_and_can_be_erased(make_audit: MakeAudit) -> None:
    """The chain holds its HMAC, so erasing leaves it valid, and changing is named."""
    audit = make_audit(redactor=keep_query)
    audit.record(
        StepKey("r", "1"), kind="note", scope="acme", body={}, content={"query": "leave", "mail": "jane@x.org"}
    )
    audit.record(StepKey("r", "2"), kind="note", scope="acme", body={}, content={"query": "pay"})
    assert audit.events.content("acme", 1) == {"query": "leave"}
    assert "content_hmac" in audit.tail()[0].fields
    assert audit.events.erase_content("acme", 1) is True
    assert audit.events.content("acme", 1) is None
    assert named(audit) == []
    with audit.store.write() as tx:
        tx.conn.execute("UPDATE audit_content SET body = '{}' WHERE seq = 2")
    assert named(audit) == [(2, "edit")]


def test_retention_removes_only_below_an_exported_seal(make_audit: MakeAudit, clock: FakeClock) -> None:
    """Without an export nothing of the chain goes; after it the old range goes, and verify starts at the seal."""
    audit = make_audit(retention=timedelta(days=1))
    note(audit, 1, 2, 3)
    clock.advance(2 * 86_400)
    note(audit, 4)
    assert audit.prune().events == 0
    audit.events.note_exported(
        [Seal(event.scope, event.seq, event.hash, event.at_ms) for event in audit.tail()[2:3]], "x"
    )
    assert audit.prune(dry_run=True).events == 3
    assert audit.prune().events == 3
    assert [event.seq for event in audit.tail()] == [4]
    assert named(audit) == []
    note(audit, 5)
    assert named(audit) == []


def test_a_chain_that_was_removed_whole_goes_on_from_its_seal(make_audit: MakeAudit, clock: FakeClock) -> None:
    """The next event follows the seal, not the beginning."""
    audit = make_audit(retention=timedelta(days=1))
    note(audit, 1, 2)
    audit.seal(lambda seals: "safe")
    clock.advance(2 * 86_400)
    assert audit.prune().events == 2
    assert named(audit) == []
    note(audit, 3)
    assert [event.seq for event in audit.tail()] == [3]
    assert named(audit) == []


def test_the_store_reports_itself_under_a_scope_no_host_can_have(audit: Audit, clock: FakeClock) -> None:
    """A clock jump is on record and cannot be forged by a caller."""
    note(audit, 1)
    clock.set_wall(86_400)
    note(audit, 2)
    assert [event.kind for event in audit.events.walk(CLOCK_SCOPE)] == ["clock_jump"]


FORMATS: tuple[ExportFormat, ...] = ("jsonl", "csv", "cloudevents", "otlp")


@pytest.mark.parametrize("fmt", FORMATS)
def test_an_export_is_continued_not_repeated(audit: Audit, tmp_path: Path, fmt: ExportFormat) -> None:
    """The second export adds what came since; a line torn by a kill is replaced."""
    target = tmp_path / "out"
    note(audit, 1, 2)
    note(audit, 1, scope="other")
    assert audit.export(target, fmt).events == 3
    assert audit.export(target, fmt).events == 0
    note(audit, 3)
    assert audit.export(target, fmt).events == 1
    whole = target.read_bytes()
    note(audit, 4)
    audit.export(target, fmt)
    target.write_bytes(target.read_bytes()[: len(whole) + 20])
    assert audit.export(target, fmt).events == 1
    assert target.read_bytes().startswith(whole)
    assert target.read_bytes().endswith(b"\n")


def test_a_jsonl_export_ends_with_a_seal_that_proves_the_tail(audit: Audit, folder: Path, tmp_path: Path) -> None:
    """The file alone can be checked, and it unmasks a cut tail."""
    note(audit, 1, 2, 3)
    audit.export(tmp_path / "out.jsonl")
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [record["message_type"] for record in records] == ["audit_event"] * 3 + ["audit_seal"]
    assert records[-1]["hash"] == records[-2]["hash"]
    audit.close()
    tamper(folder, "DELETE FROM audit_events WHERE seq > 2", "DELETE FROM audit_seals")
    assert named(audit, read_seals(tmp_path / "out.jsonl")) == [(3, "missing tail")]


def test_a_csv_export_has_a_header_and_every_field(audit: Audit, tmp_path: Path) -> None:
    """Bodies with quotes and commas survive."""
    note(audit, 1)
    audit.export(tmp_path / "out.csv", "csv")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["scope"], row["seq"], json.loads(row["body"])) == ("acme", "1", {"n": 1, "subject": "jane"})


def test_a_cloudevent_has_the_required_attributes(audit: Audit, tmp_path: Path) -> None:
    """`id` is unique within `source`, names follow the conventions of OpenTelemetry."""
    audit.record(StepKey("r", "1"), kind="action", scope="acme", body={"tool": "send", "fence": 2})
    audit.export(tmp_path / "out", "cloudevents")
    event = json.loads((tmp_path / "out").read_text(encoding="utf-8"))
    assert {"specversion", "id", "source", "type"} <= event.keys()
    assert (event["id"], event["source"]) == ("r:1:action:", "acme")
    assert event["data"]["gen_ai.tool.name"] == "send"
    assert event["data"]["ledger.fence"] == 2


def test_an_otlp_record_types_its_attributes(audit: Audit, tmp_path: Path) -> None:
    """Integers are integers, texts are texts."""
    audit.record(StepKey("r", "1"), kind="action", scope="acme", body={"tool": "send", "fence": 2, "replayed": True})
    audit.export(tmp_path / "out", "otlp")
    data = json.loads((tmp_path / "out").read_text(encoding="utf-8"))
    (record,) = data["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert {item["key"]: item["value"] for item in record["attributes"]} == {
        "gen_ai.tool.name": {"stringValue": "send"},
        "ledger.fence": {"intValue": "2"},
        "ledger.replayed": {"boolValue": True},
    }


def test_a_seal_line_reads_back(tmp_path: Path) -> None:
    """What `seal` prints is what `verify --heads` reads."""
    seal = Seal("acme", 7, "ab" * 32, 1_700_000_000_123)
    (tmp_path / "seals").write_text(seal_line(seal) + "\n", encoding="utf-8")
    (found,) = read_seals(tmp_path / "seals")
    assert (found.scope, found.seq, found.hash, found.at_ms) == (seal.scope, seal.seq, seal.hash, seal.at_ms)


def test_an_event_shows_its_principal_and_survives_a_broken_body() -> None:
    """A reader of damaged rows must not fail before verify can name them."""
    event = Event("acme", 1, "r", "1", "note", "", 0, "{broken", "", "", "local")
    assert (event.principal, event.fields) == ("acme", {})


def test_every_n_events_and_at_close_the_head_is_sealed_outside(
    make_audit: Callable[..., Audit], tmp_path: Path
) -> None:
    """Without anybody asking: so a tail that is cut off later shows, whole events at the end included."""
    heads = tmp_path / "elsewhere.jsonl"
    audit = make_audit(seal_every=3, seal_to=seal_file(heads))
    for number in range(7):
        audit.record(StepKey("r", str(number)), kind="run", scope="acme", body={})
    assert [(seal.scope, seal.seq) for seal in read_seals(heads)] == [("acme", 3), ("acme", 6)]
    audit.close()
    assert [seal.seq for seal in read_seals(heads)] == [3, 6, 7]
    audit = make_audit()
    assert {seal.exported_to for seal in audit.events.seals("acme")} == {str(heads)}
    conn = audit.store.connection()
    conn.execute("DROP TRIGGER audit_events_no_delete")
    conn.execute("DELETE FROM audit_events WHERE seq > 5")
    conn.execute("DELETE FROM audit_seals WHERE seq > 5")
    (problem,) = audit.verify(heads=read_seals(heads)).problems
    assert (problem.name, problem.seq) == ("missing tail", 6)


def test_who_only_reads_seals_nothing(make_audit: Callable[..., Audit]) -> None:
    """Closing writes only where this process has added something."""
    audit = make_audit()
    audit.record(StepKey("r", "1"), kind="run", scope="acme", body={})
    audit.close()
    reader = make_audit()
    before = reader.events.seals("acme")
    reader.tail()
    reader.close()
    assert make_audit().events.seals("acme") == before
    assert [seal.seq for seal in before] == [1]


def test_seals_that_cannot_leave_the_file_are_tried_again_with_the_next(
    make_audit: Callable[..., Audit], caplog: pytest.LogCaptureFixture
) -> None:
    """The other host is away: no call fails for it, and nothing counts as exported before it is."""
    places: list[int] = []

    def away_at_first(seals: Sequence[Seal]) -> str:
        places.append(seals[0].seq)
        if len(places) == 1:
            raise ConnectionError("unreachable")
        return "host"

    audit = make_audit(seal_every=2, seal_to=away_at_first)
    for number in range(2):
        audit.record(StepKey("r", str(number)), kind="run", scope="acme", body={})
    assert "unreachable" in caplog.text
    assert [seal.exported_to for seal in audit.events.seals("acme")] == [None]
    for number in range(2, 4):
        audit.record(StepKey("r", str(number)), kind="run", scope="acme", body={})
    assert [(seal.seq, seal.exported_to) for seal in audit.events.seals("acme")] == [(2, None), (4, "host")]
