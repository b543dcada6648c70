"""Numbers of parts as people write them: ``4-6, 9``. Knows nothing of what they count."""

from collections.abc import Iterable

__all__ = ["ranges_text", "spans"]


def spans(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return ascending numbers as their unbroken runs, first and last of each."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def ranges_text(found: Iterable[tuple[int, int]]) -> str:
    """Return such runs as text."""
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)
