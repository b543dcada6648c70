"""What a host says about a tool, checked when it is said.

Owns: declarations of tools and their abilities, and what a tool is given and may answer. Refuses a dangerous tool that
cannot say which effect a call means: without identity, a repeat could not be told from a second wish.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from audit.keys import JsonValue, check_name

from .errors import BadTool

__all__ = ["Approval", "Call", "Effect", "Failure", "Found", "Lookup", "NotFound", "Tool", "ToolClass", "Unsure"]

ToolClass: TypeAlias = Literal["read_only", "repeatable", "dangerous"]
Effect: TypeAlias = Literal["none", "unknown", "done"]


@dataclass(frozen=True)
class Call:
    """What a tool is given: its own copy of the arguments that the slot was claimed with, and the key for the target.

    fence grows with every claim: a target that remembers the highest one can refuse a sender that came back from the
    dead.
    """

    args: Mapping[str, JsonValue]
    downstream_key: str
    fence: int
    attempt: int
    timeout_s: float


@dataclass(frozen=True)
class Found:
    """A lookup's word that the effect is there, with what the call would have returned."""

    result: JsonValue = None


@dataclass(frozen=True)
class NotFound:
    """A lookup's word that the effect is not there; `definitive`: and can never come later."""

    definitive: bool = False


@dataclass(frozen=True)
class Unsure:
    """A lookup that could not say."""

    reason: str = ""


Lookup: TypeAlias = Found | NotFound | Unsure


@dataclass(frozen=True)
class Failure:
    """How an attempt failed, on two axes: whether to try again, and whether it may have acted all the same."""

    kind: Literal["transient", "permanent"]
    effect: Literal["none", "unknown"]
    code: str = "error"
    message: str = ""
    retry_after_s: float | None = None


@dataclass(frozen=True)
class Approval:
    """A person must say yes to exactly these arguments, within this time."""

    expires_s: float


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One tool.

    `identity` names the arguments that say which effect, `intent` the one of them that says why; all others are
    wording.

    lookup: answers whether the effect of a call is there. honours_key: the target takes the downstream key and acts
    once per key for key_ttl_s. settle_s: after that time an effect that was sent is visible to lookup. on_cancel: what
    a cancelled async call does once sent.
    acks: the host says when the model was told. limit_per_run: slots of this tool per run that may have an effect.
    """

    name: str
    tool_class: ToolClass
    run: Callable[[Call], object | Awaitable[object]]
    identity: tuple[str, ...] = ()
    intent: str | None = None
    normalise: Callable[[Mapping[str, JsonValue]], Mapping[str, object]] | None = None
    once_per: Literal["run", "scope"] | None = None
    on_cancel: Literal["finish", "cancel"] = "finish"
    acks: bool = True
    lookup: Callable[[Call], Lookup] | None = None
    settle_s: float = 60.0
    honours_key: bool = False
    key_ttl_s: float | None = None
    classify: Callable[[BaseException], Failure | None] | None = None
    max_attempts: int = 3
    timeout_s: float = 30.0
    lease_s: float = 120.0
    limit_per_run: int | None = None
    approval: Approval | None = None

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        check_name(self.name, "tool")
        wrong = [
            (self.tool_class not in ("read_only", "repeatable", "dangerous"), "unknown class"),
            (
                self.dangerous and not self.identity,
                "dangerous without identity; name the arguments that say which effect",
            ),
            (
                self.once_per is not None and self.intent is None,
                "once_per without intent; two real wishes need two intents",
            ),
            (self.intent is not None and self.intent not in self.identity, "intent outside identity; add it there"),
            (
                self.honours_key and self.key_ttl_s is None,
                "honours_key without key_ttl_s; say how long the target remembers",
            ),
            (self.timeout_s >= self.lease_s, "timeout_s not below lease_s; a slow call would lose its slot"),
            (self.max_attempts < 1, "max_attempts below 1"),
            (self.limit_per_run is not None and self.limit_per_run < 1, "limit_per_run below 1"),
            (self.settle_s < 0, "settle_s below 0"),
        ]
        for found, why in wrong:
            if found:
                raise BadTool(f"tool {self.name}: {why}")

    @property
    def dangerous(self) -> bool:
        """True when a second effect would do harm."""
        return self.tool_class == "dangerous"
