"""Jupyter notebooks: cells in order; Markdown cells with their headings, code, and the beginning of its text output.

Images, HTML and whatever else a program drew are left out, since the text beside them says what they show. Cell numbers
are no headings: a cell put in above would rename all below. Source: nbformat 4, and 3 for old files.
"""

import json
from collections.abc import Iterator

from .assembly import Assembly
from .decode import decode
from .document import Document
from .failure import Refused
from .json_values import Pairs, parse
from .markdown import markdown_blocks
from .normalise import collapse, normalise
from .registry import ReaderInput

__all__ = ["read"]

MAX_OUTPUT_LINES = 20
# Numbers are read as strings.
HEADING_LEVELS = frozenset("123456")


def read(task: ReaderInput) -> Document:
    """Return the document. Title: that of the metadata, else the first heading if its level is 1."""
    decoded = decode(task.content, fallback_encoding=task.options.fallback_encoding)
    try:
        notebook = _fields(parse(decoded.text))
    except json.JSONDecodeError as error:
        raise Refused("damaged", f"a notebook that is no JSON: line {error.lineno}: {error.msg}") from error
    cells = list(_cells(notebook))
    if not cells and "nbformat" not in notebook:
        raise Refused("damaged", "JSON, but no notebook")
    assembly = Assembly(task)
    cut = 0
    for cell in cells:
        source = _text(cell.get("source", cell.get("input")))
        match cell.get("cell_type"):
            case "markdown":
                text, deceptive = normalise(source)
                text = text.strip("\n")
                assembly.embed(text, list(markdown_blocks(text)), deceptive=deceptive)
            case "heading":
                level = cell.get("level")
                assembly.add("heading", source, int(level) if isinstance(level, str) and level in HEADING_LEVELS else 1)
            case "code":
                assembly.add("code", source)
                for output in _outputs(cell):
                    lines = output.rstrip().split("\n")
                    cut += len(lines) > MAX_OUTPUT_LINES
                    assembly.add("code", "\n".join(lines[:MAX_OUTPUT_LINES]))
            case _:
                assembly.add("paragraph", source)
    if cut:
        assembly.warn([f"outputs_cut: of {cut} outputs only the first {MAX_OUTPUT_LINES} lines are read"])
    assembly.warn(decoded.warnings)
    title = collapse(normalise(_text(_fields(notebook.get("metadata")).get("title")))[0])
    return assembly.document(title=title or assembly.first_heading, meta=decoded.meta())


def _cells(notebook: dict[str, object]) -> Iterator[dict[str, object]]:
    yield from map(_fields, _items(notebook.get("cells")))
    for sheet in _items(notebook.get("worksheets")):
        yield from map(_fields, _items(_fields(sheet).get("cells")))


def _outputs(cell: dict[str, object]) -> Iterator[str]:
    """Yield the text outputs of a code cell; of an error its name and message, without the trace."""
    for output in map(_fields, _items(cell.get("outputs"))):
        match output.get("output_type"):
            case "stream":
                yield _text(output.get("text"))
            case "error" | "pyerr":
                yield f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}"
            case "execute_result" | "display_data" | "pyout":
                # Beside an image the text is no more than the name of its class.
                data = _fields(output.get("data")) or output
                if not any(key in data or f"image/{key}" in data for key in ("png", "jpeg", "svg+xml")):
                    yield _text(data.get("text/plain", data.get("text")))


def _fields(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, Pairs) else {}


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) and not isinstance(value, Pairs) else []


def _text(value: object) -> str:
    """Return a text that is written as one string or as a list of lines."""
    if isinstance(value, str):
        return value
    return "".join(item for item in _items(value) if isinstance(item, str))
