"""``ingest verify``: what an index claims, compared with what is there. Finds and names; never repairs."""

from .checks import verify
from .findings import Check, VerifyReport

__all__ = ["Check", "VerifyReport", "verify"]
