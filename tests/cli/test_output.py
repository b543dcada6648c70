"""What a person and a script see: JSON by stable names, tables without colour in a pipe, errors, exit codes, Ctrl-C."""

import contextlib
import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from search.settings import Settings
from search.version import VERSION
from tests.cli.conftest import Pristine
from tests.cli.prose import handbook, note
from tests.harness import PATIENCE_S, Ended, IndexUnderTest, ending

ESCAPE = "\x1b"


def ingest(*words: str | Path, cwd: Path, **extra: str) -> Ended:
    """Run ``ingest`` without an ``--index`` of ours."""
    done = subprocess.run(
        [sys.executable, "-m", "ingest", *map(str, words)],
        env=IndexUnderTest(cwd).environment(**extra),
        capture_output=True,
        encoding="utf-8",
        cwd=cwd,
        timeout=PATIENCE_S,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def picture(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything below a folder: the mode of each entry, and of files the time and the content."""
    return {
        str(path.relative_to(folder)): (
            (path.lstat().st_mode, path.lstat().st_mtime_ns, path.read_bytes())
            if path.is_file()
            else (path.lstat().st_mode, 0, b"")
        )
        for path in sorted(folder.rglob("*"))
    }


def shape(value: object) -> object:
    """The names of an object, with the names of the objects in it; of a list, those of its first element."""
    if isinstance(value, Mapping):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return None


def lacking(wanted: object, found: object, at: str = "") -> list[str]:
    """The names of ``wanted`` that ``found`` does not have; more names are fine."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return [
            missing
            for name, inner in wanted.items()
            for missing in (lacking(inner, found[name], f"{at}.{name}") if name in found else [f"{at}.{name}"])
        ]
    if isinstance(wanted, list) and isinstance(found, list) and wanted:
        return lacking(wanted[0], found[0], f"{at}[]") if found else [f"{at}: is empty"]
    return []


def names(text: str) -> dict[str, None]:
    """Names without anything below them."""
    return dict.fromkeys(text.split())


RUN = {
    **names("message_type run_id outcome revision generation published seconds"),
    "sources": names("seen unchanged added changed renamed removed withheld skipped failed"),
    "chunks": names("written kept relocated removed total"),
    "embeddings": names("computed reused"),
    "failures": [names("source root status reason retry")],
    "skips": [names("source root rule")],
    "scopes": [names("root folder file")],
}
CITATION = names(
    "uri root path document_id media_type title heading_path line_start line_end char_start char_end"
)  # a file without pages has no page_start
SEARCH = {
    **names("message_type query status generation truncated omitted"),
    "passages": [
        {
            **names("ref text score chunk_id truncated more_locations"),
            "citation": CITATION,
            "also_at": [CITATION],
        }
    ],
    "index": names("sources_failed sources_needing_ocr removals_withheld"),
}
VERIFY = {**names("message_type ok"), "checks": [names("name severity ok message remedy samples")]}
RUNS = {**names("message_type"), "runs": [names("run_id started_ms ended_ms outcome report revision")]}
STATUS = {
    **names("message_type exists"),
    "settings": [names("name value origin help")],
    "index": names("folder revision generation model recipe roots sources chunks last_run removals_withheld"),
    "failures": [names("source root status reason retry")],
    "sources": [
        names("source root status reason retry document_id kind media_type size_bytes chunks withheld warnings gaps")
    ],
    **names("unobserved"),
}
PLAN = {**names("message_type counts work stale withheld unobserved"), "items": [names("verdict root source")]}
ERROR = names("message_type code kind message retryable")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[IndexUnderTest, Path, Ended]:
    """Two documents, one under two names, a file that fails and a file that a rule leaves out."""
    folder = tmp_path_factory.mktemp("output")
    docs = folder / "docs"
    docs.mkdir()
    (docs / "note.md").write_text(note(1), encoding="utf-8")
    (docs / "other.md").write_text(note(2), encoding="utf-8")
    (docs / "copy.md").write_text(note(1), encoding="utf-8")
    (docs / "[red]tricky.txt").write_bytes(b"\x7fELF" + bytes(2_000))
    (docs / ".hidden.md").write_text("# Hidden\n\nNot read.\n", encoding="utf-8")
    index = IndexUnderTest(folder, ".grounded")
    return index, docs, index.run(docs)


def test_a_run_tells_everything_by_its_stable_names(made: tuple[IndexUnderTest, Path, Ended]) -> None:
    """One object on one line of stdout, nothing on stderr; counts add up."""
    _, _, ended = made
    assert ended.exit_code == 3
    assert ended.stdout.count("\n") == 1
    assert ended.stderr == ""
    report = ended.json
    assert lacking(RUN, shape(report)) == []
    assert (report["message_type"], report["outcome"], report["published"]) == ("run_report", "done", True)
    sources = report["sources"]
    assert (sources["seen"], sources["added"], sources["failed"], sources["skipped"]) == (4, 4, 1, 1)
    assert report["skips"] == [{"source": ".hidden.md", "rule": "hidden", "root": "docs"}]
    assert all(seconds >= 0 for seconds in report["seconds"].values())


def test_the_other_commands_tell_by_their_stable_names(made: tuple[IndexUnderTest, Path, Ended]) -> None:
    """Search, verify, runs and status each print one object; export prints one per line."""
    index, _, ended = made
    first = index.search(note(1), limit=1)
    assert lacking(SEARCH, shape(first)) == []
    assert (first["message_type"], first["status"], first["passages"][0]["ref"]) == ("search_result", "ok", 1)
    assert [citation["path"] for citation in first["passages"][0]["also_at"]] == ["note.md"]
    nothing = index.search("zyx qqq vvv")
    assert (nothing["status"], nothing["passages"]) == ("no_match", [])
    report = index.verify(full=False)
    assert lacking(VERIFY, shape(report)) == []
    assert (report["message_type"], report["ok"]) == ("verify_report", True)
    runs = index.call("runs", "--json").json
    assert lacking(RUNS, shape(runs)) == []
    assert runs["runs"][-1]["report"] == ended.json
    status = index.call("status", "--json").json
    assert lacking(STATUS, shape(status)) == []
    assert (status["exists"], status["index"]["roots"]) == (True, [str(made[1])])
    kinds = [json.loads(line)["message_type"] for line in index.export().splitlines()]
    assert sorted(set(kinds)) == ["chunk", "document", "source"]
    assert index.call("repair", "--json").json["message_type"] == "repair_report"


def test_output_for_people_has_no_escape_codes_in_a_pipe(made: tuple[IndexUnderTest, Path, Ended]) -> None:
    """Neither a run, nor any other command; brackets in a file's name are text, not markup."""
    index, docs, _ = made
    colourful = {"NO_COLOR": "", "TERM": "xterm-256color"}
    outputs = {
        words[0]: index.call(*words, **colourful)
        for words in (["run", str(docs)], ["search", "harbour"], ["status"], ["verify"], ["runs"])
    }
    for name, ended in outputs.items():
        assert ended.stdout.strip(), name
        assert ESCAPE not in ended.stdout + ended.stderr, name
    assert "[red]tricky.txt" in outputs["run"].stdout
    assert "[red]tricky.txt" in outputs["status"].stdout
    assert "nothing to write; generation 000001 stands" in outputs["run"].stdout
    assert "no problems" in outputs["verify"].stdout


def test_quiet_leaves_the_result_alone(made: tuple[IndexUnderTest, Path, Ended]) -> None:
    """Progress and notes go, the result stays."""
    index, docs, _ = made
    for words in (["run", str(docs)], ["search", "harbour"]):
        ended = index.call(*words, "--quiet")
        assert (bool(ended.stdout), ended.stderr) == (True, "")


def test_run_is_the_command_that_needs_no_name(made: tuple[IndexUnderTest, Path, Ended]) -> None:
    """``ingest DIR`` is ``ingest run DIR``, also with options in front of the folder."""
    index, docs, first = made
    for words in ([str(docs)], ["--json", str(docs)]):
        ended = index.call(*words, *([] if "--json" in words else ["--json"]))
        assert (ended.exit_code, ended.json["message_type"]) == (3, "run_report")
        assert ended.json["generation"] == first.json["generation"]


def test_a_terminal_gets_progress_and_a_pipe_does_not(tmp_path: Path) -> None:
    """The bar is drawn on stderr, and only there: stdout holds the result alone."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "note.md").write_text(note(1), encoding="utf-8")
    index = IndexUnderTest(tmp_path)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        index.command("run", str(docs), "--json"),
        env=index.environment(TERM="xterm-256color", COLUMNS="120"),
        stdout=subprocess.PIPE,
        stderr=theirs,
        encoding="utf-8",
    )
    os.close(theirs)
    with ending(process):
        drawn = b"".join(pieces_of(ours)).decode()
        assert process.stdout is not None
        report = json.loads(process.stdout.read())
    os.close(ours)
    assert report["published"] is True
    assert ESCAPE in drawn
    assert "1/1" in drawn


def pieces_of(terminal: int) -> Iterator[bytes]:
    """What is written to a terminal until its last writer has gone."""
    with contextlib.suppress(OSError):  # Linux says EIO at the end
        while piece := os.read(terminal, 4096):
            yield piece


# ---- dry run


def test_a_dry_run_without_an_index_writes_nothing(tmp_path: Path) -> None:
    """It shows what would be done, and leaves no folder behind."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "note.md").write_text(note(1), encoding="utf-8")
    before = picture(tmp_path)
    ended = ingest("run", docs, "--dry-run", "--json", cwd=tmp_path)
    assert ended.exit_code == 0
    assert lacking(PLAN, shape(ended.json)) == []
    assert ended.json["message_type"] == "ingest_plan"
    assert [(item["verdict"], item["source"]) for item in ended.json["items"]] == [("new", "note.md")]
    assert picture(tmp_path) == before


def test_a_dry_run_over_an_index_writes_nothing(tmp_path: Path) -> None:
    """Not a byte, not a time, not a file; the run after it does what the plan said."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(3):
        (docs / f"note-{number}.md").write_text(note(number), encoding="utf-8")
    index = IndexUnderTest(tmp_path)
    assert index.run(docs).exit_code == 0
    (docs / "note-0.md").rename(docs / "renamed.md")
    (docs / "note-1.md").unlink()
    (docs / "note-2.md").write_text(note(20), encoding="utf-8")
    (docs / "new.md").write_text(note(21), encoding="utf-8")
    before = picture(tmp_path)
    plan = index.run(docs, options=["--dry-run"]).json
    shown = index.call("run", str(docs), "--dry-run").stdout
    assert picture(tmp_path) == before
    verdicts = {item["source"]: item["verdict"] for item in plan["items"]}
    assert verdicts == {
        "renamed.md": "moved", "note-1.md": "removed", "note-2.md": "changed", "new.md": "new",
    }  # fmt: skip
    for source, verdict in verdicts.items():
        assert f"{verdict:<9} docs/{source}" in shown
    sources = index.run(docs).json["sources"]
    assert [sources[name] for name in ("renamed", "removed", "changed", "added")] == [1, 1, 1, 1]


# ---- where the index is, and settings


def test_the_nearest_index_upwards_is_taken(tmp_path: Path) -> None:
    """From a folder below, as git does; the first one is made where the command was given."""
    docs = tmp_path / "project" / "docs" / "deep"
    docs.mkdir(parents=True)
    (docs / "note.md").write_text(note(1), encoding="utf-8")
    project = tmp_path / "project"
    assert ingest("docs", cwd=project).exit_code == 0
    assert (project / ".grounded" / "index" / "CURRENT").is_file()
    below = ingest("status", "--json", cwd=docs)
    assert below.json["index"]["folder"] == str(project / ".grounded")
    assert below.json["settings"][0]["origin"] == "found upwards"
    assert ingest("run", "--json", cwd=docs).json["sources"]["unchanged"] == 1
    assert not (docs / ".grounded").exists()


def test_flag_beats_environment_beats_config_beats_default(made: tuple[IndexUnderTest, Path, Ended]) -> None:
    """Status shows each value with where it came from, and secrets as set, never their values."""
    index, docs, _ = made
    config = index.folder / "other.toml"
    config.write_text("limit = 3\nguard_sources = 4\nhidden = true\n", encoding="utf-8")
    extra = {
        "GROUNDED_INDEX": str(index.home), "GROUNDED_LIMIT": "2", "GROUNDED_CONFIG": str(config),
        "GROUNDED_PDF_PASSWORDS": "swordfish",
    }  # fmt: skip
    ended = ingest("status", "--json", cwd=docs, **extra)
    rows = {row["name"]: (row["value"], row["origin"]) for row in ended.json["settings"]}
    assert rows["index"] == (str(index.home), "environment")
    assert rows["limit"] == (2, "environment")
    assert rows["guard_sources"] == (4, "config")
    assert rows["hidden"] == (True, "config")
    assert rows["guard_share"] == (Settings(home=Path()).guard_share, "default")
    assert rows["pdf_passwords"] == ("set", "environment")
    assert "swordfish" not in ended.stdout
    assert len(ingest("search", "harbour", "--json", "--limit", "1", cwd=docs, **extra).json["passages"]) == 1
    elsewhere = ingest("status", "--json", "--index", docs / "none", cwd=docs, **extra)
    assert elsewhere.json["settings"][0]["origin"] == "flag"


# ---- errors and exit codes


@pytest.mark.parametrize(
    ("words", "extra", "named"),
    [
        (["run", "--no-such-option"], {}, "--no-such-option"),
        (["run"], {}, "no folder given"),
        (["nowhere"], {}, "nowhere"),
        (["search"], {}, "QUERY"),
        (["status"], {"GROUNDED_LIMITT": "3"}, "GROUNDED_LIMITT"),
        (["status"], {"GROUNDED_LIMIT": "many"}, "GROUNDED_LIMIT"),
        (["status", "--config", "none.toml"], {}, "none.toml"),
        (["run", "--allow-removals", "some", "."], {}, "all"),
    ],
)
def test_wrong_usage_exits_2_and_touches_nothing(
    words: list[str], extra: dict[str, str], named: str, tmp_path: Path
) -> None:
    """The message names what is wrong, for people and as one JSON object; stdout stays empty."""
    for as_json in (False, True):
        ended = ingest(*words, *(["--json"] if as_json else []), cwd=tmp_path, **extra)
        assert (ended.exit_code, ended.stdout) == (2, "")
        assert named in ended.stderr
        assert "Traceback" not in ended.stderr
    error = json.loads(ended.stderr)
    assert lacking(ERROR, shape(error)) == []
    assert (error["message_type"], error["code"], error["kind"], error["retryable"]) == ("error", 2, "usage", False)
    assert list(tmp_path.glob(".grounded")) == []


@pytest.mark.parametrize("command", [["search", "x"], ["verify"], ["repair"], ["export"], ["runs"], ["status"]])
def test_without_an_index_commands_exit_10_and_make_none(command: list[str], tmp_path: Path) -> None:
    """The message names the folder and the way out; status shows its settings all the same."""
    ended = ingest(*command, "--json", cwd=tmp_path)
    assert ended.exit_code == 10
    assert list(tmp_path.glob("**/*.grounded*")) == []
    if command == ["status"]:
        assert (ended.json["exists"], ended.json["index"]) == (False, None)
        return
    error = json.loads(ended.stderr)
    assert (error["kind"], ended.stdout) == ("index_missing", "")
    assert str(tmp_path / ".grounded") in error["message"]


def test_another_recipe_is_refused_and_a_rebuild_takes_it(
    tmp_path: Path, pristine: Callable[[Callable[[Path], None]], Pristine]
) -> None:
    """Exit 12 names both sides and nothing is written; ``--rebuild`` publishes beside the old generation."""

    def write(docs: Path) -> None:
        (docs / "handbook.md").write_text(handbook(4, 4), encoding="utf-8")

    case = pristine(write)
    index, docs = case.index, case.folder / "docs"
    before = picture(case.folder)
    for options, name, asked in (
        (["--chunk-tokens", "60"], "chunk_tokens", "60"),
        ([], "sparse.language", "german"),
    ):
        ended = index.run(docs, options=options, **({} if options else {"GROUNDED_LANGUAGE": "german"}))
        assert (ended.exit_code, ended.stdout) == (12, "")
        error = json.loads(ended.stderr)
        assert error["kind"] == "recipe_mismatch"
        for part in (f"{name}: index has ", f"settings ask for {asked}", "--rebuild"):
            assert part in error["message"]
    unchanged = picture(case.folder)
    assert {name: entry[2] for name, entry in unchanged.items() if "catalog" not in name and "lock" not in name} == {
        name: entry[2] for name, entry in before.items() if "catalog" not in name and "lock" not in name
    }
    old = index.generations()

    rebuilt = index.run(docs, options=["--chunk-tokens", "60", "--rebuild"])
    assert (rebuilt.exit_code, rebuilt.json["generation"]) == (0, "000002")
    assert rebuilt.json["chunks"]["total"] > 0
    assert {name: value for name, value in index.generations().items() if name.startswith("000001")} == old
    again = index.run(docs)
    assert (again.exit_code, again.json["published"]) == (0, False), "a setting that nobody gave follows the index"
    assert index.run(docs, options=["--chunk-tokens", "80"]).exit_code == 12
    fresh = IndexUnderTest(case.folder, "fresh")
    assert fresh.run(docs, options=["--chunk-tokens", "60"]).exit_code == 0
    assert index.export() == fresh.export()


def test_help_and_version_are_there_for_every_command(tmp_path: Path) -> None:
    """The list of exit codes stands at the end of the help."""
    assert ingest("--version", cwd=tmp_path).stdout.strip() == f"ingest, version {VERSION}"
    assert ingest(cwd=tmp_path).exit_code in (0, 2)
    listed = ingest("--help", cwd=tmp_path).stdout
    assert "130  interrupted" in listed
    assert "Bring the index in line" in ingest("run", "--help", cwd=tmp_path).stdout


# ---- Ctrl-C and a reader that goes away


def saved_vectors(catalog: Path) -> int:
    """How many vectors a catalog holds; 0 while it is not there yet."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{catalog}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM vectors").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


@pytest.mark.invariant("I5")
def test_ctrl_c_keeps_the_work_and_says_how_to_go_on(tmp_path: Path) -> None:
    """Exit 130; the run is recorded as interrupted, nothing is published, and the next run embeds only the rest."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "handbook.md").write_text(handbook(5, 90), encoding="utf-8")
    index = IndexUnderTest(tmp_path)
    process = subprocess.Popen(
        index.command("run", str(docs)),
        env=index.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    with ending(process):
        while not saved_vectors(index.home / "index" / "catalog.db"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.05)  # ends with the run, or with the next look
            assert process.poll() is None, "the run ended before its first batch was seen"
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the run and to its children
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, stdout) == (130, "")
    assert "Run the same command again to go on" in stderr
    assert "Traceback" not in stderr
    assert index.call("runs", "--json").json["runs"][0]["outcome"] == "interrupted"
    assert index.call("search", "rope").exit_code == 10
    saved = saved_vectors(index.home / "index" / "catalog.db")

    ended = index.run(docs)
    assert ended.exit_code == 0
    assert ended.json["embeddings"]["reused"] == saved > 0
    assert ended.json["embeddings"]["computed"] == ended.json["chunks"]["total"] - saved > 0
    assert index.verify(full=False)["ok"]

    # The export is longer than a pipe holds: a reader that leaves after a line, as `head -1`, is no error to speak of.
    leaving = index.start("export")
    with ending(leaving):
        assert leaving.stdout is not None
        assert leaving.stderr is not None
        assert json.loads(leaving.stdout.readline())["message_type"] == "source"
        leaving.stdout.close()
        assert leaving.stderr.read() == ""
        assert leaving.wait(PATIENCE_S) in (0, 1)
