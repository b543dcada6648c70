"""The chain as data: events, seals, and the check that names each fault of one scope.

Owns: what an event's hash covers, and how edits, gaps, forks and missing tails are told apart. Refuses to trust the
table's constraints: who edits a row can also drop them. Pure: the store is read elsewhere.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .keys import GENESIS, ChainKey, JsonValue, same

__all__ = ["ChainCheck", "Event", "Problem", "ProblemName", "Seal", "VerifyReport", "select_events"]

ProblemName: TypeAlias = Literal["edit", "gap", "fork", "missing tail"]

_COLUMNS = "scope, seq, request_id, step_id, kind, part, at, body, prev_hash, hash, key_id"


def select_events(rest: str) -> str:
    """The query of whole events, in the order of Event's fields; `rest` is a constant of the caller."""
    return f"SELECT {_COLUMNS} FROM audit_events {rest}"  # noqa: S608 - constants only


@dataclass(frozen=True)
class Event:
    """One row of the chain.

    `at_ms`: store time, milliseconds since 1970, UTC; `body`: canonical JSON text of an object.
    """

    scope: str
    seq: int
    request: str
    step: str
    kind: str
    part: str
    at_ms: int
    body: str
    prev_hash: str
    hash: str
    key_id: str

    @property
    def key(self) -> str:
        """`request:step`."""
        return f"{self.request}:{self.step}"

    @property
    def fields(self) -> Mapping[str, JsonValue]:
        """The body as an object; empty when someone damaged it (verify names that)."""
        try:
            value = json.loads(self.body)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    @property
    def principal(self) -> str:
        """Who did it: the subject, or the scope where the event names none."""
        subject = self.fields.get("subject")
        return subject if isinstance(subject, str) else self.scope

    def expected_hash(self, key: ChainKey) -> str:
        """What `hash` must be under this key."""
        return key.link(
            [
                1,
                self.scope,
                self.seq,
                self.request,
                self.step,
                self.kind,
                self.part,
                self.at_ms,
                self.body,
                self.key_id,
                self.prev_hash,
            ]
        )


@dataclass(frozen=True)
class Seal:
    """The head of one scope at some time. `exported_to` names where a copy went; None is a seal in the file alone."""

    scope: str
    seq: int
    hash: str
    at_ms: int
    exported_to: str | None = None


@dataclass(frozen=True)
class Problem:
    """One fault of the chain: what, where (the first bad seq), and why one thinks so."""

    scope: str
    seq: int
    name: ProblemName
    detail: str


@dataclass(frozen=True)
class VerifyReport:
    """Events checked over all scopes, and problems ordered by scope and seq."""

    events: int
    scopes: int
    problems: tuple[Problem, ...]


class ChainCheck:
    """Walks one scope by seq and names each fault.

    The table's constraints are not trusted: who edits a row can also drop them.
    """

    def __init__(self, scope: str, seals: Sequence[Seal], chain: ChainKey) -> None:
        self._scope, self._seals, self._chain = scope, seals, chain
        self._sealed = {seal.seq: "" for seal in seals}
        self._seq, self._hash, self._first = 0, GENESIS, True
        self._problems: list[Problem] = []

    def report(self, seq: int, name: ProblemName, detail: str) -> None:
        """Note a fault."""
        self._problems.append(Problem(self._scope, seq, name, detail))

    def see(self, event: Event) -> None:
        """Check the next event against the one before it."""
        if self._first:
            self._first = False
            self._start(event.seq)
        key = self._chain.named(event.key_id)
        intact = key is not None and same(event.hash, event.expected_hash(key))
        if not intact:
            self.report(
                event.seq,
                "edit",
                f"key {event.key_id} is not known" if key is None else "its hash does not fit its fields",
            )
        if event.seq > self._seq + 1:
            self.report(self._seq + 1, "gap", f"events {self._seq + 1} to {event.seq - 1} are missing")
        elif event.seq <= self._seq:
            self.report(event.seq, "fork", "two events have this number")
        elif intact and event.prev_hash != self._hash:
            self.report(event.seq, "fork", "it follows another event than the one before it")
        if event.seq in self._sealed:
            self._sealed[event.seq] = event.hash
        self._seq, self._hash = max(event.seq, self._seq), event.hash

    def end(self) -> list[Problem]:
        """Compare with the seals; every fault of the scope by seq."""
        newest = max(self._seals, key=lambda seal: seal.seq, default=None)
        if self._first and newest is not None and newest.exported_to is not None:
            return self._problems  # retention has removed everything up to an exported seal, and nothing came since
        if newest is not None and newest.seq > self._seq:
            self.report(
                self._seq + 1, "missing tail", f"event {newest.seq} was sealed, the last one here is {self._seq}"
            )
        for seal in self._seals:
            if (found := self._sealed[seal.seq]) and not same(found, seal.hash):
                self.report(seal.seq, "fork", "it was sealed with another hash")
        return sorted(self._problems, key=lambda problem: problem.seq)

    def _start(self, seq: int) -> None:
        """What the first event must follow.

        The beginning, or an exported seal below which retention removed everything.
        """
        for seal in self._seals:
            if seal.exported_to is not None and seal.seq == seq - 1:
                self._seq, self._hash = seal.seq, seal.hash
