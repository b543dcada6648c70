"""Budgets of an answer are settings, as every other number that a user may set."""

import pytest

from agent_tool.contract import Budgets
from search.errors import UsageError
from search.settings import load


def test_the_budgets_of_the_contract_are_the_default_settings() -> None:
    """Who sets nothing gets what the contract says."""
    assert Budgets.of(load({}, index="index")) == Budgets()


def test_a_budget_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """As any setting, and the others stay."""
    monkeypatch.setenv("GROUNDED_PASSAGE_CHARS", "300")
    assert Budgets.of(load({}, index="index")) == Budgets(passage=300)


@pytest.mark.parametrize(
    ("name", "value"),
    [("PASSAGE_CHARS", "0"), ("PASSAGE_CHARS", "12001"), ("ANSWER_CHARS", "40001"), ("CHANNEL_CHARS", "9")],
)
def test_budgets_that_no_answer_could_keep_are_a_usage_error(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said at the start, not at the first call."""
    monkeypatch.setenv(f"GROUNDED_{name}", value)
    with pytest.raises(UsageError, match="passage_chars"):
        Budgets.of(load({}, index="index"))
