"""What stands before the work: a meter against floods, and a limited number of places. In memory, thread-safe.

The meter sees every attempt, repeats too: reusing a key saves units, not load. Exact quotas over processes belong to
``audit``. Refuses at once; nothing here waits.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["FloodMeter", "Places"]

# Subjects whose meters are kept; the one that was silent longest is forgotten first, and its meter was full by then.
_SUBJECTS = 10_000
# Who waits exactly as long as was said must not be refused by a rounding of the sum.
_ROUNDING = 1e-9


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class FloodMeter:
    """A token bucket per subject: ``per_second`` in the long run, ``burst`` at once."""

    def __init__(
        self, *, per_second: float = 20.0, burst: int = 40, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, subject: str) -> float | None:
        """Count one attempt. Return None where it may go on, else the seconds until the next one may."""
        with self._lock:
            now = self._clock()
            bucket = self._buckets.setdefault(subject, _Bucket(self._burst, now))
            self._buckets.move_to_end(subject)
            if len(self._buckets) > _SUBJECTS:
                self._buckets.popitem(last=False)
            bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.at) * self._per_second)
            bucket.at = now
            if bucket.tokens < 1 - _ROUNDING:
                return (1 - bucket.tokens) / self._per_second
            bucket.tokens -= 1
            return None


class Places:
    """A number of calls that may be in the house, running or waiting."""

    def __init__(self, number: int) -> None:
        self._lock = threading.Lock()
        self._free = number

    def enter(self) -> bool:
        """Take a place; False where none is free."""
        with self._lock:
            if self._free == 0:
                return False
            self._free -= 1
            return True

    def leave(self) -> None:
        """Give a place back."""
        with self._lock:
            self._free += 1
