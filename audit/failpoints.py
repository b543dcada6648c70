"""Named points where a fault test may stop a process. Nothing is armed unless a test arms it in its own process.

Owns: the table of armed points. Refuses the environment: a variable that leaks into production could kill it.
"""

from collections.abc import Callable

__all__ = ["arm", "disarm", "failpoint"]

_armed: dict[str, Callable[[], object]] = {}


def failpoint(name: str) -> None:
    """Do what a test has armed for this point; otherwise nothing."""
    if _armed and (action := _armed.get(name)) is not None:
        action()


def arm(name: str, action: Callable[[], object]) -> None:
    """Run `action` whenever this process reaches the point."""
    _armed[name] = action


def disarm(name: str | None = None) -> None:
    """Forget one point, or all of them."""
    if name is None:
        _armed.clear()
    else:
        _armed.pop(name, None)
