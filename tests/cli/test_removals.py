"""Removing needs evidence (I6): what a run could not see stays, and what looks like an accident waits for a word."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Mortal, Pristine
from tests.cli.prose import note
from tests.harness import IndexUnderTest

# More than the 20 and 30 % of the guard can go missing from it.
SOURCES = 30


def write_notes(folder: Path, numbers: range) -> None:
    """One small document per number."""
    folder.mkdir(exist_ok=True)
    for number in numbers:
        (folder / f"note-{number:02}.md").write_text(note(number), encoding="utf-8")


@pytest.fixture(scope="module")
def made(pristine: Callable[[Callable[[Path], None]], Pristine]) -> Pristine:
    """Thirty small documents in one root, five of them in a folder of their own."""

    def write(docs: Path) -> None:
        write_notes(docs, range(SOURCES - 5))
        write_notes(docs / "inner", range(SOURCES - 5, SOURCES))

    return pristine(write)


@pytest.fixture
def index(made: Pristine) -> IndexUnderTest:
    """The index as it was after the first run."""
    return made.restore()


@pytest.fixture
def docs(made: Pristine, index: IndexUnderTest) -> Path:
    """Its documents."""
    return made.folder / "docs"


def delete(docs: Path, count: int) -> None:
    """Delete the first files of a root."""
    for path in sorted(docs.glob("*.md"))[:count]:
        path.unlink()


def chunks(index: IndexUnderTest) -> int:
    """How many chunks the index holds."""
    return int(index.call("status", "--json").json["index"]["chunks"])


@pytest.mark.invariant("I6")
def test_single_deletes_are_carried_out(index: IndexUnderTest, docs: Path) -> None:
    """Twenty of thirty may go without a word: the guard asks for more than 20, and for more than 30 %."""
    delete(docs, 20)
    ended = index.run(docs)
    assert ended.exit_code == 0
    assert (ended.json["sources"]["removed"], ended.json["sources"]["withheld"]) == (20, 0)
    assert chunks(index) == ended.json["chunks"]["total"] == SOURCES - 20


@pytest.mark.invariant("I6")
def test_many_removals_are_withheld_until_they_are_confirmed(index: IndexUnderTest, docs: Path) -> None:
    """The rest applies, exit 5 and the message name the flag; one confirmation too few removes nothing, enough all."""
    delete(docs, 21)
    (docs / "news.md").write_text("# News\n\nThe new pier was opened by the otter.\n", encoding="utf-8")
    ended = index.run(docs)
    assert ended.exit_code == 5
    sources = ended.json["sources"]
    assert (sources["added"], sources["removed"], sources["withheld"]) == (1, 0, 21)
    (withheld,) = ended.json["withheld"]
    assert (withheld["root"], withheld["reason"], withheld["count"], withheld["total"]) == ("docs", "share", 21, 30)
    assert "--allow-removals 21" in withheld["message"]
    assert ended.json["messages"] == [withheld["message"]]
    assert chunks(index) == SOURCES + 1
    assert index.search("Who opened the new pier?")["index"]["removals_withheld"] == 21

    again = index.run(docs)
    assert (again.exit_code, again.json["published"], again.json["sources"]["withheld"]) == (5, False, 21)

    below = index.run(docs, options=["--allow-removals", "20"])
    assert (below.exit_code, below.json["sources"]["removed"], below.json["withheld"][0]["reason"]) == (5, 0, "ceiling")

    enough = index.run(docs, options=["--allow-removals", "21"])
    assert (enough.exit_code, enough.json["sources"]["removed"], enough.json["sources"]["withheld"]) == (0, 21, 0)
    assert chunks(index) == SOURCES - 21 + 1
    assert index.verify(full=False)["ok"]


def test_the_command_that_a_refusal_names_does_what_it_says(index: IndexUnderTest, docs: Path) -> None:
    """Copied from the message, word for word, it removes what was withheld."""
    delete(docs, 22)
    message = index.run(docs).json["messages"][0]
    words = message.split("run: ingest ", 1)[1].split()
    ended = index.call(*words, "--json")
    assert (ended.exit_code, ended.json["sources"]["removed"]) == (0, 22)


def test_withheld_sources_that_come_back_are_no_longer_withheld(index: IndexUnderTest, docs: Path) -> None:
    """Nothing is embedded for them, and the export is that of before."""
    export = index.export()
    kept = {path: path.read_bytes() for path in docs.glob("*.md")}
    delete(docs, 25)
    assert index.run(docs).exit_code == 5
    assert index.export() != export
    for path, content in kept.items():
        path.write_bytes(content)
    ended = index.run(docs)
    assert ended.exit_code == 0
    assert (ended.json["sources"]["withheld"], ended.json["embeddings"]["computed"]) == (0, 0)
    assert index.export() == export


def test_the_limits_of_the_guard_are_settings(index: IndexUnderTest, docs: Path) -> None:
    """A small root can be guarded as well; ``--allow-removals all`` confirms any number."""
    delete(docs, 12)
    assert index.run(docs, GROUNDED_GUARD_SOURCES="5").exit_code == 5
    assert (
        index.run(docs, GROUNDED_GUARD_SOURCES="5", options=["--allow-removals", "all"]).json["sources"]["removed"]
        == 12
    )


@pytest.mark.invariant("I6")
def test_an_empty_mount_removes_nothing(index: IndexUnderTest, docs: Path) -> None:
    """A root that is there but holds no source at all looks like a disk that is not mounted."""
    shutil.rmtree(docs)
    docs.mkdir()
    ended = index.run(docs)
    assert ended.exit_code == 5
    assert (ended.json["sources"]["removed"], ended.json["withheld"][0]["reason"]) == (0, "empty")
    assert "is it mounted?" in ended.json["messages"][0]
    assert chunks(index) == SOURCES


@pytest.mark.invariant("I6")
def test_a_missing_root_removes_nothing(index: IndexUnderTest, docs: Path) -> None:
    """It is listed as a failure; other roots of the same run are read."""
    export = index.export()
    docs.rename(docs.with_name("elsewhere"))
    ended = index.run(docs)
    assert ended.exit_code == 3
    (failure,) = ended.json["failures"]
    assert (failure["source"], failure["status"]) == (str(docs), "unreadable")
    assert ended.json["sources"]["removed"] == 0
    assert ended.json["published"] is False
    assert index.export() == export

    other = docs.with_name("other")
    write_notes(other, range(90, 91))
    both = index.run(docs, other)
    assert (both.exit_code, both.json["sources"]["added"], both.json["sources"]["removed"]) == (3, 1, 0)


def test_a_missing_root_makes_no_index(tmp_path: Path) -> None:
    """A typing error is a usage error at first, not an empty index."""
    index = IndexUnderTest(tmp_path)
    ended = index.run(tmp_path / "dcos")
    assert ended.exit_code == 2
    assert not index.home.exists()


@pytest.mark.invariant("I6")
def test_what_cannot_be_read_keeps_its_passages(mortal: Mortal) -> None:
    """An unreadable root, folder or file removes nothing, is named with its reason, and heals by itself."""
    docs = mortal.folder / "docs"
    write_notes(docs, range(2))
    write_notes(docs / "inner", range(2, 4))
    assert mortal.run(docs).exit_code == 0
    export = mortal.export()

    for path in (docs, docs / "inner", docs / "inner" / "note-02.md"):
        path.chmod(0)
        ended = mortal.run(docs)
        path.chmod(0o700)
        assert ended.exit_code == 3, path
        assert ended.json["sources"]["removed"] == ended.json["chunks"]["removed"] == 0
        told = [*ended.json["failures"], *ended.json["unobserved"]]
        assert any("ermission denied" in entry["reason"] for entry in told), told
        assert chunks(mortal) == 4

        healed = mortal.run(docs)
        assert (healed.exit_code, healed.json["embeddings"]["computed"]) == (0, 0), healed.stdout
        assert mortal.export() == export


@pytest.mark.invariant("I6")
def test_an_unreadable_folder_shields_only_what_is_in_it(mortal: Mortal) -> None:
    """Files deleted beside it are removed in the same run."""
    docs = mortal.folder / "docs"
    write_notes(docs, range(2))
    write_notes(docs / "inner", range(2, 4))
    assert mortal.run(docs).exit_code == 0
    (docs / "note-00.md").unlink()
    (docs / "inner").chmod(0)
    ended = mortal.run(docs)
    assert (ended.exit_code, ended.json["sources"]["removed"]) == (3, 1)
    (kept,) = ended.json["unobserved"]
    assert (kept["root"], kept["shown"], kept["reason"], kept["rows"]) == (
        "docs", "inner", "EACCES: Permission denied", 2,
    )  # fmt: skip
