"""One call as the ledger sees it: a snapshot of its arguments, and which effect they mean.

Owns: splitting arguments into identity and wording, and the fingerprints of both. The snapshot is text, so neither
caller nor tool can change it later. Refuses arguments without a text form and identities without one form: the call
failed before anything was sent.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from audit.errors import BadKey
from audit.keys import ActionKey, IdKey, JsonValue, normal_identity

from .tools import Failure, Tool
from .values import Codec, Unwritable

__all__ = ["CURRENT_RULE", "RULES", "BadArguments", "Request", "snapshot"]

# How identity values are brought into one form, by version. A rule is never changed, only followed by another, and
# slots remember theirs, so that new code still recognises the effects of old code.
RULES: dict[int, Callable[[Mapping[str, object]], Mapping[str, JsonValue]]] = {1: normal_identity}
CURRENT_RULE = 1


class BadArguments(ValueError):
    """Arguments that no slot can be made of; `failure` is what the caller is told."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.failure = Failure("permanent", "none", "bad_arguments", message)


@dataclass(frozen=True)
class Request:
    """A call, ready to be bound to a slot. `identities` and `dedups` hold one fingerprint per version of the rule."""

    tool: Tool
    key: ActionKey
    args_text: str
    args_hash: str
    wording: str
    identities: Mapping[int, str]
    version: int
    scope: str | None

    @property
    def identity_fp(self) -> str:
        """The fingerprint by the rule of today."""
        return self.identities[self.version]


def snapshot(
    tool: Tool, args: Mapping[str, object], key: ActionKey, *, codec: Codec, ids: IdKey, scope: str | None
) -> Request:
    """Take the arguments as they are now. Raises BadArguments."""
    try:
        text = codec.text(dict(args))
        copy = codec.value(text)
        values = dict(copy) if isinstance(copy, dict) else {}
        named = dict(tool.normalise(values)) if tool.normalise is not None else values
        missing = [name for name in tool.identity if named.get(name) is None]
        if missing:
            raise BadArguments(f"missing: {', '.join(missing)}")
        # Without a declared identity every argument is one: other arguments are another call.
        identity = {name: named[name] for name in tool.identity} if tool.identity else named
        wording = {name: value for name, value in values.items() if name not in identity}
        identities = {
            version: ids.fingerprint([tool.name, dict(rule(identity) if tool.identity else _plain(codec, identity))])
            for version, rule in RULES.items()
        }
        return Request(tool, key, text, ids.fingerprint(text), codec.text(wording), identities, CURRENT_RULE, scope)
    except (Unwritable, BadKey) as error:
        raise BadArguments(str(error)) from error


def _plain(codec: Codec, values: Mapping[str, object]) -> Mapping[str, JsonValue]:
    """Undeclared identities keep their tagged form: floats are allowed, since only exact repeats shall match."""
    return dict(json.loads(codec.text(dict(values))))


def dedup_key(request: Request, version: int, *, ids: IdKey, scope: str, workflow: str) -> str | None:
    """The key that makes an effect unique per scope or run, beyond its position; None without `once_per`."""
    if request.tool.once_per is None:
        return None
    where = ["scope", scope] if request.tool.once_per == "scope" else ["run", scope, workflow]
    return ids.fingerprint(["dedup", where, request.tool.name, request.identities[version], request.key.sample])
