"""Whether the text of a PDF page can be meant: broken font tables give garbage that looks like text to a program.

Two checks. *Garbage* is what no reader would call words; such a page is read by the other engine, and left out if that
is no better. *Suspect* text has words that no language has; it is kept, with a warning.
"""

import re
import string

__all__ = ["DOUBT", "GARBAGE", "garbage_score", "is_cleaner", "is_suspect"]

# A page of fewer visible characters proves nothing.
MIN_VISIBLE = 20
# A page over the lower score is read by the other engine too: 3 % of 14,720 pages of manuals. Over the higher: garbage.
DOUBT, GARBAGE = 0.65, 1.0
MAX_UNMAPPED_SHARE, MAX_SYMBOL_SHARE, MAX_MEAN_WORD, MAX_SINGLE_SHARE = 0.10, 0.15, 18.0, 0.60
# Chinese has these characters too, the sign for "one" among them; a third of a page of it they are not.
MAX_SWAPPED_SHARE = 0.30
MIN_WORDS_FOR_SINGLES = 10
MIN_SUSPECT_WORDS, MIN_FUNCTION_SHARE = 60, 0.02

VISIBLE = re.compile(r"\S")
# Names of glyphs and of character codes instead of characters; controls, private use, replacement, noncharacters.
UNMAPPED = re.compile("/g[0-9]{1,5}|\\(cid:[0-9]{1,6}\\)|[\x00-\x08\x0e-\x1f\x7f-\x9f\ue000-\uf8ff\ufffd-\uffff]")
LATIN_1_SYMBOLS = re.compile("[\u00a1-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7]")
# Latin letters whose two bytes of UTF-16 were taken in the wrong order: Chinese to look at, and no text.
SWAPPED = re.compile(f"[{''.join(chr(ord(letter) << 8) for letter in string.ascii_letters)}]")
LETTERS = re.compile(r"[^\W\d_]+")
LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
LATIN_WORD = re.compile("[A-Za-z\u00c0-\u024f]+")
# The most frequent words of ten languages that are written in Latin letters.
FREQUENT = """
    the of and to in is that for it as was with be by on not he his but at are this have from or an they which you all
    der die und den das von zu mit sich des auf für ist im dem nicht ein eine als auch es werden aus er hat dass sie
    le la les et en un une du dans que est pour qui par sur au plus pas ne se ce
    el los las del y por con para una su al lo como más
    di che il per non della sono da si gli nel alla
    o a os do em um com não uma no na mais
    het een van dat niet zijn op te met voor
    och att som på av är för till inte det er ikke
    w i z nie się jest że
    ve bir bu için ile ja ei se että
"""
FUNCTION_WORDS = frozenset(FREQUENT.split())


def visible_chars(text: str) -> int:
    """Return the number of characters that are not blank."""
    return len(VISIBLE.findall(text))


def garbage_score(text: str) -> float:
    """Return how bad the raw text of a page is: ``GARBAGE`` or more is not to be read; less is better."""
    visible = visible_chars(text)
    if visible < MIN_VISIBLE:
        return 0.0
    unmapped = sum(len(match) for match in UNMAPPED.findall(text)) / visible / MAX_UNMAPPED_SHARE
    symbols = len(LATIN_1_SYMBOLS.findall(text)) / visible / MAX_SYMBOL_SHARE
    swapped = len(SWAPPED.findall(text)) / visible / MAX_SWAPPED_SHARE
    return max(unmapped, symbols, swapped, _word_score(text))


def is_cleaner(text: str, than: str) -> bool:
    """True where ``text`` is the better of two readings of a page, and not just less text.

    Any less garbage is better than garbage; of what is no garbage yet, only half of it is worth a change.
    """
    score = garbage_score(than)
    least = score if score >= GARBAGE else score / 2
    return garbage_score(text) < least and 2 * visible_chars(text) >= visible_chars(than)


def _word_score(text: str) -> float:
    words = LETTERS.findall(text)
    letters = sum(map(len, words))
    if not words or len(LATIN.findall(text)) < letters / 2:
        return 0.0
    # One long name in a table of numbers is no sign of anything.
    long = letters / len(words) / MAX_MEAN_WORD if letters > 5 * MAX_MEAN_WORD else 0.0
    single = 0.0
    if len(words) >= MIN_WORDS_FOR_SINGLES:
        single = sum(len(word) == 1 for word in words) / len(words) / MAX_SINGLE_SHARE
    return max(long, single)


def is_suspect(text: str) -> bool:
    """True for a page of Latin words of which hardly one is among the most frequent of ten languages."""
    words = LATIN_WORD.findall(text.lower())
    if len(words) < MIN_SUSPECT_WORDS:
        return False
    return sum(word in FUNCTION_WORDS for word in words) < MIN_FUNCTION_SHARE * len(words)
