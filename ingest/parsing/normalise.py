r"""The one normalisation of text, done before the first offset is taken.

It makes text that can be stored, shown and cited anywhere, and changes nothing that a reader of the text would see:
full NFKC is not used, since it turns ``m²`` into ``m2`` and harms full-width forms. Applying it twice changes nothing,
and but for ``\r\n`` and ``\r``, which are line breaks themselves, no line break comes or goes. What PDF needs
beyond this is in ``pdf_lines``.
"""

import re
import unicodedata

__all__ = ["collapse", "deceptive_warnings", "normalise"]

# ECMA-48: control sequences (CSI), strings such as a window title (OSC, DCS, PM, APC; ended by BEL or ST, never over a
# line break), designations of character sets, and escapes of two characters.
ANSI_ESCAPE = re.compile(
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)"
    r"|\x1b[ -/]{1,4}[0-~]"
    r"|\x1b[0-~]"
)
# Characters that part what stands on either side, but do not count as line breaks here (VT, FF, NEL, LS, PS).
SPACES = "\x0b\x0c\x85\u2028\u2029"
# Directional embeddings, overrides and isolates, and the invisible tag characters: they show a person other text than
# the one that is read, so they go, with a warning. ZWJ, ZWNJ, LRM and RLM stay: scripts need them.
DECEPTIVE = "\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f"
# No-break mark, soft hyphen, zero-width space, word joiner: invisible, and they break words in two for a search.
INVISIBLE = "\ufeff\u00ad\u200b\u2060"
CONTROLS = "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"
NONCHARACTERS = "\ufdd0-\ufdef" + "".join(
    f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(17)
)
LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}

LINE_BREAK = re.compile(r"\r\n?")
SPECIAL = re.compile(f"[{SPACES}{DECEPTIVE}{INVISIBLE}{CONTROLS}{NONCHARACTERS}\ud800-\udfff\ufb00-\ufb06]")
IS_DECEPTIVE = re.compile(f"[{DECEPTIVE}]")
# More than any indentation or table alignment; longer runs are padding that would fill a passage with nothing.
LONG_BLANK = re.compile(r"[ \t]{65,}")
PADDING = 65 * " "
# Putting combining marks in order takes time by the square of their number: 80,000 on one letter a minute. No script
# needs more than a handful; UAX 15 (stream-safe text) lets 30 stand together.
MARKS = frozenset(char for char in map(chr, range(0x300, 0x1E94B)) if unicodedata.combining(char))
LONG_MARKS = re.compile("([{0}]{{100}})[{0}]+".format("".join(sorted(MARKS))))


def normalise(text: str) -> tuple[str, int]:
    """Return ``text`` normalised, and how many deceptive characters that removed."""
    if text.isascii() and text.isprintable() and PADDING not in text:
        return text, 0
    if "\r" in text:
        text = LINE_BREAK.sub("\n", text)
    if "\x1b" in text:
        text = ANSI_ESCAPE.sub("", text)
    deceptive = 0 if text.isascii() else len(IS_DECEPTIVE.findall(text))
    text = SPECIAL.sub(_replace, text)
    if not text.isascii() and not MARKS.isdisjoint(text):
        text = LONG_MARKS.sub(r"\1", text)
    if not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", text)
    return LONG_BLANK.sub(" ", text), deceptive


def deceptive_warnings(count: int) -> tuple[str, ...]:
    """Return the warning about ``count`` removed characters; none for 0."""
    if not count:
        return ()
    return (f"deceptive_characters: {count} invisible or direction-changing characters removed",)


def collapse(text: str) -> str:
    """Return ``text`` on one line, without blanks at its ends: the form of titles and headings."""
    return " ".join(text.split())


def _replace(match: re.Match[str]) -> str:
    char = match[0]
    if char in SPACES:
        return " "
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return LIGATURES.get(code, "")
