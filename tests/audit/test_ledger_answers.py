"""Rows 22 to 27, 29 to 33 and 37 of the fault catalogue: what a repeat is told, and what a person decides."""

import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from audit import (
    ActionFailed,
    ActionKey,
    Approval,
    Audit,
    BadKey,
    BadTool,
    Call,
    Found,
    Gate,
    InDoubt,
    Limit,
    LostLease,
    NotExecuted,
    NotFound,
    Outcome,
    Refused,
    RunError,
    StepKey,
    Tool,
    Unsure,
)
from audit.faults import FakeClock, lost_reply, run_child
from audit.keys import JsonValue, normal_identity
from audit.ledger import requests
from tests.audit.ledger_desk import WEEK, Desk, history, key, phase, send

MakeDesk = Callable[..., Desk]


class NotFoundError(Exception):
    """A clear no of the target."""

    status = 404


def refuse(_: Call) -> object:
    """Refused before it could act, for good."""
    raise NotFoundError("no such order")


def unreachable(_: Call) -> object:
    """Certainly not sent, worth another try."""
    raise ConnectionRefusedError


@pytest.fixture
def desk(make_desk: MakeDesk, request: pytest.FixtureRequest) -> Desk:
    """A desk whose time only the test moves; its target has no ability unless the test names one."""
    made: Desk = make_desk(getattr(request, "param", "none"), clock=FakeClock())
    return made


every_ability = pytest.mark.parametrize("desk", ["none", "lookup", "key", "both"], indirect=True)


@dataclass(frozen=True)
class Receipt:
    """A result of the host's own type."""

    number: int
    at: date


RESULTS: list[object] = [
    None, 0, "", False, [], {}, "text", 1.5, 10**30, b"\x00\xff", (1, (2, 3)), {1, 2}, frozenset({"a"}),
    Decimal("1.10"), date(2026, 5, 4), datetime(2026, 5, 4, tzinfo=UTC), {"~": "bytes", "v": "x"},
    {1: "a", "1": "b"}, {(1, 2): 3},
    [b"a", {"k": (None,)}], "\ud800", Receipt(7, date(2026, 5, 4)),
]  # fmt: skip


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("result", RESULTS, ids=[str(number) for number in range(len(RESULTS))])
def test_row_22_a_result_comes_back_as_it_was(desk: Desk, result: object) -> None:
    """Odd results: SUCCESS, and the repeat gets what the first caller got, in value and type."""
    audit = desk.open(result_types=[Receipt])

    def act(call: Call) -> object:
        desk.target.act(call)
        return result

    first = send(audit, desk.tool(act))
    again = send(audit, desk.tool(act))
    assert (first.kind, again.replayed) == ("done", True)
    assert first.result == again.result == result
    assert type(again.result) is type(result)
    desk.counts(audit).expect(rows=1, units=1)


def _cyclic() -> object:
    value: list[object] = []
    value.append(value)
    return value


@pytest.mark.invariant("I8")
@pytest.mark.parametrize(
    "result", [object(), float("nan"), _cyclic(), "x" * 2_000_000, {"k": {1, object()}}, Receipt(1, date.min)]
)
def test_row_22_a_result_that_cannot_be_kept_is_a_success_all_the_same(desk: Desk, result: object) -> None:
    """Unserialisable, huge, NaN, cyclic: SUCCESS without a result, for the first caller and for the repeat."""
    audit = desk.open()

    def act(call: Call) -> object:
        desk.target.act(call)
        return result

    first, again = send(audit, desk.tool(act)), send(audit, desk.tool(act))
    for outcome in (first, again):
        assert (outcome.kind, outcome.result, outcome.result_omitted) == ("done", None, True)
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_23_arguments_changed_by_tool_or_caller_change_nothing(desk: Desk) -> None:
    """A slot stores and sends what it was claimed with."""
    audit = desk.open()
    args: dict[str, object] = {"order": "P-1", "purpose": "refund", "lines": [1, 2]}
    seen: list[object] = []

    def act(call: Call) -> object:
        seen.append(repr(call.args))
        args["order"] = "P-9"
        lines = call.args["lines"]
        assert isinstance(lines, list)
        lines.append(3)
        raise ConnectionRefusedError

    audit.ledger.call(desk.tool(act), args, workflow="w", step="4.0", wait_s=5)
    assert len(seen) == 3
    assert len(set(seen)) == 1


@pytest.mark.invariant("I8")
def test_row_23_arguments_changed_while_the_caller_waits_change_nothing(desk: Desk) -> None:
    """The snapshot is taken when the call comes, not when it is sent."""
    args: dict[str, object] = {"order": "P-1", "purpose": "refund", "note": "first words"}

    def wait_and_change(seconds: float) -> None:
        args["note"] = "other words"
        assert desk.clock is not None
        desk.clock.advance(seconds)

    audit = desk.open(sleep=wait_and_change)
    left = [1]

    def flaky(call: Call) -> object:
        if left.pop() if left else 0:
            raise ConnectionRefusedError
        return desk.target.act(call)

    assert audit.ledger.call(desk.tool(flaky), args, workflow="w", step="4.0").kind == "done"
    assert args["note"] == "other words"
    assert [act.args["note"] for act in desk.target.acts()] == ["first words"]


@every_ability
@pytest.mark.invariant("I8")
def test_row_24_a_corrected_call_runs_once_under_a_new_key(desk: Desk) -> None:
    """404 for A, then B at the same step: B once, with a new downstream key; A's error is kept in the history."""
    audit = desk.open()
    keys: list[str] = []

    def first(call: Call) -> object:
        keys.append(call.downstream_key)
        raise NotFoundError

    failed = send(audit, desk.tool(first), order="A")
    assert (failed.kind, failed.effect, failed.replayed) == ("failed", "none", False)
    assert send(audit, desk.tool(), order="A").replayed is True
    assert send(audit, desk.tool(), order="B").kind == "done"
    assert send(audit, desk.tool(), order="B").replayed is True
    assert send(audit, desk.tool(), order="A").kind == "conflict"
    assert desk.target.acts()[0].key not in keys
    bodies = [event.body or "" for event in audit.ledger.views.history(str(key()))]
    assert any("http_404" in body for body in bodies)
    desk.counts(audit).expect(rows=1, units=1)


@every_ability
@pytest.mark.invariant("I8")
def test_row_25_refused_twice_then_accepted_is_one_effect_of_three_attempts(desk: Desk) -> None:
    """The ledger owns retries: within its patience the caller sees only the result."""
    audit = desk.open()
    left = [2]

    def flaky(call: Call) -> object:
        if left[0]:
            left[0] -= 1
            raise ConnectionRefusedError
        return desk.target.act(call)

    outcome = send(audit, desk.tool(flaky))
    assert (outcome.kind, outcome.replayed, outcome.fence) == ("done", False, 3)
    desk.counts(audit).expect(rows=1, units=1)


@every_ability
@pytest.mark.invariant("I8")
def test_row_25_refused_for_ever_is_exhausted_without_effect(desk: Desk) -> None:
    """Three attempts, then the same answer again and again, and nothing is sent."""
    audit = desk.open()
    sent: list[int] = []

    def count(call: Call) -> object:
        sent.append(call.attempt)
        raise ConnectionRefusedError

    outcomes = [send(audit, desk.tool(count)) for _ in range(3)]
    assert [outcome.kind for outcome in outcomes] == ["failed"] * 3
    assert (sent, phase(audit)) == ([1, 2, 3], "exhausted")
    desk.counts(audit).expect(effects=0, rows=1, units=1)


def test_row_25_without_patience_the_caller_is_told_when_to_come_back(desk: Desk) -> None:
    """Retry-After of the target comes before the ledger's own backoff."""
    audit = desk.open()

    class TooManyError(Exception):
        status = 429
        headers = {"Retry-After": "90"}  # noqa: RUF012 - as HTTP errors carry them

    def busy(call: Call) -> object:
        raise TooManyError

    outcome = send(audit, desk.tool(busy), wait_s=5)
    assert (outcome.kind, outcome.retry_after_s) == ("retry_after", 90.0)


@pytest.mark.invariant("I8")
def test_row_26_a_sample_is_refused_until_its_parent_has_ended(desk: Desk) -> None:
    """While pending and in doubt: refused. After the end: a slot, a key and a unit of its own, with equal arguments."""
    desk.most_effects = 2
    audit = desk.open()
    assert send(audit, desk.tool(lost_reply(desk.target.act))).kind == "in_doubt"
    with pytest.raises(Refused, match="in_doubt"):
        audit.ledger.resample(key(), reason="another draft", by="planner")
    audit.ledger.resolve(key(), fence=1, verdict="happened", by="jane", note="seen")
    with pytest.raises(Refused, match="nobody asked"):
        send(audit, desk.tool(), sample=1)
    assert audit.ledger.resample(key(), reason="another draft", by="planner") == 1
    assert audit.ledger.resample(key(), reason="asked twice", by="planner") == 1
    assert send(audit, desk.tool(), sample=1).kind == "done"
    assert send(audit, desk.tool(), sample=1).replayed is True
    assert len({act.key for act in desk.target.acts()}) == 2
    desk.counts(audit).expect(effects=2, rows=2, units=2)


@pytest.mark.invariant("I7")
def test_row_26_a_step_spelled_like_a_sample_is_another_step(desk: Desk) -> None:
    """`4.0~s1` of the host and sample 1 of `4.0` are counted under two keys, and no host can name the latter."""
    desk.most_effects = 2
    audit = desk.open()
    send(audit, desk.tool())
    audit.ledger.resample(key(), reason="another draft", by="planner")
    send(audit, desk.tool(), sample=1)
    send(audit, desk.tool(), step="4.0~s1", order="P-2")
    long = "x" * 128
    send(audit, desk.tool(), step=long, order="P-3")
    audit.ledger.resample(key(long), reason="another draft", by="planner")
    send(audit, desk.tool(), step=long, order="P-3", sample=1)
    with pytest.raises(BadKey):
        StepKey("w", "~s1.4.0")
    assert desk.counts(audit).units == {
        f"w:{step}:send": 1 for step in ("4.0", "~s1.4.0", "4.0~s1", long, f"~s1.{long}")
    }


def test_row_26_samples_are_capped(desk: Desk) -> None:
    """An orchestrator that resamples in a loop is stopped."""
    desk.most_effects = 21
    audit = desk.open()
    send(audit, desk.tool())
    for number in range(1, 21):
        assert audit.ledger.resample(key(), reason="again", by="planner") == number
        send(audit, desk.tool(), sample=number)
    with pytest.raises(Refused, match="samples"):
        audit.ledger.resample(key(), reason="again", by="planner")
    with pytest.raises(Refused, match="unknown"):
        audit.ledger.resample(key("nowhere"), reason="again", by="planner")


def ask(audit: Audit, tool: Tool) -> tuple[Outcome, str, str]:
    """A gated call: the outcome, its approval id, and the hash of what the person is shown."""
    outcome = send(audit, tool)
    (view,) = [view for view in audit.ledger.attention() if view.approval_id]
    return outcome, str(view.approval_id), str(view.args_hash)


@pytest.mark.invariant("I8")
def test_row_27_what_was_approved_is_sent_whatever_the_model_says_later(desk: Desk) -> None:
    """Approved twice (a double click), reworded meanwhile, called by a new process: the approved words, once."""
    audit = desk.open()
    tool = desk.tool(approval=Approval(expires_s=3600))
    outcome, approval_id, shown = ask(audit, tool)
    assert (outcome.kind, outcome.approval_id) == ("needs_approval", approval_id)
    assert send(audit, tool, note="other words").approval_id == approval_id
    assert desk.target.acts() == ()
    for _ in range(2):
        audit.ledger.approve(approval_id, args_hash=shown, by="jane")
    with run_child(lambda: send(desk.open(), tool, note="third words").kind) as child:
        assert child.result() == "done"
    assert [act.args["note"] for act in desk.target.acts()] == ["first words"]
    audit.ledger.approve(approval_id, args_hash=shown, by="jane")
    desk.counts(audit).expect(rows=1, units=1)


def test_row_27_a_denied_action_never_runs(desk: Desk) -> None:
    """And a later yes is refused."""
    audit = desk.open()
    tool = desk.tool(approval=Approval(expires_s=3600))
    _, approval_id, shown = ask(audit, tool)
    for _ in range(2):
        audit.ledger.deny(approval_id, by="jane", note="no")
    assert send(audit, tool).kind == "failed"
    with pytest.raises(Refused, match="denied"):
        audit.ledger.approve(approval_id, args_hash=shown, by="jane")
    desk.counts(audit).expect(effects=0, rows=1, units=1)


def test_row_27_an_approval_for_other_arguments_is_refused(desk: Desk) -> None:
    """The person decides on what was shown."""
    audit = desk.open()
    _, approval_id, _ = ask(audit, desk.tool(approval=Approval(expires_s=3600)))
    with pytest.raises(Refused, match="other arguments"):
        audit.ledger.approve(approval_id, args_hash="0" * 64, by="jane")


@pytest.mark.parametrize("swept", [False, True])
def test_row_27_after_three_days_it_is_too_late(desk: Desk, swept: bool) -> None:
    """A late click is refused, whether or not somebody swept, and the action has expired."""
    audit = desk.open()
    tool = desk.tool(approval=Approval(expires_s=3 * 86_400))
    _, approval_id, shown = ask(audit, tool)
    assert desk.clock is not None
    desk.clock.advance(3 * 86_400)
    if swept:
        assert audit.ledger.sweep().expired == 1
    with pytest.raises(Refused, match="expired"):
        audit.ledger.approve(approval_id, args_hash=shown, by="jane")
    assert send(audit, tool).kind == "failed"
    assert phase(audit) == "expired"
    desk.counts(audit).expect(effects=0, rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_27_a_failure_without_effect_keeps_the_approval_and_a_correction_spends_it(desk: Desk) -> None:
    """Refused connections are retried under the same yes; another identity needs another yes."""
    audit = desk.open()
    _, approval_id, shown = ask(audit, desk.tool(approval=Approval(expires_s=3600)))
    audit.ledger.approve(approval_id, args_hash=shown, by="jane")
    assert send(audit, desk.tool(unreachable, approval=Approval(expires_s=3600)), wait_s=0).kind == "retry_after"
    corrected = send(audit, desk.tool(approval=Approval(expires_s=3600)), order="B")
    assert corrected.kind == "needs_approval"
    assert corrected.approval_id != approval_id
    desk.counts(audit).expect(effects=0, rows=1, units=1)


def test_row_27_the_key_of_the_target_lives_from_the_dispatch_not_from_the_question(desk: Desk) -> None:
    """Three days of waiting do not use up an hour of key_ttl_s."""
    desk.target.ability = "key"
    audit = desk.open()
    tool = desk.tool(lost_reply(desk.target.act), approval=Approval(expires_s=4 * 86_400))
    _, approval_id, shown = ask(audit, tool)
    assert desk.clock is not None
    desk.clock.advance(3 * 86_400)
    audit.ledger.approve(approval_id, args_hash=shown, by="jane")
    assert send(audit, tool, wait_s=0).kind == "in_doubt"
    assert send(audit, desk.tool(approval=Approval(expires_s=4 * 86_400))).kind == "done"
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_a_key_that_the_target_has_forgotten_is_not_used_again(desk: Desk) -> None:
    """After key_ttl_s a re-send would be a second effect: in doubt."""
    desk.target.ability = "key"
    audit = desk.open()
    assert send(audit, desk.tool(lost_reply(desk.target.act)), wait_s=0).kind == "in_doubt"
    assert desk.clock is not None
    desk.clock.advance(3600)
    assert send(audit, desk.tool()).kind == "in_doubt"
    desk.counts(audit).expect(rows=1, units=1)


OLD = timedelta(days=31).total_seconds()


@pytest.mark.invariant("I8")
def test_row_29_a_pruned_key_is_refused_never_taken_for_new(desk: Desk) -> None:
    """By its own key, by a key that was bound to it, and by its dedup key."""
    audit = desk.open()
    tool = desk.tool(once_per="scope")
    send(audit, tool)
    send(audit, tool, step="5.0")
    audit.ledger.close_run("w")
    assert audit.ledger.prune().actions == 0
    assert desk.clock is not None
    desk.clock.advance(OLD)
    assert audit.ledger.prune(dry_run=True).actions == 1
    assert audit.ledger.prune().actions == 1
    assert [send(audit, tool, step=step).kind for step in ("4.0", "5.0")] == ["pruned", "pruned"]
    audit.ledger.open_run("w2", scope="acme", agent="desk", resume_within=WEEK)
    assert send(audit, tool, step="1.0", workflow="w2").kind == "pruned"
    found = audit.ledger.get(key())
    assert found is not None
    assert found.kind == "pruned"
    desk.counts(audit).expect(rows=0)


@pytest.mark.invariant("I8")
def test_row_29_nothing_pending_and_nothing_of_an_open_run_is_pruned(desk: Desk) -> None:
    """In doubt for ever is kept for ever; an open run keeps what it has done, and what it was answered with."""
    audit = desk.open()
    send(audit, desk.tool(lost_reply(desk.target.act)), step="1.0", order="P-1")
    send(audit, desk.tool(), step="2.0", order="P-2")
    assert desk.clock is not None
    desk.clock.advance(OLD)
    assert audit.ledger.prune().actions == 0
    audit.ledger.close_run("w")
    assert audit.ledger.prune().actions == 1
    assert phase(audit, "1.0") == "in_doubt"


def test_row_29_an_age_of_exactly_the_retention_is_kept(desk: Desk) -> None:
    """The millisecond after it is removed."""
    audit = desk.open()
    send(audit, desk.tool())
    audit.ledger.close_run("w")
    assert desk.clock is not None
    desk.clock.advance(timedelta(days=30).total_seconds())
    assert audit.ledger.prune().actions == 0
    desk.clock.advance(0.001)
    assert audit.ledger.prune().actions == 1


@pytest.mark.parametrize(("point", "left"), [("store.commit", 3), ("F10", 0)])
def test_row_29_killed_inside_prune_it_goes_on_next_time(desk: Desk, point: str, left: int) -> None:
    """Row and tombstone change together: before the commit of a batch nothing is gone, after it all of the batch."""
    audit = desk.open()
    for step in range(3):
        send(audit, desk.tool(), step=str(step), order=str(step))
    audit.ledger.close_run("w")
    assert desk.clock is not None
    desk.clock.advance(OLD)

    def worker() -> None:
        Audit(desk.folder, durable=False, clock=desk.clock).ledger.prune()

    with run_child(worker, failpoint=point) as child:
        assert child.ended() == -9
    assert audit.ledger.prune().actions == left
    assert {send(audit, desk.tool(), step=str(step), order=str(step)).kind for step in range(3)} == {"pruned"}


def test_row_29_a_workflow_id_is_never_used_again(desk: Desk) -> None:
    """Its keys are the memory of what was done."""
    audit = desk.open()
    audit.ledger.close_run("w")
    audit.ledger.close_run("w")
    with pytest.raises(RunError, match="closed"):
        audit.ledger.open_run("w", scope="acme", agent="desk", resume_within=WEEK)


@every_ability
@pytest.mark.invariant("I8")
@pytest.mark.parametrize(("told", "effects"), [(None, 1), ("error", 1), ("ok", 2)])
def test_row_30_a_retry_at_the_next_step_is_one_effect_until_the_model_was_told(
    desk: Desk, told: str | None, effects: int
) -> None:
    """After a timeout or an error the model retries in other words; after `ok` it means a second one."""
    desk.most_effects = effects
    audit = desk.open()
    first = send(audit, desk.tool())
    if told is not None:
        first.ack("ok" if told == "ok" else "error")
    send(audit, desk.tool(), step="5.0", note="other words")
    desk.counts(audit).expect(effects=effects, rows=effects, units=effects)


@every_ability
def test_row_30_twins_in_one_message_are_one_action(desk: Desk) -> None:
    """Parallel calls of one turn with equal identity."""
    audit = desk.open()
    send(audit, desk.tool(), step="4.0")
    send(audit, desk.tool(), step="4.1")
    desk.counts(audit).expect(rows=1, units=1)


@every_ability
def test_row_30_another_identity_is_another_action(desk: Desk) -> None:
    """Other amount, other order, other intent: two effects."""
    audit = desk.open()
    send(audit, desk.tool(), step="4.0", purpose="approved")
    send(audit, desk.tool(), step="5.0", purpose="paid")
    desk.counts(audit).expect(intents=2, rows=2, units=2)


def test_row_30_ok_is_never_taken_back(desk: Desk) -> None:
    """A late error does not turn a finished intent into an open one."""
    desk.most_effects = 2
    audit = desk.open()
    outcome = send(audit, desk.tool())
    outcome.ack("ok")
    outcome.ack("error")
    send(audit, desk.tool(), step="5.0")
    desk.counts(audit).expect(effects=2, rows=2, units=2)


def test_row_30_ok_means_nothing_before_the_action_is_done(desk: Desk) -> None:
    """Acknowledging a doubt does not end it."""
    audit = desk.open()
    send(audit, desk.tool(lost_reply(desk.target.act))).ack("ok")
    assert send(audit, desk.tool(), step="5.0").kind == "in_doubt"
    desk.counts(audit).expect(rows=1, units=1)


def test_row_30_without_acknowledgements_only_pending_slots_rebind(desk: Desk) -> None:
    """`acks=False`: the adapter cannot tell, so a finished action is finished."""
    desk.most_effects = 2
    audit = desk.open()
    tool = desk.tool(acks=False)
    send(audit, tool)
    send(audit, tool, step="5.0")
    desk.counts(audit).expect(effects=2, rows=2, units=2)


def test_once_per_scope_holds_over_runs(desk: Desk) -> None:
    """The dedup key finds the effect beyond position; another scope has its own."""
    desk.most_effects = 2
    audit = desk.open()
    tool = desk.tool(once_per="scope")
    send(audit, tool).ack("ok")
    audit.ledger.open_run("w2", scope="acme", agent="desk", resume_within=WEEK)
    assert send(audit, tool, step="1.0", workflow="w2").replayed is True
    audit.ledger.open_run("w3", scope="other", agent="desk", resume_within=WEEK)
    assert send(audit, tool, step="1.0", workflow="w3").replayed is False
    desk.counts(audit).expect(effects=2, rows=2, units=2)


@pytest.mark.parametrize(
    ("workflow", "step"),
    [("a:b", "c"), ("a", "b:c"), ("a", "b#s1"), ("a", "x" * 256), ("jane@example.org", "1"), ("é", "1")],
)
def test_row_31_keys_that_could_mean_two_things_are_refused(desk: Desk, workflow: str, step: str) -> None:
    """Nothing is cleaned up, nothing is sent."""
    audit = desk.open()
    with pytest.raises(BadKey):
        send(audit, desk.tool(), workflow=workflow, step=step)
    assert desk.target.acts() == ()


@pytest.mark.parametrize("order", [None, 1.0, "missing"])
def test_row_31_an_identity_without_one_form_fails_before_anything_is_sent(desk: Desk, order: object) -> None:
    """The model is told which argument is wrong, and may correct it at the same step."""
    audit = desk.open()
    args: dict[str, object] = {"purpose": "refund"} if order == "missing" else {"order": order, "purpose": "refund"}
    outcome = audit.ledger.call(desk.tool(), args, workflow="w", step="4.0")
    assert (outcome.kind, outcome.effect) == ("failed", "none")
    assert "order" in outcome.model_text
    assert send(audit, desk.tool()).kind == "done"
    desk.counts(audit).expect(rows=1, units=1)


def test_row_32_another_scope_is_told_nothing(desk: Desk) -> None:
    """The same key under another scope: conflict, without data."""
    audit = desk.open()
    send(audit, desk.tool())
    with pytest.raises(RunError, match="another scope"):
        audit.ledger.open_run("w", scope="other", agent="desk", resume_within=WEEK)
    args = {"order": "P-1", "purpose": "refund"}
    outcome = audit.ledger.call(desk.tool(), args, workflow="w", step="4.0", scope="other")
    assert (outcome.kind, outcome.result, outcome.fence) == ("conflict", None, 0)
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_33_new_code_recognises_the_effects_of_old_code(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new rule of normalising, a renamed function: still a replay, by the key and by rebinding."""
    audit = desk.open()
    send(audit, desk.tool())

    def folded(values: "dict[str, object]") -> dict[str, JsonValue]:
        return {name: str(value).casefold() for name, value in normal_identity(values).items()}

    monkeypatch.setitem(requests.RULES, 2, folded)
    monkeypatch.setattr(requests, "CURRENT_RULE", 2)

    def renamed(call: Call) -> object:
        return desk.target.act(call)

    assert send(audit, desk.tool(renamed)).replayed is True
    assert send(audit, desk.tool(renamed), step="5.0").replayed is True
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I7")
def test_row_37_a_thousand_repeats_of_an_action_are_one_effect_and_one_unit(desk: Desk) -> None:
    """Replays cost no unit and no attempt."""
    audit = desk.open()
    assert all(send(audit, desk.tool()).kind == "done" for _ in range(1000))
    (row,) = audit.show(StepKey("w", "4.0")).usage
    assert (row.units, row.attempts) == (1, 1)
    desk.counts(audit).expect(rows=1, units=1)


def test_a_full_limit_leaves_no_row(desk: Desk) -> None:
    """And the same key is new once there is room."""
    audit = desk.open(limits=[Limit("send", 1, timedelta(minutes=1))])
    send(audit, desk.tool(), step="1.0", order="P-1")
    refused = send(audit, desk.tool(), step="2.0", order="P-2")
    assert (refused.kind, refused.retry_after_s, phase(audit, "2.0")) == ("limited", 60.0, "absent")
    assert send(audit, desk.tool(), step="1.0", order="P-1").kind == "done"
    assert desk.clock is not None
    desk.clock.advance(60)
    assert send(audit, desk.tool(), step="2.0", order="P-2").kind == "done"


def test_a_closed_run_answers_and_refuses_what_is_new(desk: Desk) -> None:
    """Repeats are answered from the record."""
    audit = desk.open()
    send(audit, desk.tool())
    audit.ledger.close_run("w")
    assert send(audit, desk.tool()).replayed is True
    with pytest.raises(RunError, match="closed"):
        send(audit, desk.tool(), step="9.0", order="P-9")


def test_an_unknown_run_is_refused(desk: Desk) -> None:
    """A run has a scope and an agent, and somebody must say which."""
    with pytest.raises(RunError, match="open_run"):
        send(desk.open(), desk.tool(), workflow="nowhere")


@pytest.mark.parametrize("verdict", ["happened", "did_not_happen", "void"])
def test_a_person_ends_a_doubt(desk: Desk, verdict: str) -> None:
    """It happened; it did not, so it may run; or nobody will ever know."""
    desk.most_effects = 2 if verdict == "did_not_happen" else 1  # the person was wrong
    audit = desk.open()
    doubt = send(audit, desk.tool(lost_reply(desk.target.act)))
    (view,) = audit.ledger.attention()
    assert "did it happen" in view.why
    audit.ledger.resolve(key(), fence=doubt.fence, verdict=verdict, by="jane", note="asked them", result="r")  # type: ignore[arg-type]  # parametrised
    outcome = send(audit, desk.tool())
    assert outcome.kind == {"happened": "done", "did_not_happen": "done", "void": "failed"}[verdict]
    assert len(desk.target.acts()) == (2 if verdict == "did_not_happen" else 1)
    assert audit.verify().problems == ()


def test_a_verdict_on_what_moved_on_is_refused(desk: Desk) -> None:
    """The person saw fence 1; by now it is another send, or no doubt at all."""
    audit = desk.open()
    send(audit, desk.tool())
    with pytest.raises(LostLease):
        audit.ledger.resolve(key(), fence=7, verdict="happened", by="jane", note="")
    with pytest.raises(Refused, match="not in doubt"):
        audit.ledger.resolve(key(), fence=1, verdict="void", by="jane", note="why")
    with pytest.raises(Refused, match="note"):
        audit.ledger.resolve(key(), fence=1, verdict="void", by="jane", note=" ")
    with pytest.raises(Refused, match="unknown"):
        audit.ledger.resolve(key("no"), fence=1, verdict="happened", by="jane", note="")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Found("there"), "done"),
        (NotFound(), "in_doubt"),
        (NotFound(definitive=True), "done"),
        (Unsure("slow"), "in_doubt"),
    ],
)
def test_a_lookup_ends_a_doubt_only_with_a_clear_word(desk: Desk, answer: Found | NotFound | Unsure, kind: str) -> None:
    """Found, a final no, or not settled yet."""
    audit = desk.open()

    def vanish_once(call: Call) -> object:
        if call.attempt == 1:
            raise TimeoutError
        return "sent again"

    outcome = send(audit, desk.tool(vanish_once, lookup=lambda call: answer), wait_s=0)
    assert outcome.kind == kind
    if kind == "done":
        assert outcome.result == ("there" if isinstance(answer, Found) else "sent again")


def test_a_lookup_that_fails_knows_nothing(desk: Desk) -> None:
    """Its exception is not the action's."""
    audit = desk.open()

    def broken(call: Call) -> Found:
        raise RuntimeError

    assert send(audit, desk.tool(lost_reply(desk.target.act), lookup=broken), wait_s=0).kind == "in_doubt"
    desk.counts(audit).expect(rows=1, units=1)


def test_lookups_of_one_action_are_spaced(desk: Desk) -> None:
    """Ten impatient callers ask the target once, not ten times."""
    audit = desk.open()
    asked: list[Call] = []

    def unsure(call: Call) -> Unsure:
        asked.append(call)
        return Unsure()

    tool = desk.tool(lost_reply(desk.target.act), lookup=unsure)
    for _ in range(10):
        send(audit, tool, wait_s=0)
    assert len(asked) == 1


def test_sweep_asks_about_doubts_and_frees_what_the_dead_left(desk: Desk) -> None:
    """Without any caller: a doubt is looked up, a claim that sent nothing is free, files of dead holders go."""
    desk.target.ability = "lookup"
    for point, step in (("F4", "1.0"), ("F1", "2.0")):
        with run_child(lambda at=step: send(desk.open(), desk.tool(), step=at, order=at), failpoint=point) as child:
            assert child.ended() == -9
    audit = desk.open()
    audit.ledger.register(desk.tool())
    report = audit.ledger.sweep()
    assert (report.in_doubt, report.looks, report.holders) == (1, 1, 2)
    assert (phase(audit, "1.0"), phase(audit, "2.0")) == ("done", "retry_wait")


def test_the_semantic_gate_asks_about_a_second_wish_in_the_same_words(desk: Desk) -> None:
    """Off by default; on, a near-identical call after `ok` waits for a person. Other identity vetoes it."""
    desk.most_effects = 2
    audit = desk.open(gate=Gate(lambda left, right: 1.0 if left == right else 0.0))
    send(audit, desk.tool()).ack("ok")
    second = send(audit, desk.tool(), step="5.0")
    assert second.kind == "needs_approval"
    assert send(audit, desk.tool(), step="6.0", order="P-2").kind == "done"
    assert send(audit, desk.tool(), step="7.0", note="quite other words", purpose="paid").kind == "done"
    (view,) = audit.ledger.attention()
    audit.ledger.approve(str(view.approval_id), args_hash=str(view.args_hash), by="jane")
    assert send(audit, desk.tool(), step="5.0").kind == "done"
    assert audit.verify().problems == ()


@pytest.mark.invariant("I8")
def test_a_local_effect_and_its_record_are_one_transaction(desk: Desk) -> None:
    """An effect in this very file: undone with its record, or done with it."""
    audit = desk.open()
    tool = desk.tool(max_attempts=5)
    args = {"order": "P-1", "purpose": "refund"}
    audit.store.connection().execute("CREATE TABLE notes(text TEXT)")

    def insert(conn: sqlite3.Connection) -> object:
        conn.execute("INSERT INTO notes VALUES('once')")
        return "noted"

    def broken(conn: sqlite3.Connection) -> object:
        insert(conn)
        raise ValueError("after the insert")

    with pytest.raises(ValueError, match="after the insert"):
        audit.ledger.call_local(tool, args, broken, workflow="w", step="4.0")
    assert audit.store.connection().execute("SELECT count(*) FROM notes").fetchone() == (0,)
    outcomes = [audit.ledger.call_local(tool, args, insert, workflow="w", step="4.0") for _ in range(2)]
    assert [(outcome.result, outcome.replayed) for outcome in outcomes] == [("noted", False), ("noted", True)]
    assert audit.store.connection().execute("SELECT count(*) FROM notes").fetchone() == (1,)


def test_arguments_are_erased_when_an_action_has_ended(desk: Desk) -> None:
    """What was said is kept as an HMAC."""
    audit = desk.open()
    send(audit, desk.tool(), note="very private words")
    assert "very private words" not in "\n".join(audit.store.connection().iterdump())


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"identity": (), "intent": None}, "without identity"),
        ({"intent": None, "once_per": "run"}, "without intent"),
        ({"intent": "note"}, "outside identity"),
        ({"honours_key": True, "key_ttl_s": None}, "key_ttl_s"),
        ({"timeout_s": 120.0}, "lease_s"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"limit_per_run": 0}, "limit_per_run"),
        ({"settle_s": -1.0}, "settle_s"),
        ({"tool_class": "harmless"}, "class"),
    ],
)
def test_a_tool_that_contradicts_itself_is_refused(desk: Desk, options: dict[str, object], why: str) -> None:
    """When it is declared, before anything runs."""
    with pytest.raises(BadTool, match=re.escape(why)):
        desk.tool(**options)  # type: ignore[arg-type]  # options of Tool, by name


def test_one_name_is_one_tool(desk: Desk) -> None:
    """Two declarations of one name would judge each other's slots."""
    audit = desk.open()
    send(audit, desk.tool())
    with pytest.raises(Exception, match="declared twice"):
        audit.ledger.register(desk.tool(identity=("order",), intent=None))


@pytest.mark.parametrize(
    ("run", "error", "text"),
    [
        (refuse, ActionFailed, "no such order"),
        (lost_reply(lambda call: None), InDoubt, "unknown"),
        (None, None, "receipt"),
    ],
)
def test_unwrap_raises_what_the_outcome_is(
    desk: Desk, run: Callable[[Call], object] | None, error: type[Exception] | None, text: str
) -> None:
    """Done gives the result; doubt is its own error, never a failure."""
    outcome = send(desk.open(), desk.tool(run))
    assert text in outcome.model_text
    if error is None:
        assert outcome.unwrap() == {"receipt": 1}
    else:
        with pytest.raises(error):
            outcome.unwrap()


def test_unwrap_of_what_was_not_executed_says_so(desk: Desk) -> None:
    """A conflict is neither failed nor in doubt."""
    audit = desk.open()
    send(audit, desk.tool())
    with pytest.raises(NotExecuted):
        send(audit, desk.tool(), order="P-2").unwrap()


def test_get_never_executes(desk: Desk) -> None:
    """It reads, by the own key and by a bound one; unknown is None."""
    audit = desk.open()
    assert audit.ledger.get(key()) is None
    send(audit, desk.tool())
    send(audit, desk.tool(), step="5.0")
    for step in ("4.0", "5.0"):
        found = audit.ledger.get(ActionKey("w", step, "send"))
        assert found is not None
        assert found.result == {"receipt": 1}
    assert history(audit)[0] == "-> claimed"
    desk.counts(audit).expect(rows=1, units=1)
