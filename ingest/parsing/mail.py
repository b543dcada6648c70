"""Mail: the subject as title and heading, the sender's headers, the body, text that is attached, and inner messages.

Of a body in two forms the plain one is read. Other attachments are named and not opened, links never followed. A
mailbox is its messages, each under its subject. Sources: RFC 5322, 2045-2047, 4155 through ``email``.
"""

import email
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from email import policy
from email.message import EmailMessage, Message
from itertools import pairwise

from .assembly import Assembly
from .decode import decode
from .document import Document
from .failure import Refused
from .html import declared_encoding, read_page
from .lines import paragraphs
from .normalise import collapse, normalise
from .registry import ReaderInput

__all__ = ["add_body", "add_headers", "add_page", "attachment_warning", "read"]

MAX_DEPTH, MAX_PARTS = 10, 100
SHOWN_HEADERS = ("From", "To", "Cc", "Date", "Subject")
NAMED_ATTACHMENTS = 20
# The header parser of ``email`` takes minutes and gigabytes for a few MiB; real headers are below a few KiB.
MAX_HEADER_CHARS = 1 << 16
# RFC 4155: a line that begins a message stands first or after a blank line. Not all programs quote such lines in a
# body, so behind all but the first a header has to follow.
SEPARATOR = re.compile(rb"(?:\A|(?:(?<=\n\n)|(?<=\n\r\n))(?=[^\n]*\n(?:>?From |[!-9;-~]+[ \t]*:)))From [^\n]*\n")
QUOTED_SEPARATOR = re.compile(rb"^>(>*From )", re.MULTILINE)
HEADER_LINE = re.compile(rb"\s*(?:>?From [^\n]*\n)?[!-9;-~]+[ \t]*:")
# What the header parser of ``email`` raises on headers that are none.
BAD_HEADER = (ValueError, IndexError, KeyError, AttributeError, TypeError, LookupError)


@dataclass(slots=True)
class _Met:
    """What was met in a message so far."""

    parts: int = 0
    attachments: list[str] = field(default_factory=list)


def read(task: ReaderInput) -> Document:
    """Return the document. Title: the subject; a mailbox has none. Raises ``Refused``: it has no mail headers."""
    assembly = Assembly(task)
    met = _Met()
    if task.kind == "mbox" or SEPARATOR.match(task.content):
        messages = list(_messages(task.content))
        if not messages:
            raise Refused("damaged", "no message in it begins with a From line")
        for content in messages:
            met.parts = 0
            _add_message(assembly, _parsed(content), task, met, 1)
        title = None
    else:
        if not HEADER_LINE.match(task.content):
            raise Refused("damaged", "has no mail headers")
        message = _parsed(task.content)
        _add_message(assembly, message, task, met, 1)
        title = collapse(normalise(_header(message, "Subject"))[0]) or None
    assembly.warn(attachment_warning(met.attachments))
    return assembly.document(title=title)


def add_headers(assembly: Assembly, headers: Iterable[tuple[str, str]], subject: str, level: int) -> None:
    """Add the subject as a heading and the headers that a person sees, one a line."""
    assembly.add("heading", subject, level)
    shown = [(name, collapse(normalise(value)[0])) for name, value in headers]
    lines = [f"{name}: {value}" for name, value in shown if value]
    assembly.add("email_header", "\n".join(lines))


def add_body(assembly: Assembly, text: str) -> None:
    """Add a plain body: its paragraphs, those that quote another message as quotes."""
    text = normalise(text)[0]
    for start, end in paragraphs(text):
        paragraph = text[start:end]
        is_quote = all(line.startswith(">") for line in paragraph.split("\n"))
        assembly.add("quote" if is_quote else "paragraph", paragraph, int(is_quote))


def add_page(assembly: Assembly, source: str, level: int) -> None:
    """Add a body of HTML; its headings stand below that of the message."""
    _, rendered = read_page(source)
    assembly.embed(rendered.text, rendered.blocks, level=level, deceptive=rendered.deceptive)


def attachment_warning(names: list[str]) -> list[str]:
    """Return the warning about attachments that are not read; none for none."""
    if not names:
        return []
    more = f" and {len(names) - NAMED_ATTACHMENTS} more" if len(names) > NAMED_ATTACHMENTS else ""
    return [f"attachments: not read: {', '.join(names[:NAMED_ATTACHMENTS])}{more}"]


def _messages(content: bytes) -> Iterator[bytes]:
    content = content.lstrip(b"\r\n")
    if b"\n" not in content:
        content = content.replace(b"\r", b"\n")
    starts = [match.span() for match in SEPARATOR.finditer(content)]
    for (_, start), (end, _) in pairwise([*starts, (len(content), 0)]):
        yield QUOTED_SEPARATOR.sub(rb"\1", content[start:end])


def _parsed(content: bytes) -> EmailMessage:
    return email.message_from_bytes(content, policy=policy.default)


def _add_message(assembly: Assembly, message: Message, task: ReaderInput, met: _Met, level: int) -> None:
    if level > MAX_DEPTH:
        raise Refused("damaged", f"messages nested deeper than {MAX_DEPTH}")
    headers = [(name, _header(message, name)) for name in SHOWN_HEADERS]
    add_headers(assembly, headers, _header(message, "Subject"), min(level, 6))
    _add_part(assembly, message, task, met, level)


def _add_part(assembly: Assembly, part: Message, task: ReaderInput, met: _Met, level: int, depth: int = 0) -> None:
    """Add what a part of a message says, whatever it contains."""
    met.parts += 1
    if met.parts > MAX_PARTS or depth > MAX_DEPTH:
        raise Refused("damaged", f"a message of more than {MAX_PARTS} parts, or {MAX_DEPTH} deep")
    kind = part.get_content_type()
    # Of a part without others the payload is decoded later, by what it is; ``email`` stops at some charsets.
    inside = part.get_payload() if part.is_multipart() else None
    if kind == "message/rfc822" and isinstance(inside, list):
        for message in inside:
            if isinstance(message, Message):
                _add_message(assembly, message, task, met, level + 1)
    elif kind == "message/delivery-status" and isinstance(inside, list):
        # RFC 3464: fields of the delivery, then fields of each recipient.
        add_body(assembly, "\n\n".join(_fields(found) for found in inside if isinstance(found, Message)))
    elif isinstance(inside, list):
        children = [child for child in inside if isinstance(child, Message)]
        for child in _best(children) if kind == "multipart/alternative" else children:
            _add_part(assembly, child, task, met, level, depth + 1)
    elif part.get_content_maintype() != "text" or not _add_text(assembly, part, task, level):
        met.attachments.append(collapse(normalise(_file_name(part) or kind)[0]))


def _fields(message: Message) -> str:
    return "\n".join(f"{name}: {collapse(str(value))}" for name, value in message.raw_items())


def _add_text(assembly: Assembly, part: Message, task: ReaderInput, level: int) -> bool:
    """Add a part that is text; False where its bytes are none."""
    payload = part.get_payload(decode=True)
    content = payload if isinstance(payload, bytes) else b""
    is_page = part.get_content_subtype() == "html"
    declared = part.get_content_charset() or (declared_encoding(content) if is_page else None)
    try:
        text = decode(content, declared=declared, fallback_encoding=task.options.fallback_encoding).text
    except Refused:
        return False
    if is_page:
        add_page(assembly, text, level)
    else:
        add_body(assembly, text)
    return True


def _best(children: list[Message]) -> list[Message]:
    """Return the plain form of a body, if it says anything; else the last that holds text or parts."""
    for child in children:
        payload = child.get_payload(decode=True) if child.get_content_type() == "text/plain" else None
        if isinstance(payload, bytes) and payload.strip():
            return [child]
    readable = [child for child in children if child.get_content_maintype() in ("text", "multipart")]
    return readable[-1:]


def _header(message: Message, name: str) -> str:
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")
    if len(raw) > MAX_HEADER_CHARS:
        return raw
    try:
        return str(message.get(name, ""))
    except BAD_HEADER:
        # Its parser gives up on some headers that no standard allows; the line as it stands says enough.
        return raw


def _file_name(part: Message) -> str | None:
    try:
        return part.get_filename()
    except BAD_HEADER:
        return None
