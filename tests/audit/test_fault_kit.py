"""The public test kit keeps its word: faults happen where they say, counters count, children end as reported."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from audit import Audit, Call
from audit.faults import Counts, Target, duplicate_delivery, run_child, slow_reply
from tests.audit.ledger_desk import Desk, key, send

MakeDesk = Callable[..., Desk]
CALL = Call({"order": "P-1", "purpose": "refund"}, "ga_1", 1, 1, 30.0)


@pytest.mark.parametrize(("ability", "effects"), [("none", 2), ("lookup", 2), ("key", 1), ("both", 1)])
def test_a_request_delivered_twice_acts_once_only_where_keys_are_honoured(
    make_desk: MakeDesk, ability: str, effects: int
) -> None:
    """The network repeats it below the ledger, which cannot see that: the reason to hand the key on."""
    desk = make_desk(ability)
    desk.most_effects = effects
    audit = desk.open()
    assert send(audit, desk.tool(duplicate_delivery(desk.target.act))).kind == "done"
    assert len(desk.target.acts()) == effects


def test_a_slow_reply_holds_the_answer_back_not_the_effect(make_desk: MakeDesk) -> None:
    """Meanwhile a repeat is told to wait."""
    desk = make_desk()
    audit = desk.open()
    go = threading.Event()
    thread = threading.Thread(target=lambda: send(audit, desk.tool(slow_reply(desk.target.act, go.wait))))
    thread.start()
    while not desk.target.acts():
        thread.join(0.001)
    assert send(audit, desk.tool(), wait_s=0).kind == "running"
    go.set()
    thread.join()
    assert send(audit, desk.tool()).replayed is True
    desk.counts(audit).expect(rows=1, units=1)


def test_a_target_tells_its_effects_apart_by_intent(tmp_path: Path) -> None:
    """Counted in a file of its own, across processes."""
    target = Target(tmp_path / "target")
    with run_child(target.act, CALL) as child:
        assert child.result() == {"receipt": 1}
    target.act(CALL)
    assert target.effects("order", "purpose") == {("P-1", "refund"): 2}
    assert [act.receipt for act in target.acts()] == [1, 2]


def _counts(**changes: object) -> Counts:
    sound: dict[str, object] = {
        "effects": {("P",): 1},
        "rows": {"k": 1},
        "units": {"u": 1},
        "events": {"e": 1},
        "problems": (),
    }
    return Counts(**{**sound, **changes})  # type: ignore[arg-type]  # fields of Counts, by name


@pytest.mark.parametrize(
    "changes",
    [
        {"effects": {("P",): 2}},
        {"effects": {}},
        {"effects": {("P",): 1, ("Q",): 1}},
        {"rows": {"k": 2}},
        {"units": {"u": 2}},
        {"events": {"e": 2}},
        {"problems": ("acme 3: edit",)},
        {"rows": {}},
    ],
)
def test_counts_that_are_off_fail_the_test(changes: dict[str, object]) -> None:
    """Each counter by itself."""
    _counts().expect(rows=1, units=1)
    with pytest.raises(AssertionError):
        _counts(**changes).expect(rows=1, units=1)


def _raise() -> None:
    raise SystemExit(1)


def test_a_child_says_how_it_ended(tmp_path: Path) -> None:
    """Returned, raised, or killed before it could answer."""
    with run_child(int, "7") as child:
        assert (child.result(), child.ended()) == (7, 0)
    with run_child(_raise) as child:
        assert child.ended() == 1
        with pytest.raises(RuntimeError, match="ended with 1"):
            child.result()
    with run_child(threading.Event().wait) as child:
        child.kill()
        assert child.ended() == -9


HOT = {
    "slot": "SELECT * FROM actions WHERE idempotency_key = ?",
    "binding": "SELECT idempotency_key FROM bindings WHERE call_key = ?",
    "rebind": "SELECT * FROM actions WHERE workflow_id = ? AND action_type = ? AND identity_fp = ? AND sample = ?",
    "dedup": "SELECT * FROM actions WHERE scope = ? AND dedup_key = ? AND status <> 'FAILED'",
    "run limit": "SELECT count(*) FROM actions WHERE workflow_id = ? AND action_type = ?",
    "tombstone": "SELECT 1 FROM tombstones WHERE key_hash = ?",
    "event": "SELECT 1 FROM audit_events WHERE scope = ? AND request_id = ? AND step_id = ? AND kind = ? AND part = ?",
    "head": "SELECT seq, hash FROM audit_events WHERE scope = ? ORDER BY seq DESC LIMIT 1",
    "usage": "SELECT state FROM usage WHERE scope = ? AND request_id = ? AND step_id = ? AND meter = ?",
    "window": "SELECT sum(units) FROM usage WHERE scope = ? AND subject = ? AND meter = ? AND counted_at > ?"
    " AND state <> 'void'",
}


@pytest.mark.parametrize("name", HOT)
def test_every_hot_query_searches_an_index(audit: Audit, name: str) -> None:
    """No scan grows with the file."""
    query = HOT[name]
    plan = audit.store.connection().execute(f"EXPLAIN QUERY PLAN {query}", ("x",) * query.count("?")).fetchall()
    details = [str(row[3]) for row in plan]
    assert all(detail.startswith("SEARCH") for detail in details), details


def test_a_dangerous_call_is_three_transactions_and_a_replay_one(make_desk: MakeDesk) -> None:
    """Claim, dispatch, record; nothing is open while the tool runs."""
    desk = make_desk()
    audit = desk.open()
    seen: list[str] = []
    audit.store.connection().set_trace_callback(lambda sql: seen.append(sql) if sql.startswith("BEGIN") else None)

    def act(call: Call) -> object:
        assert not audit.store.connection().in_transaction
        return desk.target.act(call)

    send(audit, desk.tool(act))
    assert seen == ["BEGIN IMMEDIATE"] * 3
    seen.clear()
    send(audit, desk.tool(act))
    assert seen == ["BEGIN IMMEDIATE"]
    audit.store.connection().set_trace_callback(None)
    assert audit.ledger.get(key()) is not None
