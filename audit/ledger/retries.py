"""How often one wish may reach a target: the declared retry layers, multiplied.

Owns: the arithmetic and its warnings. Refuses to change anybody's settings: it reports.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from .tools import Tool

__all__ = ["RetryReport", "RetryRow", "retry_report"]


@dataclass(frozen=True)
class RetryRow:
    """One tool.

    Its layers as declared, and how many attempts they make together, without and with the ledger in front.
    """

    tool: str
    layers: Mapping[str, int]
    without_ledger: int
    with_ledger: int
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class RetryReport:
    """All tools, sorted by name."""

    rows: tuple[RetryRow, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Every warning, in the order of the rows."""
        return tuple(warning for row in self.rows for warning in row.warnings)


def retry_report(layers: Mapping[str, Mapping[str, int]], tools: Mapping[str, Tool]) -> RetryReport:
    """Multiply {tool: {layer: attempts}}; the ledger's own attempts are known for tools it has met.

    Layers above the ledger repeat its call and get its answer; only those below it (named `client` or `sdk`) multiply
    what is sent.
    """
    return RetryReport(tuple(_row(name, layers[name], tools.get(name)) for name in sorted(layers)))


def _row(name: str, layers: Mapping[str, int], tool: Tool | None) -> RetryRow:
    below = math.prod(attempts for layer, attempts in layers.items() if layer in ("client", "sdk"))
    own = tool.max_attempts if tool is not None else 1
    warnings = []
    if tool is None or tool.dangerous:
        more = sorted(layer for layer, attempts in layers.items() if attempts > 1 and layer != "ledger")
        if len(more) > 1:
            warnings.append(f"{name}: {len(more)} layers retry it ({', '.join(more)}); let the ledger alone retry")
        elif more:
            warnings.append(f"{name}: {more[0]} retries it too; set it to 1, the ledger owns retries")
    total = math.prod(layers.values())
    return RetryRow(name, dict(layers), total, own * below, tuple(warnings))
