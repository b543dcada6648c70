"""The wheel holds the four packages whole, and its commands start without anything that only developers have."""

import configparser
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.harness import REPOSITORY

PACKAGES = ("agent_tool", "audit", "ingest", "search")
DEVELOPERS = ("_pytest", "hypothesis", "mypy", "pytest", "reportlab", "ruff", "tests", "xdist")
START = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {DEVELOPERS!r}:
            raise ImportError(f"{{name}} is for developers only")

sys.meta_path.insert(0, Blocked())
sys.path.insert(0, sys.argv[1])
module, _, function = sys.argv[2].partition(":")
sys.argv[1:] = ["--help"]
imported = __import__(module, fromlist=[function])
assert imported.__file__.startswith(sys.path[0]), imported.__file__
getattr(imported, function)()
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a wheel is built from, since a build writes into its tree."""
    tree = tmp_path_factory.mktemp("tree")
    for name in (*PACKAGES, "data", "tests"):
        shutil.copytree(REPOSITORY / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "files", "sample"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(REPOSITORY / name, tree / name)
    return tree


@pytest.fixture(scope="module")
def wheel(tree: Path) -> zipfile.ZipFile:
    """The wheel of that tree, built with what is installed here: nothing is fetched."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"),
            *("--disable-pip-version-check", "--wheel-dir", str(tree / "dist"), str(tree)),
        ],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (built,) = (tree / "dist").glob("*.whl")
    return zipfile.ZipFile(built)


def test_the_wheel_holds_exactly_the_four_packages(tree: Path, wheel: zipfile.ZipFile) -> None:
    """Neither data nor tests, and of each package every module and the mark that it is typed."""
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert {name.split("/")[0] for name in names} == set(PACKAGES)
    modules = {str(path.relative_to(tree)) for package in PACKAGES for path in (tree / package).rglob("*.py")}
    assert modules <= names
    assert {f"{package}/py.typed" for package in PACKAGES} <= names


def test_each_command_starts_without_developers_tools(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    """The entry points of the wheel, from its own files, with the dev extra's imports refused."""
    wheel.extractall(tmp_path)
    (declared,) = tmp_path.glob("*.dist-info/entry_points.txt")
    entries = configparser.ConfigParser()
    entries.read(declared, encoding="utf-8")
    scripts = dict(entries["console_scripts"])
    assert scripts == {"ingest": "ingest.cli:main", "agent-tool": "agent_tool.cli:main"}
    for entry in scripts.values():
        done = subprocess.run(
            [sys.executable, "-P", "-c", START, str(tmp_path), entry],
            capture_output=True,
            encoding="utf-8",
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "Usage:" in done.stdout
