"""The scan: which sources are there, which were left out and by which rule, and what could not be seen.

The face of this step: the names that others need of it are exported here. Roots are settled by ``roots``, rules are in
``rules``, the walk itself is in ``walk``, sources are opened and hashed in ``opening``. Writes nothing.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from .opening import NotRegular, hash_source, hash_sources, open_source
from .roots import settle
from .rules import Rules
from .seen import (
    Failure,
    Root,
    RootError,
    Scan,
    Scope,
    Seen,
    Skip,
    StatTuple,
    Unobserved,
    parts_of,
    path_b64,
    shown_path,
)
from .walk import Walk

__all__ = [
    "Failure",
    "NotRegular",
    "Root",
    "RootError",
    "Rules",
    "Scan",
    "Scope",
    "Seen",
    "Skip",
    "StatTuple",
    "Unobserved",
    "hash_source",
    "hash_sources",
    "open_source",
    "parts_of",
    "path_b64",
    "scan",
    "shown_path",
]

logger = logging.getLogger(__name__)


def scan(roots: Sequence[Path], *, rules: Rules, known_roots: Sequence[Root], now_ns: int) -> Scan:
    """Walk ``roots`` and return what is there. ``now_ns`` is the time of the start, for the racy flag. Does not write.

    ``known_roots`` are those of earlier runs. A root that cannot be read is an entry of ``errors``, not an exception.
    """
    settled = settle(roots, known_roots, rules)
    walk = Walk(settled, rules, now_ns)
    for scope in settled.outer:
        walk.cover(scope)
    walk.cover_inner()
    walk.follow_links()
    result = walk.result()
    logger.info(
        "scan.done seen=%d skipped=%d unobserved=%d errors=%d",
        len(result.seen), len(result.skips), len(result.unobserved), len(result.errors),
    )  # fmt: skip
    return result
