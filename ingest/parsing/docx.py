"""Word documents: mammoth makes HTML of them, the HTML reader makes blocks of that.

What mammoth does not know is put right around it: custom heading styles, markup that it passes over (``docx_markup``),
page headers and footers (once, at the end). Macros are never opened, images and embedded files ignored, nothing is
fetched. What is lost is named in a warning. Sources: ECMA-376 part 1; mammoth's documentation of style maps.
"""

import io
import re
from collections.abc import Iterable, Iterator, Mapping

import mammoth  # type: ignore[import-untyped]  # has no annotations

from .assembly import Assembly
from .document import Document
from .docx_markup import HEADING_LEVELS, OUTLINE_STYLE, TextParts, text_parts
from .failure import Refused
from .html import read_page
from .normalise import collapse
from .office import Relationship, core_title, main_part, relationships
from .registry import ReaderInput
from .xml_events import xml_events
from .zipguard import Package, open_package

__all__ = ["read"]

MAIN_PART = "word/document.xml"
# Relationships and elements of the main part whose content is not read.
LOST_PARTS = {
    "comments": "comments", "chart": "charts", "chartEx": "charts", "diagramData": "SmartArt",
    "oleObject": "embedded files", "package": "embedded files", "aFChunk": "included files",
}  # fmt: skip
EQUATION = re.compile(rb"<m:oMath[ >]")
# A chain of styles is as long as people make it; a loop is endless.
MAX_BASED_ON = 50
NOT_IN_IDENTIFIER = re.compile(r"[^a-zA-Z_-]")


# mammoth's own map without what says nothing about text, and with lists of nine levels, which is what Word has.
STYLE_MAP = (
    "p[style-name='Title'] => h1:fresh",
    *(f"p.{OUTLINE_STYLE}{level} => h{level + 1}:fresh" for level in range(HEADING_LEVELS)),
    *(f"p.Heading{level} => h{level}:fresh" for level in range(1, 7)),
    *(f"p[style-name='{name} {level}'] => h{level}:fresh" for level in range(1, 7) for name in ("Heading", "heading")),
    # Pages calls its styles so.
    "p.Heading => h1:fresh",
    "p[style-name='Heading'] => h1:fresh",
    *(
        f"p:{kind}-list({level}) => {'ul|ol > li > ' * (level - 1)}{element} > li:fresh"
        for level in range(1, 10)
        for kind, element in (("unordered", "ul"), ("ordered", "ol"))
    ),
)


def read(task: ReaderInput) -> Document:
    """Return the document. Title: that of the properties, else the first heading if its level is 1. No pages."""
    package = open_package(task.content)
    main = main_part(package, MAIN_PART)
    references = list(relationships(package, main))
    parts = text_parts(package, main, references)
    html = _as_html(parts, [*_outline_styles(package, references), *STYLE_MAP])
    title, rendered = core_title(package), read_page(html, lenient=task.use_fallback)[1]
    assembly = Assembly(task)
    assembly.embed(rendered.text, rendered.blocks, deceptive=rendered.deceptive)
    assembly.add("paragraph", "\n".join(_margins(package, references)))
    lost = {LOST_PARTS[found.kind] for found in references if found.kind in LOST_PARTS} | set(parts.not_read)
    if EQUATION.search(package.read(main)):
        lost.add("equations")
    if lost:
        assembly.warn([f"not_read: {', '.join(sorted(lost))}"])
    return assembly.document(title=title or assembly.first_heading)


def _as_html(parts: TextParts, style_map: Iterable[str]) -> str:
    try:
        html: str = mammoth.convert_to_html(
            io.BytesIO(parts.package()),
            style_map="\n".join(style_map),
            include_default_style_map=False,
            include_embedded_style_map=False,
            convert_image=lambda _: [],
        ).value
    except RecursionError as error:
        raise Refused("damaged", "nested too deeply, as tables in tables in tables") from error
    return html


def _outline_styles(package: Package, references: list[Relationship]) -> Iterator[str]:
    """Yield a line for every paragraph style that has an outline level, its own or that of the style it builds on."""
    path = next((found.target for found in references if found.kind == "styles"), "word/styles.xml")
    if path not in package or path in package.broken:
        return
    levels: dict[str, int] = {}
    based_on: dict[str, str] = {}
    style = ""
    for event in xml_events(package.read(path), path):
        if event.kind == "open" and event.value == "style":
            style = event.attributes.get("styleId", "") if event.attributes.get("type") == "paragraph" else ""
        elif event.kind == "open" and style and event.value == "basedOn":
            based_on[style] = event.attributes.get("val", "")
        elif event.kind == "open" and style and event.value == "outlineLvl":
            value = event.attributes.get("val", "")
            levels[style] = int(value) if value.isdecimal() and len(value) < 3 else 9
    for style in {**based_on, **levels}:
        level = _level(style, levels, based_on)
        if 0 <= level < HEADING_LEVELS:
            yield f"p.{NOT_IN_IDENTIFIER.sub(_escape, style)} => h{level + 1}:fresh"


def _level(style: str, levels: Mapping[str, int], based_on: Mapping[str, str]) -> int:
    """Return the outline level of a style, counted from 0; -1 if it has none."""
    for _ in range(MAX_BASED_ON):
        if style in levels:
            return levels[style]
        if style not in based_on:
            return -1
        style = based_on[style]
    return -1


def _escape(match: re.Match[str]) -> str:
    return f"\\{match[0]}"


def _margins(package: Package, references: list[Relationship]) -> Iterator[str]:
    """Yield the texts of page headers and footers, each once."""
    seen: set[str] = set()
    for found in references:
        if found.kind not in ("header", "footer") or found.target not in package or found.target in package.broken:
            continue
        for text in _paragraphs(package.read(found.target), found.target):
            if text and text not in seen:
                seen.add(text)
                yield text


def _paragraphs(content: bytes, name: str) -> Iterator[str]:
    """Yield the paragraphs of a part on one line each, without deleted text and field codes."""
    pieces: list[str] = []
    is_text = False
    for event in xml_events(content, name):
        if event.kind == "text":
            if is_text:
                pieces.append(event.value)
        elif event.value == "t":
            is_text = event.kind == "open"
        elif event.value in ("tab", "br") and event.kind == "open":
            pieces.append(" ")
        elif event.value == "p" and event.kind == "close":
            yield collapse("".join(pieces))
            pieces.clear()
