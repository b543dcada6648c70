"""Names of vectors and payload fields of a point, and how a payload is read: what writer and reader share.

A payload is built by the publisher and read here; a lookup needs nothing but the payload. The layout belongs to the
recipe (``recipe.SCHEMA_VERSION``): a new name or meaning is a new version.

    text, context, text_hash, n_tokens   of the chunk
    media_type, roots, sources, documents   lists, over all locations: what a filter asks for
    locations   list of citations (``records.Citation``) without ``uri``, one per place the chunk stands at
"""

from collections.abc import Mapping
from typing import Final

from .errors import IndexDamaged
from .records import Citation

__all__ = [
    "BM25", "CONTEXT", "DENSE", "DOCUMENTS", "KEYWORD_FIELDS", "LOCATIONS", "MEDIA_TYPE", "N_TOKENS", "PREFIX_FIELDS",
    "ROOTS", "SOURCES", "TEXT", "TEXT_HASH", "citations_of", "context_of", "text_of",
]  # fmt: skip

DENSE: Final = "dense"
BM25: Final = "bm25"

TEXT: Final = "text"
CONTEXT: Final = "context"
TEXT_HASH: Final = "text_hash"
N_TOKENS: Final = "n_tokens"
MEDIA_TYPE: Final = "media_type"
ROOTS: Final = "roots"
SOURCES: Final = "sources"
DOCUMENTS: Final = "documents"
LOCATIONS: Final = "locations"

# Fields a search may filter by; each has an index, since a filter without one reads every payload.
KEYWORD_FIELDS: Final = (MEDIA_TYPE, ROOTS)
PREFIX_FIELDS: Final = (SOURCES,)


def text_of(payload: Mapping[str, object]) -> str:
    """Return the passage's text. Raises ``IndexDamaged`` where the payload has none."""
    text = payload.get(TEXT)
    if not isinstance(text, str):
        raise IndexDamaged("a point of the index has no text; run `ingest verify`, then `ingest repair`")
    return text


def context_of(payload: Mapping[str, object]) -> str:
    """Return the passage's context, empty where it has none."""
    context = payload.get(CONTEXT)
    return context if isinstance(context, str) else ""


def citations_of(payload: Mapping[str, object]) -> tuple[Citation, ...]:
    """Return the places at which the passage stands, in their order: root, path, position.

    Raises ``IndexDamaged`` where the payload has none, or one that is not a citation.
    """
    locations = payload.get(LOCATIONS)
    if not isinstance(locations, list) or not locations:
        raise IndexDamaged("a point of the index has no location; run `ingest verify`, then `ingest repair`")
    try:
        return tuple(sorted((Citation.from_json(location) for location in locations), key=Citation.sort_key))
    except (TypeError, ValueError, KeyError) as error:
        raise IndexDamaged(
            f"a point of the index cannot be cited ({error}); run `ingest verify`, then `ingest repair`"
        ) from error
