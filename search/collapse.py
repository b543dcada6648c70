"""Passages that say the same become one, so that copies and near-copies do not push other answers out.

Pure. Two passages are near-equal when nine tenths of their words are the same, numbers left aside: sixty release notes
that differ in a version and a date are one passage with sixty places. Numbers stay apart where they are the matter:
when the question names them, and where more than a quarter of the words are numbers, as in a table. The best-ranked
passage of a group stands for it, so a question about one version is answered with that version.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .identity import ChunkId

__all__ = ["Group", "Text", "collapse"]

# Broder 1997 calls this resemblance; 0.9 lets one word in twenty differ, and keeps revised paragraphs apart.
LEAST_RESEMBLANCE = 0.9
# Above this share of numbers a passage is a table: there the numbers are what is said.
TABLE_SHARE = 0.25
# A word may hold signs inside, so that 1.2.3, 2024-03-05 and don't are one word each.
WORD = re.compile(r"\w+(?:[.,:/'’\-]\w+)*")
NUMBER = "#"


@dataclass(frozen=True, slots=True)
class Text:
    """A passage to compare."""

    chunk_id: ChunkId
    text: str


@dataclass(frozen=True, slots=True)
class Group:
    """A passage and those further down that say the same, in their order."""

    head: ChunkId
    others: tuple[ChunkId, ...] = ()


def collapse(ranked: Sequence[Text], question: str) -> list[Group]:
    """Group ``ranked``, best first, by near-equality to an earlier head; the order of heads is kept.

    Every passage is in exactly one group. Each is compared with heads only, so a chain of small changes never joins its
    two ends.
    """
    kept = frozenset(word for word in _words(question) if _is_number(word))
    heads: list[tuple[ChunkId, frozenset[str], list[ChunkId]]] = []
    for passage in ranked:
        words = _signature(passage.text, kept)
        for _, head_words, others in heads:
            if _near_equal(words, head_words):
                others.append(passage.chunk_id)
                break
        else:
            heads.append((passage.chunk_id, words, []))
    return [Group(head, tuple(others)) for head, _, others in heads]


def _signature(text: str, kept: frozenset[str]) -> frozenset[str]:
    words = list(_words(text))
    numbers = sum(_is_number(word) for word in words)
    if numbers > TABLE_SHARE * len(words):
        return frozenset(words)
    return frozenset(NUMBER if _is_number(word) and word not in kept else word for word in words)


def _near_equal(one: frozenset[str], other: frozenset[str]) -> bool:
    if one == other:
        return True
    smaller, larger = sorted((len(one), len(other)))
    if smaller < LEAST_RESEMBLANCE * larger:
        return False
    shared = len(one & other)
    return shared >= LEAST_RESEMBLANCE * (len(one) + len(other) - shared)


def _words(text: str) -> Iterable[str]:
    return WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _is_number(word: str) -> bool:
    """True for 7, 1.2.3, v2, 2024-03-05, 10-k: what begins with a digit, at most after a single letter."""
    return word[0].isdigit() or (len(word) > 1 and word[1].isdigit())
