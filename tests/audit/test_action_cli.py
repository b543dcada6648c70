"""`ingest audit` commands about actions, as a person or a script sees them."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner, Result

from audit import Approval, Audit, AuditError, Refused
from audit.cli import audit as group
from audit.drills import Drill
from audit.faults import Target, lost_reply
from tests.audit.ledger_desk import Desk, send

MakeDesk = Callable[..., Desk]


@dataclass(frozen=True)
class Context:
    """What the mounting program passes."""

    audit_folder: Path


@dataclass(frozen=True)
class Scene:
    """A desk with one action done, one in doubt and one that waits for a person."""

    desk: Desk
    audit: Audit
    approval_id: str

    def run(self, *arguments: str) -> Result:
        """Run one command as `ingest audit` would."""
        return CliRunner().invoke(group, arguments, obj=Context(self.desk.folder))

    def lines(self, *arguments: str) -> list[dict[str, object]]:
        """The JSON lines on stdout."""
        result = self.run(*arguments)
        assert result.exit_code == 0, result.output
        return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def scene(make_desk: MakeDesk) -> Scene:
    """Made with the machine's own clock, as the commands use it."""
    desk: Desk = make_desk()
    audit = desk.open()
    send(audit, desk.tool(), step="1.0", order="A")
    send(audit, desk.tool(lost_reply(desk.target.act)), step="2.0", order="B")
    asked = send(audit, desk.tool(name="pay", approval=Approval(expires_s=3600)), step="3.0", order="C")
    return Scene(desk, audit, str(asked.approval_id))


def test_actions_are_listed_newest_first(scene: Scene) -> None:
    """One line each; a phase narrows the list."""
    assert [line["phase"] for line in scene.lines("actions", "--json")] == ["gated", "in_doubt", "done"]
    assert [line["key"] for line in scene.lines("actions", "--phase", "done", "--json")] == ["w:1.0:send"]
    assert "w:2.0:send" in scene.run("actions").stdout


def test_attention_shows_what_a_person_must_judge(scene: Scene) -> None:
    """The arguments and their hash for an approval, the fence for a doubt; nothing of what is done."""
    doubt, gated = scene.lines("attention", "--json")
    assert (doubt["key"], doubt["fence"]) == ("w:2.0:send", 1)
    assert gated["approval_id"] == scene.approval_id
    assert gated["args"] == {"order": "C", "purpose": "refund", "note": "first words"}
    text = scene.run("attention").stdout
    assert "did it happen?" in text
    assert f"approve {scene.approval_id} --args-hash {gated['args_hash']}" in text
    assert "resolve w:2.0:send --fence 1" in text


def test_a_doubt_is_resolved_by_command(scene: Scene) -> None:
    """It happened, says Jane; the call then gets that result."""
    result = scene.lines(
        "resolve", "w:2.0:send", "--happened", "--fence", "1", "--by", "jane", "--result", '{"n": 7}', "--json"
    )
    assert result[0]["outcome"] == "done"
    assert send(scene.audit, scene.desk.tool(), step="2.0", order="B").result == {"n": 7}


@pytest.mark.parametrize(("flag", "outcome"), [("--did-not", "retry_after"), ("--void", "failed")])
def test_a_doubt_is_closed_otherwise(scene: Scene, flag: str, outcome: str) -> None:
    """It did not happen, or nobody will ever know."""
    said = scene.lines("resolve", "w:2.0:send", flag, "--fence", "1", "--by", "jane", "--note", "asked", "--json")
    assert said[0]["outcome"] == outcome


def test_resolve_needs_a_verdict_and_json(scene: Scene) -> None:
    """Usage errors, before anything is touched."""
    assert scene.run("resolve", "w:2.0:send", "--fence", "1", "--by", "jane").exit_code == 2
    bad = scene.run("resolve", "w:2.0:send", "--happened", "--fence", "1", "--by", "jane", "--result", "{")
    assert bad.exit_code == 2


def test_an_approval_is_given_for_the_arguments_shown(scene: Scene) -> None:
    """With another hash it is refused."""
    refused = scene.run("approve", scene.approval_id, "--args-hash", "0" * 64, "--by", "jane")
    assert isinstance(refused.exception, Refused)
    shown = scene.lines("attention", "--json")[1]["args_hash"]
    said = scene.lines("approve", scene.approval_id, "--args-hash", str(shown), "--by", "jane", "--json")
    assert said[0]["decision"] == "approved"
    tool = scene.desk.tool(name="pay", approval=Approval(expires_s=3600))
    assert send(scene.audit, tool, step="3.0", order="C").kind == "done"


def test_an_approval_is_denied(scene: Scene) -> None:
    """And the action never runs."""
    assert "denied" in scene.run("deny", scene.approval_id, "--by", "jane").stdout
    assert scene.lines("actions", "--phase", "denied", "--json")[0]["tool"] == "pay"


def test_show_tells_the_history_of_an_action_and_the_actions_of_a_step(scene: Scene) -> None:
    """By action key and by step key."""
    (action,) = scene.lines("show", "w:1.0:send", "--json")
    history = action["history"]
    assert isinstance(history, list)
    assert [event["what"] for event in history] == ["-> claimed", "claimed -> dispatched", "dispatched -> done"]
    (step,) = scene.lines("show", "w:1.0", "--json")
    actions = step["actions"]
    assert isinstance(actions, list)
    assert [found["key"] for found in actions] == ["w:1.0:send"]
    assert "dispatched -> done" in scene.run("show", "w:1.0:send").stdout.replace("\n", " ")
    assert scene.lines("show", "w:9.0:send", "--json")[0]["known"] is False
    assert "nothing is known" in scene.run("show", "w:9.0:send").stdout


def test_sweep_reports_what_it_closed(scene: Scene) -> None:
    """Without tools it asks no target."""
    (report,) = scene.lines("sweep", "--json")
    assert (report["message_type"], report["looks"]) == ("audit_sweep", 0)
    assert "0 looks" in scene.run("sweep").stdout


def test_prune_counts_actions_too(scene: Scene) -> None:
    """Nothing is old enough."""
    (report,) = scene.lines("prune", "--dry-run", "--json")
    assert (report["actions"], report["events"]) == (0, 0)


@pytest.fixture
def drills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    """A module `my_drills` that a host could have written: a good tool, and one that lies about its target."""
    target = Target(tmp_path / "drilled.jsonl", "both")
    blind = Target(tmp_path / "drilled.jsonl", "none")
    module = ModuleType("my_drills")
    args = {"order": "P-1", "purpose": "refund"}

    def count() -> int:
        return len(target.acts())

    vars(module).update(
        GOOD=Drill(target.tool(), args, count),
        BLIND=Drill(blind.tool(), args, count),
        LYING=Drill(blind.tool(honours_key=True, key_ttl_s=60.0), args, count),
        OTHER="no drill",
    )
    monkeypatch.setitem(sys.modules, "my_drills", module)
    return target


def test_a_drill_shows_one_effect_for_a_tool_that_keeps_its_word(scene: Scene, drills: Target) -> None:
    """Crash, lost reply, fake error, duplicate, slow reply: one effect each."""
    (report,) = scene.lines("drill", "my_drills:GOOD", "--json")
    rows = report["rows"]
    assert isinstance(rows, list)
    assert [(row["effects"], row["outcome"]) for row in rows] == [(1, "done")] * 5
    assert len(drills.acts()) == 5


def test_a_drill_accepts_honest_doubt_where_nobody_can_know(scene: Scene, drills: Target) -> None:
    """Without lookup and key, the lost ones are in doubt, with one effect."""
    result = scene.run("drill", "my_drills:BLIND")
    assert result.exit_code == 0
    assert result.stdout.count("in_doubt") == 2


def test_a_drill_unmasks_a_tool_whose_target_does_not_honour_keys(scene: Scene, drills: Target) -> None:
    """A wrong declaration is a second effect: exit 1, and the row says NO."""
    result = scene.run("drill", "my_drills:LYING")
    assert result.exit_code == 1
    assert "NO" in result.stdout


@pytest.mark.parametrize("name", ["my_drills:OTHER", "my_drills:NONE", "no_such_module:X", "my_drills"])
def test_a_drill_that_cannot_be_loaded_is_named(scene: Scene, drills: Target, name: str) -> None:
    """Nothing runs."""
    assert isinstance(scene.run("drill", name).exception, AuditError)
    assert drills.acts() == ()
