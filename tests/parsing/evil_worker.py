"""A worker whose only reader does what the file says, however bad: ``python evil_worker.py FD``.

It is the real worker with another registry, so that everything around the reader is what a run uses.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

# The pool starts workers in the folder that holds the packages.
sys.path.insert(0, str(Path.cwd()))

from ingest.parsing.document import Block, Document
from ingest.parsing.registry import Format, ReaderInput
from ingest.parsing.worker import main

FORBIDDEN = ("click", "rich", "qdrant_edge", "qdrant_client", "fastembed", "onnxruntime", "sqlite3", "numpy", "pypdf")


def read(task: ReaderInput) -> Document:
    """Do as the file says; what survives it is a document of what came of it."""
    command, _, argument = task.content.decode().partition(" ")
    text = f"{command} {argument}" if command == "good" else DEEDS[command](argument, task.use_fallback)
    return Document("text", "evil", text, (Block("paragraph", 0, len(text)),))


def kill(name: str, is_second: bool) -> str:
    """End by a signal, each time."""
    os.kill(os.getpid(), signal.Signals[name])
    return "survived"


def first(name: str, is_second: bool) -> str:
    """End by a signal unless the second way is taken."""
    return "second way" if is_second else kill(name, is_second)


def outside(marker: str, is_second: bool) -> str:
    """Be killed once, as by an operator; then tell which way was taken."""
    if not Path(marker).exists():
        Path(marker).mkdir()
        kill("SIGKILL", is_second)
    return "second way" if is_second else "first way"


def memory(argument: str, is_second: bool) -> str:
    """Take more memory than there may be."""
    return str(len(bytearray(1 << 40)))


def cpu(argument: str, is_second: bool) -> str:
    """Count for ever."""
    while True:
        pass


def hang(argument: str, is_second: bool) -> str:
    """Wait for ever."""
    while True:
        time.sleep(60)


def leave(code: str, is_second: bool) -> str:
    """End without a word."""
    os._exit(int(code))


def nonsense(argument: str, is_second: bool) -> str:
    """Answer with what is no message."""
    os.write(int(sys.argv[-1]), argument.encode().ljust(64, b"\xff"))
    return hang("", is_second)


def write(path: str, is_second: bool) -> str:
    """Try to write a file."""
    try:
        Path(path).write_bytes(b"x")
    except OSError as error:
        return f"refused {error.errno}"
    return "written"


def modules(argument: str, is_second: bool) -> str:
    """Name what a worker should never have loaded."""
    return f"loaded {[name for name in FORBIDDEN if name in sys.modules]}"


def large(size: str, is_second: bool) -> str:
    """Return a text of so many characters, not all of them in the basic plane."""
    return "\U0001f6a2 ships\n" * (int(size) // 8)


DEEDS: dict[str, Callable[[str, bool], str]] = {
    "kill": kill,
    "first": first,
    "outside": outside,
    "memory": memory,
    "cpu": cpu,
    "hang": hang,
    "leave": leave,
    "nonsense": nonsense,
    "write": write,
    "modules": modules,
    "large": large,
}


class Evil(Format):
    """The one kind of this worker."""

    def load(self) -> Callable[[ReaderInput], Document]:
        """Return the reader above."""
        return read


if __name__ == "__main__":
    main(int(sys.argv[-1]), {"text": Evil("text", "evil", 1, "text/plain", ("txt",), True)})
