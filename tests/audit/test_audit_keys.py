"""Keys have one reading, and nothing outside their form gets in."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit import ActionKey, BadDeclaration, BadKey, CallKey, ChainKey, StepKey
from audit.keys import IdKey, canonical, normal_identity

PART = st.from_regex(r"[A-Za-z0-9._-][A-Za-z0-9._~-]{0,20}", fullmatch=True)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.invariant("I7")
@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.lists(st.tuples(PART, PART), min_size=2, max_size=2))
def test_two_step_keys_are_equal_exactly_when_their_parts_are(pairs: list[tuple[str, str]]) -> None:
    """No two pairs of parts join to one text, and the text reads back."""
    first, second = (StepKey(*pair) for pair in pairs)
    assert (str(first) == str(second)) == (pairs[0] == pairs[1])
    assert StepKey.parse(str(first)) == first


@pytest.mark.parametrize(
    ("request_id", "step"),
    [("a:b", "c"), ("a", "b:c"), ("", "1"), ("a", ""), ("~x", "1"), ("a", "~1"), ("a" * 129, "1"), ("a b", "1"),
     ("jane@example.org", "1"), ("a\n", "1"), ("é", "1"), ("e\u0301", "1"), ("a", "1#s1"), ("a/b", "1"), ("a\0", "1")],
)  # fmt: skip
def test_a_part_outside_the_form_is_refused(request_id: str, step: str) -> None:
    """A separator, a blank, a mail address, another script: refused, never cleaned up."""
    with pytest.raises(BadKey):
        StepKey(request_id, step)


@pytest.mark.parametrize("value", [1, True, None, 1.0, b"a", ["a"]])
def test_a_part_that_is_not_text_is_refused(value: object) -> None:
    """Numbers are turned into text by the caller, who knows what they mean."""
    with pytest.raises(BadKey):
        StepKey(value, "1")  # type: ignore[arg-type]  # the misuse under test


def test_the_message_of_a_bad_key_does_not_repeat_it() -> None:
    """A refused key may hold personal data, and messages reach logs."""
    with pytest.raises(BadKey) as caught:
        StepKey("jane@example.org", "1")
    assert "jane" not in str(caught.value)


def test_own_keys_cannot_be_given_from_outside() -> None:
    """A caller cannot collide with a key that this program made."""
    own = CallKey.client("toolu_0123456789abcdef")
    assert str(own.step) == "~client:toolu_0123456789abcdef"
    with pytest.raises(BadKey):
        StepKey("~client", "toolu_0123456789abcdef")
    assert StepKey.parse(str(own.step)) == own.step


def test_generated_keys_differ() -> None:
    """A call without a key is marked and never merged with another."""
    keys = {CallKey.generated() for _ in range(100)}
    assert len(keys) == 100
    assert {key.source for key in keys} == {"generated"}


@pytest.mark.parametrize("text", ["a", "", ":", "a:", ":b", "a:b:c"])
def test_text_that_is_no_step_key_is_refused(text: str) -> None:
    """Half a key is no key."""
    with pytest.raises(BadKey):
        StepKey.parse(text)


def test_an_action_key_reads_back() -> None:
    """Workflow, step, tool and sample stand in the text."""
    for key in (ActionKey("w", "4.0", "send"), ActionKey("w", "4.0", "send", 3)):
        assert ActionKey.parse(str(key)) == key
    assert str(ActionKey("w", "4.0", "send", 3)) == "w:4.0:send#s3"


@pytest.mark.parametrize("text", ["w:s", "w:s:t:u", "w:s:t#s0", "w:s:t#s01", "w:s:t#s", "w:s:t#sx", "w:s:t#s\u0661"])
def test_text_that_is_no_action_key_is_refused(text: str) -> None:
    """Each sample has one spelling."""
    with pytest.raises(BadKey):
        ActionKey.parse(text)


def test_an_action_key_longer_than_its_column_is_refused() -> None:
    """Three legal parts can still be too long together."""
    with pytest.raises(BadKey, match="255"):
        ActionKey("w" * 128, "s" * 128, "t")


@settings(derandomize=True, deadline=None, max_examples=200)
@given(JSON, JSON)
def test_fingerprints_are_equal_exactly_for_equal_json(left: object, right: object) -> None:
    """Order of keys and tuple or list do not matter; value and type do."""
    ids = IdKey(b"k" * 32)
    assert (ids.fingerprint(left) == ids.fingerprint(right)) == (canonical(left) == canonical(right))


def test_canonical_json_is_sorted_and_ascii() -> None:
    """One text for one value, a lone surrogate included, which UTF-8 could not say."""
    assert canonical({"b": 1, "a": ("ü", "\ud800")}) == '{"a":["\\u00fc","\\ud800"],"b":1}'


def _nested(levels: int) -> object:
    value: object = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {1: "a"}, {"a": {2: 1}}, b"a", {"a"}, object(), _nested(200)]
)
def test_what_has_no_single_json_form_is_refused(value: object) -> None:
    """Python would make `1` and `'1'` one key, and writes NaN, which is not JSON."""
    with pytest.raises(BadKey):
        canonical(value)


def test_a_cycle_is_refused() -> None:
    """A value that holds itself has no end."""
    value: list[object] = []
    value.append(value)
    with pytest.raises(BadKey):
        canonical(value)


def test_a_pseudonym_is_a_key_part_and_hides_its_value() -> None:
    """Business ids enter keys only this way."""
    ids, others = IdKey(b"k" * 32), IdKey(b"o" * 32)
    pseudonym = ids.opaque("jane@example.org")
    assert StepKey(pseudonym, "1").request == pseudonym
    assert "jane" not in pseudonym
    assert pseudonym == ids.opaque("jane@example.org") != others.opaque("jane@example.org")


def test_one_secret_serves_purposes_that_do_not_meet() -> None:
    """A fingerprint is no pseudonym, and a derived secret tells nothing of another."""
    ids = IdKey(b"k" * 32)
    made = {ids.opaque("a")[3:], ids.fingerprint("a")[:40], ids.derive("a").hex()[:40], ids.derive("b").hex()[:40]}
    assert len(made) == 4


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (" R-1 ", "R-1"),
        ("e\u0301", "\u00e9"),
        (Decimal("1.50"), Decimal("1.5")),
        (Decimal("-0"), Decimal(0)),
        ((1, 2), [1, 2]),
    ],
)
def test_identity_values_that_mean_the_same_become_the_same(left: object, right: object) -> None:
    """Blank ends, composed letters and trailing zeros do not make another effect."""
    assert normal_identity({"x": left}) == normal_identity({"x": right})


@pytest.mark.parametrize(("left", "right"), [("R-1", "r-1"), (1, "1"), (True, "true"), ("a b", "a  b")])
def test_identity_values_that_differ_stay_apart(left: object, right: object) -> None:
    """Nothing is folded that could be two effects."""
    assert normal_identity({"x": left}) != normal_identity({"x": right})


def test_dates_in_an_identity_become_iso_text() -> None:
    """A date and a time have one text each."""
    values = normal_identity({"on": date(2026, 5, 4), "at": datetime(2026, 5, 4, 12, tzinfo=UTC)})
    assert values == {"on": "2026-05-04", "at": "2026-05-04T12:00:00+00:00"}


@pytest.mark.parametrize("value", [1.0, float("nan"), datetime(2026, 5, 4), Decimal("NaN"), object(), b"x"])  # noqa: DTZ001 - the misuse
def test_identity_values_without_one_form_are_refused(value: object) -> None:
    """`1` and `1.0` would be two identities of one amount."""
    with pytest.raises(BadKey):
        normal_identity({"x": value})


def test_a_short_secret_is_refused() -> None:
    """A key that can be guessed protects nothing."""
    with pytest.raises(BadDeclaration):
        IdKey(b"short")
    with pytest.raises(BadDeclaration):
        ChainKey("k", b"short")


def test_a_secret_is_not_shown() -> None:
    """Neither key appears in a log line that shows an object."""
    assert "kkkk" not in repr(IdKey(b"k" * 32)) + repr(ChainKey("c", b"k" * 32))
