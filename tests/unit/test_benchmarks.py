"""Benchmarks are run by hand, so that nothing else tells when one of them no longer starts."""

import importlib
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import NAMES

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_finds_all_that_it_measures(name: str) -> None:
    """It can be imported, and says what it measures."""
    module = importlib.import_module(f"tests.benchmarks.{name}")
    assert callable(module.main)
    assert module.__doc__


def test_every_benchmark_is_in_the_list() -> None:
    """``make bench`` runs them all."""
    assert sorted(NAMES) == sorted(path.stem for path in FOLDER.glob("[!_]*.py"))
