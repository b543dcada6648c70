"""What every test gets: no settings of the machine, no network, state in its own folder."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clear ``GROUNDED_*``, forbid the hub, and make the test's own folder the current one."""
    for name in [name for name in os.environ if name.startswith("GROUNDED_") and name != "GROUNDED_QDRANT_URL"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
