"""Where sentences and lines of prose begin, by rules that need only the characters around a stop.

No language is guessed and no model is loaded: the rules must give the same cuts on every machine for years, since a
changed cut means embedding again. They miss some ends and never look further than one line back.
"""

import re
from collections.abc import Iterator

__all__ = ["ends_sentence", "sentence_starts"]

CLOSERS = "\"'”’»›)\\]}」』）】*_`"
# A stop that needs white space behind it, and one that does not (CJK full stops).
SPACED_STOPS = ".!?;:…؟।"
FULL_STOPS = "。！？"
# Begun at the first stop of a run and never given back: a line of a million dots takes linear time.
STOP = re.compile(rf"(?<![{SPACED_STOPS}])[{SPACED_STOPS}]++[{CLOSERS}]*+\s+|[{FULL_STOPS}]++[{CLOSERS}]*+\s*")
STOP_AT_LINE_END = re.compile(rf"[.!?:…؟।{FULL_STOPS}][{CLOSERS}]*[^\S\n]*\n\s*")
STOP_AT_END = re.compile(rf"[{SPACED_STOPS}{FULL_STOPS}][{CLOSERS}]*\s*\Z")
# What may stand between a stop and the first letter of the next sentence: quotes, brackets, emphasis.
OPENERS = frozenset("\"'“‘«‹„([{「『（【*_`¿¡")
WORD_BEFORE = re.compile(r"[^\W\d_]+\Z")
ENUMERATOR = re.compile(r"(?:\A|\n)\s*\d+\Z")
# Followed by a capital or a digit more often than they end a sentence. Compared in lower case.
ABBREVIATIONS = frozenset((
    "al", "approx", "bzw", "ca", "cf", "cp", "dr", "eq", "eqs", "fig", "figs", "jr", "mr", "mrs", "ms", "no", "nos",
    "nr", "pp", "prof", "ref", "refs", "resp", "sr", "usw", "vgl", "vol", "vols", "vs",
))  # fmt: skip
# Longer than any abbreviation and its dots; a window keeps the look back constant.
LOOK_BACK = 16
# Longest look back for the end of the sentence before a page: a wall is longer, and never crossed.
BLANK_LOOK_BACK = 300


def sentence_starts(text: str, start: int, end: int) -> Iterator[int]:
    """Yield the offsets inside ``text[start:end]`` at which a sentence, or a line after a stop, begins.

    Not in order, and some twice; neither ``start`` nor ``end`` is among them.
    """
    for match in STOP.finditer(text, start, end):
        if match.end() < end and _begins_sentence(text, match.end(), end) and _stops(text, start, match):
            yield match.end()
    for match in STOP_AT_LINE_END.finditer(text, start, end):
        if match.end() < end and _stops(text, start, match):
            yield match.end()


def ends_sentence(text: str, start: int, end: int) -> bool:
    """Whether ``text[start:end]`` ends with a stop; closing quotes and white space may follow it."""
    return STOP_AT_END.search(text, max(start, end - BLANK_LOOK_BACK), end) is not None


def _begins_sentence(text: str, offset: int, end: int) -> bool:
    """Whether a capital, a digit, a caseless letter or a piece of code stands at ``offset``, openers aside."""
    code = False
    while offset < end and text[offset] in OPENERS:
        code = code or text[offset] == "`"
        offset += 1
    if offset == end:
        return False
    first = text[offset]
    return code or first.isdigit() or (first.isalpha() and not first.islower())


def _stops(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether the match is an end: not the dot of an initial, an abbreviation, or a number that opens a line."""
    if match[0].rstrip() != ".":
        return True
    dot = match.start()
    near = text[max(start, dot - LOOK_BACK) : dot]
    before = WORD_BEFORE.search(near)
    if before is None:
        return ENUMERATOR.search(near) is None
    word = before[0]
    single_letter = len(word) == 1 and word.lower() != word.upper()
    return not single_letter and word.lower() not in ABBREVIATIONS
