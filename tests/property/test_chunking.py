"""What holds for passages of any document, and what an edit of a long one may cost."""

import random
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ingest.chunking.chunker import chunk
from ingest.chunking.sizes import Sizes
from ingest.parsing.document import Block, BlockKind, Document, Part, PartKind
from search.embedding import passage_text

SIZES = Sizes.for_limit(114)
PROPERTY = settings(derandomize=True, deadline=None, max_examples=50)
KINDS: tuple[BlockKind, ...] = (
    "heading", "paragraph", "list_item", "table_row", "code", "quote", "footnote", "front_matter",
)  # fmt: skip
PART_KINDS: tuple[PartKind, ...] = ("page", "slide", "sheet")


class WordTokenizer:
    """One token per word, or per character above ASCII, as models count them."""

    def token_ends(self, text: str) -> NDArray[np.int32]:
        return np.array([match.end() for match in re.finditer(r"[!-~]+|[^\s!-~]", text)], dtype=np.int32)


WORDS = st.text(alphabet="abcdeXYZ019.:;?!,()|`-*\"'", min_size=1, max_size=12)
ODD = st.sampled_from([
    "。", "阀门每月上油。" * 12, "泵" * 90, "x" * 700, "e\u0301" * 40, "\U0001f469\u200d\U0001f467" * 30,
    "\u0301" * 300, "|---|", "```", "end.", "Dr.", "\ufe0f", "\ud800",
])  # fmt: skip
BLANKS = st.sampled_from([" ", " ", " ", "\n", ". ", ".\n", "\n\n", "\t", "\u00a0", " " * 300])


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Return documents of every kind of block, with odd words, walls, parts and text that no block covers."""
    text, blocks = "", []
    for kind in draw(st.lists(st.sampled_from(KINDS), max_size=12)):
        text += draw(st.sampled_from(["", "\n", "\n\n", " unread ", "unread letters " * 4, "\n" * 300]))
        count = draw(st.sampled_from([1, 3, 30, 90])) if kind != "heading" else 3
        seeds = draw(st.lists(st.tuples(WORDS | ODD if kind != "heading" else WORDS, BLANKS), min_size=1, max_size=8))
        piece = "".join("".join(seeds[index % len(seeds)]) for index in range(count))[:4000]
        level = draw(st.integers(1, 6)) if kind == "heading" else 0
        blocks.append(Block(kind, len(text), len(text) + len(piece), level))
        text += piece
    starts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
    part_kind: PartKind = draw(st.sampled_from(PART_KINDS))
    parts = tuple(Part(part_kind, number, None, start) for number, start in enumerate(starts, 1))
    title = draw(st.sampled_from([None, "Title of it", "long title word " * 9]))
    return Document("test", "test", text, tuple(blocks), parts, title, lines=True)


@PROPERTY
@given(documents())
def test_passages_are_slices_in_order_without_overlap_that_cover_every_letter(document: Document) -> None:
    """What a citation names is there verbatim, nothing is embedded twice, and nothing that is read gets lost."""
    text = document.text
    covered = np.zeros(len(text), dtype=bool)
    last_end = 0
    for passage, location in chunk(document, WordTokenizer(), SIZES):
        assert text[location.char_start : location.char_end] == passage.text == passage.text.strip()
        assert location.char_start >= last_end
        last_end = location.char_end
        covered[location.char_start : location.char_end] = True
    for block in document.blocks:
        letters = [index for index in range(block.start, block.end) if text[index].isalnum()]
        assert all(covered[index] is np.bool_(block.kind != "front_matter") for index in letters)


@PROPERTY
@given(documents())
def test_every_passage_fits_the_limit_and_the_sizes(document: Document) -> None:
    """Special tokens, context and text fit the model; the text alone fits the greatest size."""
    tokenizer = WordTokenizer()
    for passage, _ in chunk(document, tokenizer, SIZES):
        counted = len(tokenizer.token_ends(passage_text(passage.context, passage.text)))
        assert counted + SIZES.special <= SIZES.limit
        assert len(tokenizer.token_ends(passage.text)) <= SIZES.max


@PROPERTY
@given(documents())
def test_chunking_is_repeatable_and_places_passages_truly(document: Document) -> None:
    """Equal input gives equal output; lines and parts are those of the first and the last character."""
    pairs = chunk(document, WordTokenizer(), SIZES)
    assert pairs == chunk(document, WordTokenizer(), SIZES)
    for _, location in pairs:
        assert location.line_start == document.text[: location.char_start].count("\n") + 1
        assert location.line_end == document.text[: location.char_end].count("\n") + 1
        for offset, number in location.part_starts:
            assert 0 < offset < location.char_end - location.char_start
            assert document.parts[number - 1].start == location.char_start + offset
        first = [part.number for part in document.parts if part.start <= location.char_start]
        if first:
            assert location.part_first == first[-1]


def words(generator: random.Random, count: int) -> str:
    """Return a sentence of made-up words."""
    chosen = ("".join(generator.choices("abcdefghij", k=generator.randint(2, 7))) for _ in range(count))
    return " ".join(chosen).capitalize() + "."


def paragraph(generator: random.Random) -> str:
    """Return one to six sentences."""
    return " ".join(words(generator, generator.randint(4, 16)) for _ in range(generator.randint(1, 6)))


def long_document(seed: int) -> list[str]:
    """Return the blocks of a document of some 300 passages: a heading every ten paragraphs or so."""
    generator = random.Random(seed)
    return [
        f"{'#' * generator.randint(1, 3)} {words(generator, 3)[:-1]}"
        if generator.random() < 0.1
        else paragraph(generator)
        for _ in range(390)
    ]


def build(pieces: Sequence[str], between: str = "\n\n") -> Document:
    """Return a document of one block per piece; ``#`` makes a heading."""
    text, blocks = "", []
    for piece in pieces:
        level = len(piece) - len(piece.lstrip("#"))
        kind: BlockKind = "heading" if level else "paragraph"
        blocks.append(Block(kind, len(text), len(text) + len(piece), level, piece.lstrip("# ") if level else None))
        text += piece + between
    return Document("test", "test", text, tuple(blocks))


def ids(pieces: Sequence[str]) -> set[str]:
    """Return the ids of the passages."""
    return {passage.chunk_id for passage, _ in chunk(build(pieces), WordTokenizer(), SIZES)}


@pytest.mark.parametrize("seed", range(4))
def test_an_insert_or_edit_rewrites_at_most_three_of_300_passages(seed: int) -> None:
    """Wherever a paragraph is inserted, the top included, or a sentence is changed: the rest keeps its ids."""
    generator = random.Random(seed + 100)
    pieces = long_document(seed)
    before = ids(pieces)
    assert 250 < len(before) < 400
    prose = [index for index, piece in enumerate(pieces) if not piece.startswith("#")]
    for place in [0, *generator.sample(prose, 6)]:
        inserted = [*pieces[:place], f"{words(generator, 15)} {words(generator, 15)}", *pieces[place:]]
        assert len(ids(inserted) - before) <= 3
    for place in generator.sample(prose, 6):
        edited = [*pieces]
        edited[place] = words(generator, 9) + " " + pieces[place].partition(". ")[2]
        assert len(ids(edited) - before) <= 3


@pytest.mark.parametrize("seed", range(4))
def test_a_deleted_section_keeps_at_least_95_percent(seed: int) -> None:
    """What follows a removed section falls into step again."""
    pieces = long_document(seed)
    before = ids(pieces)
    headings = [index for index, piece in enumerate(pieces) if piece.startswith("#")]
    for first, stop in zip(headings[5:25:4], headings[6:26:4], strict=True):
        if pieces[first].count("#") < pieces[stop].count("#"):
            continue
        after = ids([*pieces[:first], *pieces[stop:]])
        assert len(after & before) >= 0.95 * len(after)


def test_rewrapped_text_is_cut_at_the_same_words() -> None:
    """Line breaks in other places renew ids, since passages are verbatim, but move no cut."""

    def starts(document: Document) -> list[list[str]]:
        return [passage.text.split() for passage, _ in chunk(document, WordTokenizer(), SIZES)]

    pieces = long_document(9)[:80]
    narrow = ["\n".join(piece.split(" ")) if not piece.startswith("#") else piece for piece in pieces]
    assert starts(build(pieces)) == starts(build(narrow, "\n\n\n"))


def test_an_insert_into_one_long_line_moves_few_cuts() -> None:
    """Text without sentences, and words without spaces, fall into step as well."""
    generator = random.Random(5)
    for text in (
        " ".join(words(generator, 1)[:-1] for _ in range(8000)),
        "".join(generator.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=30_000)),
        "".join(chr(generator.randint(0x4E00, 0x5E00)) for _ in range(8000)),
    ):
        before = ids([text])
        assert len(before) > 100
        for place in (0, 1000, len(text) // 2):
            assert len(ids([text[:place] + "inserted " + text[place:]]) - before) <= 5
