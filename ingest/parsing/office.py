"""What Office packages have in common: which part refers to which, and the title in their properties.

Source: ECMA-376 part 2 (relationships, core properties).
"""

import posixpath
from collections.abc import Iterator
from typing import NamedTuple

from .properties import title_in
from .xml_events import xml_events
from .zipguard import Package

__all__ = ["Relationship", "core_title", "main_part", "relationships"]

ROOT = ""


class Relationship(NamedTuple):
    """A reference from one part to another: ``kind`` is the last word of its type, ``target`` a member name or link."""

    id: str
    kind: str
    target: str


def relationships(package: Package, part: str) -> Iterator[Relationship]:
    """Yield what ``part`` refers to; the package itself where that is empty."""
    folder, name = posixpath.split(part)
    path = posixpath.join(folder, "_rels", f"{name}.rels")
    if path not in package:
        return
    for event in xml_events(package.read(path), path):
        if event.kind == "open" and event.value == "Relationship":
            target = event.attributes.get("Target", "")
            if event.attributes.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            kind = event.attributes.get("Type", "").rpartition("/")[2]
            yield Relationship(event.attributes.get("Id", ""), kind, target)


def main_part(package: Package, default: str) -> str:
    """Return the name of the part that holds the document."""
    targets = (found.target for found in relationships(package, ROOT) if found.kind == "officeDocument")
    return next((target for target in targets if target in package), default)


def core_title(package: Package) -> str | None:
    """Return the title in the document properties, if an author can have meant it; none where they are damaged."""
    path = next((found.target for found in relationships(package, ROOT) if found.kind == "core-properties"), "")
    return title_in(package, path)
