"""From question to cited passages, over a small real generation and the fake embedder."""

import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.shard import PointRecord
from search.edge import EdgeReader
from search.errors import IndexMissing, RecipeMismatch, UsageError
from search.generation import IndexLayout
from search.lookup import Lookup, clean
from search.store import Where
from tests.fakes import FakeEmbedder, Place, fake_recipe, ids, point, publish_generation

EMBEDDER = FakeEmbedder()
NOTES = [
    point(
        EMBEDDER,
        f"Version 2.{n}.0: small faults in the booking page were mended, and it opens sooner on old machines.",
        Place(f"notes/2.{n}.0.md"),
        context=f"Release {n}",
    )
    for n in range(60)
]
LEAVE = point(
    EMBEDDER,
    "Carry-over of leave is capped at five days.",
    Place("hr/leave.md", char_start=90),
    Place("hr/leave.md", char_start=7),
    *(Place(f"copies/{n}.md") for n in range(6)),
)
BOOKING = point(EMBEDDER, "The booking page for the rowing boats opens at eight.", Place("boats.md", root="club"))


def lookup_over(home: Path, points: Iterable[PointRecord], embedder: FakeEmbedder = EMBEDDER) -> Lookup:
    """A lookup without a floor over a generation of ``points``."""
    return Lookup(EdgeReader(publish_generation(home, points)), lambda _: embedder, floor=0.0)


@pytest.fixture(scope="module")
def lookup(tmp_path_factory: pytest.TempPathFactory) -> Lookup:
    """Sixty release notes, a passage with eight places, and one more."""
    return lookup_over(tmp_path_factory.mktemp("index"), [*NOTES, LEAVE, BOOKING])


def test_the_passage_that_answers_comes_first_with_its_citation(lookup: Lookup) -> None:
    """Generation, completeness and the text stand beside it."""
    result = lookup.lookup("How many days of leave may be carried over?")
    assert result.status == "ok"
    assert result.generation == "000001"
    assert result.completeness.sources_failed == 1
    first = result.passages[0]
    assert (first.ref, first.chunk_id, first.text) == (1, LEAVE.chunk_id, LEAVE.payload["text"])
    assert 0.0 < first.score <= 1.0


def test_the_citation_is_the_first_place_and_four_more_are_listed(lookup: Lookup) -> None:
    """By root, path and position; the rest is counted."""
    passage = lookup.lookup("carry-over of leave").passages[0]
    places = [(citation.path, citation.char_start) for citation in (passage.citation, *passage.also_at)]
    assert places == [(f"copies/{n}.md", 0) for n in range(5)]
    assert passage.more_locations == 3


def test_under_a_path_only_places_under_it_are_cited(lookup: Lookup) -> None:
    """The first place under the path is the citation; copies elsewhere are neither listed nor counted."""
    result = lookup.lookup("carry-over of leave", where=Where(path="hr/"))
    passage = result.passages[0]
    assert [(c.path, c.char_start) for c in (passage.citation, *passage.also_at)] == [
        ("hr/leave.md", 7),
        ("hr/leave.md", 90),
    ]
    assert passage.more_locations == 0
    assert len(result.passages) == 1


def test_a_root_and_a_path_must_meet_in_one_place(tmp_path: Path) -> None:
    """A passage in one root's a.md and another root's b.md does not stand in the first one's b.md."""
    both = point(EMBEDDER, "Carry-over of leave.", Place("a.md", root="one"), Place("b.md", root="two"))
    lookup = lookup_over(tmp_path, [both])
    assert lookup.lookup("leave", where=Where(root="two", path="b.md")).status == "ok"
    assert lookup.lookup("leave", where=Where(root="one", path="b.md")).status == "no_match"


def test_near_equal_passages_do_not_push_the_answer_out(lookup: Lookup) -> None:
    """Sixty release notes are one passage that names its other places; the next distinct one moves up."""
    result = lookup.lookup("booking page opens", limit=3)
    texts = [passage.text for passage in result.passages]
    assert BOOKING.payload["text"] in texts
    notes = next(passage for passage in result.passages if passage.text.startswith("Version"))
    assert len(notes.also_at) == 4
    assert len(notes.collapsed) == notes.more_locations + 4
    assert {*notes.collapsed, notes.chunk_id} <= ids(NOTES)


@pytest.mark.parametrize("number", [7, 23, 42])
def test_a_question_about_one_version_finds_that_version(lookup: Lookup, number: int) -> None:
    """Collapsing never hides the best-ranked of a group."""
    first = lookup.lookup(f"What was mended in version 2.{number}.0?").passages[0]
    assert first.citation.path == f"notes/2.{number}.0.md"


def test_equal_questions_get_equal_answers(lookup: Lookup, tmp_path: Path) -> None:
    """Also from another copy of the generation, written in another order."""
    other = lookup_over(tmp_path, [BOOKING, LEAVE, *NOTES[::-1]])
    for question in ("booking page", "version", "leave", "nothing of this"):
        assert lookup.lookup(question) == lookup.lookup(question) == other.lookup(question)


def test_below_the_floor_there_is_no_match(lookup: Lookup) -> None:
    """A nearest neighbour always exists; the floor says that it is no answer."""
    foreign = "zebra xylophone quasar"
    assert lookup.lookup(foreign, floor=0.0).passages
    assert max(passage.score for passage in lookup.lookup(foreign, floor=0.0).passages) < 0.3
    result = lookup.lookup(foreign, floor=0.3)
    assert (result.status, result.passages) == ("no_match", ())
    assert lookup.lookup("carry-over of leave is capped at five days", floor=0.9).status == "ok"


def test_the_floor_holds_for_the_best_passage_and_half_of_it_for_the_others(lookup: Lookup) -> None:
    """A weaker passage beside a good one may be the answer; far below it is noise."""
    question = "booking page of the rowing boats opens at eight"
    scores = [passage.score for passage in lookup.lookup(question, floor=0.0).passages]
    assert scores[0] > 0.8 > scores[1] > 0.4 > scores[2]
    assert [passage.score for passage in lookup.lookup(question, floor=0.8).passages] == scores[:2]


def test_limit_bounds_the_passages(lookup: Lookup) -> None:
    """The default is five; refs count from one."""
    assert [passage.ref for passage in lookup.lookup("leave", limit=2).passages] == [1, 2]


def test_an_empty_index_has_no_match(tmp_path: Path) -> None:
    """Looked, and nothing is there: that is not an error."""
    assert lookup_over(tmp_path, []).lookup("anything").status == "no_match"


def test_a_missing_index_is_not_an_empty_answer(tmp_path: Path) -> None:
    """Could not look is an error."""
    lookup = Lookup(EdgeReader(IndexLayout(tmp_path / "none")), lambda _: EMBEDDER)
    with pytest.raises(IndexMissing):
        lookup.lookup("anything")


@pytest.mark.parametrize("query", ["", "  \n", "\x00\x1b"])
def test_a_query_without_a_visible_character_is_refused(lookup: Lookup, query: str) -> None:
    """It is the caller's mistake, and says so."""
    with pytest.raises(UsageError):
        lookup.lookup(query)


def test_a_query_is_composed_and_freed_of_control_characters() -> None:
    """What is asked is what is shown."""
    assert clean(" cafe\u0301\tleave\x00\n") == "caf\u00e9 leave"


def test_a_repeated_question_is_embedded_once(tmp_path: Path) -> None:
    """Vectors of questions are kept, however the question is spaced or composed."""
    embedder = FakeEmbedder()
    lookup = lookup_over(tmp_path, [LEAVE], embedder)
    for question in ("café", " cafe\u0301 ", "café", "leave"):
        lookup.lookup(question)
    assert embedder.queries_embedded == 2


def test_a_cache_of_one_forgets_the_older_question(tmp_path: Path) -> None:
    """The cache is bounded."""
    embedder = FakeEmbedder()
    layout = publish_generation(tmp_path, [LEAVE])
    lookup = Lookup(EdgeReader(layout), lambda _: embedder, query_cache=1)
    for question in ("one", "two", "one"):
        lookup.lookup(question)
    assert embedder.queries_embedded == 3


def test_another_version_of_the_word_encoder_is_refused(tmp_path: Path) -> None:
    """Its words may be other words: asking would find too little, silently."""
    recipe = fake_recipe()
    older = replace(recipe, sparse=replace(recipe.sparse, version="0.0.1"))
    lookup = Lookup(EdgeReader(publish_generation(tmp_path, [LEAVE], recipe=older)), lambda _: EMBEDDER)
    with pytest.raises(RecipeMismatch, match=r"0\.0\.1"):
        lookup.lookup("leave")


def test_threads_get_the_same_answers(lookup: Lookup) -> None:
    """One lookup object serves many callers."""
    questions = ["leave", "booking page", "version 2.7.0", "boats"] * 3
    expected = [lookup.lookup(question) for question in questions]
    answers: dict[int, object] = {}
    threads = [
        threading.Thread(target=lambda n=n: answers.__setitem__(n, lookup.lookup(questions[n])))
        for n in range(len(questions))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert [answers[n] for n in range(len(questions))] == expected
