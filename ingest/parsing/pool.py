"""The killable worker pool: hostile files end their worker, never the run, and no other job notices.

A process per worker, reused, each with a socket of its own. A job that kills its worker (a signal, memory, CPU, the
deadline, an answer that is none) runs once more in a fresh one, by the reader's second way where it has one; the second
time its document is ``quarantined`` with what happened. ``ProcessPoolExecutor`` fails all waiting jobs with the first
that dies (measured: 19 of 21), and multiprocessing would import the command line into every worker.
"""

import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from search.errors import GroundedError

from .failure import ParseFailure
from .limits import MIB, Limits, ReaderOptions
from .wire import Changed, FrameReader, Job, ParseResult, WireError, pack_job, pack_setup, unpack_result
from .worker import EXIT_MEMORY

__all__ = ["Changed", "Job", "ParseResult", "WorkerPool"]

log = logging.getLogger(__name__)

READ_BYTES = 1 << 20
# Ends that say nothing about the file: an operator or the kernel short of memory sent them. The same reader tries
# again, so that a killed worker does not change the text of a document (I5).
FROM_OUTSIDE = frozenset({-signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT, -signal.SIGIO})
# The folder that holds this package. Workers start in it: the folder the user is in may hold modules of any name.
IMPORT_ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-B", "-m", "ingest.parsing.worker")


@dataclass(slots=True)
class _Attempt:
    job: Job
    use_fallback: bool = False
    is_second: bool = False


@dataclass(slots=True, eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    connection: socket.socket
    frames: FrameReader
    attempt: _Attempt | None = None
    deadline: float = 0.0
    is_ready: bool = False
    timed_out: bool = field(default=False)


class WorkerPool:
    """Parses documents in up to ``workers`` processes. A context manager; leaving it ends them all.

    ``command`` starts a worker, which gets the number of its socket as its last argument. ``debug`` lets what parsers
    print through to stderr. Not thread-safe.
    """

    def __init__(
        self,
        workers: int,
        limits: Limits | None = None,
        options: ReaderOptions | None = None,
        *,
        command: Sequence[str] = COMMAND,
        debug: bool = False,
    ) -> None:
        self._size = max(1, workers)
        self._limits = limits or Limits()
        self._options = options or ReaderOptions()
        self._command = tuple(command)
        self._debug = debug
        # A text of four bytes a character, and as much again for its blocks and the rest.
        self._max_bytes = 8 * self._limits.text_chars + 16 * MIB
        self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all workers, also those at work, and wait for them to be gone."""
        for worker in tuple(self._workers):
            self._end(worker)
        self._selector.close()

    def results(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, ParseResult]]:
        """Yield every job once with its result, as they complete; the largest files are begun first.

        At most one result per worker waits to be taken, so memory stays bounded however slow the taker is; the time it
        takes does not count against a worker's deadline. Closing the iterator ends what still runs. Raises
        ``GroundedError`` if workers cannot be started at all.
        """
        waiting = deque(_Attempt(job) for job in sorted(jobs, key=lambda job: (-job.size_bytes, job.document_id)))
        try:
            while waiting or any(worker.attempt for worker in self._workers):
                self._feed(waiting)
                finished = self._wait(waiting)
                self._feed(waiting)
                left_at = time.monotonic()
                yield from finished
                away = time.monotonic() - left_at
                for worker in self._workers:
                    worker.deadline += away
        finally:
            for worker in tuple(self._workers):
                if worker.attempt:
                    self._end(worker)

    def _feed(self, waiting: deque[_Attempt]) -> None:
        """Give each idle worker the next job, and start workers while there are more jobs than idle ones."""
        while waiting:
            worker = next((worker for worker in self._workers if worker.attempt is None), None)
            if worker is None:
                if len(self._workers) == self._size:
                    return
                worker = self._start()
            worker.attempt = attempt = waiting.popleft()
            worker.deadline = time.monotonic() + self._limits.deadline_s(attempt.job.kind, attempt.job.size_bytes)
            self._send(worker, pack_job(attempt.job, use_fallback=attempt.use_fallback))

    def _wait(self, waiting: deque[_Attempt]) -> list[tuple[Job, ParseResult]]:
        """Wait for the next answers, ends or deadlines. Jobs to be run again go back to ``waiting``."""
        busy = [worker for worker in self._workers if worker.attempt]
        timeout = max(0.0, min(worker.deadline for worker in busy) - time.monotonic())
        finished = []
        for key, _ in self._selector.select(timeout):
            worker: _Worker = key.data
            result = self._hear(worker, waiting)
            if result is not None:
                finished.append(result)
        now = time.monotonic()
        for worker in busy:
            # Whoever has an answer ready was heard above, even when it is late.
            if worker.attempt and worker in self._workers and worker.deadline <= now:
                worker.timed_out = True
                result = self._lost(worker, waiting)
                if result is not None:
                    finished.append(result)
        return finished

    def _hear(self, worker: _Worker, waiting: deque[_Attempt]) -> tuple[Job, ParseResult] | None:
        """Take what a worker sent; its result if that is complete."""
        try:
            piece = worker.connection.recv(READ_BYTES)
        except OSError:
            piece = b""
        if not piece:
            return self._lost(worker, waiting)
        try:
            worker.frames.feed(piece)
            while frame := worker.frames.take():
                message, text = frame
                if message == {"result": "ready"} and not worker.is_ready:
                    worker.is_ready = True
                    continue
                result = unpack_result(message, text)
                if worker.attempt is not None:
                    job, worker.attempt = worker.attempt.job, None
                    return job, result
        except WireError as error:
            log.warning("worker.nonsense pid=%d error=%s", worker.process.pid, error)
            return self._lost(worker, waiting, nonsense=True)
        return None

    def _lost(
        self, worker: _Worker, waiting: deque[_Attempt], *, nonsense: bool = False
    ) -> tuple[Job, ParseResult] | None:
        """Replace a worker that died or has to; its job goes back to the front of ``waiting``, or is given up."""
        attempt = worker.attempt
        code = self._end(worker, grace=not (nonsense or worker.timed_out))
        if not worker.is_ready and not worker.timed_out and code not in FROM_OUTSIDE:
            raise GroundedError(f"parser worker: cannot start (ended with code {code}); run with --debug to see why")
        if attempt is None:
            return None
        how = "answered with what is no result" if nonsense else self._cause(worker, attempt.job, code)
        log.warning("worker.lost pid=%d document=%s cause=%r", worker.process.pid, attempt.job.document_id, how)
        if attempt.is_second:
            return attempt.job, ParseFailure("quarantined", f"its reader {how}, twice")
        by_the_file = nonsense or worker.timed_out or code not in FROM_OUTSIDE
        waiting.appendleft(_Attempt(attempt.job, use_fallback=by_the_file, is_second=True))
        return None

    def _cause(self, worker: _Worker, job: Job, code: int) -> str:
        if worker.timed_out:
            return f"gave no answer within {self._limits.deadline_s(job.kind, job.size_bytes):g} s"
        if code == EXIT_MEMORY:
            return f"needed more than {self._limits.address_space_bytes // MIB} MiB of memory"
        if code == -signal.SIGXCPU:
            return f"used more than {self._limits.cpu_budget_s(job.kind, job.size_bytes)} s of CPU"
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"ended with code {code}"

    def _start(self) -> _Worker:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = subprocess.Popen(
                    [*self._command, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=None if self._debug else subprocess.DEVNULL,
                    cwd=os.fspath(IMPORT_ROOT),
                    pass_fds=(theirs.fileno(),),
                    # A group of its own: Ctrl-C at the terminal is for the parent, which then ends its workers.
                    process_group=0,
                )
        except OSError as error:
            ours.close()
            raise GroundedError(
                f"parser worker: cannot start ({error.strerror}); lower the number of workers or end other programs"
            ) from error
        worker = _Worker(process, ours, FrameReader(self._max_bytes))
        self._workers.append(worker)
        self._selector.register(ours, selectors.EVENT_READ, worker)
        self._send(worker, pack_setup(self._limits, self._options))
        return worker

    def _send(self, worker: _Worker, frame: bytes) -> None:
        try:
            worker.connection.sendall(frame)
        except OSError:
            # It is gone already; the end of its stream is read in the next round, and its job runs elsewhere.
            log.debug("worker.gone pid=%d", worker.process.pid)

    def _end(self, worker: _Worker, *, grace: bool = False) -> int:
        """Take a worker out of the pool and return its exit code. ``grace``: it is ending itself, or so it seems."""
        self._workers.remove(worker)
        self._selector.unregister(worker.connection)
        worker.connection.close()
        if grace:
            try:
                return worker.process.wait(timeout=END_GRACE_S)
            except subprocess.TimeoutExpired:
                log.debug("worker.lingers pid=%d", worker.process.pid)
        worker.process.kill()
        return worker.process.wait()


# A process whose sockets are closed by the kernel is a zombie within milliseconds; under load a little later.
END_GRACE_S = 5.0
