"""The encodings of files whose encoding is known: how many come out exactly, and how fast.

``FOLDER`` names a folder that holds one folder for each encoding, called by it, as the ``tests`` folder of chardet's
source archive has them (``pip download --no-deps --no-binary :all: chardet==5.2.0``). A file counts where its text is
exactly what its label gives; the same with the labels that WHATWG's standard reads as their supersets.
"""

import codecs
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ingest.parsing.decode import decode
from ingest.parsing.failure import Refused

# Labels whose files hold characters of the superset (windows-1252 quotes in Latin-1, and so on).
SUPERSETS = {
    "ascii": "utf-8", "iso-8859-1": "cp1252", "gb2312": "gb18030", "euc-kr": "cp949", "shift_jis": "cp932",
    "iso-8859-9": "cp1254", "tis-620": "cp874",
}  # fmt: skip
# Suffixes of the folders that name a language.
LANGUAGES = ("arabic", "bulgarian", "croatian", "czech", "german", "greek", "hebrew", "hungarian", "polish", "romanian",
             "russian", "slovak", "slovene", "turkish", "ukrainian")  # fmt: skip


def main() -> None:
    """Print the share of exact texts, what the others were taken for, and the speed."""
    folder = os.environ.get("FOLDER")
    if not folder:
        print("needs FOLDER=<tests folder of chardet's source archive>; skipped")
        return
    exact, total, size, seconds = 0, 0, 0, 0.0
    wrong: Counter[str] = Counter()
    for label, content in labelled(Path(folder)):
        total, size = total + 1, size + len(content)
        begun = time.perf_counter()
        try:
            found = decode(content)
        except Refused as refused:
            wrong[f"{label} refused as {refused.failure.status}"] += 1
            continue
        finally:
            seconds += time.perf_counter() - begun
        if found.text in texts(label, content):
            exact += 1
        else:
            wrong[f"{label} taken for {found.encoding}"] += 1
    print(f"{exact} of {total} files exact ({exact / total:.1%}; to hold: 96 %), {size / seconds / 1e6:.1f} MB/s")
    for what, count in wrong.most_common():
        print(f"  {count} {what}")


def labelled(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield label and content of every file that its label really decodes."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.parent != folder:
            label = path.parent.name.lower()
            for language in LANGUAGES:
                label = label.removesuffix(f"-{language}")
            content = path.read_bytes()
            if texts(label, content):
                yield label, content


def texts(label: str, content: bytes) -> set[str]:
    """Return what the content is by its label, and by the superset that is meant."""
    found = set()
    for name in {label, SUPERSETS.get(label, label)}:
        try:
            found.add(codecs.decode(content, name).removeprefix("\ufeff"))
        except (UnicodeDecodeError, LookupError):
            continue
    return found


if __name__ == "__main__":
    main()
