"""What a check found: problems with samples, and the command that would mend them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["SAMPLES", "Check", "VerifyReport", "check"]

# Names shown of many; the message says how many there are.
SAMPLES = 5


@dataclass(frozen=True, slots=True)
class Check:
    """One check: ``ok``, or what is wrong, how to mend it, and a few examples."""

    name: str
    severity: Literal["error", "warning"]
    ok: bool
    message: str
    remedy: str = ""
    samples: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the check by its stable field names."""
        return {
            "name": self.name,
            "severity": self.severity,
            "ok": self.ok,
            "message": self.message,
            "remedy": self.remedy,
            "samples": list(self.samples),
        }


@dataclass(slots=True)
class VerifyReport:
    """All checks of one verification."""

    checks: list[Check] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True when nothing is wrong; warnings do not count."""
        return all(check.ok or check.severity == "warning" for check in self.checks)

    def to_json(self) -> dict[str, object]:
        """Return the object that ``ingest verify --json`` prints."""
        return {"message_type": "verify_report", "ok": self.ok, "checks": [item.to_json() for item in self.checks]}


def check(
    name: str,
    problems: Iterable[str],
    *,
    fine: str,
    wrong: str,
    remedy: str,
    severity: Literal["error", "warning"] = "error",
) -> Check:
    """Return a check out of the problems it met: ``fine`` where there are none, else their number and ``wrong``."""
    found = list(problems)
    if not found:
        return Check(name, severity, True, fine)
    return Check(name, severity, False, f"{len(found)} {wrong}", remedy, tuple(found[:SAMPLES]))
