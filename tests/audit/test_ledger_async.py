"""Row 14 of the fault catalogue: cancelled anywhere, an action is free, done, or in doubt; never lost."""

import asyncio
from collections.abc import Callable

import pytest

from audit import Audit, Call, Outcome
from audit.ledger.drivers import AsyncDriver
from audit.ledger.protocol import Step
from tests.audit.ledger_desk import Desk, phase

MakeDesk = Callable[..., Desk]


async def asend(audit: Audit, desk: Desk, run: Callable[[Call], object], step: str, **options: object) -> Outcome:
    """One async call."""
    args = {"order": step, "purpose": "refund", "note": "words"}
    return await audit.ledger.acall(desk.tool(run, **options), args, workflow="w", step=step, wait_s=5)


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("on_cancel", ["finish", "cancel"])
def test_row_14_cancelled_at_any_await_nothing_is_lost(
    make_desk: MakeDesk, on_cancel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before dispatch the claim is released; after it: recorded or in doubt. No task is left, and no slot is owned."""
    desk = make_desk()
    audit = desk.open()
    caller: list[asyncio.Task[Outcome]] = []
    left = 0

    def one_more_await() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            caller[-1].cancel()

    do_step = AsyncDriver._do

    async def counted(driver: AsyncDriver, step: Step, sent: asyncio.Event) -> asyncio.CancelledError | None:
        one_more_await()
        return await do_step(driver, step, sent)

    async def act(call: Call) -> object:
        for _ in range(3):
            one_more_await()
            await asyncio.sleep(0)
        result = desk.target.act(call)
        for _ in range(3):
            one_more_await()
            await asyncio.sleep(0)
        return result

    async def cancelled_at(number: int) -> bool:
        nonlocal left
        left = number
        caller.append(asyncio.create_task(asend(audit, desk, act, str(number), on_cancel=on_cancel)))
        await asyncio.wait({caller[-1]})
        await audit.ledger.adrain()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return caller[-1].cancelled()

    async def everywhere() -> int:
        number = 1
        while await cancelled_at(number):
            number += 1
        return number

    monkeypatch.setattr(AsyncDriver, "_do", counted)
    awaits = asyncio.run(everywhere())
    effects = desk.target.effects("order")
    seen = set()
    for number in range(1, awaits + 1):
        found, acted = phase(audit, str(number)), effects[(str(number),)]
        seen.add(found)
        assert acted <= 1
        assert found in ({"done", "in_doubt"} if acted else {"absent", "retry_wait", "in_doubt"}), (number, found)
    assert seen == {"retry_wait", "done"} | ({"in_doubt"} if on_cancel == "cancel" else set())
    assert audit.verify().problems == ()


@pytest.mark.invariant("I8")
def test_row_14_a_caller_that_times_out_does_not_take_the_record_along(make_desk: MakeDesk) -> None:
    """The tool has been sent, the caller gives up: the action ends SUCCESS, and a repeat is a replay."""
    desk = make_desk()
    audit = desk.open()

    async def scene() -> Outcome:
        entered, let_go = asyncio.Event(), asyncio.Event()

        async def act(call: Call) -> object:
            entered.set()
            await let_go.wait()
            return desk.target.act(call)

        task = asyncio.create_task(asend(audit, desk, act, "4.0"))
        await entered.wait()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        let_go.set()
        await audit.ledger.adrain()
        return await asend(audit, desk, act, "4.0")

    outcome = asyncio.run(scene())
    assert (outcome.kind, outcome.replayed) == ("done", True)
    desk.counts(audit).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_14_a_tool_that_is_cancelled_with_its_caller_is_in_doubt(make_desk: MakeDesk) -> None:
    """`on_cancel="cancel"`: it had been sent, so nobody can know."""
    desk = make_desk()
    audit = desk.open()

    async def scene() -> None:
        entered = asyncio.Event()

        async def act(call: Call) -> object:
            desk.target.act(call)
            entered.set()
            await asyncio.Event().wait()
            return None

        task = asyncio.create_task(asend(audit, desk, act, "4.0", on_cancel="cancel"))
        await entered.wait()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    asyncio.run(scene())
    assert phase(audit) == "in_doubt"
    desk.counts(audit).expect(rows=1, units=1)


def test_row_14_a_tool_that_outlasts_its_time_limit_is_in_doubt(make_desk: MakeDesk) -> None:
    """The limit ends the wait, not the effect."""
    desk = make_desk()
    audit = desk.open()

    async def act(call: Call) -> object:
        desk.target.act(call)
        await asyncio.Event().wait()
        return None

    outcome = asyncio.run(asend(audit, desk, act, "4.0", timeout_s=0.01, lease_s=1.0))
    assert outcome.kind == "in_doubt"
    desk.counts(audit).expect(rows=1, units=1)


def test_a_blocking_tool_and_a_blocking_ack_leave_the_loop_free(make_desk: MakeDesk) -> None:
    """Tools that are plain functions run in a thread; aack uses the store's thread."""
    desk = make_desk()
    audit = desk.open()

    async def scene() -> Outcome:
        outcome = await asend(audit, desk, desk.target.act, "4.0")
        await outcome.aack("ok")
        return outcome

    assert asyncio.run(scene()).kind == "done"
    assert audit.store.connection().execute("SELECT told FROM actions").fetchone() == ("ok",)


def test_a_coroutine_tool_can_be_called_without_a_loop(make_desk: MakeDesk) -> None:
    """The sync call runs it to its end."""
    desk = make_desk()
    audit = desk.open()

    async def act(call: Call) -> object:
        await asyncio.sleep(0)
        return desk.target.act(call)

    args = {"order": "P-1", "purpose": "refund"}
    assert audit.ledger.call(desk.tool(act), args, workflow="w", step="4.0").result == {"receipt": 1}
