"""Where the key of a call comes from, and what is refused."""

import pytest

from agent_tool.call_keys import (
    CLIENT_META,
    REQUEST_HEADER,
    STEP_HEADER,
    Origin,
    meta_of,
    planned,
    read_key,
    read_origin,
)
from agent_tool.contract import REQUEST_META, STEP_META
from audit import BadKey

TOOL_USE = "toolu_01A09q90qw90lq917835lq9"


def meta(request: object = "req-1", step: object = "4.0") -> dict[str, object]:
    """A key in ``_meta``."""
    return {REQUEST_META: request, STEP_META: step}


def headers(request: str = "req-1", step: str = "4.0") -> dict[str, list[str]]:
    """A key in headers."""
    return {REQUEST_HEADER: [request], STEP_HEADER: [step]}


def test_the_first_source_that_is_present_wins() -> None:
    """Meta, headers, the client's id, a fresh key."""
    both = {**meta(), CLIENT_META: TOOL_USE}
    assert (str(read_key(both, headers()).step), read_key(both, headers()).source) == ("req-1:4.0", "meta")
    key = read_key({CLIENT_META: TOOL_USE}, headers("h", "s"))
    assert (str(key.step), key.source) == ("h:s", "header")
    key = read_key({CLIENT_META: TOOL_USE}, {})
    assert (str(key.step), key.source) == (f"~client:{TOOL_USE}", "client")
    assert read_key({}, {}).source == "generated"


def test_a_generated_key_is_never_the_same_twice() -> None:
    """So it is never deduplicated."""
    assert read_key({}, {}) != read_key({}, {})


@pytest.mark.parametrize(
    "value",
    ["toolu_short", "call_01A09q90qw90lq917835lq9", "toolu_01A09q90qw90lq9-7835lq9", 7, None, "toolu_" + "a" * 200],
)
def test_an_id_of_another_look_is_no_key(value: object) -> None:
    """Some models write their own ids; only the one known form counts."""
    assert read_key({CLIENT_META: value}, {}).source == "generated"


@pytest.mark.parametrize(
    "given",
    [
        {REQUEST_META: "r"},
        {STEP_META: "s"},
        meta(step=True),
        meta(step=1.0),
        meta(step=-1),
        meta(step=None),
        meta(step={"a": 1}),
        meta(step=10**200),
        meta(step=""),
        meta(request=""),
        meta(request=7),
        meta(request="a:b"),
        meta(step="a:b"),
        meta(request="~generated"),
        meta(request="r" * 129),
        meta(request="jürgen"),
        meta(request="a b"),
        meta(request="a\n"),
    ],
)
def test_half_and_malformed_keys_are_refused(given: dict[str, object]) -> None:
    """Never mended, and never replaced by a fresh key: that would count a retry twice."""
    with pytest.raises(BadKey):
        read_key(given, {})


@pytest.mark.parametrize(
    "given",
    [
        {REQUEST_HEADER: ["r"]},
        {REQUEST_HEADER: ["r", "r"], STEP_HEADER: ["s"]},
        headers("~client", "x"),
        headers("a:b", "c"),
    ],
)
def test_headers_are_held_to_the_same_rules(given: dict[str, list[str]]) -> None:
    """A header that stands twice is a contradiction even where both say the same."""
    with pytest.raises(BadKey):
        read_key({}, given)


def test_two_sources_that_differ_are_refused_and_equal_ones_are_one() -> None:
    """Either could be the mistake."""
    with pytest.raises(BadKey):
        read_key(meta(), headers(step="4.1"))
    assert read_key(meta(), headers()).source == "meta"


def test_a_step_may_be_an_integer() -> None:
    """The Inspector sends one; 2 and "2" are one step."""
    assert read_key(meta(step=2), {}) == read_key(meta(step="2"), {})
    assert str(read_key(meta(step=0), {}).step) == "req-1:0"


def test_a_required_key_must_be_there() -> None:
    """The client's own id will do; nothing will not."""
    assert read_key({CLIENT_META: TOOL_USE}, {}, required=True).source == "client"
    with pytest.raises(BadKey, match="missing"):
        read_key({}, {}, required=True)


def test_a_planned_key_goes_through_meta_unchanged() -> None:
    """What an orchestrator plans is what the server reads."""
    key = planned("req-9", 4, 1)
    assert str(key.step) == "req-9:4.1"
    assert read_key(meta_of(key), {}) == key


def test_request_ids_of_the_protocol_are_no_keys() -> None:
    """Progress tokens, traces and session ids are equal for different calls, or different for equal ones."""
    given = {"progressToken": "p", "traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01", "mcp-session-id": "x"}
    assert read_key(given, {}).source == "generated"


def test_an_origin_keeps_only_what_has_its_form() -> None:
    """It goes into an event that is never changed."""
    trace = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    assert read_origin(trace, "claude-code") == Origin("a" * 32, "claude-code")
    assert read_origin("00-zz", "x\nforged") == read_origin(7, None) == Origin()
