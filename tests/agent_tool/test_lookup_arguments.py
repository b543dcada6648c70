"""The rules of the arguments: each refused by its name, none mended, nothing repeated."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tool.arguments import Arguments, read_arguments
from agent_tool.failures import CouldNotLook


def refusal(arguments: dict[str, object]) -> CouldNotLook:
    """The refusal of arguments, held to what all refusals share."""
    with pytest.raises(CouldNotLook) as caught:
        read_arguments(arguments)
    assert caught.value.failure.code == "invalid_argument"
    assert not caught.value.failure.retryable
    assert "query, limit, path" in caught.value.failure.sentence
    return caught.value


def read_or_refused(arguments: dict[str, object]) -> Arguments | CouldNotLook:
    """Whichever of the two it is."""
    try:
        return read_arguments(arguments)
    except CouldNotLook as refused:
        return refused


def test_arguments_come_back_as_given() -> None:
    """Absent ones stay absent; the setting decides."""
    assert read_arguments({"query": "leave"}) == Arguments("leave")
    assert read_arguments({"query": "leave", "limit": 7, "path": "hr/"}) == Arguments("leave", 7, "hr/")


def test_null_is_no_argument() -> None:
    """Strict callers send every argument, unused ones as null."""
    assert read_arguments({"query": "leave", "limit": None, "path": None}) == Arguments("leave")
    assert refusal({"query": None}).failure.argument == "query"


def test_a_whole_number_may_be_written_as_a_float() -> None:
    """JSON has one kind of number."""
    limit = read_arguments({"query": "leave", "limit": 3.0}).limit
    assert (limit, type(limit)) == (3, int)


def test_a_query_is_composed_but_a_path_is_not() -> None:
    """A path is compared with names as they are on disk."""
    assert read_arguments({"query": "cafe\u0301", "path": "cafe\u0301"}) == Arguments("caf\u00e9", None, "cafe\u0301")


@pytest.mark.parametrize("value", ["7", True, False, 3.5, 0, 21, -1, float("nan"), float("inf"), [3], {"a": 1}])
def test_a_limit_that_is_no_number_from_1_to_20_is_refused(value: object) -> None:
    """Nothing is coerced."""
    assert refusal({"query": "leave", "limit": value}).failure.argument == "limit"


@pytest.mark.parametrize(
    "value",
    ["", "   ", "\n\t", "x" * 1001, 7, True, ["leave"], "\U0001f600" * 1001, "a\x00b", "a\x1bb", "a\x7f", "a\x85",
     "a\u200bb", "a\u2060b", "a\ufeffb", "a\u202eb", "a\u2066b", "a\U000e0041b", "a\ud800b", "a" + chr(0xDFFF),
     "\u0958" * 1000],
)  # fmt: skip
def test_a_query_that_breaks_a_rule_is_refused(value: object) -> None:
    """Length, white space, control and hidden characters, lone surrogates; also what composing makes too long."""
    assert refusal({"query": value}).failure.argument == "query"


@pytest.mark.parametrize(
    "value", ["a\tb\nc\rd", "a\u2028b", "می\u200cخواهم", "👩\u200d💻", "a\u200eb\u200f", "☂\ufe0f", "NEAR(a,b) OR *\"'"]
)
def test_a_query_may_hold_what_people_write(value: str) -> None:
    """Joiners, directional marks, emoji variants, line ends; there is no query syntax that could break."""
    assert read_arguments({"query": value}).query == value


@pytest.mark.parametrize(
    "value",
    ["", "x" * 301, 7, "/etc/passwd", "../x", "a/../b", "a/..", "C:/x", "c:\\x", "a\\b", "a\\xzz", "a\tb", "a\nb",
     "a\u2028b", "a\u2029b", "a\x00b", "a\u202eb", "a\ud83db"],
)  # fmt: skip
def test_a_path_that_breaks_a_rule_is_refused(value: object) -> None:
    """Absolute, upwards, drives, backslashes, anything that is not one visible line."""
    assert refusal({"query": "leave", "path": value}).failure.argument == "path"


@pytest.mark.parametrize("value", ["hr", "hr/", "hr/leave.md", "a..b/c", "...", "caf\\xe9.txt", "ünï/😀.md", "a:b"])
def test_a_path_as_citations_show_it_passes(value: str) -> None:
    r"""A trailing slash, dots in names, and a byte that is not UTF-8 as \xNN."""
    assert read_arguments({"query": "leave", "path": value}).path == value


@pytest.mark.parametrize("name", ["request", "step", "tenant", "collection", "filter", "Query", "", "score"])
def test_an_unknown_argument_is_refused_without_its_name(name: str) -> None:
    """It could hold anything; what is allowed is said instead."""
    failure = refusal({"query": "leave", name: "SECRET"}).failure
    assert failure.argument is None
    assert "SECRET" not in failure.text


def test_deep_nesting_is_refused() -> None:
    """It cannot be printed, and need not be."""
    deep: object = "x"
    for _ in range(5000):
        deep = [deep]
    assert refusal({"query": deep}).failure.argument == "query"


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["query", "limit", "path", "other"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text(), max_size=2),
    )
)
def test_whatever_is_given_is_read_or_refused(arguments: dict[str, object]) -> None:
    """No other outcome, and a refusal repeats nothing of what was given."""
    outcome = read_or_refused(arguments)
    if isinstance(outcome, Arguments):
        assert 1 <= len(outcome.query.encode()) <= 4000
    else:
        given = [value for value in arguments.values() if isinstance(value, str) and len(value) > 12]
        assert not [value for value in given if value in outcome.failure.text]
