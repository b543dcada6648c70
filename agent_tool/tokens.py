"""Who may call over HTTP: bearer tokens by their digests, and the name under which a caller is counted.

Keeps no token, only sha256 digests; compares with all of them, in constant time, so that the time of a refusal tells
nothing. Tokens come from the environment or a file, never from the command line, which every process can read.
"""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Final

from mcp.server.auth.provider import AccessToken

from audit.errors import BadKey
from audit.keys import check_part, same
from search.errors import UsageError
from search.identity import stream_sha256

__all__ = ["SCOPE", "Tokens", "read_tokens"]

SCOPE: Final = "lookup"
# Who gives the one token of the environment.
_ONE: Final = "http"
_DIGEST_DIGITS: Final = 64


class Tokens:
    """The SDK's ``TokenVerifier`` over pairs of principal and sha256 of a token (64 hex digits)."""

    def __init__(self, digests: Sequence[tuple[str, str]]) -> None:
        self._digests = tuple(digests)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return who gave the token, or None. What comes back does not hold it."""
        digest = _digest(token)
        found: str | None = None
        for principal, known in self._digests:
            if same(digest, known):
                found = principal
        if found is None:
            return None
        return AccessToken(token="", client_id=found, scopes=[SCOPE], subject=found)


def read_tokens(secret: str | None, file: Path | None) -> Tokens | None:
    """Return the tokens of the environment and of a file of ``principal:sha256`` lines; None where there are none.

    Empty lines and lines that begin with ``#`` do not count. Raises ``UsageError`` for any other line, naming its
    number and not its content.
    """
    digests = [] if secret is None else [(_ONE, _digest(secret))]
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"token file {file}: cannot be read ({type(error).__name__}); name another") from error
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.startswith("#"):
                digests.append(_pair(line.strip(), f"token file {file}, line {number}"))
        if not digests:
            raise UsageError(f"token file {file}: holds no token; add a line principal:sha256")
    return Tokens(digests) if digests else None


def _pair(line: str, where: str) -> tuple[str, str]:
    principal, _, digest = line.partition(":")
    digest = digest.strip().lower()
    try:
        check_part(principal, "principal")
    except BadKey as error:
        raise UsageError(f"{where}: {error}") from error
    if len(digest) != _DIGEST_DIGITS or not set(digest) <= set("0123456789abcdef"):
        raise UsageError(f"{where}: no sha256; write principal:sha256, as `printf %s TOKEN | sha256sum` prints it")
    return principal, digest


def _digest(token: str) -> str:
    return stream_sha256(BytesIO(token.encode("utf-8", "surrogateescape")))
