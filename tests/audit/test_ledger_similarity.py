"""The semantic gate: what counts as alike, from where on a person is asked, and what vetoes it."""

import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit import Gate, embedding_similarity, tfidf_similarity
from audit.faults import FakeClock
from audit.ledger.similarity import PassageEmbedder
from search.embedding import Embedder
from tests.audit.ledger_desk import Desk, phase, send

MakeDesk = Callable[..., Desk]
SETTINGS = settings(max_examples=100, derandomize=True, deadline=None)


class Circle:
    """An embedder whose texts are angles in degrees: the similarity of two is the cosine of their distance."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> list[tuple[float, float]]:
        self.asked += texts
        return [(math.cos(math.radians(float(text))), math.sin(math.radians(float(text)))) for text in texts]


def fits(embedder: Embedder) -> PassageEmbedder:
    """Typed usage: the embedder of the index is one for the gate."""
    return embedder


def degrees(similarity: float) -> str:
    """The angle from 0 at which the similarity is this."""
    return str(math.degrees(math.acos(similarity)))


@pytest.fixture
def desk(make_desk: MakeDesk) -> Desk:
    """A desk whose time only the test moves; second effects are meant where the gate lets them pass."""
    made: Desk = make_desk(clock=FakeClock())
    made.most_effects = 2
    return made


@pytest.mark.parametrize(
    ("intent", "similarity", "asks"),
    [
        (None, 0.899, False), (None, 0.901, True),
        ("purpose", 0.849, False), ("purpose", 0.851, True), ("purpose", 0.899, True),
    ],
)  # fmt: skip
def test_a_person_is_asked_from_the_threshold_on(desk: Desk, intent: str | None, similarity: float, asks: bool) -> None:
    """0.90 for near-identical wording; 0.85 where the tool says what for, and that is equal."""
    audit = desk.open(gate=Gate(embedding_similarity(Circle())))
    tool = desk.tool(intent=intent)
    send(audit, tool, note="0").ack("ok")
    second = send(audit, tool, step="5.0", note=degrees(similarity))
    assert second.kind == ("needs_approval" if asks else "done")
    assert len(desk.target.acts()) == (1 if asks else 2)


def test_a_differing_identity_vetoes_the_gate(desk: Desk) -> None:
    """The very same words about another order, or for another purpose, are another action: nobody is asked."""
    embedder = Circle()
    audit = desk.open(gate=Gate(embedding_similarity(embedder)))
    send(audit, desk.tool(), note="0").ack("ok")
    assert send(audit, desk.tool(), step="5.0", order="P-2", note="0").kind == "done"
    assert send(audit, desk.tool(), step="6.0", purpose="paid", note="0").kind == "done"
    assert embedder.asked == []


def test_without_a_gate_equal_words_after_ok_are_a_new_wish(desk: Desk) -> None:
    """Off by default."""
    audit = desk.open()
    send(audit, desk.tool()).ack("ok")
    assert send(audit, desk.tool(), step="5.0").kind == "done"


def test_the_gate_asks_and_never_drops(desk: Desk) -> None:
    """The question stands in `attention` with its arguments; a yes sends exactly these, once."""
    audit = desk.open(gate=Gate(tfidf_similarity()))
    send(audit, desk.tool(), note="your refund is on its way").ack("ok")
    asked = send(audit, desk.tool(), step="5.0", note="Your refund is on its way!")
    assert (asked.kind, phase(audit, "5.0")) == ("needs_approval", "gated")
    (view,) = audit.ledger.attention()
    audit.ledger.approve(str(view.approval_id), args_hash=str(view.args_hash), by="jane")
    assert send(audit, desk.tool(), step="5.0", note="third words").kind == "done"
    assert [act.args["note"] for act in desk.target.acts()][-1] == "Your refund is on its way!"


def test_each_wording_is_embedded_once(desk: Desk) -> None:
    """However many slots it is compared with."""
    embedder = Circle()
    audit = desk.open(gate=Gate(embedding_similarity(embedder)))
    desk.most_effects = 3
    for step, note in (("1.0", "0"), ("2.0", "90"), ("3.0", "180")):
        send(audit, desk.tool(), step=step, note=note).ack("ok")
    assert sorted(embedder.asked) == ["0", "180", "90"]


def test_words_that_stand_in_every_text_say_little() -> None:
    """The background of a tool makes its phrases light: two refunds of one template differ by what is rare."""
    template = "dear customer we have good news about your order number"
    background = [f"{template} {number}" for number in range(50)]
    left, right = f"{template} umbrella", f"{template} kettle"
    assert tfidf_similarity()(left, right) >= 0.90
    assert tfidf_similarity(background)(left, right) < 0.85


@SETTINGS
@given(st.text(max_size=60), st.text(max_size=60), st.lists(st.text(max_size=30), max_size=5))
def test_tfidf_is_symmetric_within_bounds_and_one_for_the_same_words(
    left: str, right: str, background: list[str]
) -> None:
    """For any texts and background."""
    similarity = tfidf_similarity(background)
    assert 0.0 <= similarity(left, right) <= 1.0
    assert similarity(left, right) == pytest.approx(similarity(right, left))
    if any(character.isalnum() for character in left):
        assert similarity(left, left) == pytest.approx(1.0)
    assert tfidf_similarity()("", right) == 0.0
