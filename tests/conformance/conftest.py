"""The optional group of the conformance suite."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Name the group; it is skipped, with the reason, where Node or the packages are not there."""
    config.addinivalue_line("markers", "conformance: needs Node >= 22 and packages of npm, named by MCP_NODE_MODULES")
