"""`ingest audit ...` as a person or a script sees it."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from audit import Audit, AuditError, AuditMissing, ChainKey, StepKey
from audit.cli import audit as group


@dataclass(frozen=True)
class Context:
    """What the mounting program passes."""

    audit_folder: Path


@pytest.fixture
def used(audit: Audit) -> Audit:
    """Two calls by one principal, one of them repeated, and one by another."""
    for step, scope in (("1", "acme"), ("2", "acme"), ("1", "acme"), ("1", "other")):
        begun = audit.begin(
            StepKey("r", step), kind="lookup", scope=scope, subject=scope, meter="lookup", args={"query": "leave"}
        )
        audit.end(begun, outcome="ok", body={"passages": 2})
    return audit


def run(folder: Path, *arguments: str) -> Result:
    """Run one command as `ingest audit` would."""
    return CliRunner().invoke(group, arguments, obj=Context(folder))


def lines(result: Result) -> list[dict[str, object]]:
    """The JSON lines on stdout."""
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("command", [["tail"], ["show", "r:1"], ["usage"], ["verify"], ["seal"], ["prune"], ["clock"]])
def test_without_an_audit_file_a_command_says_so_and_creates_nothing(tmp_path: Path, command: list[str]) -> None:
    """Reading never makes a folder, whatever the command."""
    result = run(tmp_path / "audit", *command)
    assert isinstance(result.exception, AuditMissing)
    assert result.exception.exit_code == 10
    assert not (tmp_path / "audit").exists()


def test_tail_prints_one_json_line_an_event(used: Audit, folder: Path) -> None:
    """Each line has key, kind, principal and time."""
    found = lines(run(folder, "tail", "--json", "--limit", "2"))
    assert [(line["key"], line["principal"]) for line in found] == [("r:2", "acme"), ("r:1", "other")]
    assert {line["message_type"] for line in found} == {"audit_event"}
    assert {line["kind"] for line in found} == {"lookup"}
    assert str(found[0]["at"]).endswith("Z")


def test_tail_prints_a_table_for_people(used: Audit, folder: Path) -> None:
    """Newest last."""
    result = run(folder, "tail")
    assert result.exit_code == 0
    assert "principal" in result.stdout
    assert "r:2" in result.stdout


def test_show_tells_everything_of_one_key(used: Audit, folder: Path) -> None:
    """Events, attempts and usage of every principal."""
    (found,) = lines(run(folder, "show", "r:1", "--json"))
    assert found["message_type"] == "audit_key"
    assert [len(found[part]) for part in ("events", "attempts", "usage")] == [2, 3, 2]  # type: ignore[arg-type]  # lists
    text = run(folder, "show", "r:1").stdout
    assert "attempts" in text
    assert "usage" in text


def test_show_of_an_unknown_key_says_so(used: Audit, folder: Path) -> None:
    """Nothing known is an answer, not an error."""
    result = run(folder, "show", "r:99")
    assert (result.exit_code, "nothing is known" in result.stdout) == (0, True)


def test_show_refuses_half_a_key(used: Audit, folder: Path) -> None:
    """A usage error, exit 2."""
    error = run(folder, "show", "r").exception
    assert isinstance(error, AuditError)
    assert error.exit_code == 2


@pytest.mark.parametrize(("by", "names"), [("principal", ["acme", "other"]), ("day", ["2023-11-14"])])
def test_usage_sums_by_principal_or_day(used: Audit, folder: Path, by: str, names: list[str]) -> None:
    """One report object with a total and its rows."""
    (report,) = lines(run(folder, "usage", "--by", by, "--json"))
    assert (report["message_type"], report["units_total"]) == ("usage_report", 3)
    rows = report["rows"]
    assert isinstance(rows, list)
    assert [row[by] for row in rows] == names
    assert sum(row["units"] for row in rows) == 3
    assert "3 units" in run(folder, "usage", "--by", by).stdout


def test_verify_exits_0_on_a_sound_chain_and_4_on_a_broken_one(used: Audit, folder: Path) -> None:
    """The place and the kind of the fault are named."""
    (sound,) = lines(run(folder, "verify", "--json"))
    assert (sound["ok"], sound["events"], sound["problems"]) == (True, 3, [])
    with used.store.write() as tx:
        tx.conn.execute("DROP TRIGGER audit_events_no_update")
        tx.conn.execute("UPDATE audit_events SET body = '{}' WHERE scope = 'acme' AND seq = 2")
    broken = run(folder, "verify", "--json")
    assert broken.exit_code == 4
    assert json.loads(broken.stdout)["problems"][0] | {"detail": ""} == {
        "scope": "acme",
        "seq": 2,
        "name": "edit",
        "detail": "",
    }
    assert "acme 2: edit" in run(folder, "verify").stdout


def test_seals_go_to_stdout_or_a_file_and_prove_a_tail(used: Audit, folder: Path, tmp_path: Path) -> None:
    """What was sealed outside is what verify compares with."""
    assert [line["message_type"] for line in lines(run(folder, "seal"))] == ["audit_seal"] * 2
    assert run(folder, "seal", "--output", str(tmp_path / "seals")).exit_code == 0
    with used.store.write() as tx:
        tx.conn.execute("DROP TRIGGER audit_events_no_delete")
        tx.conn.execute("DELETE FROM audit_events WHERE scope = 'acme' AND seq = 2")
        tx.conn.execute("DELETE FROM audit_seals")
    assert run(folder, "verify").exit_code == 0
    result = run(folder, "verify", "--heads", str(tmp_path / "seals"))
    assert result.exit_code == 4
    assert "missing tail" in result.stdout


def test_export_writes_a_file_and_reports_how_much(used: Audit, folder: Path, tmp_path: Path) -> None:
    """A second run adds nothing."""
    command = ["export", "--output", str(tmp_path / "out.jsonl"), "--json"]
    assert [lines(run(folder, *command))[0]["events"] for _ in range(2)] == [3, 0]
    assert "added to" in run(folder, "export", "--output", str(tmp_path / "out.csv"), "--format", "csv").stdout


def test_prune_shows_first_what_it_would_remove(used: Audit, folder: Path) -> None:
    """Young rows stay."""
    (report,) = lines(run(folder, "prune", "--dry-run", "--json"))
    assert report["dry_run"] is True
    assert "removed" in run(folder, "prune").stdout


def test_keys_that_live_outside_are_read_from_a_file(folder: Path, tmp_path: Path) -> None:
    """Without them the command refuses; with them it verifies."""
    audit = Audit(folder, id_key=b"i" * 32, chain_key=ChainKey("prod", b"c" * 32))
    audit.record(StepKey("r", "1"), kind="note", scope="acme", body={})
    audit.close()
    assert isinstance(run(folder, "verify").exception, AuditError)
    keys = {"id_key": (b"i" * 32).hex(), "chain": [{"key_id": "prod", "secret": (b"c" * 32).hex()}]}
    (tmp_path / "keys.json").write_text(json.dumps(keys), encoding="utf-8")
    assert run(folder, "--keys", str(tmp_path / "keys.json"), "verify").exit_code == 0
