"""Electronic books: the chapters in the order of the spine, each read as a page of HTML.

The table of contents is left out. A chapter that is missing, does not unpack or is no text is named, the others
are read; a book under copy protection is refused. Nothing is fetched. Sources: EPUB 3.3, OPF 2.0.1.
"""

import posixpath
from dataclasses import dataclass, field
from urllib.parse import unquote

from .assembly import Assembly
from .decode import decode
from .document import Document, Gap
from .failure import Refused
from .headings import usable_title
from .html import declared_encoding, read_page
from .registry import ReaderInput
from .xml_events import xml_events
from .zipguard import Package, open_package

__all__ = ["read"]

CONTAINER, ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
PAGES = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml"})
# Fonts are often scrambled by one of these; that hides no text.
FONT_SCRAMBLING = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")


@dataclass(slots=True)
class _Book:
    """What the package document says: pages by id, their order, the title."""

    pages: dict[str, str] = field(default_factory=dict)
    spine: list[str] = field(default_factory=list)
    navigation: set[str] = field(default_factory=set)
    title: str = ""


def read(task: ReaderInput) -> Document:
    """Return the document. Title: that of the book. A gap is numbered by its place in the spine."""
    package = open_package(task.content, may_have_doctype=True)
    _refuse_protection(package)
    book = _book(package)
    assembly = Assembly(task)
    gaps: list[Gap] = []
    missing = []
    for number, page in enumerate(book.spine, 1):
        if page in book.navigation:
            continue
        name = book.pages.get(page, "")
        if name in package.broken:
            gaps.append(Gap(number, "unread"))
        elif name not in package:
            missing.append(name or page)
        else:
            content = package.read(name)
            try:
                decoded = decode(
                    content, declared=declared_encoding(content), fallback_encoding=task.options.fallback_encoding
                )
            except Refused:
                gaps.append(Gap(number, "unread"))
                continue
            _, rendered = read_page(decoded.text, lenient=task.use_fallback)
            assembly.embed(rendered.text, rendered.blocks, deceptive=rendered.deceptive)
    if gaps and not assembly.has_text:
        raise Refused("damaged", f"none of {len(book.spine)} chapters can be read")
    if missing:
        assembly.warn([f"missing: chapters that the book names but does not hold: {', '.join(missing)}"])
    return assembly.document(title=usable_title(book.title), gaps=gaps)


def _refuse_protection(package: Package) -> None:
    if ENCRYPTION not in package:
        return
    for event in xml_events(package.read(ENCRYPTION), ENCRYPTION, may_have_doctype=True):
        if event.value == "EncryptionMethod" and event.kind == "open":
            method = event.attributes.get("Algorithm", "")
            if method not in FONT_SCRAMBLING:
                raise Refused("needs_password", "a book under copy protection; get it without one")


def _book(package: Package) -> _Book:
    if CONTAINER not in package:
        raise Refused("damaged", f"has no part {CONTAINER}")
    path = next(
        (
            event.attributes.get("full-path", "")
            for event in xml_events(package.read(CONTAINER), CONTAINER, may_have_doctype=True)
            if event.kind == "open" and event.value == "rootfile"
        ),
        "",
    )
    book = _Book()
    folder = posixpath.dirname(path)
    is_title = False
    for event in xml_events(package.read(path), path, may_have_doctype=True):
        attributes = event.attributes
        if event.kind == "text":
            book.title += event.value if is_title else ""
        elif event.value == "title":
            is_title = event.kind == "open" and not book.title.strip()
        elif event.kind == "close":
            continue
        elif event.value == "item" and attributes.get("media-type") in PAGES:
            page = attributes.get("id", "")
            href = unquote(attributes.get("href", "").partition("#")[0])
            book.pages[page] = posixpath.normpath(posixpath.join(folder, href)).lstrip("/")
            if "nav" in attributes.get("properties", "").split():
                book.navigation.add(page)
        elif event.value == "itemref":
            book.spine.append(attributes.get("idref", ""))
    return book
