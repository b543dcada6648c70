"""The mutation check: each rule of the ledger, taken out, turns a fault test red. So the tests can fail."""

import importlib
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from audit.faults import run_child

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Mutant:
    """One rule taken out of one file, and the tests that must notice."""

    name: str
    file: str
    changes: tuple[tuple[str, str], ...]
    tests: tuple[str, ...]


CRASHES, ASYNC, RACES, STORAGE = "test_ledger_crashes", "test_ledger_async", "test_ledger_races", "test_ledger_storage"
MUTANTS = (
    Mutant(
        "fence",
        "ledger/slots.py",
        (
            (
                "WHERE idempotency_key = ? AND fence = ? AND phase = ?",
                "WHERE idempotency_key = ? AND ? >= 0 AND ? <> ''",
            ),
        ),
        (f"{CRASHES}::test_row_8_a_zombie_cannot_send_after_another_took_over",),
    ),
    Mutant(
        "dispatch commit",
        "ledger/protocol.py",
        (
            ("sent = yield from self._work(lambda: self._endings.dispatch(slot, tool), guard=True)", "sent = slot"),
            (
                "self._endings.succeed(sent, result)",
                "self._endings.succeed(self._endings.dispatch(sent, tool) or sent, result)",
            ),
        ),
        (f"{CRASHES}::test_row_1_a_crash_after_success_is_not_repeated[none]",),
    ),
    Mutant(
        "time to settle",
        "ledger/claims.py",
        (("stopped and left <= 0", "stopped"),),
        (f"{CRASHES}::test_row_9_not_found_means_nothing_before_the_effect_has_settled[lookup]",),
    ),
    Mutant(
        "sender stopped",
        "ledger/claims.py",
        (("stopped and left <= 0", "left <= 0"),),
        (f"{CRASHES}::test_row_9_not_found_means_nothing_while_the_sender_may_still_act[lookup]",),
    ),
    Mutant(
        "shield",
        "ledger/drivers.py",
        (("return await asyncio.shield(task)", "return await task"),),
        (f"{ASYNC}::test_row_14_a_caller_that_times_out_does_not_take_the_record_along",),
    ),
    Mutant(
        "IMMEDIATE",
        "store.py",
        (('conn.execute("BEGIN IMMEDIATE")\n                tick', 'conn.execute("BEGIN")\n                tick'),),
        (f"{RACES}::test_row_5_threads_act_once_each",),
    ),
    Mutant(
        "stickiness",
        "ledger/endings.py",
        ((' or slot.effect == "unknown"', ""),),
        (f"{CRASHES}::test_row_44_unknown_stays_unknown_whatever_the_resend_says",),
    ),
    Mutant(
        "lock closed in forked children",
        "ledger/holders.py",
        (("os.register_at_fork(after_in_child=_close_in_child)\n", ""),),
        (f"{CRASHES}::test_row_21_a_child_that_outlives_its_parent_does_not_keep_it_alive",),
    ),
    Mutant(
        "witness beside the store",
        "ledger/endings.py",
        (("            self._holders.witness(sent.holder, length)\n", "            del length\n"),),
        (f"{STORAGE}::test_row_18_a_wal_that_was_lost_after_a_crash_is_noticed_and_nothing_is_sent",),
    ),
    Mutant(
        "witness kept by sweep",
        "store.py",
        (("return not busy and pages == moved", "return True"),),
        (f"{STORAGE}::test_row_18_sweep_keeps_the_witness_while_only_the_wal_holds_what_it_saw",),
    ),
    Mutant(
        "spool read at once",
        "ledger/claims.py",
        (
            (
                'if slot.phase == "dispatched" and self._spooled():\n                    return Drain()',
                "if slot.scope == '':\n                    return Drain()",
            ),
        ),
        (f"{STORAGE}::test_row_16_an_outcome_in_the_spool_answers_while_its_process_lives",),
    ),
    Mutant(
        "bindings",
        "ledger/binding.py",
        (('bind(tx, request, slot)\n        return Bound(slot, "rebound")', 'return Bound(slot, "rebound")'),),
        (f"{CRASHES}::test_row_43_a_rebound_step_that_is_resumed_finds_the_same_slot[lookup]",),
    ),
)


def run_tests(copy: Path, scratch: Path, tests: tuple[str, ...]) -> str:
    """Run tests of a copy of the package, in a fresh process that has forgotten the original.

    `green`, or what they raised.
    """
    for name in [name for name in sys.modules if name.partition(".")[0] in ("audit", "tests")]:
        del sys.modules[name]
    sys.path.insert(0, str(copy))
    desks = importlib.import_module("tests.audit.ledger_desk")
    faults = importlib.import_module("audit.faults")
    for number, test in enumerate(tests):
        module, _, name = test.partition("::")
        function, _, parameter = name.partition("[")
        found = getattr(importlib.import_module(f"tests.audit.{module}"), function)
        folder = scratch / str(number)
        folder.mkdir()

        def make_desk(ability: str = "none", *, clock: object = None, at: Path = folder) -> object:
            return desks.Desk(at / "audit", faults.Target(at / "target.jsonl", ability), clock)

        try:
            found(make_desk, *_parameters(found, parameter))
        except BaseException as error:  # noqa: BLE001 - whatever a test raises is red
            return f"{type(error).__name__} in {test}: {error}"
    return "green"


def _parameters(found: Callable[..., None], wanted: str) -> tuple[object, ...]:
    """The one parameter of a test that is named, or the first of its list."""
    marks = [mark for mark in getattr(found, "pytestmark", []) if mark.name == "parametrize"]
    return tuple(wanted.rstrip("]") or mark.args[1][0] for mark in marks)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package and its tests, to be spoilt."""
    target = tmp_path / "copy"
    ignored = shutil.ignore_patterns("__pycache__", ".hypothesis")
    shutil.copytree(ROOT / "audit", target / "audit", ignore=ignored)
    shutil.copytree(ROOT / "tests" / "audit", target / "tests" / "audit", ignore=ignored)
    return target


@pytest.mark.invariant("I8")
@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_rule_that_is_taken_out_turns_a_test_red(copy: Path, tmp_path: Path, mutant: Mutant) -> None:
    """Without it the fault happens, and the test of that fault says so."""
    path = copy / "audit" / mutant.file
    source = path.read_text(encoding="utf-8")
    for old, new in mutant.changes:
        assert source.count(old) == 1, f"{mutant.name}: the rule moved; adapt the mutant"
        source = source.replace(old, new)
    path.write_text(source, encoding="utf-8")
    with run_child(run_tests, copy, tmp_path, mutant.tests) as child:
        assert child.result().startswith(("AssertionError", "LedgerUnavailable", "Failed"))


@pytest.mark.slow
def test_without_a_mutation_the_same_tests_are_green(copy: Path, tmp_path: Path) -> None:
    """What turns red above is the rule's absence, not the copy."""
    with run_child(run_tests, copy, tmp_path, tuple(test for mutant in MUTANTS for test in mutant.tests)) as child:
        assert child.result() == "green"
