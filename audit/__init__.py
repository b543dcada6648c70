"""Once-only writes around an agent: events, usage, the action ledger. Imports no sibling package.

Names are loaded when they are first asked for (PEP 562): who counts lookups does not pay for the ledger.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .audit import Audit, Begun
    from .errors import (
        AuditError,
        AuditIncompatible,
        AuditMissing,
        AuditUnavailable,
        BadDeclaration,
        BadKey,
        ClockJumped,
    )
    from .export import seal_file
    from .keys import ActionKey, CallKey, ChainKey, JsonValue, StepKey
    from .ledger import (
        ActionEvent,
        ActionFailed,
        ActionView,
        Approval,
        BadTool,
        Call,
        Failure,
        Found,
        Gate,
        InDoubt,
        Ledger,
        LedgerError,
        LedgerPruned,
        LedgerUnavailable,
        LostLease,
        NotDone,
        NotExecuted,
        NotFound,
        Outcome,
        OutcomeNotRecorded,
        Reentrant,
        Refused,
        RetryReport,
        RunError,
        SweepReport,
        Tool,
        Unsure,
        embedding_similarity,
        tfidf_similarity,
    )
    from .usage import Limit

__all__ = [
    "ActionEvent",
    "ActionFailed",
    "ActionKey",
    "ActionView",
    "Approval",
    "Audit",
    "AuditError",
    "AuditIncompatible",
    "AuditMissing",
    "AuditUnavailable",
    "BadDeclaration",
    "BadKey",
    "BadTool",
    "Begun",
    "Call",
    "CallKey",
    "ChainKey",
    "ClockJumped",
    "Failure",
    "Found",
    "Gate",
    "InDoubt",
    "JsonValue",
    "Ledger",
    "LedgerError",
    "LedgerPruned",
    "LedgerUnavailable",
    "Limit",
    "LostLease",
    "NotDone",
    "NotExecuted",
    "NotFound",
    "Outcome",
    "OutcomeNotRecorded",
    "Reentrant",
    "Refused",
    "RetryReport",
    "RunError",
    "StepKey",
    "SweepReport",
    "Tool",
    "Unsure",
    "embedding_similarity",
    "seal_file",
    "tfidf_similarity",
]

# Module of this package to the public names that it defines.
_HOMES = {
    "audit": (
        "Audit",
        "Begun",
    ),
    "errors": (
        "AuditError",
        "AuditIncompatible",
        "AuditMissing",
        "AuditUnavailable",
        "BadDeclaration",
        "BadKey",
        "ClockJumped",
    ),
    "export": ("seal_file",),
    "keys": (
        "ActionKey",
        "CallKey",
        "ChainKey",
        "JsonValue",
        "StepKey",
    ),
    "ledger": (
        "ActionEvent",
        "ActionFailed",
        "ActionView",
        "Approval",
        "BadTool",
        "Call",
        "Failure",
        "Found",
        "Gate",
        "InDoubt",
        "Ledger",
        "LedgerError",
        "LedgerPruned",
        "LedgerUnavailable",
        "LostLease",
        "NotDone",
        "NotExecuted",
        "NotFound",
        "Outcome",
        "OutcomeNotRecorded",
        "Reentrant",
        "Refused",
        "RetryReport",
        "RunError",
        "SweepReport",
        "Tool",
        "Unsure",
        "embedding_similarity",
        "tfidf_similarity",
    ),
    "usage": ("Limit",),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name from its module."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)
    globals()[name] = value
    return value
