"""How a stretch between two anchors is split when it is too long: the cheapest cuts, by a dynamic program."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .candidates import BLOCK, ITEM, LINE, SENTENCE, WORD

__all__ = ["split"]

# Cost of a cut by its level, in the unit of the size term: a piece of twice the target costs 2. Between paragraphs a
# cut is nearly free; within a sentence it must save several badly sized pieces. From the sweep of the prototype.
PENALTIES = {BLOCK: 0.15, ITEM: 0.6, SENTENCE: 1.2, LINE: 2.5, WORD: 6.0}
# A piece above the target costs this much more than one as far below it: a long passage dilutes its vector.
ABOVE_TARGET = 2.0


def split(
    positions: Sequence[int] | NDArray[np.int64], levels: Sequence[int], longest: int, target: int, floor: int
) -> list[int] | None:
    """Return the indexes of the cuts that split a gap at least cost, ascending; None where no split fits.

    ``positions`` are tokens, ascending; the first and the last are the ends of the gap, no cuts. Every piece takes
    between ``floor`` and ``longest`` tokens. Sum of ((size - target) / target) squared, doubled above the target, plus
    the penalties of the cuts. Of equal costs the earlier cut wins.
    """
    at = np.asarray(positions, dtype=np.int64)
    last = len(at) - 1
    cost = np.full(len(at), np.inf)
    cost[0] = 0.0
    before = np.zeros(len(at), dtype=np.int64)
    # Pieces that end at j begin in [first[j], stop[j]): not too long, not too short.
    first = np.searchsorted(at, at - longest, side="left")
    stop = np.minimum(np.searchsorted(at, at - floor, side="right"), np.arange(len(at)))
    for j in range(1, last + 1):
        low, high = int(first[j]), int(stop[j])
        if low >= high:
            continue
        distance = (at[j] - at[low:high] - target) / target
        costs = cost[low:high] + distance * distance * np.where(distance > 0, ABOVE_TARGET, 1.0)
        best = int(np.argmin(costs))
        cost[j] = costs[best] + (PENALTIES.get(levels[j], 0.0) if j < last else 0.0)
        before[j] = low + best
    if not np.isfinite(cost[last]):
        return None
    cuts = []
    j = int(before[last])
    while j > 0:
        cuts.append(j)
        j = int(before[j])
    return cuts[::-1]
