"""PDFs in the layouts that people keep: prose, columns, tables, many fonts, running titles, broken words, turned pages.

Made with reportlab from generated words; equal calls make equal bytes.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from reportlab.lib import colors
from reportlab.lib.pagesizes import A4, landscape
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Flowable,
    Frame,
    PageBreak,
    PageTemplate,
    Paragraph,
    Spacer,
    Table,
    TableStyle,
)

__all__ = ["LAYOUTS", "write"]

SEED = 20240811
SYLLABLES = (
    "ba",
    "de",
    "fi",
    "go",
    "lu",
    "ma",
    "ne",
    "pi",
    "ro",
    "su",
    "ta",
    "ve",
    "wi",
    "kla",
    "stre",
    "nor",
    "é",
    "ö",
)
SMALL = ("the", "of", "and", "to", "in", "is", "a", "for", "on", "with")
FONTS = ("Helvetica", "Times-Roman", "Courier", "Helvetica-Bold", "Times-Italic", "Courier-Oblique", "Times-BoldItalic")
STYLES = getSampleStyleSheet()


def word(chance: random.Random) -> str:
    """Return a word, short and frequent or made up."""
    if chance.random() < 0.35:
        return chance.choice(SMALL)
    return "".join(chance.choices(SYLLABLES, k=chance.randint(2, 4)))


def sentence(chance: random.Random) -> str:
    """Return a sentence, now and then with a number, a bracket or a hyphen in it."""
    words = [word(chance) for _ in range(chance.randint(6, 18))]
    if chance.random() < 0.3:
        words.insert(3, str(chance.randint(2, 9_999)))
    if chance.random() < 0.2:
        words[2] = f"({words[2]})"
    if chance.random() < 0.2:
        words[4] = f"{words[4]}-{word(chance)}"
    return " ".join(words).capitalize() + "."


def paragraph(chance: random.Random) -> str:
    """Return a few sentences."""
    return " ".join(sentence(chance) for _ in range(chance.randint(3, 7)))


def flow(path: Path, story: Sequence[Flowable], frames: Sequence[Frame], header: str | None = None) -> None:
    """Lay a story out in the frames of each page, under a running title."""

    def title(canvas: Canvas, document: BaseDocTemplate) -> None:
        if header is not None:
            canvas.setFont("Helvetica", 8)
            canvas.drawString(60, 815, header)
            canvas.drawRightString(535, 20, f"Page {document.page}")

    document = BaseDocTemplate(str(path), pagesize=A4, invariant=1)
    document.addPageTemplates([PageTemplate(frames=list(frames), onPage=title)])
    document.build(list(story))


def prose(path: Path, chance: random.Random) -> None:
    """Headings and paragraphs, set justified."""
    style = ParagraphStyle("prose", STYLES["BodyText"], alignment=4)
    story: list[Flowable] = []
    for number in range(1, 41):
        story += [Paragraph(f"{number} {sentence(chance)[:-1]}", STYLES["Heading2"])]
        story += [Paragraph(paragraph(chance), style) for _ in range(6)]
    flow(path, story, [Frame(60, 60, 475, 720)], "A handbook of the harbour")


def two_columns(path: Path, chance: random.Random) -> None:
    """Two columns, drawn one after the other."""
    story = [Paragraph(paragraph(chance), STYLES["BodyText"]) for _ in range(260)]
    flow(path, story, [Frame(50, 60, 240, 720), Frame(305, 60, 240, 720)])


def tables(path: Path, chance: random.Random) -> None:
    """Tables with rules between short paragraphs."""
    story: list[Flowable] = []
    for _ in range(45):
        rows = [["Name", "Berth", "Since", "Fee"]]
        rows += [
            [word(chance), word(chance), str(chance.randint(1950, 2024)), f"{chance.randint(3, 900)}.50"]
            for _ in range(14)
        ]
        grid = Table(rows, colWidths=[140, 110, 80, 80])
        grid.setStyle(TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.grey)]))
        story += [Paragraph(sentence(chance), STYLES["BodyText"]), Spacer(1, 6), grid, Spacer(1, 12)]
    flow(path, story, [Frame(60, 60, 475, 720)])


def fonts(path: Path, chance: random.Random) -> None:
    """Words of one line in several fonts and sizes."""
    story: list[Flowable] = []
    for _ in range(200):
        runs = (
            f'<font name="{chance.choice(FONTS)}" size="{chance.randint(7, 14)}">{sentence(chance)}</font>'
            for _ in range(4)
        )
        story.append(Paragraph(" ".join(runs), ParagraphStyle("mixed", leading=18)))
    flow(path, story, [Frame(60, 60, 475, 720)], "Notes, edition 3")


def broken_words(path: Path, chance: random.Random) -> None:
    """Narrow lines of which some end inside a word."""
    canvas = Canvas(str(path), pagesize=A4, invariant=1)
    for _ in range(25):
        canvas.setFont("Times-Roman", 11)
        rest = ""
        for line in range(45):
            words = [rest] if rest else []
            while len(" ".join(words)) < 52:
                words.append(word(chance))
            last, rest = words[-1], ""
            if len(last) >= 6 and line < 44:
                words[-1], rest = last[:3] + "-", last[3:]
            canvas.drawString(80, 780 - 16 * line, " ".join(words))
        canvas.showPage()
    canvas.save()


def turned(path: Path, chance: random.Random) -> None:
    """Pages shown turned by 0, 90, 180 and 270 degrees, upright and landscape."""
    canvas = Canvas(str(path), invariant=1)
    for number in range(24):
        canvas.setPageSize(landscape(A4) if number % 3 == 0 else A4)
        canvas.setPageRotation(number % 4 * 90)
        for line in range(24):
            canvas.setFont("Helvetica", 10)
            canvas.drawString(50, 540 - 18 * line, sentence(chance)[:110])
        canvas.showPage()
    canvas.save()


def lists(path: Path, chance: random.Random) -> None:
    """Contents pages, numbered items, and pages of hardly a word."""
    story: list[Flowable] = []
    for number in range(1, 13):
        for item in range(1, 25):
            text = f"{number}.{item} {sentence(chance)[:50]} . . . . . . . {chance.randint(1, 300)}"
            story.append(Paragraph(text, STYLES["BodyText"]))
        story += [PageBreak(), Paragraph("This page is left blank on purpose.", STYLES["BodyText"]), PageBreak()]
    flow(path, story, [Frame(60, 60, 475, 720)])


LAYOUTS: dict[str, Callable[[Path, random.Random], None]] = {
    made.__name__: made for made in (prose, two_columns, tables, fonts, broken_words, turned, lists)
}


def write(layout: str, path: Path) -> Path:
    """Write the document of a layout."""
    # A str seeds by its content, the same on every machine.
    LAYOUTS[layout](path, random.Random(f"{SEED} {layout}"))
    return path
