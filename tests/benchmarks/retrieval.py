"""Embedding against its floor, a warm lookup against its parts, and the answers to the golden questions.

The floor of embedding is raw onnxruntime with tokenizers on the same passages in the same run: the best of two threads
in one session with batches of 1, 2, 4 and 8 texts of near-equal length, and of two processes with one thread each. The
passages are those of the sample corpus, indexed by ``ingest run``.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # ships no types
from tokenizers import Tokenizer

from ingest.shard import iter_points
from search.bundled import MAX_TOKENS, MODEL, bundled_files
from search.edge import EdgeReader, EdgeSnapshot
from search.embedding import Embedder, load_embedder, passage_text
from search.generation import IndexLayout
from search.lookup import DEPTH, EVERYWHERE, Lookup
from search.points import citations_of, context_of, text_of
from search.records import SearchResult
from search.sparse import SparseEncoder
from search.store import Hit

REPOSITORY = Path(__file__).parents[2]
SAMPLE, GOLDEN = REPOSITORY / "data" / "sample", REPOSITORY / "data" / "golden.jsonl"
CORES = 2
BATCHES = (1, 2, 4, 8)
ROUNDS = 3
LIMIT = 5


def main(arguments: list[str] | None = None) -> None:
    """Index the sample corpus, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.retrieval", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--passages", type=int, default=None, help="embed only so many")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="grounded-bench-") as folder:
        home, cache = Path(folder, ".grounded"), Path(folder, "cache")
        command = [sys.executable, "-m", "ingest", "run", str(SAMPLE), "--index", str(home), "--quiet"]
        subprocess.run(command, cwd=REPOSITORY, check=True)
        layout = IndexLayout(home)
        generation = layout.generation(layout.current() or "")
        texts = [passage_text(context_of(point.payload), text_of(point.payload)) for point in iter_points(generation)]
        embedder = load_embedder(MODEL, threads=CORES, cache=cache)
        _quality(layout, embedder)
        _lookup(layout, cache)
        _embedding(texts[: options.passages], embedder, options.rounds)


def _embedding(texts: list[str], embedder: Embedder, rounds: int) -> None:
    tokenizer = _Raw(threads=1).tokenizer
    ordered = sorted(texts, key=lambda text: len(tokenizer.encode(text).ids))
    session = _Raw(threads=CORES)
    with multiprocessing.get_context("spawn").Pool(CORES, initializer=_start_worker) as pool:
        ways: dict[str, Callable[[], object]] = {"ours": lambda: embedder.embed_passages(texts)}
        for size in BATCHES:
            ways[f"raw, {CORES} threads, batch {size}"] = partial(session.embed_in_batches, ordered, size)
        pairs = [ordered[start : start + 2] for start in range(0, len(ordered), 2)]
        ways[f"raw, {CORES} processes, batch 2"] = lambda: pool.map(_embed_in_worker, pairs[::-1], chunksize=1)
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for round_ in range(rounds + 1):
            for name, way in ways.items():
                start = time.perf_counter()
                way()
                if round_:  # the first one loads and warms
                    seconds[name].append(time.perf_counter() - start)
    print(f"embedding: {len(texts)} passages, {rounds} rounds, {os.cpu_count()} cores, texts a second (best round)")
    for name, taken in seconds.items():
        print(f"  {name:28} {len(texts) / median(taken):6.1f} ({len(texts) / min(taken):.1f})")
    floor = min(min(taken) for name, taken in seconds.items() if name != "ours")
    middle = min(median(taken) for name, taken in seconds.items() if name != "ours")
    print(
        f"  ours / floor                 {median(seconds['ours']) / middle:6.2f} ({min(seconds['ours']) / floor:.2f})"
    )


class _Raw:
    """The floor: tokenizer and session, nothing around them."""

    def __init__(self, threads: int) -> None:
        files = bundled_files()
        self.tokenizer = Tokenizer.from_file(str(files["tokenizer.json"]))
        self.tokenizer.enable_truncation(MAX_TOKENS)
        self.tokenizer.enable_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(
            str(files["model.onnx"]), options, providers=["CPUExecutionProvider"]
        )

    def embed_in_batches(self, texts: Sequence[str], size: int) -> object:
        """Return the vectors of all texts, batch by batch."""
        return [self.embed(texts[start : start + size]) for start in range(0, len(texts), size)]

    def embed(self, texts: Sequence[str]) -> object:
        """Return unit vectors, pooled by the mean."""
        encodings = self.tokenizer.encode_batch(list(texts))
        tokens = np.array([encoding.ids for encoding in encodings], dtype=np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        inputs = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        hidden = self.session.run(None, inputs)[0]
        pooled = (hidden * mask[:, :, np.newaxis]).sum(axis=1)
        return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)


_worker: list[_Raw] = []


def _start_worker() -> None:
    _worker.append(_Raw(threads=1))


def _embed_in_worker(texts: Sequence[str]) -> object:
    return _worker[0].embed(texts)


def _lookup(layout: IndexLayout, cache: Path) -> None:
    """A lookup whose question is new, beside the two parts that it cannot do without, turn by turn."""
    reader = EdgeReader(layout)
    embedder = load_embedder(MODEL, threads=1, cache=cache)
    lookup = Lookup(reader, lambda _: embedder, query_cache=0)
    lookup.warm_up()
    encoder = SparseEncoder(reader.snapshot().recipe.sparse)
    whole, embedding, engine = [], [], []
    for question in (question["question"] for question in _questions()):
        start = time.perf_counter()
        lookup.lookup(str(question))
        whole.append(time.perf_counter() - start)
        start = time.perf_counter()
        dense = embedder.embed_query(str(question))
        embedding.append(time.perf_counter() - start)
        sparse = encoder.encode_query(str(question))
        start = time.perf_counter()
        reader.snapshot().query(dense, sparse, depth=DEPTH, where=EVERYWHERE)
        engine.append(time.perf_counter() - start)
    parts = median(embedding) + median(engine)
    print(f"warm lookup: {len(whole)} questions, p50 in ms")
    print(
        f"  lookup {median(whole) * 1e3:.2f}, embedding {median(embedding) * 1e3:.2f}, query {median(engine) * 1e3:.2f}"
    )
    print(f"  lookup / (embedding + query) = {median(whole) / parts:.2f}")


def _quality(layout: IndexLayout, embedder: Embedder) -> None:
    """How many golden questions find their quote: by the lookup, and by each of its two lists alone."""
    questions = _questions()
    answerable = [question for question in questions if question["answerable"]]
    lookup = Lookup(EdgeReader(layout), lambda _: embedder, limit=LIMIT)
    snapshot = EdgeReader(layout).snapshot()
    ranks: dict[str, list[int]] = {"lookup": [], "dense alone": [], "BM25 alone": []}
    for question in answerable:
        text = str(question["question"])
        ranks["lookup"].append(_rank(lookup.lookup(text, floor=0.0), question))
        sparse = SparseEncoder(snapshot.recipe.sparse).encode_query(text)
        lists = snapshot.query(embedder.embed_query(text), sparse, depth=LIMIT, where=EVERYWHERE)
        for name, hits in zip(("dense alone", "BM25 alone"), lists, strict=True):
            ranks[name].append(_rank_of_hits(snapshot, hits, question))
    print(f"golden questions: {len(answerable)} with an answer, {len(questions) - len(answerable)} without")
    for name, found in ranks.items():
        first, any_rank = (sum(0 < rank <= depth for rank in found) / len(found) for depth in (1, LIMIT))
        print(f"  {name:12} first {first:.3f}, recall@{LIMIT} {any_rank:.3f}")
    silent = [question for question in questions if not lookup.lookup(str(question["question"])).passages]
    lost = sum(bool(question["answerable"]) for question in silent)
    print(f"  with the floor: {lost} answers lost, {len(silent) - lost} questions without an answer refused")


def _questions() -> list[dict[str, object]]:
    return [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


def _rank(result: SearchResult, question: dict[str, object]) -> int:
    """Return the place of the passage that holds the quote and is cited from its source; 0 where there is none."""
    for passage in result.passages:
        paths = {citation.path for citation in (passage.citation, *passage.also_at)}
        if _holds(passage.text, paths, question):
            return passage.ref
    return 0


def _rank_of_hits(snapshot: EdgeSnapshot, hits: Sequence[Hit], question: dict[str, object]) -> int:
    payloads = snapshot.fetch([hit.chunk_id for hit in hits])
    for rank, hit in enumerate(hits, start=1):
        payload = payloads[hit.chunk_id]
        if _holds(text_of(payload), {citation.path for citation in citations_of(payload)}, question):
            return rank
    return 0


def _holds(text: str, paths: set[str], question: dict[str, object]) -> bool:
    """True where the quote stands in the text, line breaks aside, and its source is among the paths."""
    return question["path"] in paths and " ".join(str(question["quote"]).split()) in " ".join(text.split())


if __name__ == "__main__":
    main()
