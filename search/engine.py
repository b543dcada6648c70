"""The boundary to Qdrant Edge, shared by reader and writer: whatever the engine throws becomes an error of ours.

On damaged files the engine panics, and a Rust panic reaches Python as a ``BaseException`` that no ``except Exception``
sees. This is the one place (with its two users, ``search.edge`` and ``ingest.shard``) that catches it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from .errors import GroundedError

__all__ = ["engine_call"]


@contextmanager
def engine_call(error: type[GroundedError], subject: str, cure: str) -> Iterator[None]:
    """Run calls of the engine; raise ``error`` for any failure, panics included. Ours and Ctrl-C pass unchanged."""
    try:
        yield
    except (GroundedError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as failure:  # a panic is no Exception, and has no name to import
        raise error(f"{subject}: the engine failed ({type(failure).__name__}: {failure}); {cure}") from failure
