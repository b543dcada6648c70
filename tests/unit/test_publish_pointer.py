"""``CURRENT`` and the folders around it: rolled forward, cleared, collected, and never half (I1)."""

import shutil
from pathlib import Path

import pytest

from ingest.failpoints import Failpoints
from ingest.publish.clone import allocated_bytes
from ingest.publish.durable import replace_file
from ingest.publish.pointer import collect, next_revision, point, recover
from search.errors import IndexDamaged
from search.generation import IndexLayout, generation_name
from search.sparse_copy import copy_folder


@pytest.fixture
def layout(tmp_path: Path) -> IndexLayout:
    """An index with three complete generations; ``CURRENT`` names the third."""
    made = IndexLayout(tmp_path)
    for revision in (1, 2, 3):
        folder = made.generation(generation_name(revision))
        folder.mkdir(parents=True)
        (folder / "data").write_text(str(revision), encoding="ascii")
    point(made, 3)
    return made


def generations(layout: IndexLayout) -> list[str]:
    """The names of the folders that are there."""
    return sorted(path.name for path in layout.generations.iterdir())


@pytest.mark.invariant("I5")
def test_a_commit_that_readers_were_not_told_of_is_rolled_forward(layout: IndexLayout) -> None:
    """The catalog is at 3, the pointer still at 2: readers are told now."""
    point(layout, 2)
    recover(layout, 3)
    assert layout.current() == "000003"
    assert generations(layout) == ["000001", "000002", "000003"]


@pytest.mark.invariant("I5")
def test_a_generation_that_was_not_committed_goes(layout: IndexLayout) -> None:
    """It was built and named, but its transaction never committed: nobody may ever see it."""
    recover(layout, 2)
    assert layout.current() == "000002"
    assert generations(layout) == ["000001", "000002"]


@pytest.mark.invariant("I1")
def test_half_made_generations_and_trash_go(layout: IndexLayout) -> None:
    """What a killed builder or a killed collection left; running again changes nothing more."""
    (layout.generations / "000004.partial" / "deep").mkdir(parents=True)
    (layout.trash / "000001").mkdir(parents=True)
    for _ in range(2):
        recover(layout, 3)
        assert generations(layout) == ["000001", "000002", "000003"]
        assert list(layout.trash.iterdir()) == []


@pytest.mark.parametrize("pointer", [None, "", "nonsense\n", "../../etc\n"])
def test_a_lost_or_senseless_pointer_is_written_anew(pointer: str | None, layout: IndexLayout) -> None:
    """The catalog knows what it names."""
    layout.pointer.unlink()
    if pointer is not None:
        layout.pointer.write_text(pointer, encoding="ascii")
    recover(layout, 3)
    assert layout.current() == "000003"


def test_a_missing_generation_is_damage_that_repair_heals(layout: IndexLayout) -> None:
    """Going on would clone from nothing; the message names the command."""
    shutil.rmtree(layout.generation("000003"))
    with pytest.raises(IndexDamaged, match="ingest repair"):
        recover(layout, 3)


def test_under_a_new_catalog_generations_stay_for_their_readers(layout: IndexLayout) -> None:
    """They are answered from until the first publish, whose number is above all of theirs."""
    recover(layout, 0)
    assert layout.current() == "000003"
    assert next_revision(layout, 0) == 4


@pytest.mark.parametrize(("published", "expected"), [(0, 4), (3, 4), (9, 10)])
def test_a_revision_is_above_all_there_is(published: int, expected: int, layout: IndexLayout) -> None:
    """So that no folder of another content ever gets a name that a reader may know."""
    assert next_revision(layout, published) == expected


def test_the_newest_two_generations_stay(layout: IndexLayout) -> None:
    """A reader that has just read the pointer may still be opening the one before."""
    collect(layout, Failpoints())
    assert generations(layout) == ["000002", "000003"]
    assert list(layout.trash.iterdir()) == []


def test_a_replaced_file_is_the_old_one_or_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the rename fails, the old content stands."""
    path = tmp_path / "CURRENT"
    replace_file(path, b"old")

    def refuse(self: Path, target: Path) -> Path:
        raise OSError("no")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="no"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"


def test_a_clone_has_the_bytes_and_the_holes_of_its_source(tmp_path: Path) -> None:
    """Preallocated files of the engine stay as small on the disk as they are; its abandoned folder is left out."""
    source = tmp_path / "source"
    (source / "in").mkdir(parents=True)
    (source / "temp_segments").mkdir()
    with (source / "in" / "sparse").open("wb") as stream:
        stream.write(b"head" * 1024)
        stream.seek(64 << 20)
        stream.write(b"tail")
        stream.truncate(96 << 20)
    (source / "empty").touch()
    copy_folder(source, tmp_path / "copy")
    copy = tmp_path / "copy"
    assert sorted(str(path.relative_to(copy)) for path in copy.rglob("*")) == ["empty", "in", "in/sparse"]
    assert (copy / "in" / "sparse").stat().st_size == 96 << 20
    assert allocated_bytes(copy) <= allocated_bytes(source) + (1 << 20)
    with (source / "in" / "sparse").open("rb") as one, (copy / "in" / "sparse").open("rb") as other:
        for offset in (0, 4096, 64 << 20, (96 << 20) - 4):
            one.seek(offset)
            other.seek(offset)
            assert one.read(8) == other.read(8)
