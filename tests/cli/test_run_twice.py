"""Running again on what was ingested writes nothing, whatever else changed about the files and the command line."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness import SAMPLE, Ended, IndexUnderTest


@dataclass(frozen=True)
class Twice:
    """Two roots of the sample, ingested once, and the state that must stand from then on."""

    folder: Path
    index: IndexUnderTest
    first: Ended
    generations: dict[str, str]
    export: str

    @property
    def roots(self) -> tuple[Path, Path]:
        """The two folders of the first run, in its order."""
        return self.folder / "company", self.folder / "public"


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Twice:
    """The sample as two roots: Markdown and text in the one, HTML, PDF and Markdown in the other."""
    folder = tmp_path_factory.mktemp("twice")
    lay_out(folder)
    index = IndexUnderTest(folder)
    first = index.run(folder / "company", folder / "public")
    assert first.exit_code == 0, first.stdout + first.stderr
    return Twice(folder, index, first, index.generations(), index.export())


def lay_out(folder: Path) -> None:
    """Copy the sample into two folders."""
    for root, parts in {
        "company": ("handbook", "records", "CHANGELOG.md"),
        "public": ("site", "notices", "manuals"),
    }.items():
        for part in parts:
            (folder / root).mkdir(exist_ok=True)
            source = SAMPLE / part
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, folder / root / part)


def again(_: Twice) -> list[Path] | None:
    """Change nothing."""
    return None


def touched(case: Twice) -> None:
    """Give every file new times."""
    for root in case.roots:
        for path in root.rglob("*"):
            os.utime(path, (1_700_000_000, 1_700_000_000))


def copied_away_and_back(case: Twice) -> None:
    """Make every file a new one with equal bytes: other inode, other times."""
    for root in case.roots:
        aside = root.with_name("aside")
        shutil.copytree(root, aside, copy_function=shutil.copyfile)
        shutil.rmtree(root)
        shutil.copytree(aside, root, copy_function=shutil.copyfile)
        shutil.rmtree(aside)


def in_another_order(case: Twice) -> list[Path]:
    """Name the second root first."""
    return list(reversed(case.roots))


def given_twice(case: Twice) -> list[Path]:
    """Name a root twice, once in a roundabout way."""
    company, public = case.roots
    return [company, public, company, public / ".." / "company"]


def overlapping(case: Twice) -> list[Path]:
    """Name a folder and a file inside a root as well."""
    company, public = case.roots
    return [company / "handbook" / "people", company, public / "site" / "boats.html", public]


def a_part_only(case: Twice) -> list[Path]:
    """Name a folder inside a root alone: the rest is out of the run's scope, not gone."""
    return [case.roots[0] / "handbook"]


def through_a_link(case: Twice) -> list[Path]:
    """Name the roots by symbolic links."""
    links = []
    for root in case.roots:
        link = root.with_name(f"link-to-{root.name}")
        if not link.is_symlink():
            link.symlink_to(root)
        links.append(link)
    return links


def without_roots(_: Twice) -> list[Path]:
    """Name no root: those of earlier runs are read."""
    return []


VARIANTS = (
    again, touched, copied_away_and_back, in_another_order, given_twice, overlapping, a_part_only, through_a_link,
    without_roots,
)  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.__name__)
@pytest.mark.invariant("I3")
def test_a_second_run_writes_nothing(variant: Callable[[Twice], list[Path] | None], twice: Twice) -> None:
    """Nothing written, embedded or published; the bytes of the generations and of the export are what they were."""
    roots = variant(twice)
    second = twice.index.run(*(twice.roots if roots is None else roots))
    assert second.exit_code == 0, second.stdout + second.stderr
    report = second.json
    total = twice.first.json["chunks"]["total"]
    assert report["published"] is False
    assert report["generation"] == twice.first.json["generation"]
    assert report["revision"] == twice.first.json["revision"]
    assert report["chunks"] == {"written": 0, "kept": total, "relocated": 0, "removed": 0, "total": total}
    assert report["embeddings"] == {"computed": 0, "reused": 0}
    sources = report["sources"]
    assert sources["unchanged"] == sources["seen"] > 0
    assert [name for name, count in sources.items() if count and name not in {"seen", "unchanged"}] == []
    assert report["skips"] == report["failures"] == report["unobserved"] == []
    assert twice.index.generations() == twice.generations
    assert twice.index.export() == twice.export


@pytest.mark.parametrize("options", [["--rehash"], ["--workers", "1"]], ids=lambda options: options[0])
def test_options_that_shape_no_text_write_nothing(options: list[str], twice: Twice) -> None:
    """Hashing everything, or parsing with fewer workers, is another way to the same state."""
    report = twice.index.run(*twice.roots, options=options).json
    assert (report["published"], report["embeddings"]["computed"]) == (False, 0)
    assert twice.index.generations() == twice.generations


def test_after_all_these_runs_verify_finds_no_duplicate(twice: Twice) -> None:
    """Every check holds, and the one for duplicates counts none."""
    report = twice.index.verify()
    assert report["ok"], report
    assert next(check for check in report["checks"] if check["name"] == "duplicates")["message"] == "0 duplicate chunks"


def test_every_run_leaves_a_row_of_its_own(twice: Twice) -> None:
    """A run that changed nothing still says that it looked; no row and no audit event is shared by two."""
    before = twice.index.call("runs", "--json").json["runs"]
    ended = twice.index.run(*twice.roots)
    after = twice.index.call("runs", "--json").json["runs"]
    assert after[1:] == before
    assert after[0]["run_id"] == ended.json["run_id"]
    assert after[0]["report"] == ended.json
    assert len({row["run_id"] for row in after}) == len(after)


def test_another_machine_reaches_the_same_state(twice: Twice, tmp_path: Path) -> None:
    """Other paths, other times, roots in another order: the export has the same bytes."""
    lay_out(tmp_path)
    other = IndexUnderTest(tmp_path, "elsewhere")
    assert other.run(tmp_path / "public", tmp_path / "company", options=["--workers", "1"]).exit_code == 0
    assert other.export() == twice.export


def test_documents_may_be_ingested_in_steps(twice: Twice, tmp_path: Path) -> None:
    """Root after root gives the export of both at once: the order of runs leaves no trace."""
    lay_out(tmp_path)
    index = IndexUnderTest(tmp_path)
    for root in ("public/site", "company", "public"):
        assert index.run(tmp_path / root).exit_code == 0
    assert index.export() == twice.export
