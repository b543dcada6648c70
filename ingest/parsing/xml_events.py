"""XML parts of containers as a stream of events, without a tree, without namespaces, and without any declaration.

Expat, told to refuse document types: so there is no entity to expand or fetch, and depth costs nothing. Names are local
names; of attributes, those that refer to another part begin with ``r:``.
"""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple
from xml.parsers import expat

from .failure import Refused

__all__ = ["XmlEvent", "xml_events"]

PIECE_BYTES = 1 << 16
NAMESPACE_END = "\x1f"


class XmlEvent(NamedTuple):
    """``open`` and ``close`` name an element; ``text`` holds a stretch of text, not always all of it."""

    kind: Literal["open", "close", "text"]
    value: str
    attributes: Mapping[str, str]


def xml_events(content: bytes, name: str, *, may_have_doctype: bool = False) -> Iterator[XmlEvent]:
    """Yield the events of a part. Raises ``Refused`` (``damaged``) where it is no XML; ``name`` tells which part."""
    parser = expat.ParserCreate(namespace_separator=NAMESPACE_END)
    parser.buffer_text = True
    waiting: list[XmlEvent] = []

    def refuse(*_: object) -> None:
        raise Refused("damaged", f"part {name} declares a document type or entities")

    def opened(element: str, attributes: dict[str, str]) -> None:
        local = {_attribute(key): value for key, value in attributes.items()} if attributes else attributes
        waiting.append(XmlEvent("open", _local(element), local))

    parser.StartElementHandler = opened
    parser.EndElementHandler = lambda element: waiting.append(XmlEvent("close", _local(element), {}))
    parser.CharacterDataHandler = lambda text: waiting.append(XmlEvent("text", text, {}))
    parser.EntityDeclHandler = refuse
    if not may_have_doctype:
        parser.StartDoctypeDeclHandler = refuse
    try:
        for start in range(0, max(len(content), 1), PIECE_BYTES):
            parser.Parse(content[start : start + PIECE_BYTES], start + PIECE_BYTES >= len(content))
            yield from waiting
            waiting.clear()
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise Refused("damaged", f"part {name}: {error}") from error


def _local(name: str) -> str:
    return name.rpartition(NAMESPACE_END)[2]


def _attribute(name: str) -> str:
    namespace, _, local = name.rpartition(NAMESPACE_END)
    return f"r:{local}" if namespace.endswith("/relationships") else local
