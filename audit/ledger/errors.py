"""The errors of the ledger, under the root of `audit`.

Owns: which class says what about the effect (I8). Refuses to call an unknown outcome a failure: `InDoubt` is no
`ActionFailed`.

AuditError +-- BadDeclaration ........ BadTool    a tool that contradicts itself +-- AuditUnavailable ......
LedgerUnavailable   not recorded; this call has sent nothing +-- LedgerError +-- RunError           no such run, a
closed one, or one of another scope or agent +-- Refused            approve, resolve or resample at the wrong time;
nothing changed +-- Reentrant          a tool waits for its own result; nothing was sent +-- LostLease          another
holder owns the slot; this one must not act +-- OutcomeNotRecorded the effect happened, and its record could not be
written anywhere +-- NotDone            Outcome.unwrap of what is not done +-- ActionFailed   certainly no effect +--
InDoubt        outcome unknown; a person must check +-- NotExecuted    running, conflict, needs approval, limited, retry
later, pruned: this call has sent nothing
"""

from audit.errors import AuditError, AuditUnavailable, BadDeclaration

__all__ = [
    "ActionFailed",
    "BadTool",
    "InDoubt",
    "LedgerError",
    "LedgerUnavailable",
    "LostLease",
    "NotDone",
    "NotExecuted",
    "OutcomeNotRecorded",
    "Reentrant",
    "Refused",
    "RunError",
]


class BadTool(BadDeclaration):
    """A tool whose declaration contradicts itself; found before anything ran."""


class LedgerUnavailable(AuditUnavailable):
    """The store could not be read or written before anything was sent: this call had no effect."""


class LedgerError(AuditError):
    """Root of what only the ledger raises."""


class RunError(LedgerError):
    """The run is unknown, closed, or belongs to another scope or agent. Nothing was sent."""

    exit_code = 2


class Refused(LedgerError):
    """A person's decision came too late, twice differently, or does not fit the state. Nothing changed."""

    exit_code = 2


class Reentrant(LedgerError):
    """A tool called the action that it is executing; waiting would last for ever. Nothing was sent."""


class LostLease(LedgerError):
    """The slot moved on since its fence was read; nothing was changed, and the caller must not act.

    Raised to who names a fence (`resolve`). A call whose slot was taken over is not told so: it stops before it sends,
    leaves a `late_...` row in the history, and is answered from the record like every other caller, for to its host an
    error would mean that nothing happened.
    """


class OutcomeNotRecorded(LedgerError):
    """The effect happened and `result` is its result, but neither the store nor the spool could take it.

    The slot stays as sent, so it will be in doubt, never repeated blindly.
    """

    def __init__(self, message: str, result: object) -> None:
        super().__init__(message)
        self.result = result


class NotDone(LedgerError):
    """An outcome without a result."""


class ActionFailed(NotDone):
    """The action will not happen; certainly it had no effect (or a person closed it)."""


class InDoubt(NotDone):
    """Sent, and nobody knows the answer. Not a failure: the effect may be there."""


class NotExecuted(NotDone):
    """Nothing was sent by this call; the outcome says why."""
