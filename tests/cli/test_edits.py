"""An edit costs what it touches: a few chunks of a large document, whatever stands before or behind them."""

import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from ingest.chunking.chunker import chunk
from ingest.chunking.scale import Tokenizer
from ingest.chunking.sizes import Sizes
from ingest.parsing.document import Document
from ingest.parsing.reading import read_document
from search.embedding import load_embedder
from search.identity import ChunkId
from search.settings import DEFAULT_MODEL, cache_folder
from tests.cli.conftest import Pristine
from tests.cli.prose import handbook, sentence
from tests.harness import SAMPLE, IndexUnderTest

# Chunks that one edit may cost: the one that it stands in, and its neighbours where a cut moves (issue 2).
BOUND = 3
EDITS = 200
SURVIVE = 0.95


def edit_a_sentence(text: str) -> str:
    """Change one word in the middle of the document."""
    middle = len(text) // 2
    at = text.index("the ", middle)
    return f"{text[:at]}each of {text[at:]}"


def insert_at_the_top(text: str) -> str:
    """Put a paragraph between the title and all the rest."""
    title, rest = text.split("\n", 1)
    return f"{title}\n\nPlease read the chapter on ropes first. It has changed since the spring.\n{rest}"


def add_at_the_end(text: str) -> str:
    """Add a paragraph behind all the rest."""
    return f"{text}\nWhoever has read this far may sign the yellow card.\n"


def take_a_paragraph_out(text: str) -> str:
    """Delete the paragraph after the middle of the document."""
    paragraphs = text.split("\n\n")
    middle = next(number for number in range(len(paragraphs) // 2, len(paragraphs)) if paragraphs[number][0].isalpha())
    return "\n\n".join(paragraphs[:middle] + paragraphs[middle + 1 :])


@pytest.fixture(scope="module")
def large(pristine: Callable[[Callable[[Path], None]], Pristine]) -> Pristine:
    """An index over one Markdown document of more than 300 chunks."""

    def write(docs: Path) -> None:
        (docs / "handbook.md").write_text(handbook(7, 118), encoding="utf-8")

    return pristine(write)


@pytest.mark.parametrize("edit", [edit_a_sentence, insert_at_the_top, add_at_the_end, take_a_paragraph_out])
def test_an_edit_of_a_large_document_writes_at_most_three_chunks(edit: Callable[[str], str], large: Pristine) -> None:
    """So few are written and embedded; all others are kept, at most with other line numbers."""
    index = large.restore()
    document = large.folder / "docs" / "handbook.md"
    before = index.call("status", "--json").json["index"]["chunks"]
    assert before >= 300
    text = document.read_text(encoding="utf-8")
    document.write_text(edit(text), encoding="utf-8")
    ended = index.run(document.parent)
    assert ended.exit_code == 0, ended.stderr
    chunks, embeddings = ended.json["chunks"], ended.json["embeddings"]
    assert chunks["written"] <= BOUND
    assert chunks["removed"] <= BOUND
    assert chunks["kept"] == chunks["total"] - chunks["written"] >= before - BOUND
    assert embeddings["computed"] == chunks["written"]
    assert embeddings["reused"] == chunks["kept"]


def test_an_edit_and_its_undo_embed_once(large: Pristine) -> None:
    """What an edit replaced is kept for one more run, since an undo is common."""
    index = large.restore()
    document = large.folder / "docs" / "handbook.md"
    export = index.export()
    text = document.read_text(encoding="utf-8")
    document.write_text(edit_a_sentence(text), encoding="utf-8")
    assert index.run(document.parent).json["embeddings"]["computed"] > 0
    document.write_text(text, encoding="utf-8")
    report = index.run(document.parent).json
    assert report["embeddings"]["computed"] == 0
    assert report["published"] is True
    assert index.export() == export


@pytest.mark.invariant("I2")
def test_edits_end_in_the_state_of_a_fresh_index(tmp_path: Path) -> None:
    """The export after edits is that of an index that never saw the document before them."""
    docs = tmp_path / "docs"
    docs.mkdir()
    document = docs / "handbook.md"
    document.write_text(handbook(9, 8), encoding="utf-8")
    index, fresh = IndexUnderTest(tmp_path), IndexUnderTest(tmp_path, "fresh")
    assert index.run(docs).exit_code == 0
    for edit in (edit_a_sentence, insert_at_the_top, take_a_paragraph_out):
        document.write_text(edit(document.read_text(encoding="utf-8")), encoding="utf-8")
        assert index.run(docs).json["published"] is True
    assert fresh.run(docs).exit_code == 0
    assert index.export() == fresh.export()


# ---- chunk level: many edits of a document of real and of made Markdown, in this process


class Remembering:
    """A tokenizer that counts each text once: an edited document is nearly all as before."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.token_ends = cache(tokenizer.token_ends)


@cache
def cut() -> Callable[[str], list[ChunkId]]:
    """From Markdown to the ids of its chunks, with the tokenizer and the sizes of the bundled model."""
    embedder = load_embedder(DEFAULT_MODEL, threads=1, cache=cache_folder(), allow_download=False)
    sizes = Sizes.for_limit(embedder.spec.max_tokens, embedder.spec.special_tokens)
    tokenizer = Remembering(embedder)

    def ids(text: str) -> list[ChunkId]:
        document = read_document(text.encode(), "markdown", "edited.md")
        assert isinstance(document, Document)
        return [placed.chunk_id for placed, _ in chunk(document, tokenizer, sizes)]

    return ids


def real_markdown() -> str:
    """All Markdown of the sample in one text, between two handbooks: real headings, lists, tables and code."""
    sample = [path.read_text(encoding="utf-8") for path in sorted(SAMPLE.rglob("*.md"))]
    return "\n".join([handbook(1, 20), *sample, handbook(2, 20)])


def random_edit(text: str, chance: random.Random) -> str:
    """Insert, delete or change a word, insert or delete a paragraph, anywhere in the prose of the text."""
    at = chance.choice([match.start() for match in re.finditer(r"(?<=[a-z,] )[a-z]+ ", text)])
    begin, end = text.rfind("\n\n", 0, at), text.find("\n\n", at)
    if end < 0 or text.startswith(("#", "|", "`"), begin + 2):
        return random_edit(text, chance)
    word_end = text.index(" ", at)
    return chance.choice(
        (
            text[:at] + "perhaps " + text[at:],
            text[:at] + text[word_end + 1 :],
            text[:at] + text[at:word_end].upper() + text[word_end:],
            f"{text[:end]}\n\n{sentence(chance, chance.randrange(1_000))}{text[end:]}",
            text[:begin] + text[end:],
        )
    )


@pytest.mark.model
def test_each_of_two_hundred_edits_leaves_nearly_all_ids() -> None:
    """At least 95 % of the ids of the text before survive each single edit of it."""
    text = real_markdown()
    before = set(cut()(text))
    chance = random.Random(20)
    share = [len(before & set(cut()(random_edit(text, chance)))) / len(before) for _ in range(EDITS)]
    assert min(share) >= SURVIVE
