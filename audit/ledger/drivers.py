"""Doing what a course says: in this thread, or in an event loop.

Owns: how tools and lookups are called, and what cancelling an async call does. Async: store work in one thread of its
own; effect and record in a task that a cancelled caller does not take along. Before dispatch a cancelled call is
released; after it the tool finishes and is recorded (`on_cancel="finish"`), or is cancelled and in doubt (`"cancel"`).
Refuses to abandon a tool that runs in a thread: it cannot be stopped, so saying that its sender has stopped would be
false.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextvars import copy_context
from typing import TypeVar

from .outcomes import Outcome
from .protocol import EXECUTING, Course, Inquire, Invoke, Pause, Step, Work

__all__ = ["AsyncDriver", "run_course"]

T = TypeVar("T")


def run_course(course: Course, sleep: Callable[[float], None]) -> Outcome:
    """Do a whole course in this thread. What interrupts a step is handed to the course, which records and raises it."""
    try:
        step = next(course)
        while True:
            try:
                _do(step, sleep)
            except BaseException as error:  # noqa: BLE001 - the course records and raises it
                step = course.throw(error)
            else:
                step = next(course)
    except StopIteration as done:
        return _outcome(done)


def _outcome(done: StopIteration) -> Outcome:
    outcome: Outcome = done.value
    return outcome


def _do(step: Step, sleep: Callable[[float], None]) -> None:
    match step:
        case Work():
            step.run()
        case Pause():
            sleep(step.seconds)
        case Invoke():
            _call_tool(step)
        case Inquire():
            step.ask()


def _call_tool(step: Invoke) -> None:
    """Call a tool in this thread and keep how it ended, whatever it raised."""
    context = copy_context()
    context.run(_enter, step)
    try:
        result = context.run(_started, step)
        if inspect.isawaitable(result):
            result = context.run(asyncio.run, _finish(result))
        step.result, step.returned = result, True
    except BaseException as error:  # noqa: BLE001 - the course records it, and raises what is no Exception
        step.error = error


def _enter(step: Invoke) -> None:
    EXECUTING.set(EXECUTING.get() | {step.slot.idempotency_key})


def _started(step: Invoke) -> object:
    step.started = True
    return step.tool.run(step.call)


async def _finish(awaitable: Awaitable[T]) -> T:
    return await awaitable


class AsyncDriver:
    """Does courses in the running event loop."""

    def __init__(self, executor: Executor) -> None:
        """`executor` has one thread, so that the store's work of one ledger is in order."""
        self._executor = executor
        self._tasks: set[asyncio.Task[Outcome]] = set()

    async def run(self, course: Course, *, finish: bool) -> Outcome:
        """Do a whole course.

        Cancelled before dispatch it releases; after it, it finishes by itself, or is cancelled with the tool.
        """
        sent = asyncio.Event()
        task = asyncio.create_task(self._drive(course, sent))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done() and not (finish and sent.is_set()):
                task.cancel()
                await asyncio.wait({task})
            if task.done() and not task.cancelled():
                task.exception()  # seen, whatever it was: the record has it, and the caller is cancelled
            raise

    async def drain(self) -> None:
        """Wait for the courses that went on after their callers were cancelled."""
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    async def in_thread(self, work: Callable[[], None]) -> None:
        """Do store work in the store's thread."""
        await asyncio.get_running_loop().run_in_executor(self._executor, work)

    async def _drive(self, course: Course, sent: asyncio.Event) -> Outcome:
        interruption: asyncio.CancelledError | None = None
        try:
            step = next(course)
            while True:
                if interruption is not None and not (isinstance(step, Work) and step.final):
                    thrown, interruption = interruption, None
                    step = course.throw(thrown)
                    continue
                try:
                    interruption = await self._do(step, sent) or interruption
                except BaseException as error:  # noqa: BLE001 - the course records and raises it
                    step = course.throw(error)
                else:
                    step = next(course)
        except StopIteration as done:
            if interruption is not None:
                raise interruption from None
            return _outcome(done)

    async def _do(self, step: Step, sent: asyncio.Event) -> asyncio.CancelledError | None:
        """Do one step; returns a cancellation that came while the step could not be stopped."""
        match step:
            case Work():
                return await self._whole(step.run)
            case Pause():
                await asyncio.sleep(step.seconds)
            case Inquire():
                return await self._whole(step.ask, threaded=True)
            case Invoke():
                sent.set()
                if inspect.iscoroutinefunction(step.tool.run):
                    await self._await_tool(step)
                else:
                    return await self._whole(lambda: _call_tool(step), threaded=True)
        return None

    async def _await_tool(self, step: Invoke) -> None:
        """Await a coroutine tool in its own context; its time limit ends it as unknown."""
        context = copy_context()
        context.run(_enter, step)
        step.started = True

        async def body() -> object:
            result = step.tool.run(step.call)
            return await result if inspect.isawaitable(result) else result

        task = asyncio.get_running_loop().create_task(body(), context=context)
        try:
            async with asyncio.timeout(step.call.timeout_s):
                step.result, step.returned = await task, True
        except BaseException as error:  # noqa: BLE001 - the course records it, and raises what is no Exception
            step.error = error
            if task.done() and not task.cancelled() and task.exception() is None:
                # It returned in the very moment of the interruption: the effect is known.
                step.result, step.returned = task.result(), True
                step.error = None if isinstance(error, Exception) else error

    async def _whole(self, work: Callable[[], None], *, threaded: bool = False) -> asyncio.CancelledError | None:
        """Run blocking work to its end, however often this task is cancelled meanwhile."""
        loop, context = asyncio.get_running_loop(), copy_context()
        future = loop.run_in_executor(None if threaded else self._executor, lambda: context.run(work))
        interruption: asyncio.CancelledError | None = None
        while not future.done():
            try:
                await asyncio.shield(future)
            except asyncio.CancelledError as error:
                interruption = error
            except BaseException:  # noqa: BLE001 - what the work raised; result() below raises it
                break
        future.result()
        return interruption
