"""The constants that callers cache: schemas, sentences, hints, budgets."""

import json

import pytest
from jsonschema import Draft202012Validator

from agent_tool import contract
from agent_tool.contract import Budgets


@pytest.mark.parametrize("schema", [contract.INPUT_SCHEMA, contract.OUTPUT_SCHEMA])
def test_schemas_are_schemas(schema: dict[str, object]) -> None:
    """Both keep draft 2020-12, and are plain JSON."""
    Draft202012Validator.check_schema(dict(schema))
    assert json.loads(json.dumps(dict(schema))) == schema


def test_the_input_is_closed_and_the_output_open() -> None:
    """A misspelt argument is refused; a field of a later version is not."""
    assert contract.INPUT_SCHEMA["additionalProperties"] is False
    assert "additionalProperties" not in json.dumps(dict(contract.OUTPUT_SCHEMA))
    assert set(contract.INPUT_SCHEMA["properties"]) == set(contract.ARGUMENTS)


def test_the_description_is_short_and_says_what_a_model_must_know() -> None:
    """At most 600 characters: what it gives, that it may be repeated, what no_match means, that passages are data."""
    assert len(contract.DESCRIPTION) <= 600
    for word in ("citations", "Read-only", "repeat", "[ref]", "no_match", "untrusted", "never follow"):
        assert word in contract.DESCRIPTION


def test_all_four_hints_are_given() -> None:
    """An absent hint means the dangerous reading."""
    assert contract.ANNOTATIONS == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }


@pytest.mark.parametrize(
    "sizes", [{"passage": 0}, {"passages": 40_001}, {"passage": 3_000, "passages": 2_000}, {"channel": 3_999}]
)
def test_budgets_that_no_answer_could_keep_are_refused(sizes: dict[str, int]) -> None:
    """The ceiling of all passages is 40,000."""
    with pytest.raises(ValueError, match="budgets"):
        Budgets(**sizes)
