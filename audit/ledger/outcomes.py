"""What a call returns, and what the model is told.

Owns: `Outcome` and its texts. A replay reads like the first answer: a success, never "already exists". Refuses to call
doubt a failure: the text of an unknown outcome says that a person must check.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from audit.keys import ActionKey

from .errors import ActionFailed, InDoubt, NotExecuted
from .tools import Effect, Failure

__all__ = ["Outcome", "OutcomeKind", "Told"]

Told: TypeAlias = Literal["ok", "error"]
OutcomeKind: TypeAlias = Literal[
    "done", "failed", "running", "in_doubt", "conflict", "needs_approval", "limited", "retry_after", "pruned"
]

_TEXT: Mapping[str, str] = {
    "running": "In progress, do not send again: the same action is being executed.",
    "in_doubt": "Outcome unknown: the action was sent, nobody has the answer. A person must check; do not repeat it.",
    "conflict": "Not executed: this step already stands for another action. Use a new step for a new action.",
    "needs_approval": "Not executed yet: a person must approve this action first. Do not send it again.",
    "limited": "Not executed: the limit for this tool is reached.",
    "retry_after": "Not executed: the last try failed without effect. Try again later, not now.",
    "pruned": "Not executed: this step was completed long ago and its record was removed.",
}


def _no_ack(_: Told) -> None:
    """An outcome without a slot has nobody to tell."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What is known after a call.

    effect: what is known outside (`none`, `unknown`, `done`). replayed: nothing was executed, the record answered.
    reworded: the wording differs from what was sent. result_omitted: it happened, and its result could not be kept.
    retry_after_s: when asking again makes sense.
    """

    kind: OutcomeKind
    key: ActionKey
    fence: int = 0
    result: object = None
    replayed: bool = False
    reworded: bool = False
    result_omitted: bool = False
    effect: Effect = "none"
    error: Failure | None = None
    approval_id: str | None = None
    retry_after_s: float | None = None
    _acknowledge: Callable[[Told], None] = field(default=_no_ack, repr=False, compare=False)
    _run_in_thread: Callable[[Callable[[], None]], Awaitable[None]] | None = field(
        default=None, repr=False, compare=False
    )

    @property
    def model_text(self) -> str:
        """What the model should read; the same for every repeat."""
        if self.kind == "done":
            if self.result_omitted:
                return "Done. The result could not be kept."
            return self.result if isinstance(self.result, str) else json.dumps(self.result, default=str)
        if self.kind == "failed":
            if self.effect == "unknown":
                return "Closed by a person without a result; it is not known whether the action happened."
            why = f" ({self.error.code}: {self.error.message})" if self.error is not None else ""
            return f"Not done{why}. The action had no effect."
        return _TEXT[self.kind]

    def unwrap(self) -> object:
        """The result. Raises ActionFailed, InDoubt or NotExecuted (under NotDone) when there is none."""
        match self.kind:
            case "done":
                return self.result
            case "failed":
                raise ActionFailed(f"action {self.key}: {self.model_text}")
            case "in_doubt":
                raise InDoubt(f"action {self.key}: {self.model_text}")
            case _:
                raise NotExecuted(f"action {self.key}: {self.model_text}")

    def ack(self, told: Told = "ok") -> None:
        """Say that the model has been told, durably: `ok` with the result, or `error`.

        After `ok` an equal call is a new wish.

        `ok` is never taken back, and is noted as `error` unless the outcome is done.
        """
        self._acknowledge(told if self.kind == "done" else "error")

    async def aack(self, told: Told = "ok") -> None:
        """As ack, without blocking the event loop."""
        if self._run_in_thread is None:
            self.ack(told)
        else:
            await self._run_in_thread(lambda: self.ack(told))
