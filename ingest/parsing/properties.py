"""The title in the properties of a package: the one of them that counts, and the same in Office and OpenDocument.

Sources: ECMA-376 part 2, 11 (core properties); ODF 1.3 part 2, 4.3 (``meta.xml``); both take it from Dublin Core.
"""

from .failure import Refused
from .headings import usable_title
from .xml_events import xml_events
from .zipguard import Package

__all__ = ["title_in"]


def title_in(package: Package, path: str, *, may_have_doctype: bool = False) -> str | None:
    """Return the title in a part, if an author can have meant it; none where the part is missing or damaged."""
    title, is_title = "", False
    try:
        for event in xml_events(package.read(path), path, may_have_doctype=may_have_doctype):
            if event.value == "title" and event.kind != "text":
                is_title = event.kind == "open"
            elif is_title and event.kind == "text":
                title += event.value
    except Refused:
        return None
    return usable_title(title)
