"""Which slot answers a call. The first hit decides: exact key, bound key, rebinding, dedup key, tombstone.

Owns: finding slots and remembering the answer. Whatever a rebinding or a dedup key answers is stored, so that a resumed
step finds the same slot again: without it a step that was answered by another's slot acts a second time when it is
resumed. Refuses to drop a call because it looks alike: similarity only ever asks.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from audit.keys import IdKey
from audit.store import Transaction

from .requests import Request, dedup_key
from .runs import Run
from .similarity import Similarity
from .slots import Slot, select_slots

__all__ = ["Bound", "Gate", "bind", "find", "is_pruned", "similar"]


@dataclass(frozen=True)
class Bound:
    """The slot that answers, and how it was found."""

    slot: Slot
    how: Literal["exact", "bound", "rebound", "dedup"]


@dataclass(frozen=True)
class Gate:
    """The semantic gate: `similarity` of two wordings, 0 to 1, and from where on a person is asked.

    A wording is the text of all arguments outside the identity, in the order of their names.
    near: near-identical wording. same_intent: for tools that declare an intent, which is part of the (equal) identity.
    """

    similarity: Similarity
    near: float = 0.90
    same_intent: float = 0.85


_REBIND = (
    "WHERE workflow_id = ? AND action_type = ? AND identity_fp = ? AND sample = ? AND scope = ?"
    " AND (status = 'PENDING' OR (? AND status = 'SUCCESS' AND coalesce(told, 'error') = 'error'))"
    " ORDER BY created_at, idempotency_key LIMIT 1"
)
_DEDUP = "WHERE scope = ? AND dedup_key = ? AND status <> 'FAILED'"
_ALIKE = (
    "WHERE workflow_id = ? AND action_type = ? AND identity_fp = ? AND scope = ? ORDER BY created_at, idempotency_key"
)


def find(tx: Transaction, request: Request, run: Run, ids: IdKey) -> Bound | None:
    """The slot of the call, and a stored binding where it was not found by its own key; None when it is new."""
    key = str(request.key)
    if slot := _one(tx, "WHERE idempotency_key = ?", key):
        return Bound(slot, "exact")
    if slot := _one(tx, "WHERE idempotency_key = (SELECT idempotency_key FROM bindings WHERE call_key = ?)", key):
        return Bound(slot, "bound")
    if slot := _rebound(tx, request, run):
        bind(tx, request, slot)
        return Bound(slot, "rebound")
    if slot := dedup_slot(tx, request, run, ids):
        bind(tx, request, slot)
        return Bound(slot, "dedup")
    return None


def bind(tx: Transaction, request: Request, slot: Slot) -> None:
    """Remember that this slot answers the call's key."""
    tx.conn.execute(
        "INSERT OR IGNORE INTO bindings(call_key, workflow_id, at, idempotency_key) VALUES(?, ?, ?, ?)",
        (str(request.key), request.key.workflow, tx.now_ms, slot.idempotency_key),
    )


def dedup_slot(tx: Transaction, request: Request, run: Run, ids: IdKey) -> Slot | None:
    """The slot that holds the call's dedup key, by any version of the rule."""
    for key in _dedups(request, run, ids):
        if slot := _one(tx, _DEDUP, run.scope, key):
            return slot
    return None


def is_pruned(tx: Transaction, request: Request, run: Run, ids: IdKey) -> bool:
    """True when the call's key or dedup key belongs to a slot that was removed by age."""
    hashes = [tombstone_hash(ids, str(request.key)), *_dedups(request, run, ids)]
    return any(
        tx.conn.execute("SELECT 1 FROM tombstones WHERE key_hash = ?", (digest,)).fetchone() for digest in hashes
    )


def tombstone_hash(ids: IdKey, key: str) -> str:
    """What is kept of a key when its slot is removed."""
    return ids.fingerprint(["tombstone", key])


def similar(tx: Transaction, request: Request, run: Run, gate: Gate | None) -> bool:
    """True when an earlier slot means the same effect in nearly the same words. Other identity vetoes it.

    May only lead to a question.
    """
    if gate is None or not request.tool.dangerous:
        return False
    least = gate.near if request.tool.intent is None else min(gate.near, gate.same_intent)
    words = _words(request.args_text, request)
    for fingerprint in request.identities.values():
        rows = tx.conn.execute(
            select_slots(_ALIKE), (run.workflow, request.tool.name, fingerprint, run.scope)
        ).fetchall()
        for slot in (Slot(*row) for row in rows):
            if slot.args_data is not None and gate.similarity(_words(slot.args_data, request), words) >= least:
                return True
    return False


def _words(args_text: str, request: Request) -> str:
    """The wording of arguments as one text: values only, since equal names would make all calls look alike."""
    mine = json.loads(request.wording)
    values = [
        value
        for name, value in sorted(json.loads(args_text).items())
        if name in mine or name not in request.tool.identity
    ]
    return "\n".join(value if isinstance(value, str) else json.dumps(value, sort_keys=True) for value in values)


def _rebound(tx: Transaction, request: Request, run: Run) -> Slot | None:
    if not request.tool.dangerous:
        return None
    for fingerprint in request.identities.values():
        found = _one(
            tx, _REBIND, run.workflow, request.tool.name, fingerprint, request.key.sample, run.scope, request.tool.acks
        )
        if found is not None:
            return found
    return None


def _dedups(request: Request, run: Run, ids: IdKey) -> Iterator[str]:
    for version in request.identities:
        key = dedup_key(request, version, ids=ids, scope=run.scope, workflow=run.workflow)
        if key is not None:
            yield key


def _one(tx: Transaction, rest: str, *values: object) -> Slot | None:
    row = tx.conn.execute(select_slots(rest), values).fetchone()
    return Slot(*row) if row else None
