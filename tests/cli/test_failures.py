"""A file that cannot be ingested is listed with its reason and never stops a run, nor costs anything twice."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Mortal, Pristine
from tests.cli.prose import note
from tests.harness import SAMPLE, Ended, IndexUnderTest

# At this point of a run a document was parsed: a run that dies there has parsed one.
PARSED = "parse:1"


def damaged_pdf() -> bytes:
    """Return the first half of a PDF, without its table of objects and with a torn stream."""
    whole = (SAMPLE / "manuals" / "ticket-machine-guide.pdf").read_bytes()
    return whole[: len(whole) // 20]


BAD = {
    "torn.pdf": damaged_pdf(),
    "no.pdf": b"%PDF-1.7\n" + bytes(range(256)) * 4,
    "program.txt": b"\x7fELF\x02\x01\x01" + bytes(4_000),
    "photo.jpg": b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(range(256)) * 8,
    "huge.txt": b"One sentence of a text that is too long for the limit. " * 400,
}
LIMIT = {"GROUNDED_MAX_TEXT_FILE_BYTES": "20000"}


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> tuple[IndexUnderTest, Path, Ended]:
    """Three good documents among bad ones, ingested once."""
    folder = tmp_path_factory.mktemp("failures")
    docs = folder / "docs"
    docs.mkdir()
    for number in range(3):
        (docs / f"note-{number}.md").write_text(note(number), encoding="utf-8")
    for name, content in BAD.items():
        (docs / name).write_bytes(content)
    (docs / "latin.txt").write_bytes("Der Kapitän grüßt die Fähre; das Café öffnet früh.\n".encode("cp1252"))
    index = IndexUnderTest(folder)
    return index, docs, index.run(docs, **LIMIT)


def by_source(ended: Ended) -> dict[str, dict[str, str]]:
    """The failures of a run by source."""
    return {failure["source"]: failure for failure in ended.json["failures"]}


def test_bad_files_are_listed_with_their_reasons_and_the_rest_is_ingested(
    bad: tuple[IndexUnderTest, Path, Ended],
) -> None:
    """Exit 3; each failure says what is wrong and when it is tried again; a text in an old encoding is none."""
    _, _, ended = bad
    assert ended.exit_code == 3
    found = by_source(ended)
    assert sorted(found) == sorted(BAD)
    assert ended.json["sources"]["failed"] == len(BAD)
    assert ended.json["outcome"] == "done"
    assert ended.json["chunks"]["written"] >= 4
    assert {name: failure["status"] for name, failure in found.items()} == {
        "torn.pdf": "damaged",
        "no.pdf": "damaged",
        "program.txt": "binary",
        "photo.jpg": "unsupported",
        "huge.txt": "too_large",
    }
    for failure in found.values():
        assert set(failure) == {"source", "root", "status", "reason", "retry"}
        assert failure["reason"]
        assert failure["retry"].startswith("when the file")


def test_an_old_encoding_is_read_as_what_it_is(bad: tuple[IndexUnderTest, Path, Ended]) -> None:
    """Umlauts of a Windows text are found as umlauts."""
    assert "Der Kapitän grüßt die Fähre" in bad[0].export()


def test_a_second_run_does_not_try_again(bad: tuple[IndexUnderTest, Path, Ended]) -> None:
    """It lists the same failures and exits 3 again, though it parses nothing: at the first parse it would be killed."""
    index, docs, first = bad
    second = index.run(docs, GROUNDED_FAILPOINT=PARSED, **LIMIT)
    assert second.exit_code == 3
    assert second.json["failures"] == first.json["failures"]
    assert second.json["published"] is False
    assert second.json["sources"]["unchanged"] == second.json["sources"]["seen"]


def test_status_and_search_say_what_is_lacking(bad: tuple[IndexUnderTest, Path, Ended]) -> None:
    """So that "no match" is not read as "not there"."""
    index, _, first = bad
    assert index.call("status", "--json").json["failures"] == first.json["failures"]
    assert index.search("Which sentence is too long?")["index"]["sources_failed"] == len(BAD)


def test_one_file_that_changed_is_tried_alone(bad: tuple[IndexUnderTest, Path, Ended]) -> None:
    """The mended file is ingested; the other failures stay as they are, unread."""
    index, docs, _ = bad
    (docs / "torn.pdf").write_bytes((SAMPLE / "manuals" / "ticket-machine-guide.pdf").read_bytes())
    killed = index.run(docs, GROUNDED_FAILPOINT="parse:2", **LIMIT)
    assert killed.exit_code == 3, "a second document was parsed"
    assert sorted(by_source(killed)) == sorted(BAD.keys() - {"torn.pdf"})
    assert (killed.json["sources"]["changed"], killed.json["published"]) == (1, True)


def test_a_raised_limit_tries_again(bad: tuple[IndexUnderTest, Path, Ended]) -> None:
    """The file that was too large is read as soon as the limit allows it, though its bytes are the same."""
    index, docs, _ = bad
    ended = index.run(docs)
    assert "huge.txt" not in by_source(ended)
    assert ended.json["published"] is True
    assert "too long for the limit" in index.export()
    again = index.run(docs, GROUNDED_FAILPOINT=PARSED)
    assert (again.exit_code, again.json["published"]) == (3, False)


def test_a_document_that_breaks_keeps_no_passage(
    tmp_path: Path, pristine: Callable[[Callable[[Path], None]], Pristine]
) -> None:
    """A good file overwritten by bytes that cannot be read loses its passages, and says so."""

    def write(docs: Path) -> None:
        for number in range(2):
            (docs / f"note-{number}.md").write_text(note(number), encoding="utf-8")

    made = pristine(write)
    docs = made.folder / "docs"
    (docs / "note-1.md").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(4_000))
    ended = made.index.run(docs)
    assert ended.exit_code == 3
    assert list(by_source(ended)) == ["note-1.md"]
    assert "# Note 1" not in made.index.export()
    assert "# Note 0" in made.index.export()


def test_an_unreadable_new_file_is_a_failure_that_heals(mortal: Mortal) -> None:
    """Permission is asked for again in every run, and what was refused is ingested once it is granted."""
    docs = mortal.folder / "docs"
    docs.mkdir()
    for number in range(2):
        (docs / f"note-{number}.md").write_text(note(number), encoding="utf-8")
    (docs / "note-1.md").chmod(0)
    ended = mortal.run(docs)
    assert ended.exit_code == 3
    assert [(failure["source"], failure["status"]) for failure in ended.json["failures"]] == [
        ("note-1.md", "unreadable")
    ]
    assert ended.json["chunks"]["total"] == 1
    (docs / "note-1.md").chmod(0o600)
    healed = mortal.run(docs)
    assert (healed.exit_code, healed.json["chunks"]["total"]) == (0, 2)


def test_a_copy_of_a_document_with_too_long_a_text_has_its_reason(tmp_path: Path) -> None:
    """The status is the document's, found when the first of its sources was read, and so is what is said of it."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "long.md").write_text(note(1) * 20, encoding="utf-8")
    index = IndexUnderTest(tmp_path)
    limit = {"GROUNDED_MAX_DOCUMENT_CHARS": "2000"}
    first = by_source(index.run(docs, **limit))["long.md"]
    assert "characters of text, over 2000" in first["reason"]
    (docs / "copy.md").write_bytes((docs / "long.md").read_bytes())
    found = by_source(index.run(docs, **limit))
    assert found["copy.md"] | {"source": "long.md"} == found["long.md"] == first
