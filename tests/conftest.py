"""What every test gets: no settings of the machine, no network, state in its own folder."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The user's cache folder of all tests: theirs alone, and shared, since the model's files are linked there."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_surroundings(
    cache_folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clear ``GROUNDED_*``, forbid the hub, move all state away, and make an empty folder the current one."""
    for name in [name for name in os.environ if name.startswith("GROUNDED_") and name != "GROUNDED_QDRANT_URL"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_folder))
    monkeypatch.chdir(tmp_path_factory.mktemp("work"))
