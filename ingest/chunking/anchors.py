"""Which cut candidates are *anchors*: cuts that the content alone defines, whatever stands far away.

Every candidate has a priority made of its level and of the text around it. An anchor has the highest priority within a
window of tokens on either side; so anchors lie at least a window apart, depend on nothing beyond it, and come back in
step behind every edit.
"""

import hashlib
from collections.abc import Sequence

__all__ = ["anchors", "priority"]

# Characters around a cut that its priority is made of, white space not counted: re-wrapped text keeps its cuts.
LEFT, RIGHT = 32, 48


def priority(text: str, start: int, end: int, offset: int, level: int) -> int:
    """Return the priority of a cut at ``offset`` in ``text[start:end]``: the level decides, then a hash.

    The hash is no id and is stored nowhere; it orders cuts of one level by chance that is the same on every machine.
    A plain ``hash()`` differs from process to process, and any order by meaning would favour a kind of text.
    """
    left = _squeezed_left(text, start, offset)
    right = _squeezed_right(text, offset, end)
    around = f"{left}\x00{right}".encode("utf-8", "surrogatepass")
    return level << 64 | int.from_bytes(hashlib.blake2b(around, digest_size=8).digest(), "big")


def anchors(positions: Sequence[int], priorities: Sequence[int], window: int, total: int) -> list[int]:
    """Return the indexes, ascending, of the candidates that no other outranks nearer than ``window`` tokens.

    ``positions`` are tokens, ascending, between 0 and ``total``; both ends outrank every candidate. Of equal priorities
    the first wins. Each candidate is pushed and popped once per pass, so the time is linear.
    """
    free = [window <= position <= total - window for position in positions]
    stack: list[int] = []
    for index, position in enumerate(positions):
        while stack and priorities[stack[-1]] < priorities[index]:
            stack.pop()
        if stack and position - positions[stack[-1]] < window:
            free[index] = False
        stack.append(index)
    stack.clear()
    for index in range(len(positions) - 1, -1, -1):
        while stack and priorities[stack[-1]] <= priorities[index]:
            stack.pop()
        if stack and positions[stack[-1]] - positions[index] < window:
            free[index] = False
        stack.append(index)
    return [index for index, is_free in enumerate(free) if is_free]


def _squeezed_left(text: str, start: int, offset: int) -> str:
    """Return the last characters before ``offset`` that are not white space, 32 unless the text begins earlier."""
    reach = 2 * LEFT
    while True:
        begin = max(start, offset - reach)
        squeezed = "".join(text[begin:offset].split())
        if len(squeezed) >= LEFT or begin == start:
            return squeezed[-LEFT:]
        reach *= 2


def _squeezed_right(text: str, offset: int, end: int) -> str:
    """Return the first characters from ``offset`` on that are not white space, 48 unless the text ends earlier."""
    reach = 2 * RIGHT
    while True:
        stop = min(end, offset + reach)
        squeezed = "".join(text[offset:stop].split())
        if len(squeezed) >= RIGHT or stop == end:
            return squeezed[:RIGHT]
        reach *= 2
