"""Where text without a usable sentence may be cut: line starts, word starts, and places inside very long words.

Long words are base64, minified JSON, or the scripts that put no spaces. The places inside them are chosen by a rolling
hash of what stands before, as in Muthitacharoen, Chen & Mazieres 2001, so that they move with the text.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["breakable", "inner_cuts", "word_starts"]

# A word longer than this is cut inside, whatever its tokens.
LONG_WORD = 256
# Characters hashed before each place, and the fewest and most characters between two places. One place in 32 has the
# 5 bits zero, so the mean distance is 16 + 32 characters: several places to each passage.
HASHED, LEAST_APART, MOST_APART = 16, 16, 128
HASH_BITS = 5
# The finaliser of MurmurHash3 (Appleby, public domain); any odd constant of this density would do.
MULTIPLIER = np.uint64(0xFF51AFD7ED558CCD)
SHIFT = np.uint64(33)

WORD = re.compile(r"\S+")
ZERO_WIDTH_JOINER = "\u200d"
VARIATION_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
EMOJI_MODIFIERS = frozenset("\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")


def word_starts(text: str, start: int, end: int, is_long: Callable[[int, int], bool]) -> Iterator[tuple[int, bool]]:
    """Yield (offset, begins a line) of every word inside ``text[start:end]``, in order, and of the places in long ones.

    A word is long over 256 characters, or where ``is_long(start, end)`` says so (many tokens). ``start`` itself is not
    among them.
    """
    previous_end = start
    for match in WORD.finditer(text, start, end):
        if match.start() > start:
            yield match.start(), "\n" in text[previous_end : match.start()]
        previous_end = match.end()
        if len(match[0]) > LONG_WORD or is_long(*match.span()):
            for place in inner_cuts(match[0]):
                yield match.start() + place, False


def inner_cuts(word: str) -> list[int]:
    """Return the offsets, ascending, at which a long word may be cut: 16 to 128 characters apart, by its content.

    Where marks that belong to the character before fill a longer stretch, the next breakable place is taken.
    """
    marked = np.flatnonzero(_marks(word)).tolist()
    cuts: list[int] = []
    last = 0
    for place in [*marked, len(word)]:
        while place - last > MOST_APART:
            forced = next((at for at in range(last + MOST_APART, len(word)) if breakable(word, at)), len(word))
            if forced > len(word) - LEAST_APART:
                return cuts
            cuts.append(forced)
            last = forced
        if place - last >= LEAST_APART and place <= len(word) - LEAST_APART and breakable(word, place):
            cuts.append(place)
            last = place
    return cuts


def breakable(text: str, offset: int) -> bool:
    """Whether a cut at ``offset`` keeps what is seen as one character whole: marks, selectors, joined emoji."""
    following = text[offset]
    return not (
        following == ZERO_WIDTH_JOINER
        or text[offset - 1] == ZERO_WIDTH_JOINER
        or following in EMOJI_MODIFIERS
        or VARIATION_SELECTORS.match(following)
        or unicodedata.category(following).startswith("M")
    )


def _marks(word: str) -> NDArray[np.bool_]:
    """Return, for every offset, whether the hash of the 16 characters before it has its low bits zero."""
    codes = np.frombuffer(word.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    marks = np.zeros(len(word), dtype=np.bool_)
    if len(word) <= HASHED:
        return marks
    rolling = np.zeros(len(word) - HASHED, dtype=np.uint64)
    for index in range(HASHED):
        # Unsigned arithmetic of arrays wraps by definition, on every machine.
        rolling = rolling * MULTIPLIER + codes[index : index + len(rolling)]
    rolling ^= rolling >> SHIFT
    rolling *= MULTIPLIER
    rolling ^= rolling >> SHIFT
    marks[HASHED:] = (rolling & np.uint64((1 << HASH_BITS) - 1)) == 0
    return marks
