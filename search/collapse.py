"""Passages that say the same become one, so that copies and near-copies do not push other answers out.

Pure. Two passages are near-equal when nine tenths of their words are the same, numbers left aside: sixty release notes
that differ in a version and a date are one passage with sixty places. Numbers stay apart where they are the matter:
when the question names them, and where more than a quarter of the different words are numbers, as in a table. The
best-ranked passage of a group stands for it, so a question about one version is answered with that version.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from .identity import ChunkId

__all__ = ["Group", "Text", "collapse"]

# Broder 1997 calls this resemblance; 0.9 lets one word in twenty differ, and keeps revised paragraphs apart.
LEAST_RESEMBLANCE = 0.9
# Above this share of numbers among its different words a passage is a table: there the numbers are what is said.
TABLE_SHARE = 0.25
# A word may hold signs inside, so that 1.2.3, 2024-03-05 and don't are one word each.
WORD = re.compile(r"\w+(?:[.,:/'’\-]\w+)*")


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
    asked = frozenset(filter(_is_number, _words(question)))
    heads: list[tuple[ChunkId, _Signature, list[ChunkId]]] = []
    for passage in ranked:
        signature = _signature(passage.text, asked)
        for _, head, others in heads:
            if _near_equal(signature, head):
                others.append(passage.chunk_id)
                break
        else:
            heads.append((passage.chunk_id, signature, []))
    return [Group(head, tuple(others)) for head, _, others in heads]


@dataclass(frozen=True, slots=True)
class _Signature:
    """What is compared of a text: words of which nine tenths must be shared, and numbers that must all be the same."""

    words: frozenset[str]
    numbers: frozenset[str]


def _signature(text: str, asked: frozenset[str]) -> _Signature:
    # Sets first: a loop over all words, or a second expression, took most of a warm lookup (measured).
    words = frozenset(_words(text))
    numbers = frozenset(filter(_is_number, words))
    is_table = len(numbers) > TABLE_SHARE * len(words)
    return _Signature(words - numbers, numbers if is_table else asked & numbers)


def _near_equal(one: _Signature, other: _Signature) -> bool:
    if one.numbers != other.numbers:
        return False
    sizes = len(one.words), len(other.words)
    if min(sizes) < LEAST_RESEMBLANCE * max(sizes):
        return False
    shared = len(one.words & other.words)
    return shared >= LEAST_RESEMBLANCE * (sum(sizes) - shared)


def _words(text: str) -> list[str]:
    return WORD.findall((text if text.isascii() else unicodedata.normalize("NFKC", text)).casefold())


def _is_number(word: str) -> bool:
    """True for what begins with a digit, at most after one letter: 7, 1.2.3, v2, 2024-03-05, 10-k."""
    return word[0].isdigit() or word[1:2].isdigit()
