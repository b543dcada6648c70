"""``ingest run --watch`` as a user has it: edits come in by themselves, and the index is what plain runs make of it."""

import json
import queue
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import PATIENCE_S, IndexUnderTest, ending

pytestmark = pytest.mark.slow

FAST = {"GROUNDED_WATCH_SETTLE_S": "0.1", "GROUNDED_WATCH_INTERVAL_S": "0.2"}


class Watch:
    """A running watch; its reports as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first report from now on of which something holds."""
        while True:
            report: dict[str, Any] = json.loads(self._lines.get(timeout=PATIENCE_S))
            if holds(report):
                return report

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE_S)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of three documents."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("pump", "valve", "gauge"):
        (docs / f"{name}.md").write_text(f"# The {name}\n\nThe {name} is checked every spring by the crew.\n")
    return docs


@pytest.fixture
def index(tmp_path: Path) -> IndexUnderTest:
    """An index in a folder of its own."""
    return IndexUnderTest(tmp_path)


@pytest.fixture
def watch(index: IndexUnderTest, docs: Path) -> Iterator[Watch]:
    """A watch of the folder that has made its first run and waits."""
    process = index.start("run", str(docs), "--watch", "--json", **FAST)
    with ending(process):
        watch = Watch(process)
        assert watch.until(lambda report: report["published"])["chunks"]["total"] == 3
        yield watch


def test_edits_come_in_by_themselves_and_make_what_plain_runs_make(
    watch: Watch, index: IndexUnderTest, docs: Path, tmp_path: Path
) -> None:
    """New, changed, renamed and removed files and folders; then the state is that of one undisturbed run (I5)."""
    (docs / "hose.md").write_text("# The hose\n\nThe hose is rolled up wet.\n")
    watch.until(lambda report: report["sources"]["added"] == 1)
    (docs / "pump.md").write_text("# The pump\n\nThe pump was replaced.\n")
    assert watch.until(lambda report: report["sources"]["changed"] == 1)["chunks"]["written"] == 1
    (docs / "valve.md").rename(docs / "tap.md")
    assert watch.until(lambda report: report["sources"]["renamed"] == 1)["chunks"]["written"] == 0
    (docs / "new/deep").mkdir(parents=True)
    (docs / "new/deep/rope.md").write_text("# The rope\n\nThe rope hangs dry.\n")
    watch.until(lambda report: report["chunks"]["total"] == 5)
    (docs / "new/deep/rope.md").write_text("# The rope\n\nThe rope is torn.\n")  # in a folder that came later
    watch.until(lambda report: report["sources"]["changed"] == 1)
    shutil.rmtree(docs / "new")
    watch.until(lambda report: report["sources"]["removed"] == 1)
    # By a rename, which is one change: no second round may be at work when the watch is ended.
    edited = tmp_path / "edited.md"
    edited.write_text("# The gauge\n\nThe gauge was cleaned.\n")
    edited.rename(docs / "gauge.md")
    watch.until(lambda report: report["sources"]["changed"] == 1)
    assert watch.end() == 0

    fresh = IndexUnderTest(tmp_path, "fresh")
    assert fresh.run(docs).exit_code == 0
    assert index.export() == fresh.export()
    assert index.verify()["ok"]


def test_a_folder_that_vanishes_takes_nothing_along_and_is_read_again_when_it_comes_back(
    watch: Watch, index: IndexUnderTest, docs: Path
) -> None:
    """An unmounted disk looks so: nothing is removed, and what changed meanwhile comes in afterwards."""
    away = docs.rename(docs.parent / "away")
    report = watch.until(lambda report: bool(report["failures"]))
    assert (report["chunks"]["total"], report["sources"]["removed"]) == (3, 0)
    (away / "hose.md").write_text("# The hose\n\nThe hose is rolled up wet.\n")
    away.rename(docs)
    report = watch.until(lambda report: report["sources"]["added"] == 1)
    assert (report["chunks"]["total"], report["failures"]) == (4, [])


def test_a_watch_withholds_mass_removals_as_a_plain_run_does(index: IndexUnderTest, docs: Path) -> None:
    """Nobody is there to confirm them, so nothing goes until somebody does."""
    process = index.start(
        "run", str(docs), "--watch", "--json", **FAST, GROUNDED_GUARD_SOURCES="1"
    )  # fmt: skip
    with ending(process):
        watch = Watch(process)
        watch.until(lambda report: report["published"])
        shutil.rmtree(docs)
        docs.mkdir()
        (docs / "pump.md").write_text("# The pump\n\nThe pump is checked every spring by the crew.\n")
        report = watch.until(lambda report: report["sources"]["withheld"] == 2)
        assert report["chunks"]["total"] == 3
    refused = index.call("run", str(docs), "--watch", "--allow-removals", "all")
    assert refused.exit_code == 2
    assert "--allow-removals: is for one run" in refused.stderr


def test_a_watch_lets_other_runs_in_and_does_not_write_what_they_wrote(
    watch: Watch, index: IndexUnderTest, docs: Path
) -> None:
    """The lock is held in a run only; a plain run beside it finds or makes the same state."""
    (docs / "hose.md").write_text("# The hose\n\nThe hose is rolled up wet.\n")
    plain = index.run(docs, options=["--wait"])
    assert plain.exit_code == 0
    assert plain.json["chunks"]["total"] == 4
    watch.until(lambda report: report["chunks"]["total"] == 4)
    assert watch.end(signal.SIGINT) == 0
    assert index.run(docs).json["chunks"]["written"] == 0


def test_a_watch_tells_a_person_line_by_line(index: IndexUnderTest, docs: Path) -> None:
    """The first run in full, then one line for each that wrote; Ctrl-C in between is a good end."""
    process = index.start("run", str(docs), "--watch", **FAST)
    with ending(process):
        assert process.stdout is not None
        assert process.stderr is not None
        lines = iter(process.stdout.readline, "")
        assert any(line.startswith("generation 000001 published") for line in lines)
        assert process.stderr.readline() == "watching; Ctrl-C ends it\n"
        (docs / "broken.docx").write_text("no document of Word")
        assert next(lines).split("  ")[1] == "generation 000002: 1 added, 1 failed\n"
        assert next(lines).split("  ")[1] == "damaged broken.docx: named .docx but holds text\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_S) == 0
