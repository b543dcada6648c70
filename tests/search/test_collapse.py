"""Copies and near-copies become one passage; what differs in substance stays apart."""

from hypothesis import given, settings
from hypothesis import strategies as st

from search.collapse import Text, collapse
from search.identity import ChunkId

NOTE = "Version {0} of {1}: small faults were mended, and the service starts sooner than before on all our machines."


def group(*texts: str, question: str = "") -> list[tuple[str, list[str]]]:
    """The heads and others, by text; equal texts have ids of their own."""
    passages = [Text(ChunkId(str(number)), text) for number, text in enumerate(texts)]
    by_id = {passage.chunk_id: passage.text for passage in passages}
    return [(by_id[group.head], [by_id[other] for other in group.others]) for group in collapse(passages, question)]


def test_equal_texts_are_one() -> None:
    """Case, composition and white space do not make a difference."""
    assert group("Café  open\ndaily", "Parking", "cafe\u0301 OPEN daily") == [
        ("Café  open\ndaily", ["cafe\u0301 OPEN daily"]),
        ("Parking", []),
    ]


def test_release_notes_that_differ_in_numbers_are_one() -> None:
    """Sixty of them leave room for the second-best passage."""
    notes = [NOTE.format(f"2.{number}.1", f"2024-01-{number % 28 + 1:02d}") for number in range(60)]
    found = group(*notes, "The answer.")
    assert [head for head, _ in found] == [notes[0], "The answer."]
    assert len(found[0][1]) == 59


def test_numbers_that_the_question_names_stay_apart() -> None:
    """A comparison of two versions gets both, and nothing else in between."""
    notes = [NOTE.format(f"2.{number}.1", "spring") for number in range(6)]
    found = group(*notes, question="What changed from 2.3.1 to 2.5.1?")
    assert [head for head, _ in found] == [notes[0], notes[3], notes[5]]


def test_tables_that_differ_in_numbers_stay_apart() -> None:
    """Where most words are numbers, the numbers are what is said."""
    tables = [f"Harbour dues 2023 | {n} | {n + 5} | berth {n + 7} | {n * 3}" for n in (10, 20)]
    assert group(*tables) == [(tables[0], []), (tables[1], [])]


def test_one_word_in_a_short_text_is_a_difference() -> None:
    """Nine tenths of the words must be shared."""
    assert len(group("You may park here on weekdays", "You may not park here on weekdays")) == 2


def test_texts_without_words_are_equal_only_to_each_other() -> None:
    """Nothing is compared with nothing, and no division fails."""
    assert group("", "***", "word") == [("", ["***"]), ("word", [])]


def test_a_chain_of_small_changes_does_not_join_its_ends() -> None:
    """Each passage is compared with heads alone."""
    words = [f"w{'abcdefghijklmnopqrstuvwxyz'[n]}" for n in range(26)]
    chain = [" ".join(words[n : n + 20]) for n in range(4)]
    assert [head for head, _ in group(*chain)] == [chain[0], chain[2]]


@settings(derandomize=True, deadline=None)
@given(st.lists(st.text("ab1 .", max_size=12), max_size=15), st.text("ab1 ", max_size=6))
def test_every_passage_is_in_exactly_one_group(texts: list[str], question: str) -> None:
    """Heads keep the order of ranks, and no other stands before its head."""
    passages = [Text(ChunkId(f"{number:02d}"), text) for number, text in enumerate(texts)]
    groups = collapse(passages, question)
    assert sorted(one for group in groups for one in (group.head, *group.others)) == [p.chunk_id for p in passages]
    heads = [group.head for group in groups]
    assert heads == sorted(heads)
    assert all(other > group.head for group in groups for other in group.others)


def test_signs_inside_a_number_belong_to_it() -> None:
    """2.3.1 is not 2.3.10, a date is one number, and a part number is no word of its own."""
    question = "Is it 2.3.1, of 2024-03-05, or part ab-12?"
    texts = [NOTE.format(version, day) for version in ("2.3.1", "2.3.10") for day in ("2024-03-05", "2024-03-06")]
    assert [others for _, others in group(*texts, question=question)] == [[], [], [], []]
    assert len(group(*(NOTE.format(f"3.{n}.1", "2025-01-01") for n in range(4)), question=question)) == 1
