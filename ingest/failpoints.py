"""Named points of a run at which a test may kill the process (I5). In normal use each is one comparison.

``GROUNDED_FAILPOINT=publish.commit`` ends the process that reaches this point with SIGKILL: no handler, no flush, no
farewell, as a power cut or the kernel's memory killer would. ``name:3`` lets two passes go by. The list is the run of
architecture.md, step by step, so that the fault tests can walk it.
"""

import os
import signal

from search.errors import UsageError
from search.settings import failpoint

__all__ = ["POINTS", "Failpoints"]

POINTS = (
    "lock",  # 1: the lock is held, nothing else was done
    "recover",  # 2: leftovers of an earlier crash are gone
    "scan",  # 3: sources are known
    "plan",  # 4: the plan is made
    "parse",  # 5: a document was parsed
    "chunk",  # 6: a document was cut into chunks
    "embed",  # 7: vectors of a batch were computed, not saved
    "saved",  # 7: vectors of a batch were saved
    "publish",  # 8: all vectors are there, the transaction is not open
    "publish.begin",  # 8: the catalog's changes stand in the open transaction
    "publish.clone",  # 8, builder: the generation was cloned
    "publish.apply",  # 8, builder: a batch of points was written
    "publish.flush",  # 8, builder: flushed and optimized
    "publish.settle",  # 8, builder: loaded once more, count compared
    "publish.manifest",  # 8, builder: the manifest is written
    "publish.rename",  # 8, builder: the generation has its name
    "publish.commit",  # 8: about to commit
    "publish.committed",  # 8: committed, readers not told
    "publish.pointed",  # 8: readers told
    "publish.collect",  # 8: an old generation was moved to the trash
    "report",  # 9: everything done but the run row
)


class Failpoints:
    """Counts how often each point was passed, and kills this process where the environment asks for it."""

    def __init__(self) -> None:
        name, _, count = (failpoint() or "").partition(":")
        if name and (name not in POINTS or (count and not count.isdigit())):
            raise UsageError(f"GROUNDED_FAILPOINT={name}:{count}: no such point; unset it (it is for tests only)")
        self._name = name
        self._left = int(count or 1)

    def reach(self, name: str) -> None:
        """Die here if the environment says so; else do nothing."""
        if name != self._name:
            return
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
