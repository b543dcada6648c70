"""What a run tells while it goes on. Who draws it, and whether, is decided by the command."""

from typing import Protocol

__all__ = ["Progress", "Silent"]


class Progress(Protocol):
    """Hears of a run's steps. MUST NOT raise and MUST NOT write to stdout."""

    def step(self, name: str) -> None:
        """A step of the run begins: scan, hash, plan, parse, embed, publish."""

    def files(self, done: int, total: int) -> None:
        """So many of the documents to read are parsed and cut."""

    def chunks(self, done: int, known: int) -> None:
        """So many of the chunks known by now have their vectors."""


class Silent:
    """Says nothing."""

    def step(self, name: str) -> None:
        """Ignore."""

    def files(self, done: int, total: int) -> None:
        """Ignore."""

    def chunks(self, done: int, known: int) -> None:
        """Ignore."""
