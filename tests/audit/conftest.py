"""Fixtures of the audit tests: a folder, a clock that stands still, an audit over both."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest

from audit import Audit, failpoints
from audit.faults import FakeClock, Target
from tests.audit.ledger_desk import Desk


def pytest_configure(config: pytest.Config) -> None:
    """The marker of this folder, so that it can be run alone, too."""
    config.addinivalue_line("markers", "engines: needs engines and SDKs of the extra `engines`; skipped without them")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the audit file will be."""
    return tmp_path / "audit"


@pytest.fixture
def clock() -> FakeClock:
    """Time that only the test moves."""
    return FakeClock()


@pytest.fixture
def make_audit(folder: Path, clock: FakeClock) -> Iterator[Callable[..., Audit]]:
    """Opens audits over one folder, by default without fsync and with the standing clock; closes them at the end."""
    opened: list[Audit] = []

    def make(**options: object) -> Audit:
        audit = Audit(folder, **{"durable": False, "clock": clock, **options})  # type: ignore[arg-type]  # any option
        opened.append(audit)
        return audit

    yield make
    for audit in opened:
        audit.close()


@pytest.fixture
def audit(make_audit: Callable[..., Audit]) -> Audit:
    """Open one audit with no limits."""
    return make_audit()


@pytest.fixture(autouse=True)
def _nothing_armed() -> Iterator[None]:
    yield
    failpoints.disarm()


@pytest.fixture
def make_desk(folder: Path, tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """Makes a desk over a target of some ability; with `clock`, time stands still and waiting moves it.

    Every test that uses it ends with the four counters, `verify` and `integrity_check`.
    """
    made: list[Desk] = []

    def make(ability: Literal["none", "lookup", "key", "both"] = "none", *, clock: FakeClock | None = None) -> Desk:
        made.append(Desk(folder, Target(tmp_path / "target.jsonl", ability), clock))
        return made[-1]

    yield make
    for desk in made:
        desk.close()
    for desk in made:
        desk.check()
