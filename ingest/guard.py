"""The mass-delete guard: a run that would lose much of a root loses nothing of it until somebody confirms.

An unmounted disk, a wrong root or a reader broken by an upgrade look like a thousand deleted files. Pure: counts in,
refusals out; the planner carries them out, once for the plan and once more before publishing.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .seen import Scope, shown_path, shown_text

__all__ = ["ALL", "Guard", "Loss", "Withheld", "refusals"]

# `--allow-removals all`: a ceiling that no run reaches.
ALL = sys.maxsize
# As many as fit on a screen and still show what kind of sources would go.
EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Losses of more than ``sources`` sources *and* more than ``share`` of a scope are withheld.

    ``allow`` is the number confirmed with ``--allow-removals``, for the whole run and as a ceiling: up to that many go,
    one more and none goes.
    """

    sources: int = 20
    share: float = 0.30
    allow: int | None = None


class Loss(NamedTuple):
    """What a scope would lose: ``paths`` sorted, of ``total`` sources in the catalog; ``left`` were seen in it."""

    scope: Scope
    paths: tuple[bytes, ...]
    total: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """The refusal of all losses of one scope."""

    scope: Scope
    reason: Literal["share", "empty", "ceiling"]
    count: int
    total: int
    examples: tuple[str, ...]

    @property
    def subject(self) -> str:
        """Label of the root, with the folder in it that the run covered."""
        return "/".join(filter(None, (self.scope.home.name, shown_path(self.scope.prefix, self.scope.home.path))))

    @property
    def message(self) -> str:
        """What would go, why it does not, and what confirms it."""
        why = {
            "share": f"{self.count} of {self.total} sources ({self.count / self.total:.0%}) would be removed",
            "empty": f"no source is left in it, all {self.count} known ones would be removed; is it mounted?",
            "ceiling": f"{self.count} of {self.total} sources would be removed, more than --allow-removals confirms",
        }[self.reason]
        more = ", ..." if self.count > len(self.examples) else ""
        return (
            f"root {self.subject}: {why} ({', '.join(self.examples)}{more}). Removals are withheld, all else applies; "
            f"if they are meant, run: ingest run {shown_text(bytes(self.scope.prefix))} --allow-removals {self.count}"
        )

    def to_json(self) -> dict[str, object]:
        """Return the refusal as the report shows it."""
        return {
            "root": self.scope.home.name,
            "folder": shown_path(self.scope.prefix, self.scope.home.path),
            "reason": self.reason,
            "count": self.count,
            "total": self.total,
            "examples": list(self.examples),
            "message": self.message,
        }


def refusals(losses: Sequence[Loss], guard: Guard) -> tuple[Withheld, ...]:
    """Return a refusal for each scope that must lose nothing. Scopes without losses are never refused."""
    everything = sum(len(loss.paths) for loss in losses)
    if guard.allow is not None and everything <= guard.allow:
        return ()
    found = []
    for loss in losses:
        reason = _reason(loss, guard)
        if reason is not None:
            examples = tuple(shown_path(path, loss.scope.home.path) for path in loss.paths[:EXAMPLES])
            found.append(
                Withheld(
                    scope=loss.scope,
                    reason=reason,
                    count=len(loss.paths),
                    total=loss.total,
                    examples=examples,
                )
            )
    return tuple(found)


def _reason(loss: Loss, guard: Guard) -> Literal["share", "empty", "ceiling"] | None:
    count = len(loss.paths)
    if not count:
        return None
    if guard.allow is not None:
        return "ceiling"
    if not loss.left:
        return "empty"
    if count > guard.sources and count > guard.share * loss.total:
        return "share"
    return None
