"""What stands before the work: the flood meter and the places."""

from agent_tool.admission import FloodMeter, Places


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_passes_and_then_the_rate_holds() -> None:
    """The wait that is told is the wait that is needed."""
    clock = Clock()
    meter = FloodMeter(per_second=20, burst=40, clock=clock)
    assert [meter.take("a") for _ in range(40)] == [None] * 40
    wait = meter.take("a")
    assert wait is not None
    clock.now += wait
    assert meter.take("a") is None
    assert meter.take("a") is not None


def test_one_subject_does_not_use_up_another() -> None:
    """Each has its own meter."""
    meter = FloodMeter(per_second=1, burst=1, clock=Clock())
    assert meter.take("a") is None
    assert meter.take("a") is not None
    assert meter.take("b") is None


def test_a_meter_never_holds_more_than_a_burst() -> None:
    """A long silence is no savings account."""
    clock = Clock()
    meter = FloodMeter(per_second=20, burst=2, clock=clock)
    clock.now += 3600
    assert [meter.take("a") is None for _ in range(3)] == [True, True, False]


def test_places_are_given_and_given_back() -> None:
    """Nobody waits here."""
    places = Places(2)
    assert [places.enter() for _ in range(3)] == [True, True, False]
    places.leave()
    assert places.enter()
