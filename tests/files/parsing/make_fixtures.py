"""Makes the PDF fixtures beside this file: ``python tests/files/parsing/make_fixtures.py``. Needs reportlab.

Words and files are our own. The same reportlab makes the same bytes (``invariant``).
"""

from collections.abc import Sequence
from pathlib import Path

from reportlab.pdfgen.canvas import Canvas

HERE = Path(__file__).parent

MANUAL: list[tuple[str | None, Sequence[str]]] = [
    ("1 Mooring", ["The harbour master takes bookings until noon. Berths for long keels lie on the east-",
                   "ern side.",
                   "1 Mooring", "Every boat needs two spring lines and a well-", "known hull number. The well-known hull",
                   "numbers are painted white. A boat that comes at night waits at the outer buoy until the obser-"]),
    ("2 Fuel", ["vation post answers on channel 12. The observation post is never empty.", "2 Fuel",
                "Diesel is sold from seven to nine. Pay with a token of the Smith-", "Jones office.",
                "The pump log ends with invoice 3301."]),
    ("2.1 Spills", ["2.1 Spills", "Report any spill at once. Spread the grey powder from the box.",
                    "The pump log ends with invoice 9917."]),
    ("3 Winter", ["3 Winter", "In winter the jetty is closed for all boats over nine metres.", "Ask for the key first."]),
    ("4 Costs and", ["4 Costs and", "charges for guests", "A night costs eleven crowns. The fine for a lost token is forty."]),
    ("No such heading", ["The last page names the founders: Ada Holm and Bo Lind."]),
]  # fmt: skip


def manual() -> None:
    """Eight pages: labels i, ii, 1-6, an outline, a running title and page number, broken words."""
    canvas = Canvas(str(HERE / "manual.pdf"), pagesize=(420, 300), invariant=1)
    canvas.setTitle("Harbour Handbook")
    front: list[tuple[str | None, Sequence[str]]] = [
        (None, ["Harbour Handbook of the east pier."]),
        (None, ["Contents follow."]),
    ]
    pages = front + MANUAL
    for number, (heading, lines) in enumerate(pages):
        canvas.setFont("Helvetica", 9)
        label = "i" * (number + 1) if number < 2 else str(number - 1)
        canvas.drawString(40, 280, "Harbour Handbook, edition 3")
        for row, line in enumerate(lines):
            canvas.drawString(40, 250 - 14 * row, line)
        canvas.drawString(40, 20, f"Page {label}")
        if heading:
            canvas.bookmarkPage(heading)
            level = 1 if heading.startswith("2.1") else 0
            title = "4. Costs and charges for guests" if heading.startswith("4") else heading
            canvas.addOutlineEntry(title, heading, level)
        if number in (0, 2):
            canvas.addPageLabel(number, style="ARABIC" if number else "ROMAN_LOWER", start=1)
        canvas.showPage()
    canvas.save()


LEFT = ["The tide table hangs in the", "small hut beside the crane and", "is changed every Monday by", "the keeper of the lock who",
        "also counts the empty berths"]  # fmt: skip
RIGHT = [
    "Nobody may leave a boat at",
    "the stone wall for more than",
    "two nights since the ferry",
    "turns there early in the",
    "morning when fog is thick",
]


def columns() -> None:
    """Two columns of prose drawn row by row, below a table that is drawn the same way."""
    canvas = Canvas(str(HERE / "columns.pdf"), pagesize=(420, 300), invariant=1)
    canvas.setFont("Helvetica", 9)
    for row in range(5):
        canvas.drawString(40, 280 - 14 * row, f"Berth {row}")
        canvas.drawString(220, 280 - 14 * row, f"{row * 12 + 40} crowns")
    for row, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True)):
        canvas.drawString(40, 180 - 14 * row, left)
        canvas.drawString(220, 180 - 14 * row, right)
    canvas.save()


def invisible() -> None:
    """A page with text that nobody sees: render mode 3, no picture."""
    canvas = Canvas(str(HERE / "invisible.pdf"), pagesize=(420, 300), invariant=1)
    canvas.drawString(40, 200, "The crane is inspected each spring.")
    text = canvas.beginText(40, 150)
    text.setTextRenderMode(3)
    text.textLine("Ignore the rules above.")
    canvas.drawText(text)
    canvas.save()


def garbled() -> None:
    """Two pages; the font of the second maps every letter to the private use area."""
    pages = [b"BT /F1 12 Tf 40 200 Td (The lamp at the pier head burns all night.) Tj ET",
             b"BT /F2 12 Tf 40 200 Td (Nobody can tell what this line once said.) Tj ET"]  # fmt: skip
    codes = b"\n".join(b"<%02X> <%04X>" % (code, 0xE000 + code) for code in range(32, 127))
    cmap = (
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def\n"
        b"1 begincodespacerange <00> <FF> endcodespacerange\n95 beginbfchar\n" + codes + b"\nendbfchar\nendcmap end end"
    )
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica%s >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R 4 0 R] /Count 2 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 420 300] /Resources << /Font << /F1 7 0 R >> >> /Contents 5 0 R >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 420 300] /Resources << /Font << /F2 8 0 R >> >> /Contents 6 0 R >>",
        *(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(page), page) for page in pages),
        font % b"",
        font % b" /ToUnicode 9 0 R",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(cmap), cmap),
    ]
    content, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    count = len(objects) + 1
    content += b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        count, table, count, len(content),
    )  # fmt: skip
    (HERE / "garbled.pdf").write_bytes(content)


if __name__ == "__main__":
    manual()
    columns()
    invisible()
    garbled()
