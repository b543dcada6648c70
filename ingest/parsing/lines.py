r"""Lines of a text: where they begin, and the paragraphs that blank lines part.

A line ends at ``\n`` alone, as an editor counts; ``str.splitlines`` also splits at form feeds and U+2028.
"""

import re
from collections.abc import Iterator

__all__ = ["LETTER_OR_DIGIT", "LineSpans", "paragraphs"]

LETTER_OR_DIGIT = re.compile(r"[^\W_]")

LINE = re.compile(r"[^\n]+")


class LineSpans:
    """Offsets of the lines of a text, counted from 0."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._end = len(text)

    def __len__(self) -> int:
        return len(self._starts)

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Return the offsets of lines ``first`` to ``last - 1``, without the line break at their end."""
        end = self._starts[last] - 1 if last < len(self._starts) else self._end
        return self._starts[first], max(end, self._starts[first])


def paragraphs(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the spans of runs of lines that are not blank, whole lines each, within ``text[start:end]``."""
    first = last = -1
    for line in LINE.finditer(text, start, len(text) if end is None else end):
        # One expression for the whole run would be quadratic on long blank lines.
        if line[0].isspace():
            continue
        if first >= 0 and line.start() == last + 1:
            last = line.end()
            continue
        if first >= 0:
            yield first, last
        first, last = line.span()
    if first >= 0:
        yield first, last
