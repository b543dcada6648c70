"""The disk fills up: before a run, and while its builder writes. One error, the old state, and no trace afterwards.

The index lies on a small file system of its own, which the test mounts: ext4 in a file, which fills up at the sync, and
tmpfs, where holes that are read take space; where that is not allowed the tests are skipped and say so. How much a run
needs is measured on an undisturbed one, and every run below gets a share of it, so that the catalog, the clone, the
points, the optimizer and the manifest each meet the end of the disk.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness import Ended, ending

from .processes import end, frozen_builder, go_on, has_all_its_input, until
from .scene import AFTER, BEFORE, FRUGAL, Answer, Scene

pytestmark = [pytest.mark.slow, pytest.mark.model, pytest.mark.invariant("I5")]

# Three generations of the smallest kind; one takes half a megabyte on ext4, and 56 on tmpfs, holes and all.
DISK_BYTES = {"ext4": 16 * 2**20, "tmpfs": 256 * 2**20}
# That of usual disks: where blocks are smaller than pages, SQLite's shared memory is no proof against a full disk.
BLOCK = 4096
# Shares of what a run needs, in percent. What it needs differs a little from run to run; with these it cannot end well.
SHARES = (0, 25, 50, 75)
# Has the run begin though little is free, so that the disk fills under its hands.
NO_MARGIN = {"GROUNDED_FREE_SPACE_MARGIN_BYTES": "0"}

# Only there: on a full tmpfs the engine's maps of files with holes end the process that reads them, readers included.
ON_EXT4 = pytest.mark.parametrize("disk", ["ext4"], indirect=True)


@dataclass(frozen=True)
class Disk:
    """The mounted file system with the index on it; what runs need of it, and what they come to."""

    kind: str
    place: Path
    scene: Scene
    first_bytes: int
    first_export: str
    first_answer: Answer
    edit_bytes: int
    edit_export: str
    edit_answer: Answer

    @property
    def free_bytes(self) -> int:
        """What can still be written."""
        return free_bytes(self.place)

    @property
    def filler(self) -> Path:
        """The file that takes the rest."""
        return self.place / "filler"

    def leave(self, size_bytes: int) -> None:
        """Fill the disk but for so many bytes; where the file system needs some for itself, for fewer."""
        self.free()
        step = DISK_BYTES[self.kind]
        with self.filler.open("wb") as file:
            end = 0
            while step >= BLOCK and self.free_bytes > size_bytes:
                step = max(min(step, self.free_bytes - size_bytes), BLOCK)
                try:
                    os.posix_fallocate(file.fileno(), end, step)
                    end += step
                except OSError:  # some of what is free holds the file's own extents
                    step //= 2

    def free(self) -> None:
        """Take the filler away."""
        self.filler.unlink(missing_ok=True)


@pytest.fixture(scope="module", params=list(DISK_BYTES))
def disk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    """Mount a small disk and measure both kinds of run on it."""
    folder = tmp_path_factory.mktemp("full")
    place = folder / "disk"
    mount(request.param, place)
    try:
        scene = Scene(folder, "disk/index")
        scene.write(BEFORE)
        first_bytes, first_export, first_answer = most_bytes(scene, place), scene.export(), scene.answer()
        scene.save()
        scene.write(AFTER)
        edit_bytes, edit_export = most_bytes(scene, place, of_the_builder=True), scene.export()
        edit_answer = scene.answer()
        yield Disk(
            request.param, place, scene, first_bytes, first_export, first_answer, edit_bytes, edit_export, edit_answer
        )
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def unpublished(disk: Disk) -> Disk:
    """No index yet."""
    disk.free()
    disk.scene.clear()
    disk.scene.write(BEFORE)
    return disk


@pytest.fixture
def edited(disk: Disk) -> Disk:
    """An index of the first state; the folder in its second."""
    disk.free()
    disk.scene.put_back()
    disk.scene.write(AFTER)
    return disk


@pytest.mark.parametrize("share", SHARES)
def test_a_first_run_on_a_disk_that_fills_up(share: int, unpublished: Disk) -> None:
    """It says that the disk is full and what to do; with space it ends as if nothing had happened."""
    unpublished.leave(unpublished.first_bytes * share // 100)
    assert_says_full(unpublished.scene.index.run(unpublished.scene.docs, **FRUGAL, **NO_MARGIN))
    unpublished.free()
    unpublished.scene.run(**NO_MARGIN)
    assert unpublished.scene.export() == unpublished.first_export
    assert unpublished.scene.problems() == []


@ON_EXT4
@pytest.mark.parametrize("share", SHARES)
def test_an_edit_on_a_disk_that_fills_up_while_the_builder_writes(share: int, edited: Disk) -> None:
    """Open readers go on answering from the old generation; with space the next run ends as if nothing had happened."""
    scene, held = edited.scene, edited.scene.snapshot()
    files = scene.index.generations()
    with ending(scene.index.start("run", str(scene.docs), "--json", **FRUGAL, **NO_MARGIN)) as process:
        builder = frozen_builder(process)
        # The run has looked at the free space, and has told the builder all it has to do.
        until(lambda: has_all_its_input(builder, process.pid), process)
        edited.leave(edited.edit_bytes * share // 100)
        go_on(builder)
        assert_says_full(end(process))
    assert scene.answer(held) == edited.first_answer
    edited.free()
    # Where the disk was full only after the commit, what was published is the new state: whole, like the old one.
    assert scene.answer() in (edited.first_answer, edited.edit_answer)
    assert scene.export() in (edited.first_export, edited.edit_export)
    assert scene.published_files().items() >= files.items()
    scene.run(**NO_MARGIN)
    assert scene.export() == edited.edit_export
    assert scene.problems() == []


@ON_EXT4
@pytest.mark.parametrize("free", [0, 4096, 40_960, 122_880])
def test_an_edit_on_a_disk_that_is_full_before_it_begins(free: int, edited: Disk) -> None:
    """It says so whether or not the catalog could still be written, and open readers go on answering."""
    held = edited.scene.snapshot()
    edited.leave(free)
    assert_says_full(edited.scene.index.run(edited.scene.docs, **FRUGAL, **NO_MARGIN))
    assert edited.scene.answer(held) == edited.first_answer
    edited.free()
    edited.scene.run(**NO_MARGIN)
    assert edited.scene.export() == edited.edit_export


@ON_EXT4
def test_too_little_space_is_refused_before_anything_is_published(edited: Disk) -> None:
    """Without the usual margin the run names what is free and what it needs; the generations are untouched."""
    before = edited.scene.index.generations()
    failure = assert_says_full(edited.scene.index.run(edited.scene.docs, **FRUGAL))
    assert "MB free" in failure["message"]
    assert "Nothing was changed" in failure["message"]
    assert edited.scene.index.generations() == before
    assert edited.scene.export() == edited.first_export


def test_looking_at_the_catalog_of_a_full_disk_says_so_or_works(edited: Disk) -> None:
    """SQLite shares 32 KB between all that have the catalog open; where they have no room it is no damage."""
    edited.leave(0)
    assert edited.free_bytes == 0
    for words in (("status",), ("export",), ("verify",), ("runs",)):
        ended = edited.scene.index.call(*words, "--json", **FRUGAL)
        if ended.exit_code not in (0, 4):  # 4: the folder has changed since it was ingested
            assert_says_full(ended)


def mount(kind: str, place: Path) -> None:
    """Make a small file system and mount it, or skip with the reason."""
    place.mkdir()
    image, size = place.with_suffix(".image"), DISK_BYTES[kind]
    commands = {
        "tmpfs": [["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)]],
        "ext4": [
            ["mkfs.ext4", "-q", "-b", str(BLOCK), "-m", "0", str(image)],
            ["mount", "-o", "loop", str(image), str(place)],
        ],
    }[kind]
    with image.open("wb") as file:
        file.truncate(size)
    for command in commands:
        if shutil.which(command[0]) is None:
            pytest.skip(f"known gap: no disk to fill, {command[0]} is not installed here")
        done = subprocess.run(command, capture_output=True, encoding="utf-8")
        if done.returncode != 0:
            pytest.skip(f"known gap: no disk to fill, {command[0]} is refused here ({done.stderr.strip()})")


def assert_says_full(ended: Ended) -> dict[str, str]:
    """Make sure that a run ended with the one error of a full disk, and return it."""
    assert ended.exit_code == 1, ended
    failure: dict[str, str] = json.loads(ended.stderr.splitlines()[-1])
    assert failure["kind"] == "not_enough_space", failure
    assert "free some space and run again" in failure["message"].lower()
    return failure


def free_bytes(place: Path) -> int:
    """Return what can still be written to a file system."""
    state = os.statvfs(place)
    return state.f_bavail * state.f_frsize


def most_bytes(scene: Scene, place: Path, *, of_the_builder: bool = False) -> int:
    """Run without a fault, and return the most that it wrote, all told or from the moment that the builder began."""
    with ending(scene.index.start("run", str(scene.docs), "--json", **FRUGAL, **NO_MARGIN)) as process:
        before = least = free_bytes(place)
        if of_the_builder:
            builder = frozen_builder(process)
            until(lambda: has_all_its_input(builder, process.pid), process)
            before = free_bytes(place)
            go_on(builder)
        while process.poll() is None:
            least = min(least, free_bytes(place))
        ended = end(process)
    assert ended.exit_code == 0, ended.stderr
    return before - least
