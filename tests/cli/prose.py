"""Prose for tests that need much of it: Markdown of a harbour's handbook, the same for the same seed on every machine.

No sentence stands twice in a document: each has a number of its own in it, as records of a real place have.
"""

import random
from collections.abc import Sequence

__all__ = ["handbook", "note", "paragraph", "sentence"]

WHO = (
    "the harbour master", "the night watch", "every skipper", "the workshop", "the ticket office", "a new member",
    "the kitchen crew", "our insurer", "the bookkeeper", "the pilot on duty", "the diver", "the youth crew",
)  # fmt: skip
DOES = (
    "checks", "repairs", "writes down", "orders", "counts", "cleans", "inspects", "lends out", "replaces", "paints",
    "weighs", "locks away", "tests", "reports", "measures", "photographs",
)  # fmt: skip
WHAT = (
    "the mooring lines", "the spare impellers", "the life jackets", "the bilge pump", "the fog horn",
    "the landing stage", "the fuel hoses",
    "the signal flags", "the log book", "the first-aid box", "the anchor chain", "the hatch covers",
    "the deck lights", "the ticket rolls", "the oil barrels", "the fenders",
)  # fmt: skip
WHEN = (
    "before the first boat leaves", "on the last Friday of the month", "as soon as the wind turns north",
    "after the summer timetable ends", "whenever the gauge shows red", "at low water", "once the passengers are ashore",
    "before the ice comes", "during the long break in November", "when two boats meet at the pier",
)  # fmt: skip
WHY = (
    "because salt eats what nobody looks at", "so that the next shift can rely on it",
    "since the inspector asks for it",
    "or else the boat stays where it is", "and tells the office the same day", "unless the duty phone says otherwise",
    "which has saved us a hull more than once", "as the year of the great storm taught us",
)  # fmt: skip
TOPICS = ("Ropes", "Engines", "Safety", "Passengers", "Weather", "Money", "Stores", "Piers", "Night work", "Winter")


def sentence(chance: random.Random, number: int) -> str:
    """One sentence with ``number`` in it."""
    who, does, what, when, why = (chance.choice(words) for words in (WHO, DOES, WHAT, WHEN, WHY))
    text = chance.choice(
        (
            f"{who} {does} {what} {when}, {why}, and files it under {number}",
            f"{when}, {who} {does} {what} no. {number}, {why}",
            f"under rule {number} {who} {does} {what} {when}",
            f"{who} {does} {what}; entry {number} says that this is done {when}, {why}",
        )
    )
    return text[0].upper() + text[1:] + "."


def paragraph(chance: random.Random, first: int, count: int) -> str:
    """A paragraph of ``count`` sentences, numbered from ``first``, in lines of the usual length."""
    return _wrapped([sentence(chance, first + offset) for offset in range(count)])


def handbook(seed: int, sections: int) -> str:
    """A Markdown document with a title, and ``sections`` sections of paragraphs, lists, tables and code."""
    chance = random.Random(seed)
    number = seed * 100_000
    parts = [f"# Handbook of harbour {seed}"]
    for section in range(1, sections + 1):
        parts.append(f"## {chance.choice(TOPICS)}, part {section}")
        for _ in range(chance.randint(2, 4)):
            count = chance.randint(2, 6)
            kind = chance.random()
            if kind < 0.75:
                parts.append(paragraph(chance, number, count))
            elif kind < 0.9:
                parts.append("\n".join(f"- {sentence(chance, number + item)}" for item in range(count)))
            elif kind < 0.95:
                rows = [f"| {number + row} | {chance.choice(WHAT)} | {chance.choice(WHEN)} |" for row in range(count)]
                parts.append("\n".join(["| no. | thing | when |", "|---|---|---|", *rows]))
            else:
                lines = [f"pump --station {number + line} --check '{chance.choice(WHAT)}'" for line in range(count)]
                parts.append("\n".join(["```sh", *lines, "```"]))
            number += count
    return "\n\n".join(parts) + "\n"


def note(seed: int) -> str:
    """A short Markdown document: one passage, unlike that of every other seed."""
    chance = random.Random(seed)
    return f"# Note {seed}\n\n{paragraph(chance, seed * 100, 3)}\n"


def _wrapped(sentences: Sequence[str]) -> str:
    lines, line = [], ""
    for word in " ".join(sentences).split():
        if len(line) + len(word) > 100:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "\n".join([*lines, line])
