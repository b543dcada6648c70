"""Rows 1 to 4, 8 to 12, 20, 21, 38 and 42 to 44 of the fault catalogue.

Processes that die, hang, or come back too late.
"""

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from multiprocessing import get_context
from typing import Literal

import pytest

from audit import Approval, Audit, Call, Failure, StepKey
from audit.failpoints import arm, failpoint
from audit.faults import FakeClock, crash_after_success, fake_error, lost_reply, run_child
from audit.store import Store
from tests.audit.ledger_desk import Desk, history, key, phase, send

Ability = Literal["none", "lookup", "key", "both"]
MakeDesk = Callable[..., Desk]
ABILITIES: tuple[Ability, ...] = ("none", "lookup", "key", "both")


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("ability", ABILITIES)
def test_row_1_a_crash_after_success_is_not_repeated(make_desk: MakeDesk, ability: Ability) -> None:
    """Killed after the effect, resumed one step later in other words: one effect, and doubt where nobody can know."""
    desk = make_desk(ability)

    def worker() -> None:
        send(desk.open(), desk.tool(crash_after_success(desk.target.act)))

    with run_child(worker) as child:
        assert child.ended() == -9
    audit = desk.open()
    outcome = send(audit, desk.tool(), step="5.0", note="other words")
    assert outcome.kind == ("in_doubt" if ability == "none" else "done")
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("ability", ABILITIES)
def test_row_2_a_lost_reply_is_never_a_failure(make_desk: MakeDesk, ability: Ability) -> None:
    """The target acts, the call times out: done where it can be known, else in doubt; one effect in any case."""
    desk = make_desk(ability, clock=FakeClock())
    audit = desk.open()
    first = send(audit, desk.tool(lost_reply(desk.target.act)), wait_s=0)
    later = send(audit, desk.tool(), step="5.0", note="other words")
    assert {first.kind, later.kind} <= {"done", "in_doubt"}
    assert later.kind == ("in_doubt" if ability == "none" else "done")
    assert "failed" not in first.model_text.lower()
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("ability", ABILITIES)
def test_row_3_an_error_that_only_the_model_saw_is_answered_from_the_record(
    make_desk: MakeDesk, ability: Ability
) -> None:
    """Success below, an error for the model, which calls again in other words: a replay."""
    desk = make_desk(ability)
    audit = desk.open()
    shown = fake_error("the tool failed")(lambda: send(audit, desk.tool()))
    assert shown() == "the tool failed"
    again = send(audit, desk.tool(), step="5.0", note="other words")
    assert (again.kind, again.replayed, again.reworded) == ("done", True, True)
    desk.counts(audit).expect(rows=1, units=1)


CLASSES: tuple[Literal["read_only", "repeatable", "dangerous"], ...] = ("read_only", "repeatable", "dangerous")
BEFORE, SENT, ACTED = ("F0", "F11", "F1"), ("F2", "F3"), ("F4", "F5")


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("tool_class", CLASSES)
@pytest.mark.parametrize("ability", ABILITIES)
@pytest.mark.parametrize("point", [*BEFORE, *SENT, *ACTED, "F6"])
def test_row_4_killed_at_any_boundary_the_next_call_ends_as_the_table_says(
    make_desk: MakeDesk, point: str, ability: Ability, tool_class: Literal["read_only", "repeatable", "dangerous"]
) -> None:
    """Boundary x class x ability of the target: effects and outcome after the kill and one more call."""
    desk = make_desk(ability)
    tool = desk.tool(tool_class=tool_class, settle_s=0.0)

    def worker() -> None:
        send(desk.open(), tool)

    with run_child(worker, failpoint=point) as child:
        assert child.ended() == -9
    audit = desk.open()
    outcome = send(audit, tool)
    blind = tool_class == "dangerous" and ability == "none" and point in SENT + ACTED
    assert outcome.kind == ("in_doubt" if blind else "done")
    effects = 1
    if blind and point in SENT:
        effects = 0
    if tool_class != "dangerous" and point in ACTED and ability in ("none", "lookup"):
        effects = desk.most_effects = 2  # as declared: it may be repeated
    desk.counts(audit).expect(effects=effects, rows=1, units=1)


def test_row_4_killed_before_the_acknowledgement_the_same_call_is_a_replay(make_desk: MakeDesk) -> None:
    """F7: the model may or may not have been told; the next step is answered from the record."""
    desk = make_desk()

    def worker() -> None:
        send(desk.open(), desk.tool()).ack("ok")

    with run_child(worker, failpoint="F7") as child:
        assert child.ended() == -9
    audit = desk.open()
    assert send(audit, desk.tool(), step="5.0").replayed is True
    desk.counts(audit).expect(rows=1, units=1)


def test_row_4_killed_inside_an_approval_it_is_asked_still(make_desk: MakeDesk) -> None:
    """F8: approval and slot change together or not at all."""
    desk = make_desk()
    tool = desk.tool(approval=Approval(expires_s=3600))
    audit = desk.open()
    asked = send(audit, tool)
    (view,) = audit.ledger.attention()

    def worker() -> None:
        desk.open().ledger.approve(str(asked.approval_id), args_hash=str(view.args_hash), by="jane")

    with run_child(worker, failpoint="F8") as child:
        assert child.ended() == -9
    assert send(audit, tool).kind == "needs_approval"
    audit.ledger.approve(str(asked.approval_id), args_hash=str(view.args_hash), by="jane")
    assert send(audit, tool).kind == "done"
    desk.counts(audit).expect(rows=1, units=1)


def test_row_4_killed_inside_a_resolution_it_is_in_doubt_still(make_desk: MakeDesk) -> None:
    """F9: the person's word counts whole or not at all."""
    desk = make_desk()
    audit = desk.open()
    doubt = send(audit, desk.tool(lost_reply(desk.target.act)))

    def worker() -> None:
        desk.open().ledger.resolve(key(), fence=doubt.fence, verdict="happened", by="jane", note="seen")

    with run_child(worker, failpoint="F9") as child:
        assert child.ended() == -9
    assert phase(audit) == "in_doubt"
    audit.ledger.resolve(key(), fence=doubt.fence, verdict="happened", by="jane", note="seen", result="ok")
    assert send(audit, desk.tool()).result == "ok"
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("ability", ABILITIES)
def test_row_8_a_zombie_cannot_send_after_another_took_over(make_desk: MakeDesk, ability: Ability) -> None:
    """Held between claim and dispatch until its lease is over.

    It loses exactly there, and answers with the other's result.
    """
    desk = make_desk(ability, clock=FakeClock())
    audit = desk.open()

    def zombie() -> tuple[str, bool]:
        outcome = send(desk.open(), desk.tool(), note="the zombie's words")
        return outcome.kind, outcome.replayed

    with run_child(zombie, failpoint="F1", hold=True) as child:
        child.wait_reached()
        assert desk.clock is not None
        desk.clock.advance(121)
        winner = send(audit, desk.tool(), note="the winner's words")
        assert (winner.kind, winner.fence) == ("done", 2)
        child.release()
        assert child.result() == ("done", True)
    assert "late_dispatched" in history(audit)
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("ability", ABILITIES)
def test_row_8_a_zombie_that_has_sent_closes_the_doubt_itself(make_desk: MakeDesk, ability: Ability) -> None:
    """Held after the effect until its lease is over: in doubt unless it can be known; its late success is welcome."""
    desk = make_desk(ability, clock=FakeClock())
    audit = desk.open()
    with run_child(lambda: send(desk.open(), desk.tool()).kind, failpoint="F4", hold=True) as child:
        child.wait_reached()
        assert desk.clock is not None
        desk.clock.advance(121)
        assert send(audit, desk.tool()).kind == ("in_doubt" if ability == "none" else "done")
        child.release()
        assert child.result() == "done"
    assert send(audit, desk.tool()).result == {"receipt": 1}
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("ability", ABILITIES)
def test_row_9_not_found_means_nothing_while_the_sender_may_still_act(make_desk: MakeDesk, ability: Ability) -> None:
    """The lookup says no while the send is in flight: lapsed is not stopped, so nobody sends again without a key."""
    desk = make_desk(ability, clock=FakeClock())
    audit = desk.open()
    tool = desk.tool(settle_s=0.0)
    with run_child(lambda: send(desk.open(), tool).kind, failpoint="F3", hold=True) as child:
        child.wait_reached()
        assert desk.clock is not None
        desk.clock.advance(121)
        knows = ability in ("key", "both")
        assert send(audit, tool, wait_s=0).kind == ("done" if knows else "in_doubt")
        assert len(desk.target.acts()) == knows
        child.release()
        assert child.result() == "done"
    assert send(audit, tool).kind == "done"
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("ability", ABILITIES)
def test_row_9_not_found_means_nothing_before_the_effect_has_settled(make_desk: MakeDesk, ability: Ability) -> None:
    """The sender has stopped, but what it sent may still arrive: only after settle_s the word of the lookup counts."""
    desk = make_desk(ability, clock=FakeClock())
    audit = desk.open()
    sent: list[Call] = []

    def slow(call: Call) -> object:
        sent.append(call)
        raise TimeoutError

    assert send(audit, desk.tool(slow), wait_s=0).kind == "in_doubt"
    assert desk.clock is not None
    desk.clock.advance(59)
    assert send(audit, desk.tool(), wait_s=0).kind == ("done" if ability in ("key", "both") else "in_doubt")
    desk.target.act(sent[0])
    desk.clock.advance(10)
    assert send(audit, desk.tool()).result == (None if ability == "none" else {"receipt": 1})
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("ability", ABILITIES)
def test_row_9_not_found_counts_once_sender_and_effect_are_settled(make_desk: MakeDesk, ability: Ability) -> None:
    """A dead sender, a settled effect, a clear no: it is sent again, once. A target with keys needs no lookup."""
    desk = make_desk(ability, clock=FakeClock())
    with run_child(lambda: send(desk.open(), desk.tool()), failpoint="F2") as child:
        assert child.ended() == -9
    audit = desk.open()
    assert send(audit, desk.tool(), wait_s=0).kind == ("done" if ability in ("key", "both") else "in_doubt")
    assert desk.clock is not None
    desk.clock.advance(61)
    assert send(audit, desk.tool()).kind == ("in_doubt" if ability == "none" else "done")
    desk.counts(audit).expect(effects=0 if ability == "none" else 1, rows=1, units=1)


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("ability", ["key", "both"])
def test_row_10_a_late_success_beside_a_resend_with_the_same_key_changes_nothing(
    make_desk: MakeDesk, ability: Ability
) -> None:
    """The target honours the key, so both sends are one effect; the recorded result stays."""
    desk = make_desk(ability, clock=FakeClock())
    audit = desk.open()
    with run_child(lambda: send(desk.open(), desk.tool()).result, failpoint="F4", hold=True) as child:
        child.wait_reached()
        assert desk.clock is not None
        desk.clock.advance(121)
        assert send(audit, desk.tool()).fence == 2
        child.release()
        assert child.result() == {"receipt": 1}
    assert history(audit).count("late_success") == 1
    assert "double_effect_suspected" not in history(audit)
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("ability", ["none", "lookup"])
def test_row_10_two_successes_without_a_key_are_suspected_aloud(make_desk: MakeDesk, ability: Ability) -> None:
    """A person said it did not happen, it was sent again, and then the first sender reports success.

    An event says so.
    """
    desk = make_desk(ability, clock=FakeClock())
    desk.most_effects = 2  # a person was wrong
    audit = desk.open()
    with run_child(lambda: send(desk.open(), desk.tool()).kind, failpoint="F4", hold=True) as child:
        child.wait_reached()
        assert desk.clock is not None
        desk.clock.advance(121)
        blind = desk.tool(lookup=None)  # its list is down, so a person is asked
        doubt = send(audit, blind)
        audit.ledger.resolve(key(), fence=doubt.fence, verdict="did_not_happen", by="jane", note="not in their list")
        assert send(audit, blind).kind == "done"
        child.release()
        assert child.result() == "done"
    assert any(event.part.endswith("@1.double_effect_suspected") for event in audit.tail())
    assert audit.verify().problems == ()


@pytest.mark.invariant("I8")
def test_row_11_a_failure_of_a_holder_that_lost_its_slot_changes_nothing(make_desk: MakeDesk) -> None:
    """Success by fence 2, then failure by fence 1: the success stands."""
    desk = make_desk("key", clock=FakeClock())
    audit = desk.open()

    def failing(call: Call) -> object:
        failpoint("late")
        raise ConnectionRefusedError

    with run_child(lambda: send(desk.open(), desk.tool(failing)).kind, failpoint="late", hold=True) as child:
        child.wait_reached()
        assert desk.clock is not None
        desk.clock.advance(121)
        assert send(audit, desk.tool()).kind == "done"
        child.release()
        assert child.result() == "done"
    assert phase(audit) == "done"
    assert history(audit)[-1] == "late_failure"
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.parametrize("ability", ABILITIES)
def test_row_12_a_loser_that_runs_out_of_patience_changes_nothing(make_desk: MakeDesk, ability: Ability) -> None:
    """`running`, and the row is as it was; a later call gets the result."""
    desk = make_desk(ability, clock=FakeClock())
    audit = desk.open()
    with run_child(lambda: send(desk.open(), desk.tool()).kind, failpoint="F3", hold=True) as child:
        child.wait_reached()
        before = history(audit)
        outcome = send(audit, desk.tool(), wait_s=1)
        assert (outcome.kind, outcome.replayed) == ("running", False)
        assert "do not send again" in outcome.model_text
        assert history(audit) == before
        child.release()
        assert child.result() == "done"
    assert send(audit, desk.tool()).replayed is True
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.parametrize("ability", ABILITIES)
def test_row_12_a_waiting_loser_gets_the_result_of_the_winner(make_desk: MakeDesk, ability: Ability) -> None:
    """It wakes when the winner records, and executes nothing."""
    desk = make_desk(ability)
    audit = desk.open()
    with run_child(lambda: send(desk.open(), desk.tool()).kind, failpoint="F3", hold=True) as child:
        child.wait_reached()
        with run_child(lambda: (send(desk.open(), desk.tool()).replayed, desk.target.acts()[0].receipt)) as loser:
            child.release()
            assert loser.result() == (True, 1)
        assert child.result() == "done"
    desk.counts(audit).expect(rows=1, units=1)


def test_row_12_a_result_that_comes_just_before_the_wait_begins_is_seen(
    make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The winner records between the loser's decision and its first look: the loser does not sleep through it."""
    desk = make_desk(clock=FakeClock())
    audit = desk.open()
    with run_child(lambda: send(desk.open(), desk.tool()).kind, failpoint="F3", hold=True) as child:
        child.wait_reached()
        version = Store.version
        released: list[bool] = []

        def late(store: Store) -> tuple[int, int]:
            if not released:
                released.append(True)
                child.release()
                assert child.result() == "done"
            return version(store)

        monkeypatch.setattr(Store, "version", late)
        outcome = send(audit, desk.tool(), wait_s=5)
    assert (outcome.kind, outcome.replayed) == ("done", True)
    assert desk.clock is not None
    assert desk.clock.mono == FakeClock().mono


@pytest.mark.parametrize("ability", ["none", "key"])
def test_row_20_after_a_reboot_the_slot_is_taken_over_at_once(make_desk: MakeDesk, ability: Ability) -> None:
    """Another boot id is death; no lease has to run out."""
    desk = make_desk(ability, clock=FakeClock())
    with run_child(lambda: send(desk.open(), desk.tool()), failpoint="F2") as child:
        assert child.ended() == -9
    assert desk.clock is not None
    desk.clock.reboot(off_s=60)
    audit = desk.open()
    assert send(audit, desk.tool()).kind == ("in_doubt" if ability == "none" else "done")
    desk.counts(audit).expect(effects=0 if ability == "none" else 1, rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_20_the_time_to_settle_starts_anew_after_a_reboot(make_desk: MakeDesk) -> None:
    """Monotonic time of the last boot says nothing; the row is stamped when it is first seen."""
    desk = make_desk("lookup", clock=FakeClock(mono=10_000_000))
    with run_child(lambda: send(desk.open(), desk.tool()), failpoint="F2") as child:
        assert child.ended() == -9
    assert desk.clock is not None
    desk.clock.reboot(off_s=60)
    audit = desk.open()
    assert send(audit, desk.tool(), wait_s=0).kind == "in_doubt"
    desk.clock.advance(50)
    assert send(audit, desk.tool(), wait_s=0).kind == "in_doubt"
    desk.clock.advance(11)
    assert send(audit, desk.tool()).kind == "done"
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_21_a_process_with_the_same_pid_is_not_the_holder(make_desk: MakeDesk) -> None:
    """The holder is a locked file, not a number: a dead one is dead, whoever has its pid by now."""
    desk = make_desk("key")
    with run_child(lambda: send(desk.open(), desk.tool()), failpoint="F2") as child:
        assert child.ended() == -9
    audit = desk.open()
    (holder,) = [path.name for path in (desk.folder / "holders").iterdir()]
    assert holder.startswith(f"{child.pid}.")
    reused = f"{child.pid}.{'0' * 32}"
    (desk.folder / "holders" / reused).touch()
    assert send(audit, desk.tool()).kind == "done"
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_21_a_missing_holder_file_is_not_death(make_desk: MakeDesk) -> None:
    """Somebody removed it: only the lease counts, and the slot is left alone until it is over."""
    desk = make_desk(clock=FakeClock())
    audit = desk.open()
    with run_child(lambda: send(desk.open(), desk.tool()).kind, failpoint="F1", hold=True) as child:
        child.wait_reached()
        for path in (desk.folder / "holders").iterdir():
            path.unlink()
        assert send(audit, desk.tool(), wait_s=1).kind == "running"
        child.release()
        assert child.result() == "done"
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_21_a_child_that_outlives_its_parent_does_not_keep_it_alive(make_desk: MakeDesk) -> None:
    """The lock is shared over fork, so the child closes its copy: the parent's death is seen while the child lives."""
    desk = make_desk()
    stop = get_context("fork").Event()

    def parent() -> None:
        audit = desk.open()
        send(audit, desk.tool(), step="1.0", order="other")
        get_context("fork").Process(target=stop.wait, args=(30,)).start()
        arm("F1", lambda: os.kill(os.getpid(), signal.SIGKILL))
        send(audit, desk.tool())

    with run_child(parent) as child:
        assert child.ended() == -9
    audit = desk.open()
    outcome = send(audit, desk.tool(), wait_s=2)
    stop.set()
    assert outcome.kind == "done"
    desk.counts(audit).expect(intents=2, rows=2, units=2)


def _reserve(audit: Audit, step: str) -> None:
    """An estimate of tokens, before the call that will use them."""
    with audit.store.write() as tx:
        audit.usage.count(
            tx, scope="acme", step=StepKey("w", step), meter="tokens", subject="desk", fingerprint="f", units=900,
            state="reserved",
        )  # fmt: skip


def _tokens(audit: Audit) -> list[tuple[int, str]]:
    return [(row.units, row.state) for row in audit.show(StepKey("w", "4.0")).usage if row.meter == "tokens"]


@pytest.mark.invariant("I7")
@pytest.mark.parametrize("ability", ABILITIES)
@pytest.mark.parametrize("point", ["reserved", "F1", "F2", "F4", "F6", "settling"])
def test_row_38_killed_between_reserve_and_settle_it_counts_once_and_sweep_settles_it(
    make_desk: MakeDesk, point: str, ability: Ability
) -> None:
    """Right after the reservation, at each boundary of the call, inside the settling transaction.

    Counted while open, never twice; settled once its action has ended, not while that is in doubt.
    """
    desk = make_desk(ability)
    tool = desk.tool(settle_s=0.0)

    def worker() -> None:
        audit = desk.open()
        _reserve(audit, "4.0")
        failpoint("reserved")
        send(audit, tool)
        with audit.store.write() as tx:
            audit.usage.settle(tx, scope="acme", step=StepKey("w", "4.0"), meter="tokens", units=700)
            failpoint("settling")

    with run_child(worker, failpoint=point) as child:
        assert child.ended() == -9
    audit = desk.open()
    assert _tokens(audit) == [(900, "reserved")]
    _reserve(audit, "4.0")
    outcome = send(audit, tool)
    blind = ability == "none" and point in ("F2", "F4")
    assert outcome.kind == ("in_doubt" if blind else "done")
    report = audit.ledger.sweep()
    assert (report.settled, report.voided) == (0 if blind else 1, 0)
    assert _tokens(audit) == [(900, "reserved" if blind else "settled")]
    if blind:
        audit.ledger.resolve(key(), fence=outcome.fence, verdict="happened", by="jane", note="seen")
        assert audit.ledger.sweep().settled == 1
    assert audit.ledger.sweep().settled == 0


def test_row_38_a_reservation_of_what_certainly_did_nothing_is_given_back(make_desk: MakeDesk) -> None:
    """`void` only with that certainty."""
    desk = make_desk()
    audit = desk.open()
    _reserve(audit, "4.0")
    send(audit, desk.tool(_refused_for_good))
    report = audit.ledger.sweep()
    assert (report.settled, report.voided) == (0, 1)
    assert _tokens(audit) == [(900, "void")]


class _NotFound404(Exception):
    status = 404


def _refused_for_good(_: Call) -> object:
    raise _NotFound404


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("guarded", [False, True], ids=["naive", "ledger"])
def test_row_42_a_wrapper_that_ignores_its_own_insert_acts_again_and_again(make_desk: MakeDesk, guarded: bool) -> None:
    """8 processes x 25 keys: a key table whose INSERT nobody asks for its answer gives 200 effects, the ledger 25.

    So these tests can fail. The barrier holds open what chance leaves open anyway (150 effects were measured without).
    """
    desk = make_desk()
    desk.most_effects = 1 if guarded else 8
    barrier = get_context("fork").Barrier(8)
    table = desk.folder.parent / "naive.db"

    def naive(conn: sqlite3.Connection, number: int) -> None:
        done = conn.execute("SELECT 1 FROM calls WHERE key = ? AND done", (number,)).fetchone()
        barrier.wait()
        conn.execute("INSERT INTO calls(key) VALUES(?) ON CONFLICT DO NOTHING", (number,))
        if not done:
            desk.target.act(Call({"order": str(number), "purpose": "refund"}, "k", 1, 1, 1.0))
            conn.execute("UPDATE calls SET done = 1 WHERE key = ?", (number,))

    def worker() -> None:
        with closing(sqlite3.connect(table, isolation_level=None, timeout=30)) as conn:
            audit = desk.open() if guarded else None
            for number in range(25):
                barrier.wait()
                if audit is None:
                    naive(conn, number)
                else:
                    send(audit, desk.tool(), step=str(number), order=str(number))

    with closing(sqlite3.connect(table)) as conn:
        conn.execute("CREATE TABLE calls(key INTEGER PRIMARY KEY, done INTEGER NOT NULL DEFAULT 0)")
    with ExitStack() as stack:
        children = [stack.enter_context(run_child(worker)) for _ in range(8)]
        assert [child.ended() for child in children] == [0] * 8
    assert len(desk.target.acts()) == (25 if guarded else 200)


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("ability", ABILITIES)
def test_row_43_a_rebound_step_that_is_resumed_finds_the_same_slot(make_desk: MakeDesk, ability: Ability) -> None:
    """Step 4 in doubt, step 5 answered by its slot and acknowledged, step 5 runs again: one effect."""
    desk = make_desk(ability)
    audit = desk.open()
    with run_child(lambda: send(desk.open(), desk.tool()), failpoint="F4") as child:
        assert child.ended() == -9
    rebound = send(audit, desk.tool(), step="5.0", note="other words")
    assert rebound.kind == ("in_doubt" if ability == "none" else "done")
    rebound.ack("ok")
    resumed = send(audit, desk.tool(), step="5.0", note="other words")
    assert (resumed.kind, resumed.replayed) == (rebound.kind, ability != "none")
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("ability", ["key", "both", "lookup", "none"])
@pytest.mark.parametrize("second", [_NotFound404, ConnectionRefusedError])
def test_row_44_unknown_stays_unknown_whatever_the_resend_says(
    make_desk: MakeDesk, second: type[Exception], ability: Ability
) -> None:
    """A timeout, then a clear refusal of the re-send, then another identity: in doubt, never failed, never reopened."""
    desk = make_desk(ability, clock=FakeClock())
    audit = desk.open()
    raised: Iterator[type[Exception]] = iter([TimeoutError, second, second, second])

    def failing(call: Call) -> object:
        raise next(raised)

    tool = desk.tool(failing, max_attempts=2)
    assert send(audit, tool).kind == "in_doubt"
    assert phase(audit) == "in_doubt"
    assert send(audit, tool, order="P-2").kind == "conflict"
    assert phase(audit) == "in_doubt"
    desk.counts(audit).expect(effects=0, rows=1, units=1)


def test_row_13_a_tool_that_calls_its_own_action_is_told_at_once(make_desk: MakeDesk) -> None:
    """Waiting for itself would last for ever; the outer call goes on."""
    desk = make_desk()
    audit = desk.open()
    caught: list[str] = []

    def recursive(call: Call) -> object:
        try:
            send(audit, desk.tool())
        except Exception as error:  # noqa: BLE001 - the kind is what is asserted
            caught.append(type(error).__name__)
        return desk.target.act(call)

    assert send(audit, desk.tool(recursive)).kind == "done"
    assert caught == ["Reentrant"]
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_row_15_an_interrupt_inside_the_tool_is_recorded_and_raised_again(
    make_desk: MakeDesk, kind: type[BaseException]
) -> None:
    """Sent, then interrupted: in doubt, and the interrupt is not swallowed."""
    desk = make_desk()
    audit = desk.open()
    with pytest.raises(kind):
        send(audit, desk.tool(lost_reply(desk.target.act, exc=kind)))
    assert phase(audit) == "in_doubt"
    assert send(audit, desk.tool()).kind == "in_doubt"
    desk.counts(audit).expect(rows=1, units=1)


def test_a_failure_declared_by_the_tool_comes_before_the_defaults(make_desk: MakeDesk) -> None:
    """A tool knows its target: what looks like a timeout may be certain to have done nothing."""
    desk = make_desk(clock=FakeClock())
    audit = desk.open()

    def failing(call: Call) -> object:
        raise TimeoutError

    tool = desk.tool(failing, classify=lambda error: Failure("permanent", "none", "quota"))
    outcome = send(audit, tool)
    assert (outcome.kind, outcome.effect) == ("failed", "none")
    assert "quota" in outcome.model_text
