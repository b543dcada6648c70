"""The worker pool, with real processes and files that do their worst."""

import os
import random
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ingest.parsing.document import Document
from ingest.parsing.failure import ParseFailure
from ingest.parsing.limits import Limits, ReaderOptions
from ingest.parsing.pool import Changed, Job, ParseResult, WorkerPool
from ingest.parsing.wire import pack_job, pack_setup
from search.errors import GroundedError
from search.identity import DocumentId, document_id

FILES = Path(__file__).resolve().parents[1] / "files" / "parsing"
ROOT = Path(__file__).resolve().parents[2]
EVIL = (sys.executable, "-B", str(Path(__file__).with_name("evil_worker.py")))
# Small, so that what is over a limit is soon over it; the deadline is far away unless a test moves it.
LIMITS = Limits(cpu_s=0.5, address_space_bytes=1 << 30)


def job(folder: Path, name: str, content: bytes, kind: str = "text") -> Job:
    """Write a source and return the job for it."""
    (folder / name).write_bytes(content)
    return Job(document_id(content), folder, (os.fsencode(name),), len(content), kind, name)


def results(pool: WorkerPool, jobs: Sequence[Job]) -> dict[str, ParseResult]:
    """Return the result of each job by name; each has exactly one."""
    found = list(pool.results(jobs))
    assert sorted(done.name for done, _ in found) == sorted(asked.name for asked in jobs)
    return {done.name: result for done, result in found}


def text_of(result: ParseResult) -> str:
    """Return the text of a document."""
    assert isinstance(result, Document), result
    return result.text


def children() -> list[int]:
    """Return the pids of this process's children."""
    return [int(pid) for pid in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()]


def assert_ends(pid: int) -> None:
    """Wait, for a minute at most, until a process is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], 60)[0], f"{pid} lives on"
    finally:
        os.close(handle)


def test_evil_files_end_their_worker_and_no_other_job_notices(tmp_path: Path) -> None:
    """Every way of dying is named in its own failure, and twenty good files beside them are read."""
    evil = {
        "crash": (b"kill SIGSEGV", "was ended by SIGSEGV"),
        "abort": (b"kill SIGABRT", "was ended by SIGABRT"),
        "memory": (b"memory", "needed more than 1024 MiB of memory"),
        "cpu": (b"cpu", "used more than 1 s of CPU"),
        "leave": (b"leave 3", "ended with code 3"),
        "nonsense": (b"nonsense", "answered with what is no result"),
        "halfway": (b"nonsense \x00\x00\x00\x02\x00\x00\x00\x00{]", "answered with what is no result"),
    }
    jobs = [job(tmp_path, name, content) for name, (content, _) in evil.items()]
    jobs += [job(tmp_path, f"good{number}", b"good %d" % number) for number in range(20)]
    with WorkerPool(2, LIMITS, command=EVIL) as pool:
        found = results(pool, jobs)
    for name, (_, reason) in evil.items():
        assert found[name] == ParseFailure("quarantined", f"its reader {reason}, twice")
    for number in range(20):
        assert text_of(found[f"good{number}"]) == f"good {number}"


def test_a_file_that_hangs_is_given_up_at_its_deadline(tmp_path: Path) -> None:
    """Waiting for nothing costs no CPU, so only the clock can tell."""
    limits = Limits(deadline_factor=0, deadline_extra_s=0.5)
    with WorkerPool(1, limits, command=EVIL) as pool:
        found = results(pool, [job(tmp_path, "hang", b"hang")])
    assert found["hang"] == ParseFailure("quarantined", "its reader gave no answer within 0.5 s, twice")


def test_a_file_that_kills_the_first_way_is_read_by_the_second(tmp_path: Path) -> None:
    """A crash in one library is no reason to lose a document."""
    with WorkerPool(1, LIMITS, command=EVIL) as pool:
        assert text_of(results(pool, [job(tmp_path, "first", b"first SIGSEGV")])["first"]) == "second way"


@pytest.mark.invariant("I5")
def test_a_worker_killed_from_outside_changes_no_text(tmp_path: Path) -> None:
    """A kill that the file is not to blame for repeats the job as it was, so the document is the undisturbed one."""
    with WorkerPool(1, LIMITS, command=EVIL) as pool:
        found = results(pool, [job(tmp_path, "outside", f"outside {tmp_path / 'marker'}".encode())])
    assert text_of(found["outside"]) == "first way"


def test_an_idle_worker_that_is_gone_is_replaced(tmp_path: Path) -> None:
    """Between two calls anything may happen to a process."""
    before = set(children())
    with WorkerPool(1, LIMITS, command=EVIL) as pool:
        results(pool, [job(tmp_path, "one", b"good 1")])
        (worker,) = set(children()) - before
        os.kill(worker, signal.SIGKILL)
        assert text_of(results(pool, [job(tmp_path, "two", b"good 2")])["two"]) == "good 2"


def test_a_worker_writes_nothing_and_loads_nothing_it_need_not(tmp_path: Path) -> None:
    """Hostile code in a worker finds no way to the disk; a worker starts without the command line and the index."""
    target = tmp_path / "planted"
    with WorkerPool(1, command=EVIL) as pool:
        found = results(
            pool, [job(tmp_path, "write", f"write {target}".encode()), job(tmp_path, "modules", b"modules")]
        )
    assert text_of(found["write"]).startswith("refused")
    assert not target.exists() or target.stat().st_size == 0
    assert text_of(found["modules"]) == "loaded []"


def test_a_large_text_arrives_whole(tmp_path: Path) -> None:
    """Four million characters, more than any buffer between the processes."""
    with WorkerPool(1, command=EVIL) as pool:
        text = text_of(results(pool, [job(tmp_path, "large", b"large 4000000")])["large"])
    assert text == "\U0001f6a2 ships\n" * 500_000


def test_the_file_is_what_was_planned_or_it_is_said_what_it_is_now(tmp_path: Path) -> None:
    """No document mixes two versions; what cannot be opened says why, what is too large is not opened."""
    changed = job(tmp_path, "changed", b"good before")
    (tmp_path / "changed").write_bytes(b"good after")
    missing = Job(DocumentId("0" * 64), tmp_path, (b"missing",), 3, "text", "missing")
    (tmp_path / "folder").mkdir()
    folder = Job(DocumentId("0" * 64), tmp_path, (b"folder",), 3, "text", "folder")
    huge = Job(DocumentId("0" * 64), tmp_path, (b"nowhere",), 1 << 40, "text", "huge")
    odd = job(tmp_path, os.fsdecode(b"od\xffd"), b"good odd")
    with WorkerPool(1, command=EVIL) as pool:
        found = results(pool, [changed, missing, folder, huge, odd])
    assert found["changed"] == Changed(document_id(b"good after"))
    assert found["missing"] == ParseFailure("unreadable", "ENOENT: No such file or directory")
    assert isinstance(found["folder"], ParseFailure)
    assert found["folder"].status == "unreadable"
    assert isinstance(found["huge"], ParseFailure)
    assert found["huge"].status == "too_large"
    assert text_of(found[odd.name]) == "good odd"


def test_the_largest_files_are_begun_first(tmp_path: Path) -> None:
    """The long ones do not wait until the end; with one worker the order of results is that of sizes."""
    jobs = [job(tmp_path, f"f{size}", b"good " + b"x" * size) for size in (3, 900, 40, 7)]
    with WorkerPool(1, command=EVIL) as pool:
        assert [done.name for done, _ in pool.results(jobs)] == ["f900", "f40", "f7", "f3"]


def test_leaving_the_results_ends_what_still_runs(tmp_path: Path) -> None:
    """Whoever stops taking results is not kept waiting, and the pool goes on."""
    before = set(children())
    with WorkerPool(2, command=EVIL) as pool:
        taken = pool.results([job(tmp_path, "hang", b"hang"), job(tmp_path, "good", b"good 1")])
        assert text_of(next(taken)[1]) == "good 1"
        taken.close()
        assert text_of(results(pool, [job(tmp_path, "more", b"good 2")])["more"]) == "good 2"
    assert set(children()) == before


@pytest.mark.parametrize("command", [(sys.executable, "-c", "raise SystemExit(3)"), ("/nowhere/python",)])
def test_workers_that_cannot_start_are_an_error_of_the_run(tmp_path: Path, command: Sequence[str]) -> None:
    """A broken installation must not put every document into quarantine."""
    with WorkerPool(1, command=command) as pool, pytest.raises(GroundedError, match="cannot start"):
        results(pool, [job(tmp_path, "any", b"good")])


PARENT = """
import os, sys
from pathlib import Path
from ingest.parsing.pool import Job, WorkerPool
from search.identity import document_id
content = Path(sys.argv[1]).read_bytes()
hang = Job(document_id(content), Path(sys.argv[1]).parent, (b"hang",), len(content), "text", "hang")
good = Job(document_id(b"good"), Path(sys.argv[1]).parent, (b"good",), 4, "text", "good")
with WorkerPool(2, command=sys.argv[2:]) as pool:
    for done, result in pool.results([hang, good]):
        print(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text(), flush=True)
"""


@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT"])
@pytest.mark.parametrize("deed", [b"hang", b"cpu"])
def test_workers_end_with_their_parent(tmp_path: Path, name: str, deed: bytes) -> None:
    """However a run ends, also by kill -9, no process of its stays behind; not even one that is busy."""
    (tmp_path / "hang").write_bytes(deed)
    (tmp_path / "good").write_bytes(b"good")
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "hang"), *EVIL],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        workers = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(workers) == 2
        parent.send_signal(signal.Signals[name])
        parent.wait(timeout=60)
    for worker in workers:
        assert_ends(worker)


def test_a_worker_does_not_begin_a_job_for_a_parent_that_is_gone(tmp_path: Path) -> None:
    """The job had been sent when the parent was killed, and the worker had not yet read it."""
    ours, theirs = socket.socketpair()
    with theirs:
        worker = subprocess.Popen([*EVIL, str(theirs.fileno())], cwd=ROOT, pass_fds=(theirs.fileno(),))
    try:
        with ours:
            ours.sendall(pack_setup(LIMITS, ReaderOptions()))
            assert b"ready" in ours.recv(1 << 10)
            worker.send_signal(signal.SIGSTOP)
            ours.sendall(pack_job(job(tmp_path, "hang", b"hang"), use_fallback=False))
        worker.send_signal(signal.SIGCONT)
        assert worker.wait(timeout=60) == 0
    finally:
        worker.kill()


def test_real_files_are_read_as_in_this_process(tmp_path: Path) -> None:
    """The default worker, real readers, options and limits carried over."""
    jobs = [
        job(tmp_path, "page.md", b"# Head\n\ntext"),
        job(tmp_path, "old.txt", "żółw i łódź na jeziorze".encode("cp1250")),
        job(tmp_path, "page.html", b"<title>T</title><p>x", "html"),
        job(tmp_path, "locked.pdf", (FILES / "cases/pdf-encrypted/locked.pdf").read_bytes(), "pdf"),
        job(tmp_path, "manual.pdf", (FILES / "manual.pdf").read_bytes(), "pdf"),
    ]
    options = ReaderOptions(fallback_encoding="cp1250", pdf_passwords=("otter",))
    with WorkerPool(2, options=options) as pool:
        found = results(pool, jobs)
    assert text_of(found["page.md"]) == "# Head\n\ntext"
    assert text_of(found["old.txt"]) == "żółw i łódź na jeziorze"
    assert text_of(found["locked.pdf"])
    manual = found["manual.pdf"]
    assert isinstance(manual, Document)
    assert len(manual.parts) == 8
    assert manual.meta["running"] == ["Harbour Handbook, edition 3", "Page i"]
    assert [block.heading for block in manual.blocks if block.heading][:2] == ["1 Mooring", "2 Fuel"]


def test_damaged_pdfs_end_in_a_document_or_a_failure(tmp_path: Path) -> None:
    """Cuts and flipped bits anywhere, a hundred of them: each has a result, twice the same, and no job is lost."""
    chance = random.Random(7)
    jobs = []
    for name in ("manual", "columns", "garbled", "cases/pdf-encrypted/owner-aes256", "cases/pdf-no-text-layer/scan"):
        content = (FILES / f"{name}.pdf").read_bytes()
        for number in range(20):
            damaged = bytearray(content)
            for _ in range(1 + number % 4):
                damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
            cut = bytes(damaged if number % 2 else damaged[: chance.randrange(10, len(damaged))])
            jobs.append(job(tmp_path, f"{Path(name).name}{number}.pdf", cut, "pdf"))
    with WorkerPool(2) as pool:
        first, second = results(pool, jobs), results(pool, jobs)
    assert first == second
    assert all(isinstance(found, Document | ParseFailure) for found in first.values())
    assert sum(isinstance(found, Document) for found in first.values()) > 20


KILLED_AT_BIRTH = """
import os, pathlib, signal, sys
marker = pathlib.Path(sys.argv[1])
if not marker.exists():
    marker.touch()
    os.kill(os.getpid(), signal.SIGKILL)
from ingest.parsing.worker import main
main(int(sys.argv[2]))
"""


def test_a_worker_killed_from_outside_before_its_first_job_is_replaced(tmp_path: Path) -> None:
    """An operator or the kernel may strike at any moment; that is no reason to end the run."""
    command = (sys.executable, "-B", "-c", KILLED_AT_BIRTH, str(tmp_path / "struck"))
    with WorkerPool(1, LIMITS, command=command) as pool:
        found = results(pool, [job(tmp_path, "a.txt", b"The lamp is lit.\n")])
    assert text_of(found["a.txt"]) == "The lamp is lit.\n"
