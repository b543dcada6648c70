"""Actions with side effects: at most one effect per intent, and doubt where nobody can know (I8)."""

from .binding import Gate
from .errors import (
    ActionFailed,
    BadTool,
    InDoubt,
    LedgerError,
    LedgerUnavailable,
    LostLease,
    NotDone,
    NotExecuted,
    OutcomeNotRecorded,
    Reentrant,
    Refused,
    RunError,
)
from .ledger import Ledger
from .outcomes import Outcome
from .retries import RetryReport
from .similarity import embedding_similarity, tfidf_similarity
from .tools import Approval, Call, Failure, Found, NotFound, Tool, Unsure
from .upkeep import LedgerPruned, SweepReport
from .views import ActionEvent, ActionView

__all__ = [
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
]
