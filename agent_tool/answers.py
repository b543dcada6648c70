"""From what a search found to what goes out: the structured answer, cleaned, within its budgets, checked.

Decides what a budget cuts, and says so: a cut text is a prefix that ends at a sentence or a line, a dropped passage is
counted. Refuses to send what breaks the output schema. Equal results give equal answers. Pure.
"""

import re
from collections.abc import Sequence
from typing import Final, TypeAlias, cast

from jsonschema import Draft202012Validator

from audit import JsonValue
from search.identity import canonical_json
from search.records import Citation, Completeness, Passage, SearchResult

from .cleaning import clean_label, clean_text
from .contract import CITATION_FIELDS, MAX_HEADINGS, MAX_LABEL, NOTICE, OUTPUT_SCHEMA, Budgets

__all__ = ["Answer", "BrokenAnswer", "answer", "check"]

# An answer as it is sent: JSON values by the names of the output schema.
Answer: TypeAlias = dict[str, JsonValue]

_VALIDATOR: Final = Draft202012Validator(dict(OUTPUT_SCHEMA))
# After these a text may be cut: the end of a line, or of a sentence in the scripts that mark one.
_END: Final = re.compile(r"\n|[.!?…]['\")\]»”]*(?=\s)|[。！？]")
# A passage of which less than this would be left is dropped; a few words without their sentence mislead.
_LEAST_TEXT: Final = 200


class BrokenAnswer(Exception):
    """An answer that breaks the output schema: our fault, and never sent."""


def answer(result: SearchResult, budgets: Budgets) -> Answer:
    """Return the structured answer within its budgets.

    Texts are cut first, then ``also_at`` goes, from the last passage up, then whole passages; the rest keeps its refs.
    """
    passages: list[Answer] = []
    room = budgets.passages
    for passage in result.passages:
        text = clean_text(passage.text)
        kept = _cut(text, min(budgets.passage, room))
        if len(kept) < min(len(text), _LEAST_TEXT):
            break
        room -= len(kept)
        passages.append(_passage(passage, kept, cut=len(kept) < len(text)))
    whole: Answer = {
        "status": result.status,
        "notice": NOTICE,
        "generation": result.generation,
        "truncated": False,
        # The largest it can get, so that setting it later never lengthens the answer.
        "omitted": len(result.passages),
        "gaps": _gaps(result.completeness),
        "passages": passages,
    }
    return _fit(whole, passages, found=len(result.passages), most=budgets.channel)


def _fit(whole: Answer, passages: list[Answer], *, found: int, most: int) -> Answer:
    """Shorten ``whole`` in place until it has at most ``most`` code points as JSON; return it."""
    dropped = False
    for passage in reversed(passages):
        if _size(whole) <= most:
            break
        dropped |= _drop_places(passage)
    while passages and _size(whole) > most:
        passages.pop()
    whole["omitted"] = found - len(passages)
    whole["truncated"] = dropped or len(passages) < found or any(bool(passage["truncated"]) for passage in passages)
    return whole


def check(sent: Answer) -> None:
    """Raise ``BrokenAnswer`` where the answer is not what the output schema promises; the message holds no value."""
    error = next(iter(_VALIDATOR.iter_errors(sent)), None)
    if error is not None:
        raise BrokenAnswer(f"answer: {error.json_path} breaks {error.validator}")


def _size(whole: Answer) -> int:
    return len(canonical_json(whole))


def _drop_places(passage: Answer) -> bool:
    """Leave out the further places of a passage, but keep their number."""
    places = cast("Sequence[JsonValue]", passage.pop("also_at", ()))
    if places:
        passage["more_locations"] = cast("int", passage.get("more_locations", 0)) + len(places)
    return bool(places)


def _passage(passage: Passage, text: str, *, cut: bool) -> Answer:
    values: Answer = {
        "ref": passage.ref,
        "chunk_id": passage.chunk_id,
        "text": text,
        "truncated": cut or passage.truncated,
        # Digits beyond these are noise of the arithmetic.
        "score": round(passage.score, 4),
        "citation": _citation(passage.citation),
    }
    if passage.also_at:
        values["also_at"] = [_citation(place) for place in passage.also_at]
    if passage.more_locations:
        values["more_locations"] = passage.more_locations
    return values


def _citation(place: Citation) -> Answer:
    known = place.to_json()
    values: Answer = {}
    for name in CITATION_FIELDS:
        value = known.get(name)
        match value:
            case None:
                continue
            case str() if name in {"uri", "document_id", "path_b64"}:
                values[name] = value
            case str():
                label = clean_label(value)
                values[name] = label[:MAX_LABEL] if name == "title" else label
            case list():
                values[name] = [clean_label(str(heading))[:MAX_LABEL] for heading in value[:MAX_HEADINGS]]
            case int():
                values[name] = value
    return values


def _gaps(completeness: Completeness) -> Answer:
    return {
        "failed": completeness.sources_failed,
        "needs_ocr": completeness.sources_needing_ocr,
        "withheld": completeness.removals_withheld,
    }


def _cut(text: str, most: int) -> str:
    """Return the longest prefix of at most ``most`` code points that ends a sentence or a line.

    Where the last such end would give away more than half, the text is cut at a word, and in a text without any at
    ``most``.
    """
    if len(text) <= most:
        return text
    ends = [match.end() for match in _END.finditer(text, 0, most + 1) if match.end() <= most]
    if ends and ends[-1] * 2 >= most:
        return text[: ends[-1]]
    space = text.rfind(" ", 0, most)
    return text[: space if space * 2 >= most else max(most, 0)]
