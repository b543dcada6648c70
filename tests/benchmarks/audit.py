"""What bookkeeping costs: a guarded call beside aws-lambda-powertools' idempotency, and a lookup's begin and end.

    python -m tests.benchmarks audit

Not a test: it prints milliseconds, median and 95th percentile. The ways to send run in turns on one loopback tool, so
that a busy machine slows all of them alike; powertools is compared where it is installed (with boto3). The lookup is a
stand-in that waits as long as a search takes: what counts is how much begin and end add, alone and to 8 at a time.
"""

import http.client
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path

from audit import Audit, StepKey, Tool

__all__ = ["main"]

CALLS = 300
READERS = 8
# What a lookup in a corpus of some thousand passages takes, without its bookkeeping.
SEARCH_S = 0.02


class Handler(BaseHTTPRequestHandler):
    """Answers every POST with `ok`, on a connection that stays open."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet an answer, or delayed acknowledgements would cost 40 ms

    def do_POST(self) -> None:
        """Take it."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Keep the output clean."""


Send = Callable[[int], object]


def ledger(folder: Path, post: Callable[[], str], *, durable: bool) -> Send:
    """A dangerous tool behind the ledger; every call is a new step."""
    audit = Audit(folder, durable=durable)
    audit.ledger.open_run("bench", scope="bench", agent="bench", resume_within=timedelta(days=1))
    tool = Tool(name="post", tool_class="dangerous", run=lambda call: post(), identity=("order",))
    return lambda number: audit.ledger.call(tool, {"order": str(number)}, workflow="bench", step=str(number)).unwrap()


def powertools(folder: Path, post: Callable[[], str]) -> Send | None:
    """The same tool behind powertools, its records in a durable SQLite file; None where it is not installed."""
    try:
        idempotency = import_module("aws_lambda_powertools.utilities.idempotency")
        exceptions = import_module("aws_lambda_powertools.utilities.idempotency.exceptions")
    except ImportError:
        return None
    conn = sqlite3.connect(folder / "powertools.db", isolation_level=None)
    conn.execute("PRAGMA journal_mode = WAL")
    conn.execute("PRAGMA synchronous = FULL")
    conn.execute("CREATE TABLE records(key TEXT PRIMARY KEY, status TEXT, data TEXT)")

    def put(layer: object, data_record: object) -> None:
        try:
            conn.execute(
                "INSERT INTO records VALUES(?, ?, '')",
                (vars(data_record)["idempotency_key"], vars(data_record)["_status"]),
            )
        except sqlite3.IntegrityError:
            raise exceptions.IdempotencyItemAlreadyExistsError from None

    def update(layer: object, data_record: object) -> None:
        fields: Mapping[str, object] = vars(data_record)
        row = (fields["_status"], fields["response_data"], fields["idempotency_key"])
        conn.execute("UPDATE records SET status = ?, data = ? WHERE key = ?", row)

    def nothing(layer: object, data_record: object) -> None:
        """Never reached: every call is new and succeeds."""

    methods = {"_put_record": put, "_update_record": update, "_get_record": nothing, "_delete_record": nothing}
    store = type("Store", (idempotency.BasePersistenceLayer,), methods)()
    guarded = idempotency.idempotent_function(data_keyword_argument="args", persistence_store=store)(
        lambda args: post()
    )
    return lambda number: guarded(args={"order": str(number)})


def main() -> None:
    """Measure and print both tables."""
    guarded_calls()
    lookups()


def lookups() -> None:
    """Lookups with and without begin and end, one reader and 8 at a time; synchronous=NORMAL, as in the agent tool."""
    with tempfile.TemporaryDirectory() as name:
        audit = Audit(Path(name) / "lookups", durable=False)

        def lookup(step: StepKey | None) -> float:
            start = time.perf_counter()
            if step is None:
                time.sleep(SEARCH_S)
            else:
                begun = audit.begin(
                    step, kind="lookup", scope="bench", subject="bench", meter="lookup", args={"q": "x"}
                )
                time.sleep(SEARCH_S)
                audit.end(begun, outcome="ok")
            return (time.perf_counter() - start - SEARCH_S) * 1000

        print(f"\n{CALLS} lookups of {SEARCH_S * 1000:.0f} ms, ms added   median     p95  lookups/s")
        for readers in (1, READERS):
            for counted in (False, True):
                steps = [StepKey(f"r{readers}", str(n)) if counted else None for n in range(CALLS)]
                with ThreadPoolExecutor(readers) as pool:
                    start = time.perf_counter()
                    added = list(pool.map(lookup, steps))
                    rate = CALLS / (time.perf_counter() - start)
                what = f"{readers} at a time, " + ("begin and end" if counted else "bare")
                print(
                    f"{what:<34}{statistics.median(added):8.2f}{statistics.quantiles(added, n=20)[-1]:8.2f}{rate:11.0f}"
                )
        audit.close()


def guarded_calls() -> None:
    """One tool behind each way, in turns."""
    with ExitStack() as stack:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1])
        stack.callback(connection.close)

        def post() -> str:
            connection.request("POST", "/", body=b"{}")
            return connection.getresponse().read().decode()

        ways: dict[str, Send | None] = {
            "bare": lambda number: post(),
            "ledger, NORMAL": ledger(folder / "normal", post, durable=False),
            "ledger, FULL": ledger(folder / "full", post, durable=True),
            "powertools on SQLite, FULL": powertools(folder, post),
        }
        taken: dict[str, list[float]] = {name: [] for name, send in ways.items() if send is not None}
        for number in range(CALLS):
            for name, send in ways.items():
                if send is not None:
                    start = time.perf_counter()
                    send(number)
                    taken[name].append((time.perf_counter() - start) * 1000)
    print(f"{CALLS} calls each, ms        median     p95")
    for name, times in taken.items():
        print(f"{name:<28}{statistics.median(times):8.2f}{statistics.quantiles(times, n=20)[-1]:8.2f}")


if __name__ == "__main__":
    main()
