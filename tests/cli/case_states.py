"""Lays out the states of ``tests/files/cases`` that cannot be stored: odd names, lock files, long and numerous things.

Sizes are such that embedding stays affordable; what a size is to show still shows (more chunks than one batch of the
embedder, more pages than anybody prints). Everything is made without chance.
"""

import os
import string
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path

__all__ = ["ODD_NAMES", "STATES", "lay_out_ledger", "lay_out_tiny_files"]

DEPTH = 300  # with 17 bytes a name, longer than PATH_MAX
PAGES = 5000
TINY_FILES_A_FOLDER = 100
WORDS = ("valve", "gauge", "relay", "pump", "filter", "sensor", "cable", "drum", "panel", "rotor")

ODD_NAMES: tuple[bytes, ...] = (
    b"line\nbreak.md", "emoji \U0001f9ea\U0001f468\u200d\U0001f469\u200d\U0001f467.md".encode(), b"latin1-\xe9t\xe9.md",
    b"\xff\xfe.txt", b" leading and trailing .md", b"quote's \"double\" `tick`.md", b"semi;colon&amp$HOME.md",
    b"-rf.md", b"percent%20encoded%2F.md", b"hash#frag?query=1.md",
    unicodedata.normalize("NFC", "größe-학점.md").encode(), unicodedata.normalize("NFD", "größe-학점.md").encode(),
    "rtl-\u202egpj.md".encode(), b"UPPER.MD", b"noextension", b".hidden.md", b"two.dots.tar.md", b"tab\there.md",
    ("名" * 80 + ".md").encode(), b"con.md", b"trailing-dot..md", b"back\\slash.md", b"bracket[1]{2}*.md",
    b"~$lock.docx", b"dir\nwith newline/\xf0\x28\x8c\x28/x.md",
)  # fmt: skip


def deep_nesting(folder: Path) -> None:
    """A chain of folders whose path is longer than any that the system opens at once; a file at its end, one beside."""
    (folder / "beside.md").write_text("# Beside\n\nA neighbour of the chain: torque 12 Nm.\n", encoding="utf-8")
    here = os.open(folder, os.O_RDONLY)
    for number in range(DEPTH):
        name = f"level{number:03}_abcdefgh"
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    with os.fdopen(os.open("bottom.md", os.O_CREAT | os.O_WRONLY, dir_fd=here), "wb") as stream:
        stream.write(b"# Bottom\n\nThe deepest fact: torque 41 Nm.\n")
    os.close(here)


def odd_names(folder: Path) -> None:
    """One small document under each odd name, all different."""
    for number, name in enumerate(ODD_NAMES):
        path = folder / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"# Odd %d\n\nMarker ODD-%03d lives here.\n" % (number, number))


def hidden_and_ignored(folder: Path) -> None:
    """What lies in a working folder beside documents."""
    _write(
        folder,
        {
            ".env": b"API_KEY=do-not-index-me\n",
            ".git/config": b"[core]\n",
            ".git/objects/aa/bb": b"x\x9c\x01\n",
            ".gitignore": b"ignored/\n",
            ".obsidian/workspace.json": b"{}\n",
            ".DS_Store": b"\x00\x00\x00\x01Bud1",
            "Thumbs.db": b"\xd0\xcf\x11\xe0",
            "__pycache__/m.cpython-311.pyc": b"\xa7\r\r\n",
            "docs/a.md": b"# Visible\n",
            "ignored/i.md": b"# ignored by git\n\ndo-not-index-me either\n",
            "node_modules/x/README.md": b"# dependency readme\n",
        },
    )


def office_lock_files(folder: Path) -> None:
    """Owner files of two office programs, a swap file and half a download, beside a document."""
    _write(
        folder,
        {
            "real.md": b"# Real\n",
            "~$report.docx": b"\x05admin" + b" " * 48 + b"\x05\x00a\x00d\x00m\x00i\x00n" + b" \x00" * 49,
            ".~lock.report.odt#": b",user,host,01.01.2024 10:00,file:///home/user;",
            "~WRL0001.tmp": b"\xd0\xcf\x11\xe0",
            "big.pdf.part": b"%PDF-1.7 incomplete",
        },
    )


def same_name_two_folders(folder: Path) -> None:
    """The same names in several folders, two of which differ in case alone."""
    _write(
        folder,
        {
            "A/x.md": b"Upper-case folder A: code name HERON.\n",
            "a/x.md": b"Lower-case folder a: code name OSPREY.\n",
            "a/README.md": b"# Settings\n\nThe retention window is 30 days.\n",
            "b/README.md": b"# Settings\n\nThe retention window is 90 days.\n",
            "b/c/readme.md": b"# Settings\n\nThe retention window is 365 days.\n",
        },
    )


def unreadable(folder: Path) -> None:
    """Good files, of which the test forbids some."""
    _write(
        folder,
        {
            "ok.md": b"# OK\n\nReadable.\n",
            "noread.md": b"# Hidden\n\nThe lamp oil is in shed four.\n",
            "locked/in.md": b"# In locked\n\nThe spare wick is in the drawer.\n",
        },
    )


def huge_paragraph(folder: Path) -> None:
    """A paragraph of 4,000 words without a blank line, and a code block of 800 lines."""
    sentences = [f"Sentence {number} notes that gauge {number} was steady." for number in range(570)]
    sentences[400] = "The auditor signed it on 3 March at Port Ellery."
    code = [f"reading[{number}] = gauge({number * 7 % 101})" for number in range(800)]
    text = "\n".join(["# Essay", "", " ".join(sentences), "", "```python", *code, "```", ""])
    (folder / "essay.md").write_text(text, encoding="utf-8")


def long_line_no_space(folder: Path) -> None:
    """Lines without a blank: letters, minified JSON, pictures inside Markdown, Chinese; needles amid the last three."""
    blob = _letters(16_000)
    items = [f'{{"id":{number},"name":"valve-{number}","note":"inspected"}}' for number in range(400)]
    items[200] = '{"id":200,"name":"valve-200","note":"replaced by Odell Quist"}'
    chinese = "仓库三号机组每周检查一次压力表并记录读数" * 120
    texts = {
        "blob.txt": blob,
        "min.json": f'{{"items":[{",".join(items)}]}}',
        "datauri.md": f"# Logo\n\n![logo](data:image/png;base64,{blob[:9_000]})\n\n"
        f"The logo was redrawn by Tamsin Oke in April.\n\n![again](data:image/png;base64,{blob[9_000:]})\n",
        "cjk.txt": f"{chinese}码头的备用钥匙在蓝色门后面{chinese}",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def pdf_5000_pages(folder: Path) -> None:
    """A PDF of 5,000 pages, each with one line that no other page has."""
    from reportlab.pdfgen import canvas

    sheet = canvas.Canvas(str(folder / "big5000.pdf"), pagesize=(300, 100), invariant=1)
    for page in range(1, PAGES + 1):
        sheet.drawString(20, 50, f"CM{page:05d}")
        sheet.showPage()
    sheet.save()


def lay_out_tiny_files(folder: Path, count: int) -> None:
    """Write ``count`` files of some hundred bytes, all different but for every hundredth.

    One in five says something new; the others repeat one of these with more blank lines at the end, since embedding is
    not what their number is about.
    """
    for number in range(count):
        home = folder / f"{number // TINY_FILES_A_FOLDER:04}"
        home.mkdir(exist_ok=True)
        told = number % (count // 5) if number % 100 else 0
        blanks = "\n" * (number // (count // 5) if number % 100 else 0)
        (home / f"item{number:06}.md").write_text(
            f"# Item {told}\n\nThe {WORDS[told % 10]} with serial T{told:06} is stored on shelf {told % 613}, "
            f"bin {told % 29}.\n{blanks}",
            encoding="utf-8",
        )


def lay_out_ledger(folder: Path, lines: int) -> None:
    """Write one text file of so many entries, all different."""
    with (folder / "ledger.txt").open("w", encoding="utf-8") as stream:
        for number in range(lines):
            if number % 9 == 0:
                stream.write(f"Entry {number}: cargo lot {number * 7 % 99991} moved from bay {number % 47}.\n\n")
            else:
                stream.write(f"Remark {number}: weight {number % 700} kg, seal {number * 13 % 65521:05}. ")


STATES: Mapping[str, Callable[[Path], None]] = {
    "deep-nesting": deep_nesting,
    "hidden-and-ignored": hidden_and_ignored,
    "huge-paragraph": huge_paragraph,
    "long-line-no-space": long_line_no_space,
    "odd-names": odd_names,
    "office-lock-files": office_lock_files,
    "pdf-5000-pages": pdf_5000_pages,
    "same-name-two-folders": same_name_two_folders,
    "unreadable": unreadable,
}


def _letters(count: int) -> str:
    """Return letters and digits in an order without pattern: a linear congruence, Knuth's MMIX constants."""
    alphabet, state, found = string.ascii_lowercase + string.digits, 4417, []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        found.append(alphabet[(state >> 33) % len(alphabet)])
    return "".join(found)


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
