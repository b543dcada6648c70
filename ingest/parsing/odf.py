"""What OpenDocument packages have in common: their parts, and how they tell that they are encrypted.

Source: ODF 1.3 part 2.
"""

from .failure import Refused
from .zipguard import Package, open_package

__all__ = ["CONTENT", "open_odf"]

MANIFEST, CONTENT = "META-INF/manifest.xml", "content.xml"


def open_odf(content: bytes) -> Package:
    """Check a package and return it. Raises ``Refused``: it is encrypted, or its container is."""
    package = open_package(content, may_have_doctype=True)
    if MANIFEST in package and b"encryption-data" in package.read(MANIFEST):
        raise Refused("needs_password", "encrypted; save it without a password")
    return package
