"""What the fault tests work on: a folder in two states, and an index over it that can be put back for every test.

The folder keeps its place, since the real path of a root is part of the catalog: what changes is what lies in it. Runs
are real processes (``tests.harness``). What is looked at afterwards is looked at from this process, through the same
calls as ``ingest export``, ``verify`` and ``search`` make, because starting Python for each would double the time.
"""

import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from ingest.catalog.database import Catalog
from ingest.export import export
from ingest.observation import Observer, RunOptions
from ingest.verify import Check, verify
from search.edge import EdgeReader
from search.embedding import Embedder, load_embedder
from search.generation import IndexLayout
from search.lookup import Lookup
from search.settings import DEFAULT_MODEL, cache_folder, load
from search.store import Snapshot
from tests.harness import IndexUnderTest

__all__ = ["AFTER", "BEFORE", "FRUGAL", "QUESTIONS", "Answer", "Scene", "computed", "long_text", "model"]

# One worker and one thread: the kills do not depend on them, and two cores are shared with the other tests.
FRUGAL = {"GROUNDED_WORKERS": "1", "GROUNDED_EMBED_THREADS": "1"}

BEFORE: Mapping[str, str] = {
    "leave.md": "# Annual leave\n\nEverybody has thirty days of annual leave. Five of them may move into the next.\n",
    "kitchen.md": "# Kitchen\n\nThe dishwasher runs at six in the evening. Mugs with a crack go to the bin.\n",
    "parking.md": "# Parking\n\nThe yard holds twelve cars. Visitors park beside the old crane.\n",
    "notes.txt": "The lighthouse keeper writes the tide table by hand and pins it to the door of the boathouse.\n",
    "boats.md": "# Boats\n\nThe ferry Kestrel takes forty passengers.\n\nThe barge Marigold carries gravel only.\n",
}
# An edit, a renaming, a removal, and a new file.
AFTER: Mapping[str, str] = {
    "leave.md": BEFORE["leave.md"].replace("thirty days", "thirty-two days"),
    "kitchen.md": BEFORE["kitchen.md"],
    "yard/parking.md": BEFORE["parking.md"],
    "boats.md": BEFORE["boats.md"],
    "crane.md": "# Crane\n\nThe old crane lifts two tons and is painted every spring.\n",
}
QUESTIONS = (
    "how many days of annual leave",
    "where do visitors park",
    "who writes the tide table",
    "what does the crane lift",
    "passengers of the ferry Kestrel",
)

# Text and path of each passage, question by question: what a reader gets, without the name of the generation.
Answer: TypeAlias = tuple[tuple[tuple[str, str], ...], ...]


@cache
def model() -> Embedder:
    """Return the bundled model, loaded once for all tests of this process."""
    return load_embedder(DEFAULT_MODEL, threads=1, cache=cache_folder())


def long_text(sections: int) -> str:
    """Return a document of many short sections, no two alike."""
    return "# Log\n\n" + "\n\n".join(
        f"## Entry {number}\n\nOn day {number} the ferry took {number * 7 % 40} passengers, and {number % 9} of them "
        f"asked for berth {number * 3 + 1}. The harbour master signed sheet {number * 11}."
        for number in range(sections)
    )


def computed(report: Mapping[str, Any]) -> int:
    """Return the number of vectors that a run computed."""
    return int(report["embeddings"]["computed"])


class _Pinned:
    """A reader that stays on one generation, so that several questions are asked of the same."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def snapshot(self) -> Snapshot:
        """Return the generation."""
        return self._snapshot

    def close(self) -> None:
        """Hold nothing."""


class Scene:
    """A folder of documents ``docs`` and the index over it, below one folder of the test's own."""

    def __init__(self, folder: Path, name: str = "index") -> None:
        self.docs = folder / "docs"
        self.index = IndexUnderTest(folder, name)
        self.layout = IndexLayout(self.index.home)
        self._saved = folder / f"{name.replace('/', '-')}.saved"

    def write(self, files: Mapping[str, str]) -> None:
        """Make the folder of documents hold exactly these files."""
        shutil.rmtree(self.docs, ignore_errors=True)
        for name, text in files.items():
            path = self.docs / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def run(self, *options: str, **extra: str) -> dict[str, Any]:
        """Run to a good end and return the report."""
        ended = self.index.run(self.docs, options=options, **FRUGAL, **extra)
        assert ended.exit_code == 0, ended.stderr
        return ended.json

    def clear(self) -> None:
        """Have no index."""
        shutil.rmtree(self.index.home, ignore_errors=True)

    def save(self) -> None:
        """Keep the index as it is now."""
        shutil.rmtree(self._saved, ignore_errors=True)
        _copy(self.index.home, self._saved)

    def put_back(self) -> None:
        """Have the index as it was saved."""
        self.clear()
        _copy(self._saved, self.index.home)

    def export(self) -> str:
        """Return the canonical export."""
        with closing(Catalog.open_read_only(self.layout.catalog)) as catalog:
            return "\n".join(export(catalog))

    def findings(self) -> dict[str, Check]:
        """Return what ``ingest verify --full`` finds wrong, by the name of the check."""
        settings = load({"embed_threads": 1}, index=str(self.index.home))
        report = verify(settings, Observer(settings, RunOptions(roots=())), full=True)
        return {check.name: check for check in report.checks if not check.ok}

    def problems(self) -> list[Check]:
        """Return the findings as a list, to be compared with none."""
        return list(self.findings().values())

    def snapshot(self) -> Snapshot:
        """Return the current generation, open, as a reader that starts now gets it; raises what it would meet."""
        return EdgeReader(self.layout).snapshot()

    def answer(self, held: Snapshot | None = None) -> Answer:
        """Return what a reader that starts now gets from one generation, or one that has held it since before."""
        lookup = Lookup(_Pinned(held or self.snapshot()), lambda _spec: model())
        results = [lookup.lookup(question) for question in QUESTIONS]
        return tuple(tuple((passage.text, passage.citation.path) for passage in result.passages) for result in results)

    def published_files(self) -> dict[str, str]:
        """Return names and hashes of the files of all generations up to the one that readers follow.

        A later one may be half made, or made and not committed: the next run throws it away and uses its name again.
        """
        current = self.layout.current() or ""
        return {name: digest for name, digest in self.index.generations().items() if name.partition("/")[0] <= current}

    def count(self, table: str) -> int:
        """Return the number of rows of a table; 0 while it does not exist."""
        if not self.layout.catalog.exists():
            return 0
        with closing(sqlite3.connect(f"file:{self.layout.catalog}?mode=ro", uri=True)) as connection:
            try:
                (number,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            except sqlite3.OperationalError:
                return 0
        return int(number)

    def change_catalog(self, change: Callable[[sqlite3.Connection], object]) -> None:
        """Do to the catalog what no run would."""
        with closing(sqlite3.connect(self.layout.catalog)) as connection, connection:
            change(connection)


def _copy(source: Path, target: Path) -> None:
    """Copy an index with its holes and with the links among its own files, but with none to ``source``."""
    subprocess.run(["cp", "--archive", "--sparse=always", str(source), str(target)], check=True)
