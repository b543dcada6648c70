"""Once-only writes around an agent: events, usage, the action ledger. Imports no sibling package."""

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
from .keys import ActionKey, CallKey, ChainKey, JsonValue, StepKey
from .usage import Limit

__all__ = [
    "ActionKey",
    "Audit",
    "AuditError",
    "AuditIncompatible",
    "AuditMissing",
    "AuditUnavailable",
    "BadDeclaration",
    "BadKey",
    "Begun",
    "CallKey",
    "ChainKey",
    "ClockJumped",
    "JsonValue",
    "Limit",
    "StepKey",
]
