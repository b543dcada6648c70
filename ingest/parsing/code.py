"""Source code: classes and functions as headings, everything else as code; the text as it is written.

Python by ``ast``; other languages, and Python that does not parse, by the words that begin a definition. That finds no
more than where one can be cited from: nothing is run, imported or resolved. A short comment or the decorators right
above a definition belong to its heading.
"""

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .document import Block, Document
from .headings import usable_heading
from .lines import LETTER_OR_DIGIT, LineSpans
from .registry import ReaderInput
from .text import lined_document

__all__ = ["read"]

# Definitions are headings of level 2 and deeper (parsing.md 5): level 1 would be the title.
TOP_LEVEL = 2
# A longer comment or signature is text of its own and no part of a heading.
MAX_HEADING_LINES = 12
# PEP 263: in the first or second line.
CODING_LINE = re.compile(rb"(?:[^\n]*\n)?[ \t\f]*#[^\n]*?coding[:=][ \t]*([-\w.]{1,40})")
MODIFIERS = (
    r"(?:(?:export|default|declare|public|private|protected|internal|static|final|abstract|async|virtual|override|"
    r"inline|unsafe|extern|open|sealed|data|partial|pub(?:\([a-z]+\))?|local|suspend|case)\s+)*"
)
DEFINITION = re.compile(
    rf"(?P<indent>[ \t]*)(?:{MODIFIERS}(?P<word>class|interface|struct|enum|union|trait|impl|module|namespace|record|"
    r"object|protocol|extension|mixin|func|fn|fun|function|def|sub|procedure|proc|macro)\b\s*\*?\s*(?:\([^()]*\)\s*)?"
    r"(?P<name>[A-Za-z_$][\w$.:]*[?!]?)"
    r"|(?:export\s+)?(?:const|let|var)\s+(?P<arrow>[A-Za-z_$][\w$]*)\s*=\s*(?:async\s*)?(?:function\b|\([^()]*\)\s*=>)"
    r"|(?i:create)\s+(?i:or\s+replace\s+)?(?P<sql>(?i:table|view|function|procedure|trigger|type)\s+[\w.\"`]+))"
)
# C and its kin: a return type, a name, an opening bracket, and no semicolon; methods need a word such as ``public``.
FUNCTION = re.compile(
    r"(?P<indent>[ \t]*)(?P<head>[A-Za-z_][\w:<>,*&\[\] \t]{0,120}?[\s*&])(?P<name>[A-Za-z_~][\w:~]*)\s*\([^;]{0,500}\Z"
)
METHOD_WORDS = re.compile(r"\b(?:public|private|protected|internal|static|override|virtual|abstract|final)\b")
NO_FUNCTION = re.compile(r"\s*(?:if|else|for|while|switch|return|case|do|throw|new|await|yield|using|typedef|goto)\b")
COMMENT_LINE = re.compile(r"[ \t]*(?:#(?!include|define|if|endif|else|pragma)|//|/\*|\*|--[ \t]|@\w|\[\w)")
# Behind the name a definition ends, or opens something; prose such as "function that returns" goes on.
OPENS = re.compile(r"[({<:;=]")
MAX_LINE_CHARS = 1000


@dataclass(frozen=True, slots=True)
class _Definition:
    """A definition: its heading takes lines ``first`` to ``last - 1``; ``depth`` counts what it stands in."""

    first: int
    last: int
    name: str
    depth: int


def read(task: ReaderInput) -> Document:
    """Return the document; it has no title, since a file of code is known by its path."""
    declared = CODING_LINE.match(task.content) if task.kind == "python" else None
    is_python = task.kind == "python" and not task.use_fallback

    def blocks(text: str) -> Iterator[Block]:
        lines = text.split("\n")
        found = _python(text, len(lines)) if is_python else None
        return _blocks(text, list(_outline(lines)) if found is None else found)

    return lined_document(task, blocks, declared=declared[1].decode("ascii") if declared else None)


def _blocks(text: str, definitions: Sequence[_Definition]) -> Iterator[Block]:
    spans, lines = LineSpans(text), text.split("\n")
    at = 0
    for definition in definitions:
        heading = usable_heading(definition.name)
        if definition.first < at or heading is None:
            continue
        yield from _code(text, spans, lines, at, definition.first)
        at = definition.last
        start, end = spans.span(definition.first, at)
        yield Block("heading", start, end, min(TOP_LEVEL + definition.depth, 6), heading)
    yield from _code(text, spans, lines, at, len(lines))


def _code(text: str, spans: LineSpans, lines: Sequence[str], first: int, last: int) -> Iterator[Block]:
    while first < last and not lines[first].strip():
        first += 1
    start, end = spans.span(first, last) if first < last else (0, 0)
    if LETTER_OR_DIGIT.search(text, start, end):
        yield Block("code", start, start + len(text[start:end].rstrip()))


def _python(text: str, line_count: int) -> list[_Definition] | None:
    """Return the classes and functions of a module in order; None where it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # MemoryError is what the parser says when its own stack overflows, as in a chain of 100,000 ``elif``. Where
        # memory is really short, what comes next raises it again.
        return None
    found: list[_Definition] = []
    waiting: list[tuple[ast.AST, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                    waiting.append((child, depth))
                continue
            word = "class" if isinstance(child, ast.ClassDef) else "def"
            first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)]) - 1
            last = max(child.lineno, child.body[0].lineno - 1)
            if last - first > MAX_HEADING_LINES:
                last = child.lineno
            found.append(_Definition(first, min(last, line_count), f"{word} {child.name}", depth))
            waiting.append((child, depth + 1))
    return sorted(found, key=lambda definition: definition.first)


def _outline(lines: Sequence[str]) -> Iterator[_Definition]:
    """Yield the lines that look like the beginning of a definition."""
    indents: list[int] = []
    at = 0
    for number, line in enumerate(lines):
        if len(line) > MAX_LINE_CHARS:
            continue
        name, indent = _definition(line)
        if name is None:
            continue
        while indents and indents[-1] >= indent:
            indents.pop()
        first = number
        while first > max(at, number - MAX_HEADING_LINES - 1) and COMMENT_LINE.match(lines[first - 1]):
            first -= 1
        if number - first > MAX_HEADING_LINES:
            first = number
        yield _Definition(first, number + 1, name, len(indents))
        indents.append(indent)
        at = number + 1


def _definition(line: str) -> tuple[str | None, int]:
    """Return what a line defines, such as ``class Pump``, and its indentation."""
    match = DEFINITION.match(line)
    rest = line[match.end() :].strip() if match else ""
    if match and (not rest or OPENS.search(rest)):
        name = match["arrow"] or match["sql"] or f"{match['word']} {match['name']}"
        return name, len(match["indent"].expandtabs())
    match = FUNCTION.match(line)
    if match and not NO_FUNCTION.match(line) and (not match["indent"] or METHOD_WORDS.search(match["head"])):
        return match["name"], len(match["indent"].expandtabs())
    return None, 0
