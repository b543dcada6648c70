"""An index under test: folders, and the real command line in real processes, for fault, property and cli tests."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
SAMPLE = REPOSITORY / "data" / "sample"
# Bounds every wait on a child; a run of the sample takes two seconds on a quiet machine.
PATIENCE_S = 240
# What shapes a child's output, and is set here and there: a user's process has none of it.
OF_WHO_RUNS_THE_TESTS = frozenset({"COLUMNS", "LINES", "PYTHONUNBUFFERED"})


@dataclass(frozen=True)
class Ended:
    """How a command ended. ``json`` is its one object on stdout."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict[str, Any]:
        """The last line of stdout as JSON."""
        found: dict[str, Any] = json.loads(self.stdout.splitlines()[-1])
        return found


class IndexUnderTest:
    """One index in a folder of its own, driven through ``python -m ingest``."""

    def __init__(self, folder: Path, name: str = "index") -> None:
        self.folder = folder
        self.home = folder / name

    def environment(self, **extra: str) -> dict[str, str]:
        """The environment of a child: nothing of this machine's settings, our packages, no network for models."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("GROUNDED_") and name not in OF_WHO_RUNS_THE_TESTS
        }
        return {**kept, "PYTHONPATH": str(REPOSITORY), "HF_HUB_OFFLINE": "1", "NO_COLOR": "1", **extra}

    def command(self, *words: str) -> list[str]:
        """The command line of a child."""
        return [sys.executable, "-m", "ingest", *words, "--index", str(self.home)]

    def call(self, *words: str, **extra: str) -> Ended:
        """Run one command to its end."""
        done = subprocess.run(
            self.command(*words),
            env=self.environment(**extra),
            capture_output=True,
            encoding="utf-8",
            cwd=self.folder,
            timeout=PATIENCE_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def run(self, *roots: Path | str, options: Sequence[str] = (), **extra: str) -> Ended:
        """``ingest run ROOT... --json``."""
        return self.call("run", *(str(root) for root in roots), "--json", *options, **extra)

    def start(self, *words: str, **extra: str) -> subprocess.Popen[str]:
        """Start one command; the caller ends it."""
        return subprocess.Popen(
            self.command(*words),
            env=self.environment(**extra),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            cwd=self.folder,
        )

    def kill_run_at(self, point: str, *roots: Path | str, options: Sequence[str] = ()) -> Ended:
        """Run with a failpoint armed (``ingest.failpoints.POINTS``)."""
        return self.run(*roots, options=options, GROUNDED_FAILPOINT=point)

    def export(self) -> str:
        """The canonical export."""
        ended = self.call("export")
        assert ended.exit_code == 0, ended.stderr
        return ended.stdout

    def verify(self, *, full: bool = True) -> dict[str, Any]:
        """The report of ``ingest verify``."""
        ended = self.call("verify", "--json", *(["--full"] if full else []))
        assert ended.exit_code in (0, 4), ended.stderr
        return ended.json

    def search(self, query: str, *, limit: int = 5) -> dict[str, Any]:
        """The result of ``ingest search``."""
        ended = self.call("search", query, "--json", "--limit", str(limit))
        assert ended.exit_code == 0, ended.stderr
        return ended.json

    def generations(self) -> dict[str, str]:
        """Names and sha256 of all files under ``generations/``."""
        base = self.home / "index" / "generations"
        return {
            str(path.relative_to(base)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(base.rglob("*"))
            if path.is_file()
        }


@contextlib.contextmanager
def ending(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """End a child with the block, however the block ends."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()
