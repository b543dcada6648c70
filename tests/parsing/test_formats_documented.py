"""``docs/formats.md`` is true: every kind and name that is read stands in it, and no other."""

import re
from pathlib import Path

from ingest.parsing.limits import Limits
from ingest.parsing.registry import FORMATS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ((?:`\w+` ?)+)\| (.*?) \|", PAGE.partition("## Where")[0], re.MULTILINE)


def test_every_kind_has_a_row_with_its_names() -> None:
    """Of source code, which has too many names for a table, some are given."""
    rows = {kind: names for kinds, names in ROWS for kind in re.findall(r"\w+", kinds)}
    assert rows.keys() == FORMATS.keys()
    for kind, known in FORMATS.items():
        names = set(re.findall(r"\.(\w+)", rows[kind]))
        assert names <= {name for other in FORMATS.values() for name in other.extensions}
        assert kind == "code" or set(known.extensions) <= names


def test_the_limits_are_those_of_the_code() -> None:
    """In the units of the page."""
    limits = Limits()
    assert f"| file | {limits.file_bytes >> 20} MiB; text kinds {limits.text_file_bytes >> 20} MiB |" in PAGE
    assert f"{limits.text_chars >> 20} Mi characters" in PAGE
    cpu = f"{limits.cpu_s:g} s of CPU and {limits.cpu_s_per_mib:g} s per MiB, {limits.cpu_max_s:g} s at most"
    assert f"{cpu} (HTML {limits.html_cpu_s:g} and {limits.html_cpu_s_per_mib:g})" in PAGE
