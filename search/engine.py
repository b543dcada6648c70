"""The boundary to Qdrant Edge, shared by reader and writer: whatever the engine throws becomes an error of ours.

On damaged files the engine panics, and a Rust panic reaches Python as a ``BaseException`` that no ``except Exception``
sees. This is the one place (with its two users, ``search.edge`` and ``ingest.shard``) that catches it.
"""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from .errors import GroundedError, IndexUnavailable, NotEnoughSpace

__all__ = ["FULL", "engine_call"]


# How the engine words what the operating system said, in texts of several layers; the number is all that is reliable.
OS_ERROR = re.compile(r"os error (\d+)")
# The disk is full, or what this user may have of it.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
NOT_WRITABLE = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


@contextmanager
def engine_call(error: type[GroundedError], subject: str, cure: str) -> Iterator[None]:
    """Run calls of the engine; raise ``error`` for any failure, panics included. Ours and Ctrl-C pass unchanged.

    A full disk, and a folder that may not be written (the engine writes where it reads), are no damage:
    ``NotEnoughSpace``, ``IndexUnavailable``.
    """
    try:
        yield
    except (GroundedError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as failure:  # a panic is no Exception, and has no name to import
        told = {int(number) for number in OS_ERROR.findall(str(failure))}
        if told & FULL:
            raise NotEnoughSpace(f"{subject}: the disk is full; make room and try again") from failure
        if told & NOT_WRITABLE:
            raise IndexUnavailable(
                f"{subject}: may not write there, as the engine does even to read; give this user the right"
            ) from failure
        raise error(f"{subject}: the engine failed ({type(failure).__name__}: {failure}); {cure}") from failure
