"""Files that change, vanish or turn into something else while a run is at work, and things that are no files at all.

Most of these happen between two steps of a run, so they run in this process, where the test hears of each step.
"""

import json
import os
import re
import shutil
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from ingest import documents, opening, pipeline
from ingest.catalog.database import Catalog
from ingest.export import export
from ingest.observation import RunOptions
from ingest.report import RunReport
from ingest.status import IndexStatus
from search.generation import IndexLayout
from search.identity import stream_sha256
from search.settings import load
from tests.harness import IndexUnderTest

OLD = "# Old\n\nThe kettle stands on the left shelf.\n"
NEW = "# New\n\nThe kettle stands on the right shelf, behind the tea.\n"
SECRET = "# Secret\n\nThe safe opens with three turns.\n"


class Meddler:
    """Hears of a run's steps, and does something once when one of them begins."""

    def __init__(self, at: str, act: Callable[[], object]) -> None:
        self._at = at
        self._act = act
        self.acted = False

    def step(self, name: str) -> None:
        if name == self._at and not self.acted:
            self.acted = True
            self._act()

    def files(self, done: int, total: int) -> None:
        """Ignore."""

    def chunks(self, done: int, known: int) -> None:
        """Ignore."""


class Scene:
    """A folder with a file that stays as it is and one that does not, and an index over it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.docs = folder / "docs"
        self.docs.mkdir()
        self.file = self.docs / "sub" / "restless.md"
        self.file.parent.mkdir()
        self.file.write_text(OLD, encoding="utf-8")
        (self.docs / "calm.md").write_text("# Calm\n\nThe cups hang above the sink.\n", encoding="utf-8")
        self.settings = load({"workers": 1}, index=str(folder / "index"))

    def run(self, at: str = "", act: Callable[[], object] = lambda: None) -> RunReport:
        """Run, and meddle when the step ``at`` begins."""
        meddler = Meddler(at, act)
        report = pipeline.run(self.settings, RunOptions(roots=(self.docs,)), meddler)
        assert meddler.acted == bool(at)
        return report

    @property
    def statuses(self) -> dict[str, str]:
        """Status by source; a source with two statuses is an error."""
        with IndexStatus(self.settings) as status:
            entries = list(status.sources())
        found = {str(entry["source"]): str(entry["status"]) for entry in entries}
        assert len(found) == len(entries)
        return found

    @property
    def said(self) -> str:
        """The texts of all passages."""
        catalog = Catalog.open_read_only(IndexLayout(self.settings.home).catalog)
        try:
            lines = [json.loads(line) for line in export(catalog)]
        finally:
            catalog.close()
        return "\n".join(line["text"] for line in lines if line["message_type"] == "chunk")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Both files ingested; the restless one has a new content that the next run will see."""
    made = Scene(tmp_path)
    assert made.run().exit_code == 0
    made.file.write_text(NEW, encoding="utf-8")
    return made


def vanish(path: Path) -> None:
    """Take the file away."""
    path.unlink()


def become_pipe(path: Path) -> None:
    """Put a pipe without a writer in the file's place: whoever opens it without care waits for ever."""
    path.unlink()
    os.mkfifo(path)


def become_link(path: Path) -> None:
    """Put a link to a file outside of the root in the file's place."""
    outside = path.parents[2] / "secret.md"
    outside.write_text(SECRET, encoding="utf-8")
    path.unlink()
    path.symlink_to(outside)


def become_folder(path: Path) -> None:
    """Put a folder in the file's place."""
    path.unlink()
    path.mkdir()


def link_folder(path: Path) -> None:
    """Put a link to another folder, with a file of the same name, in the place of the file's folder."""
    outside = path.parents[2] / "elsewhere"
    outside.mkdir()
    (outside / path.name).write_text(SECRET, encoding="utf-8")
    shutil.rmtree(path.parent)
    path.parent.symlink_to(outside)


# What the file turns into, and what is known of its path afterwards.
TURNS: dict[Callable[[Path], None], dict[str, str]] = {
    vanish: {},
    become_pipe: {"sub/restless.md": "skipped"},
    become_link: {"sub/restless.md": "skipped"},
    become_folder: {},
    link_folder: {"sub": "skipped"},
}


@pytest.mark.invariant("I6")
@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn.__name__)
def test_a_file_that_turns_into_something_else_before_it_is_hashed_is_left_to_the_next_run(
    turn: Callable[[Path], None], scene: Scene
) -> None:
    """What was indexed of it stays for this run; the next one finds it gone, or a thing that is never opened."""
    assert scene.run("hash", lambda: turn(scene.file)).exit_code == 0
    assert scene.statuses == {"calm.md": "indexed", "sub/restless.md": "indexed"}
    assert "left shelf" in scene.said
    assert scene.run().exit_code == 0
    assert scene.statuses == {"calm.md": "indexed", **TURNS[turn]}
    assert "kettle" not in scene.said
    assert "three turns" not in scene.said


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn.__name__)
def test_a_file_that_turns_into_something_else_before_it_is_read_is_looked_at_again(
    turn: Callable[[Path], None], scene: Scene
) -> None:
    """No failure is made of it, and nothing beyond a link is read: the same run sees what has become of it."""
    report = scene.run("parse", lambda: turn(scene.file))
    assert (report.exit_code, report.failures) == (0, [])
    assert scene.statuses == {"calm.md": "indexed", **TURNS[turn]}
    assert "kettle" not in scene.said
    assert "three turns" not in scene.said


def test_a_file_that_is_away_for_a_moment_keeps_its_passages(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it is to be read it is not there, and each look finds it: unstable, the old text stays, then heals."""
    away = scene.folder / "away.md"
    read = documents.DocumentStage.read

    def read_without_it(self: documents.DocumentStage, *arguments: object) -> object:
        scene.file.rename(away)
        try:
            return read(self, *arguments)  # type: ignore[arg-type]  # passes on what it was given
        finally:
            away.rename(scene.file)

    monkeypatch.setattr(documents.DocumentStage, "read", read_without_it)
    report = scene.run()
    assert [(failure.source, failure.status, failure.retry) for failure in report.failures] == [
        ("sub/restless.md", "unstable", "every run")
    ]
    assert "left shelf" in scene.said
    monkeypatch.undo()
    assert scene.run().exit_code == 0
    assert scene.statuses == {"calm.md": "indexed", "sub/restless.md": "indexed"}
    assert "right shelf" in scene.said
    assert "left shelf" not in scene.said


def test_a_file_that_changes_once_while_the_run_is_at_work_is_read_as_it_is_now(scene: Scene) -> None:
    """One document, of the last content; nothing is made of what it held in between."""
    last = "# Last\n\nThe kettle was sold.\n"
    assert scene.run("parse", lambda: scene.file.write_text(last, encoding="utf-8")).exit_code == 0
    assert scene.statuses == {"calm.md": "indexed", "sub/restless.md": "indexed"}
    assert "was sold" in scene.said
    assert "shelf" not in scene.said


def test_a_file_that_changes_before_each_reading_is_unstable_and_keeps_its_passages(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report names it with a reason and says that every run tries again; once it rests it is read."""
    read = documents.DocumentStage.read

    def read_after_a_change(self: documents.DocumentStage, *arguments: object) -> object:
        with scene.file.open("a", encoding="utf-8") as stream:
            stream.write("One more line.\n")
        return read(self, *arguments)  # type: ignore[arg-type]  # passes on what it was given

    monkeypatch.setattr(documents.DocumentStage, "read", read_after_a_change)
    report = scene.run()
    assert report.exit_code == 3
    assert [(failure.source, failure.status, failure.reason, failure.retry) for failure in report.failures] == [
        ("sub/restless.md", "unstable", "changed or was not to be opened while it was read, twice", "every run")
    ]
    assert scene.statuses == {"calm.md": "indexed", "sub/restless.md": "unstable"}
    assert "left shelf" in scene.said
    monkeypatch.undo()
    assert scene.run().exit_code == 0
    assert scene.said.count("One more line.") == 2


def test_a_file_that_changes_while_it_is_hashed_is_unstable(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three readings, three contents: no document is made of a mixture, and the old passages stay."""

    def hash_and_change(stream: BinaryIO) -> str:
        found = stream_sha256(stream)
        if os.fstat(stream.fileno()).st_ino == scene.file.stat().st_ino:
            with scene.file.open("ab") as writer:
                writer.write(b"One more line.\n")
        return found

    monkeypatch.setattr(opening, "stream_sha256", hash_and_change)
    report = scene.run()
    assert [(failure.source, failure.status, failure.reason) for failure in report.failures] == [
        ("sub/restless.md", "unstable", "changed each of 3 times while it was read")
    ]
    assert "left shelf" in scene.said
    monkeypatch.undo()
    assert scene.run().exit_code == 0
    assert scene.said.count("One more line.") == 3


def test_a_log_that_grows_during_the_run_is_indexed_as_it_was_at_one_moment(tmp_path: Path) -> None:
    """A writer appends numbered lines without a pause: whatever the run caught of it is lines 1 to n, or nothing."""
    docs = tmp_path / "docs"
    docs.mkdir()
    log = docs / "growing.log"
    stop = threading.Event()

    def write() -> None:
        number = 0
        with log.open("a", encoding="utf-8", buffering=1) as stream:
            while not stop.wait(0.005) and number < 600:
                number += 1
                stream.write(f"Line {number}: all is well at the quay.\n")

    (docs / "calm.md").write_text("# Calm\n\nThe cups hang above the sink.\n", encoding="utf-8")
    log.write_text("", encoding="utf-8")
    index = IndexUnderTest(tmp_path)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        ended = index.run(docs)
    finally:
        stop.set()
        writer.join()
    assert ended.exit_code in (0, 3), ended.stderr
    assert {failure["status"] for failure in ended.json["failures"]} <= {"unstable"}
    numbers = sorted(int(number) for number in re.findall(r"Line (\d+):", index.export()))
    assert numbers == list(range(1, len(numbers) + 1))
    assert index.run(docs).exit_code == 0
    numbers = sorted(int(number) for number in re.findall(r"Line (\d+):", index.export()))
    assert len(numbers) == len(log.read_text(encoding="utf-8").splitlines())


def test_things_that_are_no_files_are_skipped_and_named(tmp_path: Path) -> None:
    """Pipes and sockets are not opened, links not followed; where they are allowed they lead nowhere but into roots."""
    docs = tmp_path / "docs"
    (docs / "real").mkdir(parents=True)
    (docs / "real" / "a.md").write_text("# A\n\nThe bell rings at six.\n", encoding="utf-8")
    (tmp_path / "outside.md").write_text(SECRET, encoding="utf-8")
    os.mkfifo(docs / "pipe.md")
    with socket.socket(socket.AF_UNIX) as server:
        folder = os.open(docs, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{folder}/socket.md")
        os.close(folder)
    (docs / "loop").symlink_to("loop")
    (docs / "up").symlink_to("..")
    (docs / "again.md").symlink_to("real/a.md")
    (docs / "broken.md").symlink_to("nowhere.md")
    (docs / "out.md").symlink_to(tmp_path / "outside.md")
    index = IndexUnderTest(tmp_path)
    assert index.run(docs).exit_code == 0
    entries = index.call("status", "--json").json["sources"]
    assert {entry["source"]: entry.get("rule", entry["status"]) for entry in entries} == {
        "real/a.md": "indexed", "pipe.md": "special", "socket.md": "special", "loop": "broken-symlink",
        "up": "symlink", "again.md": "symlink", "broken.md": "broken-symlink", "out.md": "symlink",
    }  # fmt: skip
    assert all(entry["reason"] for entry in entries if entry["status"] == "skipped")

    assert index.run(docs, options=["--follow-symlinks"]).exit_code == 0
    entries = index.call("status", "--json").json["sources"]
    assert {entry["source"]: entry.get("rule", entry["status"]) for entry in entries} == {
        "real/a.md": "indexed", "pipe.md": "special", "socket.md": "special", "loop": "broken-symlink",
        "up": "link-target", "broken.md": "broken-symlink", "out.md": "link-target",
    }  # fmt: skip
    assert "three turns" not in index.export()
