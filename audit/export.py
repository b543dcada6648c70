"""Events as files for others: JSONL, CSV, CloudEvents, OTLP logs.

Owns: the formats, the names of fields outside, and resuming a file that an earlier export began. Exporting JSONL ends
every scope with its seal, the proof of a tail. Refuses to overwrite: a file that is there is continued after its last
whole line.
Sources: CloudEvents 1.0.2 JSON format, OpenTelemetry OTLP/JSON logs and semantic conventions (the GenAI part is in
development, therefore all names stand in one table), RFC 4180.
"""

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from .errors import AuditError
from .events import Emit, Event, Events, Seal
from .keys import JsonValue

__all__ = [
    "ATTRIBUTES",
    "ExportFormat",
    "ExportReport",
    "export_to",
    "lines",
    "read_seals",
    "seal_file",
    "seal_line",
    "timestamp",
]

ExportFormat: TypeAlias = Literal["jsonl", "csv", "cloudevents", "otlp"]

# Body fields as the chain stores them, and their OpenTelemetry names. Stored names never change; the right side follows
# the convention.
ATTRIBUTES: Mapping[str, str] = {
    "operation": "gen_ai.operation.name",
    "tool": "gen_ai.tool.name",
    "tool_call_id": "gen_ai.tool.call.id",
    "agent": "gen_ai.agent.id",
    "model": "gen_ai.request.model",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "error": "error.type",
    "resends": "http.request.resend_count",
    "session": "mcp.session.id",
    "action_key": "ledger.key",
    "fence": "ledger.fence",
    "phase": "ledger.phase",
    "effect": "ledger.effect",
    "replayed": "ledger.replayed",
    "reworded": "ledger.reworded",
    "approval_id": "ledger.approval_id",
    "subject": "enduser.pseudo.id",
}

_CSV = ("scope", "seq", "request", "step", "kind", "part", "at", "body", "prev_hash", "hash", "key_id")


@dataclass(frozen=True)
class ExportReport:
    """What an export added to its file, and the seals that now stand outside."""

    events: int
    seals: tuple[Seal, ...]
    path: Path


def timestamp(at_ms: int) -> str:
    """Milliseconds since 1970 as RFC 3339, UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def lines(event: Event, fmt: ExportFormat) -> str:
    """One event in one line of the format, without its newline."""
    match fmt:
        case "jsonl":
            return _json({"message_type": "audit_event", **_plain(event)})
        case "csv":
            cells = (event.scope, event.seq, event.request, event.step, event.kind, event.part, timestamp(event.at_ms))
            return _csv_line([*cells, event.body, event.prev_hash, event.hash, event.key_id])
        case "cloudevents":
            return _json(
                {
                    "specversion": "1.0",
                    "id": ":".join((event.request, event.step, event.kind, event.part)),
                    "source": event.scope,
                    "type": f"dev.grounded-ingest.audit.{event.kind}",
                    "time": timestamp(event.at_ms),
                    "datacontenttype": "application/json",
                    "sequence": f"{event.seq:020d}",
                    "data": {**named(event), "hash": event.hash, "prev_hash": event.prev_hash},
                }
            )
        case "otlp":
            return _json(_otlp(event))


def named(event: Event) -> dict[str, JsonValue]:
    """The fields of an event under their names outside."""
    return {ATTRIBUTES.get(name, name): value for name, value in event.fields.items()}


def seal_line(seal: Seal) -> str:
    """A seal in one line of JSON."""
    return _json(
        {
            "message_type": "audit_seal",
            "scope": seal.scope,
            "seq": seal.seq,
            "hash": seal.hash,
            "at": timestamp(seal.at_ms),
        }
    )


def seal_file(path: Path) -> Emit:
    """What appends seals to a file, one JSON line each, durable on return; it should lie on another disk or host."""

    def append(seals: Sequence[Seal]) -> str:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(seal_line(seal) + "\n" for seal in seals)
            file.flush()
            os.fsync(file.fileno())
        return str(path)

    return append


def read_seals(path: Path) -> tuple[Seal, ...]:
    """The seals in a JSONL export or a file of seals. Raises AuditError when the file cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise AuditError(f"seals {path}: {error.strerror}; name a file written by export or seal") from error
    found = []
    for line in text.splitlines():
        try:
            value = json.loads(line)
            if value["message_type"] == "audit_seal":
                at_ms = int(datetime.fromisoformat(value["at"]).timestamp() * 1000)
                found.append(Seal(str(value["scope"]), int(value["seq"]), str(value["hash"]), at_ms, str(path)))
        except (ValueError, KeyError, TypeError) as error:
            raise AuditError(
                f"seals {path}: a line that is no event and no seal; name a file written by export or seal"
            ) from error
    return tuple(found)


def export_to(events: Events, path: Path, fmt: ExportFormat, *, scope: str | None = None) -> ExportReport:
    """Add to the file every event that it does not hold yet, then, as JSONL, the seals; durable on return.

    A torn last line of an export that was killed is cut off first. Only JSONL counts as a place that a seal was
    exported to.
    """
    done = _resume(path, fmt)
    scopes = events.scopes() if scope is None else (scope,)
    count = 0
    sealed: list[Seal] = []
    try:
        with path.open("a", encoding="utf-8", newline="") as file:
            if fmt == "csv" and file.tell() == 0:
                file.write(_csv_line(_CSV) + "\n")
            for name in scopes:
                added = 0
                last: Event | None = None
                for event in events.walk(name, after=done.get(name, 0)):
                    file.write(lines(event, fmt) + "\n")
                    last = event
                    added += 1
                count += added
                if fmt == "jsonl" and last is not None:
                    seal = Seal(name, last.seq, last.hash, last.at_ms, str(path))
                    file.write(seal_line(seal) + "\n")
                    sealed.append(seal)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise AuditError(f"export {path}: {error.strerror}; the file can be continued once that is mended") from error
    events.note_exported(sealed, str(path))
    return ExportReport(count, tuple(sealed), path)


def _plain(event: Event) -> dict[str, JsonValue]:
    return {
        "key": event.key,
        "kind": event.kind,
        "principal": event.principal,
        "at": timestamp(event.at_ms),
        "scope": event.scope,
        "seq": event.seq,
        "part": event.part,
        "at_ms": event.at_ms,
        "body": event.body,
        "prev_hash": event.prev_hash,
        "hash": event.hash,
        "key_id": event.key_id,
    }


def _otlp(event: Event) -> dict[str, JsonValue]:
    attributes: list[JsonValue] = [
        {"key": name, "value": _any_value(value)} for name, value in sorted(named(event).items())
    ]
    record: dict[str, JsonValue] = {
        "timeUnixNano": str(event.at_ms * 1_000_000),
        "severityNumber": 9,
        "eventName": f"audit.{event.kind}",
        "body": {"stringValue": event.key},
        "attributes": attributes,
    }
    resource: list[JsonValue] = [
        {"key": "audit.scope", "value": {"stringValue": event.scope}},
        {"key": "audit.seq", "value": {"intValue": str(event.seq)}},
    ]
    return {
        "resourceLogs": [
            {"resource": {"attributes": resource}, "scopeLogs": [{"scope": {"name": "audit"}, "logRecords": [record]}]}
        ]
    }


def _any_value(value: JsonValue) -> dict[str, JsonValue]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case _:
            return {"stringValue": _json(value)}


def _resume(path: Path, fmt: ExportFormat) -> dict[str, int]:
    """The highest seq per scope that the file holds already; cuts a torn last line off."""
    if not path.exists():
        return {}
    try:
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) != len(data):
            os.truncate(path, len(whole))
        found: dict[str, int] = {}
        for scope, seq in _positions(whole.decode("utf-8"), fmt):
            found[scope] = max(seq, found.get(scope, 0))
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise AuditError(f"export {path}: not a {fmt} export of ours; name another file") from error
    return found


def _positions(text: str, fmt: ExportFormat) -> Iterator[tuple[str, int]]:
    if fmt == "csv":
        rows = csv.reader(io.StringIO(text))
        next(rows, None)
        yield from ((row[0], int(row[1])) for row in rows)
        return
    for value in map(json.loads, text.splitlines()):
        if fmt == "jsonl":
            yield value["scope"], int(value["seq"])
        elif fmt == "cloudevents":
            yield value["source"], int(value["sequence"])
        else:
            resource = value["resourceLogs"][0]["resource"]["attributes"]
            yield resource[0]["value"]["stringValue"], int(resource[1]["value"]["intValue"])


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def _csv_line(cells: Iterable[str | int]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(cells)
    return out.getvalue()
