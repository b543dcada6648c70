"""The optional groups of the agent tool's tests."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Name the groups that need packages or programs beyond the dev extra; they are skipped with a reason."""
    config.addinivalue_line("markers", "adapters: needs the SDK of a model vendor or agent framework")
