"""What the two PDF libraries have to give: pages one by one, the outline, the title. No library is imported here."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:  # a worker loads numpy for OCR alone
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MAX_ANNOTATIONS", "OutlineEntry", "PageText", "PdfFile", "Picture", "Unopenable"]

# More fields than any form has on a page.
MAX_ANNOTATIONS = 5_000


class Unopenable(Exception):
    """An engine cannot open the bytes. ``needs_password``: they are encrypted, and the password given is not theirs."""

    def __init__(self, reason: str, *, needs_password: bool = False) -> None:
        super().__init__(reason)
        self.needs_password = needs_password


@dataclass(frozen=True, slots=True)
class PageText:
    r"""The text of one page as the engine gives it, not normalised; lines end with ``\n``.

    ``is_drawn``: something is on the page, be it text or not. ``is_invisible``: some of its text is drawn so that
    nobody sees it, and there is no picture that it could be the text of. ``entries``: what is filled into form fields
    and text boxes, which are no content of the page but seen on it; hidden ones are left out.
    """

    text: str
    label: str | None
    is_drawn: bool
    is_invisible: bool = False
    entries: tuple[str, ...] = ()


class Picture(NamedTuple):
    """A page as it looks, for OCR: pixels (height, width, BGR), and how many of them make a point."""

    pixels: "NDArray[np.uint8]"
    pixels_per_point: float


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A bookmark: its title, its depth (from 1) and the page it leads to (from 0)."""

    title: str
    level: int
    page: int


class PdfFile(Protocol):
    """An open PDF. MUST read each page by itself, so that one bad page costs no other."""

    name: str

    def __len__(self) -> int:
        """Number of pages."""

    def page(self, index: int) -> PageText:
        """Return a page, counted from 0. Raises ``Unopenable`` where it cannot be read."""

    def picture(self, index: int) -> Picture | None:
        """Return how a page looks; None where the engine cannot draw it."""

    def outline(self) -> Iterator[OutlineEntry]:
        """Yield the bookmarks that lead to a page, in their order; what is broken is left out."""

    def title(self) -> str:
        """Return the title in the document information, as it stands there; empty if there is none."""

    def close(self) -> None:
        """Give back what the library holds."""
