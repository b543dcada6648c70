"""The house keeps its walls: who imports whom, where heavy libraries stand, who hashes, who reads the environment."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
MAY_IMPORT = {
    "ingest": {"search", "audit"},
    "agent_tool": {"search", "audit"},
    "search": set(),
    "audit": set(),
}
PACKAGES = tuple(MAY_IMPORT)
# A library and the modules that adapt it. What is not named here is light, or the standard library's.
ADAPTERS = {
    "chardet": {"ingest/parsing/decode.py"},
    "fastembed": {"search/fastembed_model.py"},
    "huggingface_hub": set(),
    "mammoth": {"ingest/parsing/docx.py"},
    "markdown_it": {"ingest/parsing/markdown.py"},
    "mcp": {
        "agent_tool/http_server.py", "agent_tool/server.py", "agent_tool/stdio_server.py", "agent_tool/tokens.py"
    },
    "olefile": {"ingest/parsing/containers.py"},
    "openpyxl": {"ingest/parsing/sheets.py"},
    "oxmsg": {"ingest/parsing/msg.py"},
    "pikepdf": {"ingest/parsing/pdf_repair.py"},
    "pptx": {"ingest/parsing/pptx.py"},
    "python_calamine": {"ingest/parsing/sheets.py"},
    "onnxruntime": {"search/fastembed_model.py"},
    "pypdf": {"ingest/parsing/pdf_pypdf.py"},
    "pypdfium2": {"ingest/parsing/pdf_pdfium.py"},
    "qdrant_client": set(),
    "qdrant_edge": {"ingest/shard.py", "search/edge.py", "search/sparse.py"},
    "rapidocr": {"ingest/parsing/pdf_ocr.py"},
    "selectolax": {"ingest/parsing/html_events.py"},
    "sqlite_utils": {"ingest/catalog/schema.py"},
    "starlette": {"agent_tool/http_server.py", "agent_tool/plain_errors.py", "agent_tool/server.py"},
    "tokenizers": {"search/fastembed_model.py"},
    "uvicorn": {"agent_tool/http_server.py"},
    "watchfiles": {"ingest/alarm.py"},
}  # fmt: skip
# Who makes hashes and ids. The chunker's priority decides where a cut falls, and is no id.
HASHING = {"hashlib", "hmac", "secrets"}
MAY_HASH = {"audit/keys.py", "ingest/chunking/anchors.py", "search/identity.py"}
# The boundaries of convention 13; elsewhere `except Exception` has to raise again.
BOUNDARIES = {
    "agent_tool/cli.py",  # a command's main
    "agent_tool/tool.py",  # a tool call
    "audit/ledger/protocol.py",  # a tool's lookup: its failure is the answer "unsure"
    "ingest/cli/boundary.py",  # a command's main
    "ingest/parsing/reading.py",  # one source in the worker pool
}


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the four packages, by its path in the repository."""
    return {
        str(path.relative_to(REPOSITORY)): ast.parse(path.read_text(encoding="utf-8"))
        for package in PACKAGES
        for path in sorted((REPOSITORY / package).rglob("*.py"))
    }


def imported(module: ast.Module) -> Iterator[str]:
    """The absolute names that a module imports, at its top and inside functions."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            yield node.module


def users(library: str) -> set[str]:
    """The modules that import a library."""
    return {
        name for name, module in modules().items() if any(found.split(".")[0] == library for found in imported(module))
    }


def in_fresh_interpreter(program: str) -> list[str]:
    """Run a program in a new interpreter and return the top names of the modules that it loaded."""
    done = subprocess.run(
        [sys.executable, "-c", program + "\nimport sys; print(*sorted(sys.modules))"],
        cwd=REPOSITORY,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return sorted({name.split(".")[0] for name in done.stdout.splitlines()[-1].split()})


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_run_downwards_only(package: str) -> None:
    """``ingest`` and ``agent_tool`` stand on ``search`` and ``audit``; those stand on no sibling."""
    reached = {
        (name, found)
        for name, module in modules().items()
        if name.startswith(f"{package}/")
        for found in imported(module)
        if found.split(".")[0] in {*PACKAGES, "data", "tests"} - {package} - MAY_IMPORT[package]
    }
    assert reached == set()


@pytest.mark.parametrize("library", ADAPTERS)
def test_a_heavy_library_is_imported_by_its_adapter_alone(library: str) -> None:
    """And by nothing else, so that it can be exchanged, and so that what does not need it does not load it."""
    assert users(library) <= ADAPTERS[library]


@pytest.mark.parametrize("package", ["agent_tool", "search", "audit"])
def test_a_fresh_interpreter_loads_no_module_of_a_layer_above(package: str) -> None:
    """With every module of the package imported, none of ``ingest`` is there: no writer can be reached (I4)."""
    names = [
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in modules()
        if name.startswith(f"{package}/") and not name.endswith("__main__.py")
    ]
    loaded = in_fresh_interpreter("\n".join(f"import {name}" for name in names))
    assert package in loaded
    assert {*PACKAGES} & set(loaded) <= {package, *MAY_IMPORT[package]}


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["no-such-folder"]])
def test_the_command_line_starts_without_a_heavy_library(words: list[str]) -> None:
    """Help, version and a usage error load neither a model, nor an engine, nor a parser."""
    program = (
        "import contextlib, io\nfrom ingest.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), "
        f"contextlib.suppress(SystemExit):\n    main({words!r})"
    )
    assert set(in_fresh_interpreter(program)) & ({*ADAPTERS} | {"PIL", "lxml"}) == set()


def test_only_identity_makes_hashes() -> None:
    """An id made elsewhere would be a second definition of what is equal (I3)."""
    assert {name for library in HASHING for name in users(library)} <= MAY_HASH
    made = {
        name
        for name, module in modules().items()
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("uuid.uuid")
    }
    assert made <= MAY_HASH
    builtin = {
        name
        for name, module in modules().items()
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hash"
    }
    assert builtin == set(), "hash() differs from process to process"


def test_only_settings_reads_the_environment_and_the_current_folder() -> None:
    """A path or a variable read elsewhere would have no origin that ``status`` could show."""
    asked = {"os.getenv", "os.environ", "os.environb", "os.getcwd", "os.getcwdb", "Path.cwd", "Path.home"}
    found = set()
    for name, module in modules().items():
        written = {node for parent in ast.walk(module) for node in _written(parent)}
        for node in ast.walk(module):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in asked and node not in written:
                found.add(name)
    assert found == {"search/settings.py"}


def _written(node: ast.AST) -> Iterator[ast.AST]:
    """The ``os.environ`` of ``os.environ[...] = ...`` and of ``setdefault``: told to a library, not read."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        yield node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setdefault":
        yield node.func.value


def test_whatever_is_caught_wide_is_raised_again_but_at_the_boundaries() -> None:
    """``except Exception`` swallows at a command's main, a tool call, one source in the worker pool (convention 13)."""
    swallowing = {
        name
        for name, module in modules().items()
        for node in ast.walk(module)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) == "Exception")
        and not any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
    }
    assert swallowing <= BOUNDARIES


def test_nothing_is_printed() -> None:
    """With MCP over stdio a stray line on stdout breaks the protocol (convention 15)."""
    printing = {
        name
        for name, module in modules().items()
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert printing == set()


def test_every_module_says_what_it_is() -> None:
    """A module without a docstring has no owner, and a function that others may call has a sentence."""
    silent = [name for name, module in modules().items() if not ast.get_docstring(module)]
    assert silent == []
