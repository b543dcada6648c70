"""The one version of the distribution, read by pyproject.toml and by ``--version``."""

VERSION = "0.1.0"
