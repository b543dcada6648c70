"""A worker: reads one document after the other, under limits, until the other end of its pipe is gone.

``python -m ingest.parsing.worker FD``. It opens sources for reading and nothing else: it cannot write a file, dump
core, or use more memory and CPU than its job allows. It imports nothing of the command line, the index or the embedding
model, and a reader's library only when a document of that kind comes.
"""

import fcntl
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Never

from ingest.opening import open_source, reason_of
from search.identity import document_id

from .failure import ParseFailure
from .limits import Limits, ReaderOptions
from .reading import read_document
from .registry import FORMATS, Format, is_text_kind
from .wire import Changed, FrameReader, Job, ParseResult, pack, pack_result, receive, unpack_job, unpack_setup

__all__ = ["EXIT_MEMORY", "main"]

# How a worker that ran out of memory ends: saying anything more would need memory. Of sysexits.h, EX_OSERR.
EXIT_MEMORY = 71
# A path may have a thousand parts of 255 bytes, each of which JSON may write as six characters.
MAX_JOB_BYTES = 1 << 22
READ_BYTES = 1 << 20


def main(fd: int, formats: Mapping[str, Format] = FORMATS) -> None:
    """Serve jobs from the socket ``fd`` until its other end is closed. ``formats`` holds the readers to use."""
    connection = socket.socket(fileno=fd)
    frames = FrameReader(MAX_JOB_BYTES)
    setup = receive(connection, frames)
    if setup is None:
        return
    limits, options = unpack_setup(setup)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_AS, limits.address_space_bytes)
    connection.sendall(pack({"result": "ready"}))
    while (message := receive(connection, frames)) is not None:
        job, use_fallback = unpack_job(message)
        _limit(resource.RLIMIT_CPU, _cpu_used_s() + 1 + limits.cpu_budget_s(job.kind, job.size_bytes))
        try:
            with _ended_with_the_parent(connection):
                result = _parse(job, limits, options, formats, use_fallback=use_fallback)
                answer = pack_result(result)
        except MemoryError:
            _die()
        connection.sendall(answer)


def _parse(
    job: Job, limits: Limits, options: ReaderOptions, formats: Mapping[str, Format], *, use_fallback: bool
) -> ParseResult:
    """Open, read once, compare with the plan, and parse. No document mixes two versions of a file."""
    too_large = limits.size_failure(job.size_bytes, text=is_text_kind(job.kind))
    if too_large is not None:
        return too_large
    try:
        content = _read(job, limits.file_bytes)
    except OSError as error:
        return ParseFailure("unreadable", reason_of(error))
    found = document_id(content)
    if found != job.document_id:
        return Changed(found)
    return read_document(
        content, job.kind, job.name, limits=limits, options=options, use_fallback=use_fallback, formats=formats
    )


def _read(job: Job, most_bytes: int) -> bytes:
    """Return the bytes of the source, at most one more than the limit: a file that grows is another version anyway."""
    with os.fdopen(open_source(job.root, job.parts), "rb") as stream:
        return stream.read(most_bytes + 1)


@contextmanager
def _ended_with_the_parent(connection: socket.socket) -> Iterator[None]:
    """Let the kernel end this process when the parent dies while a job runs, even inside a C library.

    A parent that was killed closes its end of the pipe; with O_ASYNC that raises SIGIO here, whose default is to end
    the process. Nothing else can arrive while a job runs.
    """
    flags = fcntl.fcntl(connection, fcntl.F_GETFL)
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connection, fcntl.F_SETFL, flags | os.O_ASYNC)
    if _is_closed(connection):
        # It was gone before there was anything to signal, and nobody would ever stop the job.
        sys.exit()
    try:
        yield
    finally:
        fcntl.fcntl(connection, fcntl.F_SETFL, flags)


def _is_closed(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False


def _cpu_used_s() -> int:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return int(usage.ru_utime + usage.ru_stime)


def _limit(which: int, value: int) -> None:
    """Lower a soft limit; the hard one stays, so that the next job can have its own. Beyond the hard one: that one."""
    _, hard = resource.getrlimit(which)
    try:
        resource.setrlimit(which, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))
    except (ValueError, OSError):
        # Some systems know a limit but refuse to set it; the pool's deadline stands guard there.
        return


def _die() -> Never:
    os._exit(EXIT_MEMORY)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main(int(sys.argv[1]))
