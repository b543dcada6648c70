"""The numbers that bound parsing, and the choices that shape its text. Pure data; settings pass other values in.

``Limits`` never change the text of a document, only whether there is one. ``ReaderOptions`` do, so all of them but the
passwords are part of the recipe.
"""

import math
from dataclasses import dataclass
from typing import Literal

from .failure import ParseFailure

__all__ = ["Limits", "PdfEngine", "ReaderOptions"]

MIB = 1 << 20
PdfEngine = Literal["auto", "pypdf", "pypdfium2"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one document and of the worker that reads it.

    The defaults let every real document through that they were tried on, and stop a worker before it harms the machine.
    HTML has less CPU, so that a page that is quadratic for its library soon gets the other reader; 5 MiB with a tag
    every nine characters take 6 CPU-s. ``ocr_cpu_s`` comes on top for PDFs. A file over its size limit is never opened.
    """

    file_bytes: int = 100 * MIB
    text_file_bytes: int = 20 * MIB
    text_chars: int = 64 * MIB
    address_space_bytes: int = 2048 * MIB
    cpu_s: float = 60
    cpu_s_per_mib: float = 10
    html_cpu_s: float = 10
    html_cpu_s_per_mib: float = 4
    cpu_max_s: float = 600
    deadline_factor: float = 4
    deadline_extra_s: float = 30
    ocr_cpu_s: float = 0

    def size_failure(self, size_bytes: int, *, text: bool) -> ParseFailure | None:
        """Return ``too_large`` for a file over the limit of text kinds (``text``) or of the others, else None."""
        limit = self.text_file_bytes if text else self.file_bytes
        if size_bytes <= limit:
            return None
        return ParseFailure(
            "too_large",
            f"{size_bytes / MIB:.1f} MiB, over the limit of {limit / MIB:g} MiB; split it or raise the limit",
        )

    def cpu_budget_s(self, kind: str, size_bytes: int) -> int:
        """Return the CPU seconds that reading a file may take; HTML is read in linear time, so it has less."""
        base, per_mib = (
            (self.html_cpu_s, self.html_cpu_s_per_mib) if kind == "html" else (self.cpu_s, self.cpu_s_per_mib)
        )
        ocr = self.ocr_cpu_s if kind == "pdf" else 0
        return math.ceil(min(base + per_mib * size_bytes / MIB, self.cpu_max_s) + ocr)

    def deadline_s(self, kind: str, size_bytes: int) -> float:
        """Return the seconds of waiting after which a worker counts as hung: far more than its CPU budget."""
        return self.deadline_factor * self.cpu_budget_s(kind, size_bytes) + self.deadline_extra_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderOptions:
    """What a user may choose about reading. ``fallback_encoding`` is used where nothing else fits the bytes.

    ``ocr``: pages of PDFs without usable text are read from their pictures; needs the extra ``ocr``.
    """

    fallback_encoding: str = "cp1252"
    pdf_engine: PdfEngine = "auto"
    ocr: bool = False
    pdf_passwords: tuple[str, ...] = ()
