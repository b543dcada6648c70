"""The command line: options, output for people and for scripts, and the one boundary where errors become exit codes."""

from .boundary import main

__all__ = ["main"]
