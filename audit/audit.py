"""The front door: one `Audit` over one file, for whoever counts calls and records what happened.

Owns: opening the file with its keys, and the two transactions around a call (`begin`, `end`). Refuses to do any work in
between: no transaction is open while a call runs, so a kill there leaves exactly one event, one unit and an attempt
that says `started`.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from . import export, file_keys, reports, retention, usage
from .clock import Clock
from .errors import BadDeclaration
from .events import SEAL_EVERY, Emit, Event, Events, Redactor, Seal, VerifyReport
from .failpoints import failpoint
from .keys import ChainKey, JsonValue, StepKey
from .reports import KeyView, UsageBy, UsageReport
from .store import Store
from .usage import ATTEMPTS_CAP, Limit, Usage

if TYPE_CHECKING:
    from .ledger import Gate, Ledger

__all__ = ["Audit", "Begun"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Begun:
    """What `begin` decided, and the handle for `end`.

    state: `new` (one event, one unit), `repeat` (counted before; go on), `limited` (no room; nothing written),
    `too_many_attempts`.
    attempt: the number of this try, from 1; 0 when refused. args_changed: other arguments than the first time under
    this key.
    retry_after_s: for `limited`, when the window will have room; None when it never will.
    """

    step: StepKey
    kind: str
    scope: str
    subject: str
    meter: str
    state: Literal["new", "repeat", "limited", "too_many_attempts"]
    attempt: int
    args_changed: bool
    retry_after_s: float | None

    @property
    def admitted(self) -> bool:
        """True when the call may do its work."""
        return self.state in ("new", "repeat")

    @property
    def repeat(self) -> bool:
        """True when the key was counted before."""
        return self.state == "repeat"


class Audit:
    """Events, usage and reports over the audit file of one folder. Thread-safe, and usable after fork."""

    def __init__(
        self,
        folder: Path,
        *,
        id_key: bytes | None = None,
        chain_key: ChainKey | None = None,
        limits: Sequence[Limit] = (),
        retention: timedelta = timedelta(days=30),
        durable: bool = True,
        busy_timeout_s: float = 30.0,
        create: bool = True,
        clock: Clock | None = None,
        redactor: Redactor | None = None,
        seal_every: int = SEAL_EVERY,
        seal_to: Emit | None = None,
        attempts_cap: int = ATTEMPTS_CAP,
        gate: "Gate | None" = None,
        result_types: Sequence[type] = (),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Open the file. Keys that are not given are made at the first open and live in the file.

        durable: synchronous=FULL (safe at a power cut), else NORMAL (safe at kill -9). busy_timeout_s: how long a call
        waits for the file. create=False: raise AuditMissing instead of making anything. redactor: what of a call's
        content may be kept; None keeps none.
        seal_every: a seal after so many events of a scope, and at close. seal_to: puts each of these seals somewhere
        safe (`seal_file` appends to a file), which is what shows a cut tail; None keeps them in the file alone.
        gate, result_types, sleep: for the ledger, see there.
        Raises AuditIncompatible (a key that is not this file's, a newer schema), AuditUnavailable.
        """
        if retention <= timedelta(0):
            raise BadDeclaration("retention: not positive; give a time longer than any request may take to resume")
        self.store = Store(folder, durable=durable, busy_timeout_s=busy_timeout_s, clock=clock, create=create)
        self.retention = retention
        self.ids, chain = file_keys.settle(self.store, id_key, chain_key)
        self.events = Events(self.store, self.ids, chain, redactor=redactor, seal_every=seal_every, seal_to=seal_to)
        self.usage = Usage(limits, attempts_cap=attempts_cap)

        def open_ledger() -> "Ledger":
            from .ledger import Ledger  # whoever only counts calls does not pay for it

            return Ledger(
                self.store, self.events, self.usage, self.ids,
                retention=retention, gate=gate, types=result_types, sleep=sleep, reserve=durable,
            )  # fmt: skip

        self._open_ledger = open_ledger
        self._ledger: Ledger | None = None

    @property
    def ledger(self) -> "Ledger":
        """The action ledger over this file, opened at its first use.

        Raises BadDeclaration: the retention is shorter than a run that was opened may take to resume.
        """
        if self._ledger is None:
            # Two threads may both be first: ledgers over one store are interchangeable, the state is in the file.
            self._ledger = self._open_ledger()
        return self._ledger

    def begin(
        self,
        step: StepKey,
        *,
        kind: str,
        scope: str,
        subject: str,
        meter: str,
        args: Mapping[str, JsonValue],
        units: int = 1,
        body: Mapping[str, JsonValue] | None = None,
        content: Mapping[str, JsonValue] | None = None,
    ) -> Begun:
        """Admit one call before its work.

        Event, unit and attempt in one transaction, or, when refused, nothing at all (I7).

        body: further ids and counts for the event; content: goes through the redactor, if there is one, and never into
        the chain.
        Raises AuditUnavailable: nothing was counted, the call must not go on. BadKey.
        """
        args_hash = self.ids.fingerprint(dict(args))
        failpoint("begin")
        with self.store.write() as tx:
            counted = self.usage.count(
                tx, scope=scope, step=step, meter=meter, subject=subject, fingerprint=args_hash, units=units
            )
            attempt = 0
            if counted.state in ("new", "repeat"):
                attempt = usage.start_attempt(tx, scope=scope, step=step, kind=kind, args_hash=args_hash)
                failpoint("F11")
                fields = {**(body or {}), "subject": subject, "meter": meter, "units": units, "args_hash": args_hash}
                if attempt == 1:
                    self.events.append(tx, scope=scope, step=step, kind=kind, body=fields, content=content)
        failpoint("begun")
        wait = counted.retry_after_ms
        return Begun(
            step,
            kind,
            scope,
            subject,
            meter,
            counted.state,
            attempt,
            counted.args_changed,
            None if wait is None else wait / 1000,
        )

    def end(self, begun: Begun, *, outcome: str, body: Mapping[str, JsonValue] | None = None) -> None:
        """Note how the attempt ended, beside the chain. A refused call has no attempt, so nothing is written for it.

        Raises AuditUnavailable: the attempt stays `started`; the answer is none the worse and should go out.
        """
        if begun.attempt == 0:
            return
        with self.store.write() as tx:
            closed = usage.end_attempt(
                tx,
                scope=begun.scope,
                step=begun.step,
                kind=begun.kind,
                number=begun.attempt,
                outcome=outcome,
                body=body or {},
            )
        if not closed:
            log.warning("audit.end key=%s attempt=%d: ended before, or pruned", begun.step, begun.attempt)

    def record(
        self,
        step: StepKey,
        *,
        kind: str,
        scope: str,
        body: Mapping[str, JsonValue],
        subject: str | None = None,
        content: Mapping[str, JsonValue] | None = None,
    ) -> bool:
        """Record one event that is complete at once, uncounted. True when written, False when it stood already (I7)."""
        fields = dict(body) if subject is None else {**body, "subject": subject}
        with self.store.write() as tx:
            return self.events.append(tx, scope=scope, step=step, kind=kind, body=fields, content=content) is not None

    def opaque(self, value: str) -> str:
        """A pseudonym for a business id (mail address, order number) or a foreign run id.

        A valid key part, equal for equal values.
        """
        return self.ids.opaque(value)

    def secret(self, purpose: str) -> bytes:
        """32 secret bytes for one purpose of the host, the same at every open of this file."""
        return self.ids.derive(purpose)

    def tail(self, *, limit: int = 20) -> tuple[Event, ...]:
        """The newest events, oldest of them first. Does not write."""
        return reports.tail(self.store, limit=limit)

    def show(self, step: StepKey) -> KeyView:
        """Everything known about one key. Does not write."""
        return reports.show(self.store, step)

    def usage_report(self, *, by: UsageBy = "principal") -> UsageReport:
        """Units by principal or by day. Does not write."""
        return reports.usage_report(self.store, by=by)

    def verify(self, *, scope: str | None = None, heads: Sequence[Seal] = ()) -> VerifyReport:
        """Check the chain of one scope or of all; give exported seals to see a cut tail. Does not write."""
        return self.events.verify(scope=scope, heads=heads)

    def seal(self, emit: Emit, *, scope: str | None = None) -> tuple[Seal, ...]:
        """Seal the heads and hand them to `emit`, which puts them somewhere safe and returns where.

        Only then do they count as exported.
        """
        seals = self.events.seal(scope=scope)
        place = emit(seals)
        self.events.note_exported(seals, place)
        return seals

    def export(
        self, path: Path, fmt: export.ExportFormat = "jsonl", *, scope: str | None = None
    ) -> export.ExportReport:
        """Add every event to the file that it does not hold yet; JSONL ends with the seals."""
        return export.export_to(self.events, path, fmt, scope=scope)

    def prune(self, *, dry_run: bool = False) -> retention.Pruned:
        """Remove what is older than the retention; events only below an exported seal. Raises ClockJumped."""
        return retention.prune(self.store, self.events, self.retention, dry_run=dry_run)

    def close(self) -> None:
        """Seal what this process added, then close its connections."""
        self.events.seal_open_ends()
        if self._ledger is not None:
            self._ledger.close()
        self.store.close()
