"""HTML as a flat, balanced list of events: elements that open and close, and the text between them.

selectolax (lexbor) builds the tree that a browser would. It is quadratic on some hostile pages: 100,000 nested ``div``
take 14 s, a tag with 200,000 attributes does not end. A linear look at the tags comes first and gives such pages to
``html.parser``, which is linear, and knows less of how browsers mend broken markup. No walk here recurses.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from types import MappingProxyType
from typing import Literal, NamedTuple

from selectolax.lexbor import LexborHTMLParser

__all__ = ["Event", "events", "is_hostile"]

# Far beyond what people or programs write for a browser, and far below what the tree takes seconds for.
MAX_DEPTH, MAX_TAG_CHARS, MAX_ATTRIBUTES = 2000, 1 << 16, 1000
TAG = re.compile(r"<(?:!--|(/?)([a-zA-Z][a-zA-Z0-9:-]{0,60})([^>]*))")
# What begins a tag, a comment or a declaration, ended or not.
MARKUP = re.compile(r"<[a-zA-Z/!?]")
# Elements without an end tag.
VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
# Elements whose content is no markup, so that what looks like tags there is text.
RAW = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})
COMMENT_OR_RAW = re.compile(rf"<!--|<({'|'.join(sorted(RAW))})\b", re.IGNORECASE)
# An element that opens ends those of these that are open right above it: the end tags that authors leave out.
CELLS = frozenset({"td", "th", "p"})
IMPLIED: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "p": frozenset({"p"}),
        "li": frozenset({"li", "p"}),
        "td": CELLS,
        "th": CELLS,
        "tr": CELLS | {"tr"},
        "tbody": CELLS | {"tr", "thead", "tbody"},
        "dt": frozenset({"dt", "dd", "p"}),
        "dd": frozenset({"dt", "dd", "p"}),
        **dict.fromkeys(("div", "ul", "ol", "table", "pre", "h1", "h2", "h3", "h4", "h5", "h6"), frozenset({"p"})),
    }
)
# Those whose end tags may be left out without making the tree any deeper.
CLOSES_ITSELF = frozenset({"p", "li", "td", "th", "tr", "tbody", "dt", "dd", "option"})
NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})


class Event(NamedTuple):
    """``open`` and ``close`` name an element, ``text`` holds text. Every element that opens is closed."""

    kind: Literal["open", "close", "text"]
    value: str
    attributes: Mapping[str, str] = NO_ATTRIBUTES


def events(source: str, *, lenient: bool = False) -> list[Event]:
    """Return the events of a page. ``lenient`` takes ``html.parser``, as does a page that is hostile to the other."""
    if lenient or is_hostile(source):
        parser = _Events()
        parser.feed(_finished(source))
        parser.close()
        return parser.finish()
    return list(_walk(source))


def is_hostile(source: str) -> bool:
    """True where the tree is deep or a tag huge; in linear time, and never too low but for ``>`` inside attributes."""
    opened: Counter[str] = Counter()
    depth = position = 0
    while True:
        for match in TAG.finditer(source, position):
            is_end, name, rest = match.groups()
            if name is None:
                position = source.find("-->", match.end()) + 3
                break
            if len(rest) > MAX_ATTRIBUTES and (len(rest) > MAX_TAG_CHARS or len(rest.split()) > MAX_ATTRIBUTES):
                return True
            name = name.lower()
            if is_end:
                if opened[name]:
                    opened[name] -= 1
                    depth -= 1
            elif name in RAW:
                close = re.compile(f"</{name}", re.IGNORECASE).search(source, match.end())
                position = close.end() if close else 0
                break
            elif name not in VOID and not (name in CLOSES_ITSELF and opened[name]):
                opened[name] += 1
                depth += 1
                if depth > MAX_DEPTH:
                    return True
        else:
            return False
        if position <= match.start():
            # A comment or script without an end takes the rest of the page.
            return False


def _finished(source: str) -> str:
    """Return a page as far as it goes for a browser: up to a comment or tag that nothing ends, which takes the rest.

    ``html.parser`` is quadratic on such a rest, since it looks for the end of each tag in it.
    """
    position = source.rfind("-->") + 1
    while (match := COMMENT_OR_RAW.search(source, position)) is not None:
        name = match[1]
        if name is None:
            source = source[: match.start()]
            break
        close = re.compile(f"</{name}", re.IGNORECASE).search(source, match.end())
        if close is None:
            break
        position = close.end()
    tag = MARKUP.search(source, source.rfind(">") + 1)
    return source if tag is None else source[: tag.start()]


def _walk(source: str) -> Iterator[Event]:
    node = LexborHTMLParser(source).root
    while node is not None:
        name = node.tag or ""
        if node.is_text_node:
            yield Event("text", node.text_content or "")
        elif node.is_element_node:
            attributes = node.attributes
            filled = {key: value or "" for key, value in attributes.items()} if attributes else NO_ATTRIBUTES
            yield Event("open", name, filled)
            child = node.first_child
            if child is not None:
                node = child
                continue
            yield Event("close", name)
        while node is not None and node.next is None:
            node = node.parent
            if node is not None and node.is_element_node:
                yield Event("close", node.tag or "")
        node = node.next if node is not None else None


class _Events(HTMLParser):
    """Balances what ``html.parser`` reports: end tags without a start are dropped, missing ones are put in."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._events: list[Event] = []
        self._open: list[str] = []
        self._count: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element, after ending those that it implies."""
        while self._open and self._open[-1] in IMPLIED.get(tag, ()):
            self._close()
        self._events.append(Event("open", tag, {key: value or "" for key, value in attrs}))
        if tag in VOID:
            self._events.append(Event("close", tag))
            return
        self._open.append(tag)
        self._count[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        """Close an element and all that is still open in it."""
        if not self._count[tag]:
            return
        while self._open[-1] != tag:
            self._close()
        self._close()

    def handle_data(self, data: str) -> None:
        """Take text."""
        self._events.append(Event("text", data))

    def finish(self) -> list[Event]:
        """Close what is open and return all events."""
        while self._open:
            self._close()
        return self._events

    def _close(self) -> None:
        tag = self._open.pop()
        self._count[tag] -= 1
        self._events.append(Event("close", tag))
