"""What a module offers is what it says it offers: sorted, there, and its own."""

import ast
from functools import cache
from pathlib import Path

import pytest

from search import errors
from search.errors import ExitCode, GroundedError

REPOSITORY = Path(__file__).resolve().parents[2]
MODULES = sorted(
    str(path.relative_to(REPOSITORY))
    for package in ("ingest", "search", "agent_tool", "audit")
    for path in (REPOSITORY / package).rglob("*.py")
)
# These offer nothing: package fronts with a docstring alone, entry points, and a constant.
WITHOUT = {name for name in MODULES if name.endswith("__main__.py")} | {"search/version.py"}


@cache
def parsed(name: str) -> ast.Module:
    """A module's syntax tree."""
    return ast.parse((REPOSITORY / name).read_text(encoding="utf-8"))


def offered(name: str) -> list[str] | None:
    """The names in ``__all__``, in their order, or None."""
    for node in parsed(name).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    return None


def defined(name: str) -> set[str]:
    """The names that a module binds at its top."""
    found: set[str] = set()
    for node in ast.walk(parsed(name)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
    for top in parsed(name).body:
        for node in [top, *([*top.body, *top.orelse] if isinstance(top, ast.If | ast.Try) else [])]:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Assign):
                found |= {
                    inner.id for target in node.targets for inner in ast.walk(target) if isinstance(inner, ast.Name)
                }
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
    return found


def has_content(name: str) -> bool:
    """True for a module that has more than a docstring."""
    return len(parsed(name).body) > 1 and name not in WITHOUT


@pytest.mark.parametrize("name", [name for name in MODULES if has_content(name)])
def test_a_module_says_what_it_offers(name: str) -> None:
    """``__all__`` is there, sorted as ruff sorts it, without doubles, and names only what exists."""
    names = offered(name)
    assert names is not None, f"{name}: no __all__"
    assert names == sorted(names, key=lambda text: (not text.isupper(), not text[:1].isupper(), text))
    assert len(set(names)) == len(names)
    assert set(names) <= defined(name)


def tree(root: type[GroundedError]) -> dict[str, type[GroundedError]]:
    """An error and all that derive from it."""
    found = {root.__name__: root}
    for child in root.__subclasses__():
        found |= tree(child)
    return found


def test_the_errors_are_one_tree_and_all_of_it_is_offered() -> None:
    """Every class of the module derives from the root, and stands in ``__all__`` and in the drawing."""
    classes = {
        name: value for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)
    }
    assert set(classes) == set(tree(GroundedError))
    assert set(errors.__all__) == {*classes, "ExitCode"}
    drawing = errors.__doc__ or ""
    for name in classes:
        assert name in drawing


def test_every_error_has_one_exit_code_and_the_drawing_says_which() -> None:
    """A leaf has a code of the enum, a kind of its own, and the number beside its name or that of its parent."""
    classes = tree(GroundedError)
    drawing = {
        words[0]: words[1]
        for line in (errors.__doc__ or "").splitlines()
        if (words := line.replace("|", " ").replace("`--", " ").replace("--", " ").split())
        and words[0] in classes
        and len(words) > 1
    }
    for name, error in classes.items():
        assert isinstance(error.exit_code, ExitCode)
        if name in drawing and drawing[name].isdigit():
            assert int(drawing[name]) == int(error.exit_code), name
    kinds = [error.kind for name, error in classes.items() if name != "GroundedError"]
    assert len(set(kinds)) == len(kinds)


def test_every_exit_code_has_a_number_and_a_sentence_of_its_own() -> None:
    """The numbers are those of the contract with scripts, and never change (convention 14)."""
    assert {code.name: int(code) for code in ExitCode} == {
        "DONE": 0, "FAILED": 1, "USAGE": 2, "SOURCES_FAILED": 3, "PROBLEMS_FOUND": 4, "REMOVALS_WITHHELD": 5,
        "NO_INDEX": 10, "LOCKED": 11, "RECIPE_MISMATCH": 12, "INTERRUPTED": 130,
    }  # fmt: skip
    assert len({code.description for code in ExitCode}) == len(ExitCode)
