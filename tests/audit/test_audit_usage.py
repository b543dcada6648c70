"""Windows are exact, limited calls burn no key, and a repeat is never refused by a full window."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit import Audit, BadDeclaration, Begun, Limit, StepKey
from audit.faults import FakeClock
from audit.store import Store
from audit.usage import Usage

MINUTE = timedelta(minutes=1)
MakeAudit = Callable[..., Audit]


def begin(audit: Audit, step: str, *, subject: str = "acme", units: int = 1) -> Begun:
    """Begin one call of request r."""
    return audit.begin(
        StepKey("r", step), kind="lookup", scope="acme", subject=subject, meter="lookup", args={}, units=units
    )


def test_a_unit_leaves_the_window_exactly_at_its_end(make_audit: MakeAudit, clock: FakeClock) -> None:
    """A millisecond before the end it counts, at the end it does not."""
    audit = make_audit(limits=[Limit("lookup", 1, MINUTE)])
    begin(audit, "1")
    clock.advance(59.999)
    assert begin(audit, "2").state == "limited"
    clock.advance(0.001)
    assert begin(audit, "2").state == "new"


def test_a_limited_call_burns_no_key_and_leaves_no_trace(make_audit: MakeAudit, clock: FakeClock) -> None:
    """The same key is a new call once the window has room."""
    audit = make_audit(limits=[Limit("lookup", 1, MINUTE)])
    begin(audit, "1")
    refused = begin(audit, "2")
    assert (refused.state, refused.attempt, refused.admitted, refused.retry_after_s) == ("limited", 0, False, 60.0)
    audit.end(refused, outcome="refused", body={})
    view = audit.show(StepKey("r", "2"))
    assert (view.events, view.usage, view.attempts) == ((), (), ())
    clock.advance(60)
    assert begin(audit, "2").state == "new"


@pytest.mark.invariant("I7")
def test_a_retry_of_a_counted_step_passes_a_full_window(make_audit: MakeAudit) -> None:
    """Known key first: a legitimate retry is never refused."""
    audit = make_audit(limits=[Limit("lookup", 2, MINUTE)])
    begin(audit, "1")
    begin(audit, "2")
    assert begin(audit, "3").state == "limited"
    assert begin(audit, "1").state == "repeat"


@pytest.mark.invariant("I7")
def test_a_retry_over_the_edge_of_the_window_counts_once(make_audit: MakeAudit, clock: FakeClock) -> None:
    """First call at 59.9 s, repeat at 60.1 s: one unit, counted where it first was."""
    audit = make_audit(limits=[Limit("lookup", 5, MINUTE)])
    clock.advance(59.9)
    first = audit.show(StepKey("r", "1")).usage
    assert first == ()
    begin(audit, "1")
    clock.advance(0.2)
    begin(audit, "1")
    (row,) = audit.show(StepKey("r", "1")).usage
    assert (row.units, row.attempts, row.counted_ms) == (1, 2, clock.wall_ms() - 200)


def test_a_thousand_repeats_of_one_key_hit_the_cap(audit: Audit) -> None:
    """One unit, twenty attempts, and nothing more is written."""
    states = [begin(audit, "1").state for _ in range(1000)]
    assert states.count("new") == 1
    assert states.count("repeat") == 19
    assert states.count("too_many_attempts") == 980
    view = audit.show(StepKey("r", "1"))
    assert (len(view.events), len(view.attempts), view.usage[0].units, view.usage[0].attempts) == (1, 20, 1, 20)


def test_retry_after_waits_for_as_many_units_as_are_needed(make_audit: MakeAudit, clock: FakeClock) -> None:
    """Three units need three of the oldest to leave; more than the limit never fits."""
    audit = make_audit(limits=[Limit("lookup", 4, MINUTE)])
    for step in range(4):
        begin(audit, str(step))
        clock.advance(10)
    refused = begin(audit, "big", units=3)
    assert refused.retry_after_s == 40.0
    clock.advance(40.0)
    assert begin(audit, "big", units=3).state == "new"
    assert begin(audit, "huge", units=5).retry_after_s is None


def test_limits_are_per_subject_and_a_named_subject_has_its_own(make_audit: MakeAudit) -> None:
    """One principal's flood does not shift another's quota."""
    audit = make_audit(limits=[Limit("lookup", 1, MINUTE), Limit("lookup", 3, MINUTE, subject="vip")])
    assert [begin(audit, f"a{number}", subject="acme").state for number in range(2)] == ["new", "limited"]
    assert [begin(audit, f"b{number}", subject="other").state for number in range(2)] == ["new", "limited"]
    assert [begin(audit, f"v{number}", subject="vip").state for number in range(4)] == ["new"] * 3 + ["limited"]


def test_the_tightest_of_several_limits_decides(make_audit: MakeAudit, clock: FakeClock) -> None:
    """Ten a minute and twelve an hour: the hour's limit is what refuses later."""
    audit = make_audit(limits=[Limit("lookup", 10, MINUTE), Limit("lookup", 12, timedelta(hours=1))])
    for step in range(10):
        begin(audit, str(step))
    assert begin(audit, "x").retry_after_s == 60.0
    clock.advance(60)
    assert [begin(audit, f"y{number}").state for number in range(3)] == ["new", "new", "limited"]


@pytest.mark.parametrize("off_s", [-365 * 86_400.0, -7_200.0, 7_200.0, 365 * 86_400.0])
def test_a_window_is_exact_across_a_clock_jump(make_audit: MakeAudit, clock: FakeClock, off_s: float) -> None:
    """Neither setting the clock ahead nor back opens or extends a window."""
    audit = make_audit(limits=[Limit("lookup", 1, MINUTE)])
    begin(audit, "1")
    clock.set_wall(off_s)
    clock.advance(59.999)
    assert begin(audit, "2").state == "limited"
    clock.advance(0.001)
    assert begin(audit, "2").state == "new"


def test_a_reservation_counts_until_it_is_settled_or_void(audit: Audit) -> None:
    """Tokens are estimated, then corrected; only what certainly did not happen is given back."""
    usage, key = Usage([Limit("tokens", 100, MINUTE)]), StepKey("r", "1")
    with audit.store.write() as tx:

        def reserve(step: StepKey) -> str:
            return usage.count(
                tx, scope="a", step=step, meter="tokens", subject="a", fingerprint="f", units=80, state="reserved"
            ).state

        assert reserve(key) == "new"
        assert reserve(StepKey("r", "2")) == "limited"
        assert usage.settle(tx, scope="a", step=key, meter="tokens", units=20) is True
        assert usage.settle(tx, scope="a", step=key, meter="tokens", units=99) is False
        assert reserve(StepKey("r", "2")) == "new"
        assert reserve(StepKey("r", "3")) == "limited"
        assert usage.void(tx, scope="a", step=StepKey("r", "2"), meter="tokens") is True
        assert reserve(StepKey("r", "3")) == "new"
    assert audit.usage_report().units_total == 100


def test_a_void_key_may_count_again(audit: Audit) -> None:
    """A call whose first try certainly did nothing is a new unit, under the window of its own time."""
    usage, key = Usage([Limit("m", 1, MINUTE)]), StepKey("r", "1")
    with audit.store.write() as tx:
        assert usage.count(tx, scope="a", step=key, meter="m", subject="a", fingerprint="f").state == "new"
        usage.void(tx, scope="a", step=key, meter="m")
        assert usage.count(tx, scope="a", step=key, meter="m", subject="a", fingerprint="f").state == "new"
    assert audit.show(key).usage[0].attempts == 2


@pytest.mark.parametrize(("units", "window"), [(-1, MINUTE), (1, timedelta(0)), (1, -MINUTE)])
def test_a_limit_that_means_nothing_is_refused(units: int, window: timedelta) -> None:
    """It is found where it is declared."""
    with pytest.raises(BadDeclaration):
        Limit("lookup", units, window)


def test_negative_units_are_refused(audit: Audit) -> None:
    """They would give quota back."""
    with pytest.raises(BadDeclaration):
        begin(audit, "1", units=-1)


@pytest.mark.invariant("I7")
@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 15_000), st.integers(0, 6), st.integers(0, 3)), max_size=25))
def test_the_window_agrees_with_a_list_of_what_was_counted(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[int, int, int]]
) -> None:
    """Any history of times, keys and units: the same admissions as an oracle that keeps a plain list."""
    clock = FakeClock()
    store = Store(tmp_path_factory.mktemp("window"), durable=False, clock=clock)
    usage = Usage([Limit("m", 5, MINUTE)], attempts_cap=1_000)
    counted: dict[int, tuple[int, int]] = {}
    for wait_ms, step, units in history:
        clock.advance(wait_ms / 1000)
        inside = sum(held for at, held in counted.values() if at > clock.wall_ms() - 60_000)
        expected = "repeat" if step in counted else "new" if inside + units <= 5 else "limited"
        with store.write() as tx:
            found = usage.count(
                tx, scope="a", step=StepKey("r", str(step)), meter="m", subject="a", fingerprint="f", units=units
            )
        assert found.state == expected
        if expected == "new":
            counted[step] = (clock.wall_ms(), units)
    store.close()


def test_usage_is_reported_by_principal_and_by_day(audit: Audit, clock: FakeClock) -> None:
    """Units, calls and attempts add up either way."""
    for step in ("1", "2", "1"):
        begin(audit, step)
    clock.advance(86_400)
    begin(audit, "3", subject="other", units=5)
    by_principal = audit.usage_report(by="principal")
    assert [(row.name, row.units, row.keys, row.attempts) for row in by_principal.rows] == [
        ("other", 5, 1, 1),
        ("acme", 2, 2, 3),
    ]
    by_day = audit.usage_report(by="day")
    assert [(row.name, row.units) for row in by_day.rows] == [("2023-11-14", 2), ("2023-11-15", 5)]
    assert by_principal.units_total == by_day.units_total == 7
