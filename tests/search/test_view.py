"""A private view of an index: it follows what is published and repaired, and keeps an answer when it cannot."""

import errno
import logging
import os
import shutil
from pathlib import Path

import pytest

from search import sparse_copy
from search.errors import IndexDamaged, NotEnoughSpace
from search.generation import IndexLayout
from search.sparse_copy import copy_file
from search.view import ViewReader
from tests.fakes import FakeEmbedder, Place, point, publish_generation

EMBEDDER = FakeEmbedder()
LEAVE = point(EMBEDDER, "Carry-over of leave is capped at five days.", Place("hr/leave.md"))
BOATS = point(EMBEDDER, "The booking page for the rowing boats opens at eight.", Place("club/boats.md"))


@pytest.fixture
def layout(tmp_path: Path) -> IndexLayout:
    """An index of one generation."""
    return publish_generation(tmp_path / "g", [LEAVE])


def full(*_: object) -> int:
    """What the system says of a full disk."""
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_generation_that_was_repaired_is_copied_again(layout: IndexLayout, tmp_path: Path) -> None:
    """Its name stays: a view that goes by names would keep the damaged copy until its process ends."""
    reader = ViewReader(layout, tmp_path / "view")
    whole = tmp_path / "whole"
    shutil.copytree(layout.generation("000001"), whole)
    damaged = next(path for path in layout.generation("000001").rglob("*.dat") if path.stat().st_size)
    os.truncate(damaged, 0)
    with pytest.raises(IndexDamaged):
        reader.snapshot()
    shutil.rmtree(layout.generation("000001"))
    whole.rename(layout.generation("000001"))
    assert set(reader.snapshot().fetch([LEAVE.chunk_id])) == {LEAVE.chunk_id}
    reader.close()


def test_a_view_without_room_for_the_next_generation_keeps_the_one_it_has(
    layout: IndexLayout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With a warning; where it has none yet, it says that there is no room, and not that the index is damaged."""
    reader, other = ViewReader(layout, tmp_path / "view"), ViewReader(layout, tmp_path / "other")
    assert reader.snapshot().generation == "000001"
    publish_generation(tmp_path / "g", [BOATS], revision=2)
    with monkeypatch.context() as patched:
        patched.setattr(sparse_copy, "_copy_range", full)
        with caplog.at_level(logging.WARNING, "search.view"):
            assert reader.snapshot().generation == "000001"
        assert "view.refused generation=000002" in caplog.text
        with pytest.raises(NotEnoughSpace, match="no room"):
            other.snapshot()
    assert reader.snapshot().generation == other.snapshot().generation == "000002"
    reader.close()
    other.close()


def test_a_generation_collected_while_it_is_copied_costs_no_answer(
    layout: IndexLayout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``CURRENT`` names the next one by then."""
    gone = layout.generation("000001")

    def collected(*_: object) -> int:
        monkeypatch.undo()
        publish_generation(tmp_path / "g", [BOATS], revision=2)
        shutil.rmtree(gone, ignore_errors=True)
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(sparse_copy, "_copy_range", collected)
    reader = ViewReader(layout, tmp_path / "view")
    assert reader.snapshot().generation == "000002"
    reader.close()


def test_a_file_that_ends_before_its_size_is_not_copied_as_a_hole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It became shorter meanwhile: zeros in its place would be read as data."""
    source = tmp_path / "source"
    source.write_bytes(b"data" * 4096)
    truncate = os.ftruncate

    def meanwhile(descriptor: int, size: int) -> None:
        truncate(descriptor, size)
        os.truncate(source, 0)

    monkeypatch.setattr(os, "ftruncate", meanwhile)
    monkeypatch.setattr(os, "lseek", lambda _, position, how: position if how == os.SEEK_DATA else 16384)
    with pytest.raises(OSError, match="became shorter"):
        copy_file(str(source), tmp_path / "copy")
