"""What an exception of a tool means: try again or not, and whether it may have acted.

Owns: the default table, by status code and by kind of exception; a tool's own `classify` comes first. Refuses to import
any HTTP library: codes and names are read from the exception. What it cannot tell is transient *and* unknown, so that a
dangerous tool goes into doubt (I8).
Source: RFC 9110 and 6585 for the codes; 529 as overloaded services answer.
"""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from email.message import Message
from urllib.error import URLError

from .tools import Failure, Tool

__all__ = ["classify"]

# Refused before it could act, and worth another try.
_TRANSIENT = frozenset({425, 429, 529})
# Refused for what it is; the same again would be refused again.
_PERMANENT = frozenset({400, 401, 402, 403, 404, 405, 410, 413, 415, 422, 501})
# Names of connection errors in httpx, requests and urllib3, raised before a byte of the request was sent.
_NOT_SENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ConnectTimeoutError", "NewConnectionError"})
_BEFORE_SENDING = (ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError)
_MESSAGE_LENGTH = 200


def classify(tool: Tool, error: BaseException) -> Failure:
    """The two axes of a failure. `error` was raised by the tool after dispatch."""
    if isinstance(error, Exception) and tool.classify is not None and (own := tool.classify(error)) is not None:
        return own
    code, message = type(error).__name__, str(error)[:_MESSAGE_LENGTH]
    status, retry_after_s = _status(error)
    if status is not None:
        return _by_status(tool, status, retry_after_s, message)
    if not isinstance(error, Exception) or isinstance(error, asyncio.CancelledError):
        return Failure("transient", "unknown", code, message)
    if isinstance(_cause(error), _BEFORE_SENDING) or any(kind.__name__ in _NOT_SENT for kind in type(error).__mro__):
        return Failure("transient", "none", code, message)
    return Failure("transient", "unknown", code, message)


def _cause(error: BaseException) -> object:
    """The error, or what urllib wraps in a URLError.

    Never `__cause__`: behind the refused connection of a retrying client may stand a first try that was sent.
    """
    return error.reason if isinstance(error, URLError) else error


def _by_status(tool: Tool, status: int, retry_after_s: float | None, message: str) -> Failure:
    code = f"http_{status}"
    if status == 409:
        # From a target that honours keys: the first send with this key is still in flight.
        return (
            Failure("transient", "unknown", code, message)
            if tool.honours_key
            else Failure("permanent", "none", code, message)
        )
    if status in _TRANSIENT or (status == 503 and retry_after_s is not None):
        return Failure("transient", "none", code, message, retry_after_s)
    if status in _PERMANENT:
        return Failure("permanent", "none", code, message)
    return Failure("transient", "unknown", code, message, retry_after_s)


def _status(error: BaseException) -> tuple[int | None, float | None]:
    """Status code and Retry-After (seconds), as httpx, requests, urllib and the vendors' SDKs carry them."""
    response = getattr(error, "response", None)
    for holder in (response, error):
        for name in ("status_code", "status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
                headers = getattr(holder, "headers", None)
                text = headers.get("Retry-After") if isinstance(headers, Mapping | Message) else None
                return value, float(text) if isinstance(text, str) and text.isdigit() else None
    return None, None
