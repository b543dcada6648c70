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
from functools import cached_property

from .identity import ChunkId

__all__ = ["Group", "Text", "collapse"]

# Broder 1997 calls this resemblance; 0.9 lets one word in twenty differ, and keeps revised paragraphs apart.
LEAST_RESEMBLANCE = 0.9
# Above this share of numbers among its different words a passage is a table: there the numbers are what is said.
TABLE_SHARE = 0.25
# Near-equal texts share over two thirds of their pieces (a quarter may be numbers, a tenth of the rest may differ); in
# texts of few pieces a sign at the end of a word weighs too much for this.
ROUGH_SHARE, ROUGH_FROM = 0.5, 12
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
    heads: list[tuple[ChunkId, _Compared, list[ChunkId]]] = []
    for passage in ranked:
        compared = _Compared(passage.text, asked)
        for _, head, others in heads:
            if compared.is_near(head):
                others.append(passage.chunk_id)
                break
        else:
            heads.append((passage.chunk_id, compared, []))
    return [Group(head, tuple(others)) for head, _, others in heads]


class _Compared:
    """A text as it is compared: words of which nine tenths must be shared, and numbers that must all be the same.

    Most pairs have little in common, which the pieces between white space show at a tenth of the cost; words and
    numbers are found only for the rest. Together they took most of a warm lookup (measured).
    """

    def __init__(self, text: str, asked: frozenset[str]) -> None:
        self._text = text
        self._asked = asked
        self._pieces = frozenset(text.casefold().split())

    @cached_property
    def _parts(self) -> tuple[frozenset[str], frozenset[str]]:
        words = frozenset(_words(self._text))
        numbers = frozenset(filter(_is_number, words))
        is_table = len(numbers) > TABLE_SHARE * len(words)
        return words - numbers, numbers if is_table else self._asked & numbers

    def is_near(self, other: "_Compared") -> bool:
        """True where the two say the same."""
        least = min(len(self._pieces), len(other._pieces))
        if least >= ROUGH_FROM and len(self._pieces & other._pieces) < ROUGH_SHARE * least:
            return False
        (words, numbers), (other_words, other_numbers) = self._parts, other._parts
        if numbers != other_numbers:
            return False
        sizes = len(words), len(other_words)
        if min(sizes) < LEAST_RESEMBLANCE * max(sizes):
            return False
        shared = len(words & other_words)
        return shared >= LEAST_RESEMBLANCE * (sum(sizes) - shared)


def _words(text: str) -> list[str]:
    return WORD.findall((text if text.isascii() else unicodedata.normalize("NFKC", text)).casefold())


def _is_number(word: str) -> bool:
    """True for what begins with a digit, at most after one letter: 7, 1.2.3, v2, 2024-03-05, 10-k."""
    return word[0].isdigit() or word[1:2].isdigit()
