"""Rich text as words and decoded text, each with the state of the group it stands in.

Knows groups, destinations, fonts with their character sets, and the ways to write a character; not what paragraphs or
tables are. One pass, no recursion, in time linear in the size of the file. Source: the RTF specification 1.9.1; the
code pages of character sets as in [MS-WMF] 2.1.1.5.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

__all__ = ["Group", "RtfEvent", "RtfText", "Token", "Tokens"]

TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?[0-9]{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z'])|([{}])|([^\\{}\r\n\x00]+)|[\r\n\x00]+|\\"
)
# Destinations that hold no text of the document, besides all that a star marks as optional; and those that do hold some
# in spite of a star. ``result`` of an object and ``fldrslt`` of a field are what is shown of them.
LEFT_OUT = frozenset(
    {
        "colortbl", "pict", "fldinst", "objdata", "objclass", "header", "headerl", "headerr", "headerf", "footer",
        "footerl", "footerr", "footerf", "nonshppict", "shprslt", "sp", "xe", "tc", "rxe", "bkmkstart", "bkmkend",
        "ftnsep", "ftnsepc", "ftncn", "aftnsep", "aftnsepc", "aftncn", "listtable", "listoverridetable", "revtbl",
        "rsidtbl", "filetbl", "themedata", "datastore", "mmathPr", "pgdsctbl", "author", "operator", "creatim",
        "revtim", "printim", "company", "doccomm", "subject", "keywords", "comment", "category", "manager",
        "buptim", "hlinkbase", "private", "template", "generator", "stylesheet", "fonttbl",
    }
)  # fmt: skip
SHOWN_ALL_THE_SAME = frozenset({"shpinst", "shptxt", "shppict"})
NOTES = frozenset({"footnote"})
NUMBERS = frozenset({"listtext", "pntext"})
CHARACTERS = {
    "emdash": "\u2014", "endash": "\u2013", "bullet": "\u2022", "lquote": "\u2018", "rquote": "\u2019",
    "ldblquote": "\u201c", "rdblquote": "\u201d", "zwj": "\u200d", "zwnj": "\u200c", "ltrmark": "\u200e",
    "rtlmark": "\u200f",
}  # fmt: skip
SYMBOLS = {"~": "\u00a0", "_": "-", "\\": "\\", "{": "{", "}": "}"}
# Behind a backslash they are what \par is.
LINE_ENDS = frozenset({"\n", "\r"})
# What \ansi, \mac, \pc and \pca declare, unless \ansicpg follows.
DECLARED = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}
SYMBOL_SET = 2
CHARACTER_SETS = {
    77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "cp936", 136: "cp950", 161: "cp1253", 162: "cp1254",
    163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250",
}  # fmt: skip
# Bullets of the font Symbol; its other characters are kept as they stand.
SYMBOL_BULLETS = str.maketrans({"\u00b7": "\u2022", "\u00a7": "\u2022"})
NO_OUTLINE = 9
DEFAULT_FONT = -1


class Token(NamedTuple):
    """``word`` with its ``number`` (None without one), a ``sign`` that is no letter, a brace, or plain ``content``."""

    word: str = ""
    number: int | None = None
    sign: str = ""
    brace: str = ""
    content: bytes = b""


class Tokens:
    """The tokens of a file, once; binary data are passed over."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[Token]:
        position = 0
        while (match := TOKEN.match(self._content, position)) is not None:
            position = match.end()
            word, number, byte, sign, brace, content = match.groups()
            if word is not None:
                value = int(number) if number is not None else None
                if word == b"bin" and value is not None:
                    position += max(value, 0)
                else:
                    yield Token(word=word.decode("ascii"), number=value)
            elif byte is not None:
                yield Token(content=bytes([int(byte, 16)]), number=1)
            elif sign is not None:
                yield Token(sign=sign.decode("latin-1"))
            elif brace is not None:
                yield Token(brace=brace.decode("ascii"))
            elif content is not None:
                yield Token(content=content)


@dataclass(frozen=True, slots=True)
class Group:
    """What holds in a group: whether its text counts, and as what; the rest is of the paragraph or of the characters.

    ``note`` is which note of the file it belongs to, counted from 1; 0 is none. ``outline`` is the outline level,
    counted from 0; 9 is none. ``font`` is -1 for that of the file. ``unicode_skip`` is how many characters stand behind
    a Unicode one for readers that do not know it.
    """

    is_left_out: bool = False
    note: int = 0
    is_number: bool = False
    is_title: bool = False
    is_deleted: bool = False
    is_hidden: bool = False
    in_table: bool = False
    outline: int = NO_OUTLINE
    list_level: int = 0
    font: int = DEFAULT_FONT
    unicode_skip: int = 1
    # Which table of the head it belongs to: ``fonttbl``, ``stylesheet`` or none.
    table: str = ""


class RtfEvent(NamedTuple):
    """A ``word``, or ``text`` where that is empty, in its group."""

    word: str
    text: str
    group: Group


class RtfText:
    """Decodes a file. ``title``, ``undecodable`` and ``has_hidden`` are complete once all events were taken."""

    def __init__(self, fallback_encoding: str) -> None:
        self.undecodable = 0
        self.has_hidden = False
        self._title: list[str] = []
        self._notes = 0
        self._encoding = fallback_encoding
        self._default_font = DEFAULT_FONT
        self._fonts: dict[int, int] = {}
        self._outlines: dict[int, int] = {}
        self._style = 0
        self._bytes = bytearray()
        self._text: list[str] = []
        self._skip = 0
        self._is_optional = False
        self._is_first = False

    @property
    def title(self) -> str:
        """The title in the properties; empty for none."""
        return "".join(self._title)

    def events(self, tokens: Tokens) -> Iterator[RtfEvent]:
        """Yield words and text; stretches of text are as long as their group and font last."""
        groups: list[Group] = []
        group = Group()
        for token in tokens:
            if token.content:
                self._is_optional = self._is_first = False
                if not group.is_left_out:
                    self._add(token.content)
                continue
            is_optional, self._is_optional = self._is_optional, False
            is_first, self._is_first = self._is_first, False
            if token.sign == "*":
                # Within a group it means nothing; some programs write it all the same.
                self._is_optional = is_first
                continue
            if token.sign in LINE_ENDS:
                token = Token(word="par")
            elif token.sign:
                if not group.is_left_out:
                    self._sign(token.sign, group)
                continue
            if token.brace:
                yield from self._flush(group)
                self._skip = 0
                if token.brace == "{":
                    groups.append(group)
                    self._is_first = True
                elif groups:
                    group = groups.pop()
                continue
            if self._character(token, group):
                continue
            yield from self._flush(group)
            group = self._changed(token, group, is_optional=is_optional)
            if not group.is_left_out:
                self._skip = max(self._skip - 1, 0)
                yield RtfEvent(token.word, "", group)
        yield from self._flush(group)

    def _add(self, content: bytes) -> None:
        passed, self._skip = min(self._skip, len(content)), self._skip - min(self._skip, len(content))
        self._bytes += content[passed:]

    def _sign(self, sign: str, group: Group) -> None:
        if self._skip:
            self._skip -= 1
        elif sign in SYMBOLS:
            self._decode(group)
            self._text.append(SYMBOLS[sign])

    def _character(self, token: Token, group: Group) -> bool:
        """Take a word that stands for a character; False for any other."""
        if token.word == "u" and token.number is not None:
            if not group.is_left_out:
                self._decode(group)
                self._text.append(chr(token.number & 0xFFFF))
                self._skip = group.unicode_skip
            return True
        if token.word not in CHARACTERS:
            return False
        if not group.is_left_out:
            if self._skip:
                self._skip -= 1
            else:
                self._decode(group)
                self._text.append(CHARACTERS[token.word])
        return True

    def _decode(self, group: Group) -> None:
        """Turn the bytes so far into text, in the code page of the font; those of one character stand together."""
        if not self._bytes:
            return
        font = self._default_font if group.font == DEFAULT_FONT else group.font
        character_set = self._fonts.get(font, 0)
        text = self._bytes.decode(CHARACTER_SETS.get(character_set, self._encoding), "replace")
        self.undecodable += text.count("\ufffd")
        self._text.append(text.translate(SYMBOL_BULLETS) if character_set == SYMBOL_SET else text)
        self._bytes.clear()

    def _flush(self, group: Group) -> Iterator[RtfEvent]:
        if not self._bytes and not self._text:
            return
        self._decode(group)
        # Characters beyond the first 65,536 are written as two.
        text = "".join(self._text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        self._text.clear()
        if group.is_title:
            self._title.append(text)
        elif not group.is_left_out and not group.is_deleted:
            if group.is_hidden:
                self.has_hidden = True
            else:
                yield RtfEvent("", text, group)

    def _changed(self, token: Token, group: Group, *, is_optional: bool) -> Group:
        """Return the group as it is behind a word, and note what the head of the file declares."""
        word, number = token.word, token.number
        changed = self._in_head(word, number, group)
        if changed is not None:
            return changed
        if group.is_left_out:
            return group
        if (is_optional and word not in SHOWN_ALL_THE_SAME) or word in LEFT_OUT:
            return replace(group, is_left_out=True, table=word)
        changed = self._of_characters(word, number, group)
        return self._of_paragraph(word, number, changed) if changed is group else changed

    def _in_head(self, word: str, number: int | None, group: Group) -> Group | None:
        if group.table == "fonttbl":
            if word == "f" and number is not None:
                return replace(group, font=number)
            if word == "fcharset" and number is not None:
                self._fonts[group.font] = number
            return group
        if group.table == "stylesheet":
            if word == "s" and number is not None:
                self._style = number
            elif word == "outlinelevel" and number is not None:
                self._outlines[self._style] = number
            return group
        if word == "ansicpg" and number is not None:
            self._encoding = _known(f"cp{number}") or self._encoding
        elif word in DECLARED:
            self._encoding = DECLARED[word]
        elif word == "deff" and number is not None:
            self._default_font = number
        else:
            return None
        return group

    def _of_characters(self, word: str, number: int | None, group: Group) -> Group:
        if word == "f" and number is not None:
            return replace(group, font=number)
        if word == "uc" and number is not None:
            return replace(group, unicode_skip=min(max(number, 0), 255))
        if word == "deleted":
            return replace(group, is_deleted=number != 0)
        if word == "v":
            return replace(group, is_hidden=number != 0)
        if word == "plain":
            return replace(group, is_deleted=False, is_hidden=False, font=DEFAULT_FONT)
        if word in NOTES:
            self._notes += 1
            return replace(group, note=self._notes)
        if word in NUMBERS:
            return replace(group, is_number=True)
        if word == "title":
            return replace(group, is_title=True)
        return group

    def _of_paragraph(self, word: str, number: int | None, group: Group) -> Group:
        if word == "pard":
            return replace(group, in_table=False, outline=NO_OUTLINE, list_level=0)
        if word == "intbl":
            return replace(group, in_table=True)
        if word == "s" and number is not None:
            return replace(group, outline=self._outlines.get(number, NO_OUTLINE))
        if word == "outlinelevel" and number is not None:
            return replace(group, outline=number if number >= 0 else NO_OUTLINE)
        if word == "ilvl" and number is not None:
            return replace(group, list_level=min(max(number, 0), 8))
        return group


def _known(encoding: str) -> str | None:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        return None
