"""Damaged PDFs rewritten by pikepdf (qpdf), for the engines to try once more. Needs the extra ``repair``.

qpdf looks for objects in the bytes themselves where the tables that should name them are torn. The work is done in
memory; what it leaves out, nobody knows.
"""

import io
from collections.abc import Sequence

import pikepdf

__all__ = ["rewrite"]

# Beside its own errors pikepdf lets through what the C++ library and Python raise on impossible values.
BROKEN = (pikepdf.PikepdfError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, OSError)

# In a torn file the last object counts only where something follows it (qpdf 12).
END = b"\n%%EOF\n"


def rewrite(content: bytes, passwords: Sequence[str] = ()) -> bytes | None:
    """Return the file as pikepdf restores it, without encryption, or None where it finds no pages in the bytes."""
    for password in ("", *passwords):
        try:
            with pikepdf.open(io.BytesIO(content + END), password=password, suppress_warnings=True) as file:
                if not len(file.pages):
                    return None
                written = io.BytesIO()
                file.save(written, linearize=False, encryption=False)
                return written.getvalue()
        except pikepdf.PasswordError:  # the next one, perhaps
            continue
        except BROKEN:
            return None
    return None
