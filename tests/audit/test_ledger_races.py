"""Rows 5 to 7, 28 and 41 of the fault catalogue: many callers at once, and retries that multiply."""

import asyncio
import http.client
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path

import pytest

from audit import Audit, Call
from audit.faults import FakeClock, Target, run_child
from tests.audit.ledger_desk import WEEK, Desk, phase, send

MakeDesk = Callable[..., Desk]
KEYS = range(25)


def _spawned(folder: Path, target: Path, words: str) -> list[object]:
    """25 keys in a fresh interpreter."""
    audit = Audit(folder, durable=False)
    audit.ledger.open_run("w", scope="acme", agent="desk", resume_within=WEEK)
    tool = Target(target).tool()
    found = [send(audit, tool, step=str(number), order=str(number), note=words).result for number in KEYS]
    audit.close()
    return found


@pytest.mark.invariant("I8")
def test_row_5_eight_processes_with_one_set_of_keys_act_once_each(make_desk: MakeDesk) -> None:
    """8 x 25 calls: 25 effects, and every caller has the same results."""
    desk = make_desk()
    barrier = get_context("fork").Barrier(8)

    def worker() -> list[object]:
        audit, tool = desk.open(), desk.tool()
        barrier.wait()
        return [send(audit, tool, step=str(number), order=str(number)).result for number in KEYS]

    with ExitStack() as stack:
        children = [stack.enter_context(run_child(worker)) for _ in range(8)]
        results = [child.result() for child in children]
    assert all(result == results[0] for result in results)
    desk.counts(desk.open()).expect(intents=25, rows=25, units=25)


@pytest.mark.invariant("I8")
def test_row_5_fresh_interpreters_act_once_each(make_desk: MakeDesk) -> None:
    """The same with spawned processes, which share nothing but the folder."""
    desk = make_desk()
    with ExitStack() as stack:
        start = partial(run_child, _spawned, desk.folder, desk.target.path)
        children = [stack.enter_context(start(f"words {number}", method="spawn")) for number in range(2)]
        results = [child.result() for child in children]
    assert results[0] == results[1]
    desk.counts(desk.open()).expect(intents=25, rows=25, units=25)


@pytest.mark.invariant("I8")
def test_row_5_threads_act_once_each(make_desk: MakeDesk) -> None:
    """8 threads of one ledger."""
    desk = make_desk()
    audit, tool = desk.open(), desk.tool()

    def worker(_: int) -> list[object]:
        return [send(audit, tool, step=str(number), order=str(number)).result for number in KEYS]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(worker, range(8)))
    assert all(result == results[0] for result in results)
    desk.counts(audit).expect(intents=25, rows=25, units=25)


@pytest.mark.invariant("I8")
def test_row_5_tasks_of_one_loop_act_once_each(make_desk: MakeDesk) -> None:
    """8 tasks x 25 keys on one ledger, with a coroutine tool."""
    desk = make_desk()
    audit = desk.open()

    async def act(call: Call) -> object:
        await asyncio.sleep(0)
        return desk.target.act(call)

    async def worker() -> list[object]:
        tool = desk.tool(act)
        found = []
        for number in KEYS:
            args = {"order": str(number), "purpose": "refund", "note": "words"}
            found.append((await audit.ledger.acall(tool, args, workflow="w", step=str(number))).result)
        return found

    async def race() -> list[list[object]]:
        return await asyncio.gather(*(worker() for _ in range(8)))

    results = asyncio.run(race())
    assert all(result == results[0] for result in results)
    desk.counts(audit).expect(intents=25, rows=25, units=25)


@pytest.mark.invariant("I8")
def test_row_6_racing_wordings_send_the_winners_words(make_desk: MakeDesk) -> None:
    """Each of 8 processes has its own text: one is sent per key, and all get its result."""
    desk = make_desk()
    barrier = get_context("fork").Barrier(8)

    def worker(number: int) -> list[tuple[object, bool, bool]]:
        audit, tool = desk.open(), desk.tool()
        barrier.wait()
        found = [send(audit, tool, step=str(k), order=str(k), note=f"words of {number}") for k in range(8)]
        return [(outcome.result, outcome.replayed, outcome.reworded) for outcome in found]

    with ExitStack() as stack:
        children = [stack.enter_context(run_child(worker, number)) for number in range(8)]
        results = [child.result() for child in children]
    for k in range(8):
        of_key = [result[k] for result in results]
        assert len({str(result) for result, _, _ in of_key}) == 1
        assert [replayed for _, replayed, _ in of_key].count(False) == 1
        assert all(reworded == replayed for _, replayed, reworded in of_key)
    desk.counts(desk.open()).expect(intents=8, rows=8, units=8)


@pytest.mark.invariant("I8")
def test_row_7_racing_identities_execute_one_and_refuse_the_others(make_desk: MakeDesk) -> None:
    """8 processes, one key, 8 orders: one effect, seven conflicts."""
    desk = make_desk()
    barrier = get_context("fork").Barrier(8)

    def worker(number: int) -> str:
        audit, tool = desk.open(), desk.tool()
        barrier.wait()
        return send(audit, tool, order=f"P-{number}").kind

    with ExitStack() as stack:
        children = [stack.enter_context(run_child(worker, number)) for number in range(8)]
        kinds = Counter(child.result() for child in children)
    assert kinds == {"done": 1, "conflict": 7}
    desk.counts(desk.open()).expect(rows=1, units=1)


@pytest.mark.invariant("I8")
def test_row_28_a_run_limit_holds_in_a_race(make_desk: MakeDesk) -> None:
    """Limit 3, 8 processes, 10 keys: three effects, never four."""
    desk = make_desk()
    barrier = get_context("fork").Barrier(8)

    def worker() -> list[str]:
        audit, tool = desk.open(), desk.tool(limit_per_run=3)
        barrier.wait()
        return [send(audit, tool, step=str(number), order=str(number)).kind for number in range(10)]

    with ExitStack() as stack:
        children = [stack.enter_context(run_child(worker)) for _ in range(8)]
        for child in children:
            assert set(child.result()) <= {"done", "limited"}
    desk.counts(desk.open()).expect(intents=3, rows=3, units=3)


def test_row_28_a_failure_without_effect_gives_its_place_back(make_desk: MakeDesk) -> None:
    """What certainly did nothing does not count; what is in doubt does."""
    desk = make_desk(clock=FakeClock())
    audit = desk.open()

    def refuse(call: Call) -> object:
        raise ConnectionRefusedError

    def vanish(call: Call) -> object:
        raise TimeoutError

    assert send(audit, desk.tool(refuse, limit_per_run=1), step="1", wait_s=0).kind == "retry_after"
    assert send(audit, desk.tool(vanish, limit_per_run=1), step="2", order="P-2").kind == "in_doubt"
    assert send(audit, desk.tool(limit_per_run=1), step="3", order="P-3").kind == "limited"
    assert phase(audit, "3") == "absent"
    assert desk.counts(audit).effects == {}


class _Gateway(ThreadingHTTPServer):
    """Counts POSTs, acts on each, and answers 503 to the first ones."""

    daemon_threads = True
    posts = 0
    failures = 0


class _Handler(BaseHTTPRequestHandler):
    server: _Gateway

    def do_POST(self) -> None:  # the name is the base class's
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.posts += 1
        if self.server.posts <= self.server.failures:
            self.close_connection = True  # it acted, and the reply is lost
            return
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Keep the output clean."""


@pytest.fixture
def gateway() -> Iterator[_Gateway]:
    """A loopback server that loses every reply, until told otherwise."""
    server = _Gateway(("127.0.0.1", 0), _Handler)
    server.failures = 1_000
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def _post(server: _Gateway) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    try:
        connection.request("POST", "/mail", body=b"{}")
        return connection.getresponse().read().decode("ascii")
    finally:
        connection.close()


def _retrying(times: int, act: Callable[[], object]) -> object:
    """One layer of retries, as clients, orchestrators and models have them."""
    for attempt in range(times):
        try:
            return act()
        except (OSError, http.client.HTTPException):
            if attempt == times - 1:
                raise
    return None


def test_row_2_a_dropped_socket_is_in_doubt_and_sent_once(make_desk: MakeDesk, gateway: _Gateway) -> None:
    """A real server acts and closes the connection without a reply."""
    desk = make_desk()
    audit = desk.open()
    tool = desk.tool(lambda call: _post(gateway))
    assert [send(audit, tool, step=step).kind for step in ("4.0", "5.0", "4.0")] == ["in_doubt"] * 3
    assert gateway.posts == 1


def test_row_41_retries_multiply_without_the_ledger_and_not_with_it(make_desk: MakeDesk, gateway: _Gateway) -> None:
    """Client 3 x orchestrator 3 x model 2: 18 posts without, 1 with; the report says so beforehand."""
    with pytest.raises((OSError, http.client.HTTPException)):
        _retrying(2, partial(_retrying, 3, partial(_retrying, 3, partial(_post, gateway))))
    assert gateway.posts == 18
    gateway.posts = 0
    desk = make_desk()
    audit = desk.open()
    tool = desk.tool(lambda call: _post(gateway))
    for turn in range(2):
        for _ in range(3):
            send(audit, tool, step=f"{turn}.0", note=f"words of turn {turn}")
    assert gateway.posts == 1
    report = audit.ledger.retry_report({"send": {"client": 3, "orchestrator": 3, "model": 2}})
    assert report.rows[0].without_ledger == 18
    assert "3 layers retry it" in report.warnings[0]
    assert audit.ledger.retry_report({"send": {"client": 1, "orchestrator": 1}}).warnings == ()
