"""How the two lists of a search become one order, and how a passage gets a score that compares between questions.

Pure. The order: cosine x 0.7 + BM25 (as a share of the best hit's) x 0.3, ties by chunk_id. A cosine means the same in
every question and is taken as it is; a BM25 score does not, so it is divided by the best of its list. A hit that one
list lacks counts there as that list's last hit (cosine) or as nothing (BM25). Chosen on four collections, nDCG@10,
bundled model, whole documents (the command stands in docs; rank fusion and min-max for comparison):

    set        dense   BM25   RRF 60   min-max 0.5   this
    ADI         .496   .474     .529          .546   .543
    Cranfield   .381   .384     .414          .416   .417
    SciFact     .647   .688     .712          .720   .730
    XQuAD-en    .941   .970     .970          .979   .980

The score: cosine x 0.6 + the share of the question's words that stand in the passage x 0.4. On XQuAD it parts the best
hit of a question from the best hit when the right paragraph was taken out (ROC area .93; cosine alone .81, the sum
above .83), and from the best hit of a foreign question (.997; .977, .980). It does not decide the order: that would
cost up to .06 of nDCG. Source: Bruch, Gai, Ingber 2023, "An Analysis of Fusion Functions for Hybrid Retrieval".
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .identity import ChunkId
from .store import Hit

__all__ = ["Candidate", "fuse", "relevance"]

# The best or second best of 0.4 .. 0.8 on each set of the table; 0.6 to 0.8 differ by less than 0.01.
COSINE_SHARE = 0.7
# Of 0.3 .. 1.0 the one that parts the golden questions best: the best hit of each of 56 with an answer scores at least
# 0.27, those of the six that are foreign to the corpus at most 0.215.
RELEVANCE_COSINE_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class Candidate:
    """A hit of either list. ``fused`` orders; ``cosine`` is the passage's own, or the most it can be, 0..1."""

    chunk_id: ChunkId
    fused: float
    cosine: float


def fuse(dense: Sequence[Hit], sparse: Sequence[Hit]) -> list[Candidate]:
    """Return every hit of both lists once, best first; equal scores in the order of their ids.

    The lists may come in any order; scores are cosines in -1..1, and BM25 scores.
    """
    cosines = {hit.chunk_id: max(hit.score, 0.0) for hit in dense}
    words = {hit.chunk_id: max(hit.score, 0.0) for hit in sparse}
    lowest = min(cosines.values(), default=0.0)
    best = max(words.values(), default=0.0) or 1.0
    candidates = []
    for chunk_id in cosines.keys() | words.keys():
        cosine = min(cosines.get(chunk_id, lowest), 1.0)
        share = words.get(chunk_id, 0.0) / best
        candidates.append(Candidate(chunk_id, COSINE_SHARE * cosine + (1 - COSINE_SHARE) * share, cosine))
    return sorted(candidates, key=lambda candidate: (-candidate.fused, candidate.chunk_id))


def relevance(cosine: float, coverage: float) -> float:
    """Return a passage's score, 0..1, four decimals.

    ``coverage`` is the share of the question's words that stand in the passage, 0..1.
    """
    score = RELEVANCE_COSINE_SHARE * cosine + (1 - RELEVANCE_COSINE_SHARE) * coverage
    return round(min(max(score, 0.0), 1.0), 4)
