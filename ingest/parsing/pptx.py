"""Presentations: slides in order, on each the title, then shapes from top to bottom, then the speaker's notes.

Dates, footers and slide numbers are left out; charts and SmartArt are named in a warning. Hidden slides are read and
labelled. Nothing embedded is opened. Source: ECMA-376 part 1 through python-pptx.
"""

import io
import posixpath
import re
from collections.abc import Iterable, Iterator

from pptx import Presentation
from pptx.enum.shapes import PP_PLACEHOLDER
from pptx.shapes.base import BaseShape
from pptx.shapes.graphfrm import GraphicFrame
from pptx.shapes.group import GroupShape
from pptx.slide import Slide
from pptx.text.text import TextFrame

from .assembly import Assembly
from .document import Document, Gap
from .failure import Refused
from .headings import usable_heading
from .office import core_title
from .registry import ReaderInput
from .rows import barred
from .zipguard import Package, open_package

__all__ = ["read"]

# A slide begins what a heading of this level would (parsing.md 5).
SLIDE_LEVEL = 2
MAX_GROUP_DEPTH = 50
CONTENT_TYPES = "[Content_Types].xml"
MAIN_TYPE = re.compile(rb"presentationml\.(?:slideshow|template)\.main\+xml")
EXTENSION = re.compile(rb"""\bExtension=["']([^"']*)["']""")
# ECMA-376 part 4: the names in strict files, and the usual ones. Where the rest of a name is the same, its beginning.
STRICT = b"http://purl.oclc.org/ooxml/"
STRICT_NAMES = (
    (
        STRICT + b"officeDocument/relationships/metadata/",
        b"http://schemas.openxmlformats.org/package/2006/relationships/metadata/",
    ),
    (STRICT + b"officeDocument/relationships", b"http://schemas.openxmlformats.org/officeDocument/2006/relationships"),
    (STRICT + b"presentationml/main", b"http://schemas.openxmlformats.org/presentationml/2006/main"),
    (STRICT + b"drawingml/", b"http://schemas.openxmlformats.org/drawingml/2006/"),
)
LEFT_OUT = frozenset({PP_PLACEHOLDER.DATE, PP_PLACEHOLDER.FOOTER, PP_PLACEHOLDER.SLIDE_NUMBER, PP_PLACEHOLDER.HEADER})
LISTS = frozenset({PP_PLACEHOLDER.BODY, PP_PLACEHOLDER.OBJECT, PP_PLACEHOLDER.VERTICAL_BODY})


def read(task: ReaderInput) -> Document:
    """Return the document, each slide a part. Title: that of the properties, else the title of the first slide."""
    package = open_package(task.content)
    assembly = Assembly(task)
    gaps: list[Gap] = []
    not_read: set[str] = set()
    first_title: str | None = None
    content = package.readable(is_needed=lambda name: name.endswith((".xml", ".rels")), mended=dict(_mended(package)))
    for number, slide in enumerate(Presentation(io.BytesIO(content)).slides, 1):
        is_hidden = slide.element.get("show") in ("0", "false")
        assembly.part("slide", "hidden" if is_hidden else None)
        title = slide.shapes.title
        heading = title.text_frame.text.replace("\v", " ") if title is not None and title.has_text_frame else ""
        has_text = assembly.add("heading", heading, SLIDE_LEVEL)
        if number == 1:
            first_title = usable_heading(heading)
        # Not by their ids: some programs give all shapes of a slide the same.
        shapes = [shape for shape in _shapes(slide.shapes) if title is None or shape.element is not title.element]
        for shape in shapes:
            has_text |= _add(assembly, shape, not_read)
        _add_notes(assembly, slide)
        if not has_text and shapes:
            gaps.append(Gap(number, "no_text"))
    if not_read:
        assembly.warn([f"not_read: {', '.join(sorted(not_read))}"])
    return assembly.document(title=core_title(package) or first_title, gaps=gaps)


def _mended(package: Package) -> Iterator[tuple[str, bytes]]:
    """Yield the parts that python-pptx would stop at, as it reads them: (name, content).

    It takes the main part of no slide show or template, no "strict" file, and no part without a content type.
    """
    is_strict = any(STRICT in package.read(name) for name in ("_rels/.rels", CONTENT_TYPES) if name in package)
    for name in package.names:
        if name in package.broken or not name.endswith((".xml", ".rels")):
            continue
        content = package.read(name)
        mended = content
        if is_strict:
            for strict, usual in STRICT_NAMES:
                mended = mended.replace(strict, usual)
        if name == CONTENT_TYPES:
            mended = MAIN_TYPE.sub(rb"presentationml.presentation.main+xml", mended)
            mended = mended.replace(b"</Types>", _missing_types(package, mended) + b"</Types>")
        if mended != content:
            yield name, mended


def _missing_types(package: Package, types: bytes) -> bytes:
    known = {extension.lower() for extension in EXTENSION.findall(types)}
    found = {posixpath.splitext(name)[1][1:].lower().encode() for name in package.names}
    return b"".join(
        b'<Default Extension="%b" ContentType="application/octet-stream"/>' % extension
        for extension in sorted(found - known)
        if extension.isalnum()
    )


def _shapes(shapes: Iterable[BaseShape], depth: int = 0) -> Iterator[BaseShape]:
    """Yield shapes by their upper left corners, those of a group in the place of the group."""
    if depth > MAX_GROUP_DEPTH:
        raise Refused("damaged", f"groups of shapes nested deeper than {MAX_GROUP_DEPTH}")
    for shape in sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0)):
        if isinstance(shape, GroupShape):
            yield from _shapes(shape.shapes, depth + 1)
        elif not (shape.is_placeholder and shape.placeholder_format.type in LEFT_OUT):
            yield shape


def _add(assembly: Assembly, shape: BaseShape, not_read: set[str]) -> bool:
    """Add what a shape says; False if that is nothing."""
    assembly.apart()
    if isinstance(shape, GraphicFrame):
        if not shape.has_table:
            not_read.add("charts" if shape.has_chart else "SmartArt and embedded files")
            return False
        has_text = False
        for number, row in enumerate(shape.table.rows):
            # Of merged cells only the first holds text; the others are blank, so that columns line up.
            cells = ["" if cell.is_spanned else " ".join(cell.text_frame.text.split()) for cell in row.cells]
            if any(cells):
                is_header = not number and shape.table.first_row
                has_text |= assembly.add("table_row", barred(cells), is_header=is_header)
        return has_text
    frame = getattr(shape, "text_frame", None)
    if not isinstance(frame, TextFrame):
        return False
    is_list = shape.is_placeholder and shape.placeholder_format.type in LISTS and len(frame.paragraphs) > 1
    has_text = False
    for paragraph in frame.paragraphs:
        text = paragraph.text.replace("\v", "\n").strip()
        if text and (is_list or paragraph.level):
            has_text |= assembly.add("list_item", "  " * paragraph.level + "- " + text, paragraph.level + 1)
        else:
            has_text |= assembly.add("paragraph", text)
    return has_text


def _add_notes(assembly: Assembly, slide: Slide) -> None:
    if slide.has_notes_slide:
        notes = slide.notes_slide.notes_text_frame
        if notes is not None:
            assembly.add("slide_note", notes.text.replace("\v", "\n"))
