"""Every invariant of the architecture has a test that names it, and no test names one that is not there."""

import ast
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
INVARIANTS = {f"I{number}" for number in range(1, 9)}


def marked() -> dict[str, set[str]]:
    """The invariants that marks name, each with the test files that do."""
    found: dict[str, set[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.invariant":
                for argument in node.args:
                    found.setdefault(ast.literal_eval(argument), set()).add(str(path.relative_to(TESTS)))
    return found


def test_each_invariant_has_a_test_and_each_mark_an_invariant() -> None:
    """I1 to I8, both ways."""
    assert set(marked()) == INVARIANTS
