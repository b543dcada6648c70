"""The text of an answer: what a model reads where it is not shown the structured result.

Same passages, order, addresses and notice as the structured answer, since clients show either or both. A passage stands
between two marks whose name is an HMAC over the whole structured answer, so that no author of a document can write it
beforehand; on a header line, what an author controls stands last and cannot forge what comes before. This lowers the
risk of injection, it does not remove it. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from audit import JsonValue
from audit.keys import IdKey

from .answers import Answer
from .cleaning import REPLACEMENT

__all__ = ["boundary_of", "render"]

# 40 bits: nobody gets to try, since every other passage gives another mark.
BOUNDARY_DIGITS: Final = 10
REWORD: Final = "Reword the query once; if nothing is found again, say that the documents do not cover it."


def boundary_of(sent: Answer, secret: IdKey) -> str:
    """Return the mark of an answer: equal answers have equal marks, and only who has the secret can tell it."""
    return secret.fingerprint(sent)[:BOUNDARY_DIGITS]


def render(sent: Answer, boundary: str) -> str:
    """Return the text of a structured answer, its passages between marks of ``boundary``."""
    passages = cast("Sequence[Mapping[str, JsonValue]]", sent["passages"])
    gaps = _gaps(cast("Mapping[str, int]", sent["gaps"]))
    generation, omitted = sent["generation"], sent["omitted"]
    if sent["status"] == "no_match":
        return f"no_match, generation {generation}. Nothing in the documents matches. {REWORD}{gaps}"
    noun = "passage" if len(passages) == 1 else "passages"
    head = f"{len(passages)} {noun}, generation {generation}, omitted {omitted}. {sent['notice']}{gaps}"
    return "\n\n".join([head, *(_passage(passage, boundary) for passage in passages)])


def _passage(passage: Mapping[str, JsonValue], boundary: str) -> str:
    # A text that holds the mark could only have it by chance; it is taken out all the same.
    text = str(passage["text"]).replace(boundary, REPLACEMENT * len(boundary))
    header = _header(passage).replace(boundary, REPLACEMENT * len(boundary))
    return f"{header}\n<<<{boundary}\n{text}\n{boundary}>>>"


def _header(passage: Mapping[str, JsonValue]) -> str:
    citation = cast("Mapping[str, JsonValue]", passage["citation"])
    parts = [f"[{passage['ref']}] {citation['uri']}", f"score {passage['score']:.2f}"]
    if passage["truncated"]:
        parts.append("cut")
    places = [str(place["uri"]) for place in cast("Sequence[Mapping[str, JsonValue]]", passage.get("also_at", ()))]
    more = passage.get("more_locations")
    if places:
        parts.append("also at " + ", ".join(places))
    if more:
        parts.append(f"{more} more places")
    headings = cast("Sequence[str]", citation.get("heading_path", ()))
    parts.append(" > ".join([str(citation["path"]), *headings]))
    return " | ".join(parts)


def _gaps(gaps: Mapping[str, int]) -> str:
    """Say what the index lacks, so that silence is not read as absence; nothing where it lacks nothing."""
    lacks = [
        f"{count} {what}"
        for count, what in (
            (gaps["failed"], "that could not be read"),
            (gaps["needs_ocr"], "of images without text"),
        )
        if count
    ]
    said = f" The index lacks documents: {', '.join(lacks)}." if lacks else ""
    if gaps["withheld"]:
        said += f" {gaps['withheld']} documents may be gone from their folder."
    return said
