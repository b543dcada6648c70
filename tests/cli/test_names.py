"""What a file is called costs nothing: names move, double, vanish; passages follow, and go with their last source."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Pristine
from tests.cli.prose import note
from tests.harness import Ended, IndexUnderTest

OTTER = """# The otter under the quay

An otter lives under the east quay of Saltholm. The watch feeds it on herring heads, and nobody tells the inspector.

## Its name

It is called Admiral Brandt, after the man who fell into the harbour in 1911 and was never thanked for it.
"""
QUESTION = "Which animal lives under the east quay of Saltholm?"
HERRING = "The watch feeds it on herring heads"


@pytest.fixture(scope="module")
def made(pristine: Callable[[Callable[[Path], None]], Pristine]) -> Pristine:
    """Six small documents, one of which is about an otter."""

    def write(docs: Path) -> None:
        (docs / "otter.md").write_text(OTTER, encoding="utf-8")
        for number in range(1, 6):
            (docs / f"note-{number}.md").write_text(note(number), encoding="utf-8")

    return pristine(write)


@pytest.fixture
def index(made: Pristine) -> IndexUnderTest:
    """The index as it was after the first run."""
    return made.restore()


@pytest.fixture
def docs(made: Pristine, index: IndexUnderTest) -> Path:
    """Its documents."""
    return made.folder / "docs"


def run(index: IndexUnderTest, docs: Path) -> Ended:
    """Run, and see that nothing was written or embedded."""
    ended = index.run(docs)
    assert ended.exit_code == 0, ended.stderr
    assert ended.json["chunks"]["written"] == 0
    assert ended.json["embeddings"]["computed"] == 0
    return ended


def places(index: IndexUnderTest) -> list[str]:
    """The paths at which the otter is cited: those of the citation and of ``also_at``, in order."""
    found = [passage for passage in index.search(QUESTION)["passages"] if HERRING in passage["text"]]
    assert len(found) <= 1, "one passage is found twice"
    return [citation["path"] for passage in found for citation in (passage["citation"], *passage["also_at"])]


@pytest.mark.parametrize("name", ["beast.md", "animals/otter.md", "Otter.MD", "otter (2) – späte Fassung.md"])
def test_a_renamed_or_moved_file_writes_no_chunk(name: str, index: IndexUnderTest, docs: Path) -> None:
    """Its passages are cited under the new path, and under the new one only."""
    total = index.call("status", "--json").json["index"]["chunks"]
    (docs / name).parent.mkdir(exist_ok=True)
    (docs / "otter.md").rename(docs / name)
    report = run(index, docs).json
    assert (report["sources"]["renamed"], report["sources"]["added"], report["sources"]["removed"]) == (1, 0, 0)
    assert report["chunks"]["relocated"] > 0
    assert (report["chunks"]["removed"], report["chunks"]["total"]) == (0, total)
    assert places(index) == [name]


def test_a_copy_is_cited_beside_the_original_and_outlives_it(index: IndexUnderTest, docs: Path) -> None:
    """One passage, two places; deleting one source keeps the passage, deleting both removes it."""
    total = index.call("status", "--json").json["index"]["chunks"]
    (docs / "copies").mkdir()
    shutil.copyfile(docs / "otter.md", docs / "copies" / "otter.md")
    report = run(index, docs).json
    assert (report["sources"]["added"], report["chunks"]["total"]) == (1, total)
    assert places(index) == ["copies/otter.md", "otter.md"]

    (docs / "otter.md").unlink()
    report = run(index, docs).json
    assert (report["sources"]["removed"], report["chunks"]["removed"]) == (1, 0)
    assert places(index) == ["copies/otter.md"]

    (docs / "copies" / "otter.md").unlink()
    report = run(index, docs).json
    assert (report["sources"]["removed"], report["chunks"]["removed"] > 0) == (1, True)
    assert places(index) == []
    assert "otter" not in index.export()


def test_a_file_that_shrinks_leaves_nothing_of_what_it_lost(index: IndexUnderTest, docs: Path) -> None:
    """The sentence that was deleted is in no passage; the rest of the document still is."""
    (docs / "otter.md").write_text(OTTER.replace(f" {HERRING}, and nobody tells the inspector.", ""), encoding="utf-8")
    ended = index.run(docs)
    assert ended.exit_code == 0
    assert ended.json["sources"]["changed"] == 1
    texts = [passage["text"] for passage in index.search(f"{QUESTION} {HERRING}")["passages"]]
    assert any("Saltholm" in text for text in texts)
    assert not any("herring" in text for text in texts)
    assert "herring" not in index.export()


@pytest.mark.parametrize("content", ["", " \n\n", "---\n***\n"], ids=["no bytes", "white space", "marks only"])
def test_a_file_that_becomes_empty_leaves_nothing(content: str, index: IndexUnderTest, docs: Path) -> None:
    """An empty file is no failure, and has no passage."""
    (docs / "otter.md").write_text(content, encoding="utf-8")
    report = run(index, docs).json
    assert (report["sources"]["changed"], report["sources"]["failed"], report["failures"]) == (1, 0, [])
    assert report["chunks"]["removed"] > 0
    assert places(index) == []
    assert "otter" not in "".join(line for line in index.export().splitlines() if '"chunk"' in line)


def test_files_that_swap_their_contents_write_no_chunk(index: IndexUnderTest, docs: Path) -> None:
    """Each passage is cited at the file that holds it now."""
    first, second = docs / "otter.md", docs / "note-1.md"
    kept = second.read_text(encoding="utf-8")
    second.write_text(OTTER, encoding="utf-8")
    first.write_text(kept, encoding="utf-8")
    report = run(index, docs).json
    assert (report["sources"]["changed"], report["chunks"]["removed"]) == (2, 0)
    assert places(index) == ["note-1.md"]


def test_a_name_taken_over_by_another_file_is_cited_for_the_new_content(index: IndexUnderTest, docs: Path) -> None:
    """A file moves away and another one takes its name: nothing is embedded, nothing is cited where it stood."""
    (docs / "otter.md").rename(docs / "animal.md")
    (docs / "note-2.md").rename(docs / "otter.md")
    report = run(index, docs).json
    assert report["chunks"]["removed"] == 0
    assert places(index) == ["animal.md"]


def test_equal_bytes_under_two_kinds_of_names_are_one_document(
    index: IndexUnderTest, docs: Path, made: Pristine
) -> None:
    """The richer kind decides, in whatever order the names came: the export is that of both at once."""
    shutil.copyfile(docs / "otter.md", docs / "otter.txt")
    run(index, docs)
    assert places(index) == ["otter.md", "otter.txt"]
    from_markdown = index.export()

    (docs / "otter.md").unlink()
    assert index.run(docs).exit_code == 0
    assert places(index) == ["otter.txt"]
    shutil.copyfile(docs / "otter.txt", docs / "otter.md")
    assert index.run(docs).exit_code == 0
    assert index.export() == from_markdown


def test_a_name_that_could_write_to_a_terminal_is_shown_escaped_by_every_command(tmp_path: Path) -> None:
    """Of a root and of a source: colours, line ends and bytes that are no UTF-8; found, failed, and gone."""
    docs = tmp_path / os.fsdecode(b"d\x1b[31mocs\xff")
    docs.mkdir()
    for name in (b"a\x1b[2J.md", b"b\nc.md", b"caf\xe9.md"):
        (docs / os.fsdecode(name)).write_bytes(b"# Otter\n\n" + OTTER.encode() + name.hex().encode())
    (docs / "d\x1b]0;title\x07.txt").write_bytes(b"\x7fELF" + bytes(2_000))
    index = IndexUnderTest(tmp_path)
    ran = index.call("run", str(docs))
    assert ran.exit_code == 3, ran.stderr
    (docs / "b\nc.md").unlink()
    outputs = [ran, index.call("run", str(docs), "--dry-run")]
    outputs += [index.call(*words) for words in (["status"], ["verify"], ["search", QUESTION], ["export"])]
    outputs += [index.call(word, "--json") for word in ("status", "verify")]
    for ended in outputs:
        assert ended.exit_code in (0, 3, 4), ended.stderr
        assert not {letter for letter in ended.stdout + ended.stderr if letter != "\n" and not letter.isprintable()}
    assert "b\\x0ac.md: no longer there" in outputs[3].stdout
    assert "d\\x1b]0;title\\x07.txt" in outputs[2].stdout
    assert "d\\x1b[31mocs\\xff" in outputs[2].stdout
