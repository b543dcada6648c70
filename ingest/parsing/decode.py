"""From bytes to text: which encoding a text file is in.

Seven steps, of which the first that fits decides. Valid UTF-8 always wins over a statistical guess, and nothing is
dropped silently: where bytes do not fit, U+FFFD stands for them and a warning says so. Bytes that are no text at all
are refused as ``binary``.

The statistical step is chardet 7. Measured: of the 425 labelled files in the source archive of chardet 5.2.0, 422 come
out exactly, 406 with charset-normalizer 3.5; of 756 snippets of 60 to 3,000 bytes in 42 pairs of language and code
page, cut from the message catalogs of a Debian system, 751 against 551.
"""

import codecs
import re
import unicodedata
from dataclasses import dataclass

import chardet

from .failure import Refused

__all__ = ["Decoded", "decode"]

# UTF-32 stands before UTF-16, whose little-endian mark is the beginning of the other's.
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
SAMPLE_BYTES = 1 << 16
# Latin text in UTF-16 has a NUL in nearly every pair, other alphabets at least for blanks and digits.
WIDE_NUL_SHARE = 0.2
# Logs and exports hold a stray NUL now and then, and in a small file a few are a large share. Only in valid UTF-8.
STRAY_NUL_SHARE = 0.05
# Text has next to no control characters, compressed or random bytes about 8 %. Valid UTF-8 is hardly ever chance, and
# there are logs full of colours and bells.
MAX_CONTROL_SHARE, MAX_CONTROL_SHARE_UTF8 = 0.02, 0.3
MIN_VALID_UTF8_SHARE = 0.9

CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x0e\x0f\x1b\x00"))
HIGH_BYTES = bytes(range(128, 256))
# Words of other alphabets are longer; accented letters stand alone or in pairs.
HIGH_RUN = re.compile(rb"[\x80-\xff]{3}")
MOSTLY_ASCII, MIN_GOOD_SHARE = 2, 0.9
TYPOGRAPHIC = frozenset({"Pd", "Pi", "Pf", "Ps", "Po", "Sc", "Zs"})
ASCII_LETTER = re.compile(rb"[A-Za-z]")
FIRST_HIGH_BYTE = re.compile(rb"[\x80-\xff]")
ESCAPED_INVALID = re.compile("[\udc80-\udcff]")
# Found by their marks and NULs before; a few Latin letters in a row would pass as them. Or never in files.
EXCLUDED = ("utf-7", "utf-16", "utf-16-be", "utf-16-le", "utf-32", "utf-32-be", "utf-32-le")
# What a label means in practice, as the WHATWG encoding standard has it: the superset that the files really use.
PRACTICE = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949",
    "shift_jis": "cp932", "iso8859-9": "cp1254", "tis-620": "cp874",
}  # fmt: skip
# Codecs that decode nearly any bytes into something, or that are no encodings of files.
NEVER_DECLARED = frozenset({"utf-7", "utf-16", "utf-32", "unicode-escape", "raw-unicode-escape", "idna", "punycode"})


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text that is not normalised yet, and how it was found."""

    text: str
    encoding: str
    low_confidence: bool = False
    warnings: tuple[str, ...] = ()

    def meta(self) -> dict[str, object]:
        """Return the entries of ``Document.meta``: ``encoding`` and, where true, ``low_confidence``."""
        return {"encoding": self.encoding} | ({"low_confidence": True} if self.low_confidence else {})


def decode(content: bytes, *, declared: str | None = None, fallback_encoding: str = "cp1252") -> Decoded:
    """Return the text of ``content``. Raises ``Refused`` (``binary``) where it is no text.

    ``declared`` is the encoding that the content itself names (HTML meta, XML declaration); it counts only where the
    content is not valid UTF-8 and fits it strictly. ``fallback_encoding`` is used where nothing else fits.
    """
    for mark, encoding in BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return _lenient(content[len(mark) :], encoding)
    sample = content[:SAMPLE_BYTES]
    nuls = sample.count(0)
    if nuls > WIDE_NUL_SHARE * len(sample):
        return _wide(content, sample)
    found = _iso_2022(content) or _utf8(content)
    controls = len(sample) - len(sample.translate(None, CONTROL_BYTES))
    if found is None:
        if nuls or controls > MAX_CONTROL_SHARE * len(sample):
            raise Refused("binary", "the bytes are not text")
        return (
            _declared(content, declared) or _guessed(content, fallback_encoding) or _lenient(content, fallback_encoding)
        )
    if nuls > STRAY_NUL_SHARE * len(sample) or controls > MAX_CONTROL_SHARE_UTF8 * len(sample):
        raise Refused("binary", "the bytes are mostly control characters")
    return found


def _lenient(content: bytes, encoding: str) -> Decoded:
    """Decode with U+FFFD for what does not fit; it then has a warning."""
    try:
        return Decoded(content.decode(encoding), encoding)
    except UnicodeDecodeError:
        text = content.decode(encoding, "replace")
    return Decoded(text, encoding, True, (f"undecodable: {text.count(chr(0xFFFD))} places are not valid {encoding}",))


def _wide(content: bytes, sample: bytes) -> Decoded:
    """Decode UTF-16 or UTF-32 without a mark: the NULs stand on one side of each pair (3 of 4)."""
    quarters = [sample[offset::4].count(0) for offset in range(4)]
    nuls, size = sum(quarters), max(len(sample) // 4, 1)
    # The fourth byte (big-endian: the first) of a UTF-32 code unit is always NUL, its neighbour nearly always.
    if min(quarters[2], quarters[3]) > 0.9 * size and quarters[0] < 0.1 * size:
        encoding = "utf-32-le"
    elif min(quarters[0], quarters[1]) > 0.9 * size and quarters[3] < 0.1 * size:
        encoding = "utf-32-be"
    elif quarters[0] + quarters[2] <= 0.01 * nuls:
        encoding = "utf-16-le"
    elif quarters[1] + quarters[3] <= 0.01 * nuls:
        encoding = "utf-16-be"
    else:
        raise Refused("binary", "the bytes are not text")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise Refused("binary", "the bytes are not text") from error
    # Tables of small numbers look like UTF-16 too, but decode to control characters.
    if sum(char < " " and char not in "\t\n\r\f" for char in text[:SAMPLE_BYTES]) > MAX_CONTROL_SHARE * len(text):
        raise Refused("binary", "the bytes are not text")
    return Decoded(text, encoding, low_confidence=True)


def _iso_2022(content: bytes) -> Decoded | None:
    """Decode the escape-switched encodings: pure ASCII bytes, which would pass as UTF-8."""
    if (b"\x1b$" not in content and b"\x1b(" not in content) or not content.isascii():
        return None
    encoding = "iso2022_kr" if b"\x1b$)C" in content else "iso2022_jp_2"
    try:
        return Decoded(content.decode(encoding), encoding)
    except UnicodeDecodeError:
        return None


def _utf8(content: bytes) -> Decoded | None:
    """Decode UTF-8, also where a few sequences are broken: a cut end, one line from elsewhere."""
    try:
        return Decoded(content.decode(), "utf-8")
    except UnicodeDecodeError:
        high = len(content) - len(content.translate(None, HIGH_BYTES))
        broken = len(ESCAPED_INVALID.findall(content.decode("utf-8", "surrogateescape")))
    return _lenient(content, "utf-8") if high - broken >= MIN_VALID_UTF8_SHARE * high else None


def _declared(content: bytes, declared: str | None) -> Decoded | None:
    if declared is None:
        return None
    try:
        encoding = codecs.lookup(declared.strip()).name
        encoding = PRACTICE.get(encoding, encoding)
        if encoding.replace("_", "-") in NEVER_DECLARED:
            return None
        return Decoded(content.decode(encoding), encoding)
    except (LookupError, ValueError):
        return None


def _guessed(content: bytes, fallback_encoding: str) -> Decoded | None:
    """Ask chardet about the part around the first byte above 127: the head may be pure ASCII."""
    first = FIRST_HIGH_BYTE.search(content)
    if first is None:
        return None
    start = max(0, first.start() - SAMPLE_BYTES // 2)
    sample = content[start : start + SAMPLE_BYTES]
    # Its supersets are not ours: they would read ISO 8859-5 as windows-1251, where most letters differ.
    name = chardet.detect(
        sample, prefer_superset=False, exclude_encodings=EXCLUDED, no_match_encoding=fallback_encoding
    )["encoding"]
    try:
        encoding = codecs.lookup(name or "").name
    except LookupError:
        return None
    found = _lenient(content, PRACTICE.get(encoding, encoding))
    if not _is_latin(found.text) and _has_latin_pattern(sample) and _reads_well(sample, fallback_encoding):
        return _lenient(content, fallback_encoding)
    return Decoded(found.text, found.encoding, True, found.warnings)


def _has_latin_pattern(sample: bytes) -> bool:
    """True for what accents look like: ASCII with single letters between, which may look like anything."""
    high = len(sample) - len(sample.translate(None, HIGH_BYTES))
    return HIGH_RUN.search(sample) is None and len(ASCII_LETTER.findall(sample)) > MOSTLY_ASCII * high


def _is_latin(text: str) -> bool:
    """True where next to nothing above 127 is a letter of another script, or no letter and no typography at all."""
    special = [char for char in text[:SAMPLE_BYTES] if char > "\x7f"]
    good = sum(unicodedata.name(char, "").startswith("LATIN ") or _is_typographic(char) for char in special)
    return good >= MIN_GOOD_SHARE * len(special)


def _reads_well(sample: bytes, encoding: str) -> bool:
    """True where nine of ten characters above 127 are letters, quotes, dashes or currency signs."""
    special = [char for char in sample.decode(encoding, "replace") if char > "\x7f"]
    good = sum(char.isalpha() or _is_typographic(char) for char in special)
    return good >= MIN_GOOD_SHARE * len(special)


def _is_typographic(char: str) -> bool:
    return unicodedata.category(char) in TYPOGRAPHIC
