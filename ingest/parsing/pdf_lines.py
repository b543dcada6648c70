"""Lines of PDF pages: words broken at a line end, lines that run through the document, and how pages join.

Works on pages that are normalised already, before any offset is taken.
"""

import re
from collections import Counter
from collections.abc import Sequence

__all__ = ["drop_running_lines", "ends_sentence", "join_broken_words", "join_soft_hyphens"]

# Fewer pages prove nothing; a line has to stand on most of them.
MIN_PAGES, RUNNING_SHARE, EDGE_LINES = 6, 0.6, 2
# A number that stands by itself, short enough for a page number.
NUMBER = re.compile(r"(?<!\w)[0-9]{1,5}(?!\w)")
WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
# A hyphen after a letter at the end of a line; the other half, what clings to it, and the blank after that. The first
# half is found backwards from here: looking for it forwards is quadratic on long runs of letters.
BROKEN = re.compile(r"(?<=[^\W\d_])[-\u2010][ \t]*\n[ \t]*(\w+)(\S*)([ \t]*\n?)")
FIRST_WORD = re.compile(r"\s*(\w+)(\S*)[ \t]*\n?")
MAX_WORD_CHARS = 60
SOFT_BREAK = re.compile("\u00ad[ \t]*\n[ \t]*")
MIN_HALF = 4
SENTENCE_END = re.compile(r"[.!?;:…。！？؟।][\"'”’»)\]]*\s*\Z")


def join_soft_hyphens(text: str) -> str:
    """Join words at soft hyphens that end a line; they say by themselves that they are none."""
    return SOFT_BREAK.sub("", text)


def join_broken_words(pages: Sequence[str]) -> list[str]:
    """Return the pages with words that a hyphen breaks at a line end made whole, on the line where they begin.

    The hyphen stays before a capital or digit. Else the first that fits decides: the word stands hyphenated elsewhere
    in the document, it stays; joined, it goes; both halves are words of their own, it stays; else it goes. A word that
    is broken between two pages goes to the first; before a capital or digit it may be no word, and nothing moves.
    """
    pages = list(pages)
    known = _words_elsewhere(pages)

    def whole(match: re.Match[str]) -> str:
        rest, tail, blank = match.groups()
        half = match.string[_half_start(match.string, match.start()) : match.start()]
        # The line breaks after the word instead; not where the word itself is broken again.
        after = "\n" if blank and not tail.endswith(("-", "\u2010")) else blank
        return _joint(half, match[0][0], rest, known) + rest + tail + after

    for index, page in enumerate(pages):
        # A word may be broken twice, and the second break begins where the first match ended.
        while (joined := BROKEN.sub(whole, page)) != page:
            page = joined
        pages[index] = page
    for index in range(len(pages) - 1):
        page = pages[index].rstrip()
        start = _half_start(page, len(page) - 1)
        rest = FIRST_WORD.match(pages[index + 1])
        if page.endswith(("-", "\u2010")) and start < len(page) - 1 and rest and rest[1][0].islower():
            pages[index] = page[:-1] + _joint(page[start:-1], page[-1], rest[1], known) + rest[1] + rest[2]
            pages[index + 1] = pages[index + 1][rest.end() :]
    return pages


def _half_start(text: str, end: int) -> int:
    """Return where the run of letters that ends at ``end`` begins, ``end`` if there is none."""
    start = end
    while start > 0 and end - start < MAX_WORD_CHARS and text[start - 1].isalpha():
        start -= 1
    return start


def _words_elsewhere(pages: Sequence[str]) -> frozenset[str]:
    """Return all words in lower case, also those with a hyphen inside, but for the halves of broken ones."""
    known: set[str] = set()
    is_broken = False
    for page in pages:
        rest = FIRST_WORD.match(page) if is_broken else None
        start = rest.end(1) if rest else 0
        page = page.rstrip()
        half = _half_start(page, len(page) - 1)
        is_broken = page.endswith(("-", "\u2010")) and half < len(page) - 1
        if is_broken:
            page = page[:half]
        for broken in BROKEN.finditer(page):
            known.update(WORD.findall(page[start : _half_start(page, broken.start())].lower()))
            start = broken.end(1)
        known.update(WORD.findall(page[start:].lower()))
    return frozenset(word.replace("\u2010", "-") for word in known)


def _joint(half: str, hyphen: str, rest: str, known: frozenset[str]) -> str:
    """Return what stands between two halves: the hyphen or nothing."""
    if not rest[0].isalpha() or rest[0].isupper():
        return hyphen
    first, second = half.lower(), rest.lower()
    if f"{first}-{second}" in known:
        return hyphen
    if first + second in known:
        return ""
    if min(len(first), len(second)) >= MIN_HALF and first in known and second in known:
        return hyphen
    return ""


def drop_running_lines(pages: Sequence[str], labels: Sequence[str | None]) -> tuple[list[str], list[str]]:
    """Return the pages without their running titles and page numbers, and these lines, once each, in order.

    A running line is one of the first or last two of a page that stands on 60 % of the pages with text, alike but for
    the page number; it stays where it is all that a page has. ``labels`` are the printed page numbers, where known.
    """
    split = [page.split("\n") for page in pages]
    edges = [_edges([index for index, line in enumerate(lines) if line.strip()]) for lines in split]
    full = sum(1 for indices in edges if indices)
    if full < MIN_PAGES:
        return list(pages), []
    forms = [
        {index: _forms(split[page][index], page + 1, labels[page]) for index in indices}
        for page, indices in enumerate(edges)
    ]
    counts: Counter[str] = Counter()
    for page_forms in forms:
        counts.update(set().union(*page_forms.values()))
    running = {form for form, count in counts.items() if count >= RUNNING_SHARE * full}
    dropped: dict[str, str] = {}
    kept: list[str] = []
    for lines, page_forms in zip(split, forms, strict=True):
        gone = {index: known for index, alike in page_forms.items() if (known := alike & running)}
        rest = "\n".join(line for index, line in enumerate(lines) if index not in gone)
        if not rest.strip():
            kept.append("\n".join(lines))
            continue
        kept.append(rest)
        for index in sorted(gone):
            dropped.setdefault(max(sorted(gone[index]), key=counts.__getitem__), lines[index].strip())
    return kept, list(dropped.values())


def _edges(indices: Sequence[int]) -> set[int]:
    return {*indices[:EDGE_LINES], *indices[-EDGE_LINES:]}


def _forms(line: str, page: int, label: str | None) -> set[str]:
    """Return a line as it is, and with its first or last number as distance from the page number.

    Other numbers count: masking all digits would take "Invoice 4711" from every page of a batch of invoices.
    """
    line = " ".join(line.split())
    forms = {line}
    numbers = list(NUMBER.finditer(line))
    for number in numbers[:1] + numbers[-1:]:
        forms.add(f"{line[: number.start()]}<{int(number[0]) - page}>{line[number.end() :]}")
    if label and (found := re.search(rf"(?<!\w){re.escape(label)}(?!\w)", line)):
        forms.add(f"{line[: found.start()]}<page>{line[found.end() :]}")
    return forms


def ends_sentence(text: str) -> bool:
    """True where ``text`` ends with the end of a sentence."""
    return SENTENCE_END.search(text[-16:]) is not None
