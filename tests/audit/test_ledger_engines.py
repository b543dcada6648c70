# mypy: disable-error-code="import-not-found,untyped-decorator,misc,attr-defined,name-defined,arg-type"
# The packages of this group are optional, and where they are missing nothing of them has a type.
"""Real engines and SDKs, without and with the ledger. An optional group: each test says which package it needs."""

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from audit import Call
from audit.faults import Target, lost_reply, run_child
from tests.audit.engine_scenes import SCENES, Scene, installed, table
from tests.audit.ledger_desk import Desk, send

MakeDesk = Callable[..., Desk]
ROOT = Path(__file__).parents[2]

# Third-party packages warn about themselves; that is not what is tested here.
pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("guarded", [False, True], ids=["without", "with"])
@pytest.mark.parametrize("scene", SCENES, ids=[scene.name for scene in SCENES])
def test_an_engine_that_repeats_a_call_has_one_effect_with_the_ledger(
    make_desk: MakeDesk, scene: Scene, guarded: bool
) -> None:
    """Without it as many as the table of docs/ledger.md says, so the test can fail."""
    if not installed(scene):
        pytest.skip(f"needs {scene.library}")
    desk = make_desk()
    if not guarded:
        desk.most_effects = scene.without
    assert scene.play(desk, guarded) == (1 if guarded else scene.without)


def test_the_table_of_the_page_has_every_scene() -> None:
    """docs/ledger.md shows what was measured, and nothing that no test plays."""
    page = (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page if line.startswith("|")]
    shown = [(row[0].split(" ")[0], *row[1:]) for row in rows if len(row) == 4 and row[2].isdigit()]
    assert shown == [(scene.library, scene.fault, str(scene.without), "1") for scene in SCENES]


def test_the_table_names_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It never shows a number that was not measured."""
    monkeypatch.setattr("tests.audit.engine_scenes.installed", lambda scene: False)
    assert all("not installed" in line for line in list(table())[2:])


@pytest.mark.invariant("I8")
@pytest.mark.parametrize(
    ("module", "example"), [("langgraph.checkpoint.sqlite", "example_langgraph"), ("dbos", "example_dbos")]
)
@pytest.mark.parametrize(("point", "mails"), [("F1", 0), ("F4", 1), ("F6", 1)])
def test_an_example_that_is_killed_and_run_again_mails_once(
    tmp_path: Path, module: str, example: str, point: str, mails: int
) -> None:
    """The examples are programs: killed around the effect, then started as a person would start them."""
    pytest.importorskip(module, reason=f"needs {module}")

    def killed() -> None:
        importlib.import_module(f"tests.audit.{example}").main(tmp_path)

    with run_child(killed, failpoint=point) as child:
        assert child.ended() == -9
    outbox = Target(tmp_path / "outbox.jsonl")
    assert len(outbox.acts()) == mails
    command = [sys.executable, "-m", f"tests.audit.{example}", str(tmp_path)]
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    assert again.stdout.splitlines()[-1] == '{"receipt": 1}'
    assert len(outbox.acts()) == 1


def test_the_report_warns_where_an_sdk_retries_a_dangerous_tool(make_desk: MakeDesk) -> None:
    """One owner of retries: the ledger."""
    desk = make_desk()
    audit = desk.open()
    audit.ledger.register(desk.tool())
    assert audit.ledger.retry_report({"send": {"sdk": 3}}).warnings


def powertools(desk: Desk, run: Callable[[dict[str, str]], object]) -> Callable[[dict[str, str]], object]:
    """The tool behind aws-lambda-powertools' idempotency, its records in memory, its key a hash of the arguments."""
    idempotency = pytest.importorskip(
        "aws_lambda_powertools.utilities.idempotency", reason="needs aws-lambda-powertools, boto3"
    )
    exceptions = importlib.import_module("aws_lambda_powertools.utilities.idempotency.exceptions")
    records: dict[str, object] = {}

    class Memory(idempotency.BasePersistenceLayer):
        """Keeps records as its contract says: put fails while one is there and has not expired."""

        def _get_record(self, idempotency_key: str) -> object:
            if idempotency_key not in records:
                raise exceptions.IdempotencyItemNotFoundError
            return records[idempotency_key]

        def _put_record(self, data_record: object) -> None:
            if data_record.idempotency_key in records:
                raise exceptions.IdempotencyItemAlreadyExistsError
            records[data_record.idempotency_key] = data_record

        def _update_record(self, data_record: object) -> None:
            records[data_record.idempotency_key] = data_record

        def _delete_record(self, data_record: object) -> None:
            del records[data_record.idempotency_key]

    decorate = idempotency.idempotent_function(data_keyword_argument="args", persistence_store=Memory())
    guarded = decorate(run)
    return lambda args: guarded(args=args)


def test_powertools_acts_twice_where_the_ledger_acts_once(make_desk: MakeDesk) -> None:
    """Its two known gaps beside ours: an exception deletes its record, and other words are another key."""
    desk = make_desk()
    desk.most_effects = 2  # powertools'; the ledger's own are counted below
    lost = iter([True])

    def run(args: dict[str, str]) -> object:
        receipt = desk.target.act(Call(args, "none", 1, 1, 30.0))
        if next(lost, False):
            raise TimeoutError
        return receipt

    guarded = powertools(desk, run)
    first = {"order": "timeout", "purpose": "refund", "note": "words"}
    with pytest.raises(TimeoutError):
        guarded(first)
    guarded(first)
    assert desk.target.effects("order")["timeout",] == 2
    second = {"order": "reworded", "purpose": "refund", "note": "words"}
    assert guarded(second) == guarded(dict(second))
    guarded({**second, "note": "other words"})
    assert desk.target.effects("order")["reworded",] == 2
    audit = desk.open()
    lose = lost_reply(desk.target.act)
    for step, note in (("1.0", "words"), ("2.0", "other words")):
        send(audit, desk.tool(lose), step=step, order="ours", note=note)
    assert desk.target.effects("order")["ours",] == 1
