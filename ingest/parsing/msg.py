"""Outlook messages, read like mail: subject, headers, body, the names of attachments.

python-oxmsg opens them; it is young and pinned. Attachments are named and not opened, a body that is only rich text is
named as not read. Source: [MS-OXMSG] through python-oxmsg.
"""

import codecs
import re

from oxmsg import Message
from oxmsg.attachment import Attachment
from oxmsg.properties import Properties
from oxmsg.recipient import Recipient

from .assembly import Assembly
from .document import Document
from .failure import Refused
from .mail import add_body, add_headers, add_page, attachment_warning
from .normalise import collapse, normalise
from .registry import ReaderInput

__all__ = ["read"]

# [MS-OXPROPS], PidTagDisplayTo and PidTagRtfCompressed: the recipients as shown, the body as compressed rich text.
DISPLAY_TO, RTF_BODY = 0x0E04, 0x1009
# Code pages of which Python has no alias that begins with ``windows``.
CODE_PAGES = frozenset({"874", "932", "936", "949", "950"})
# [MS-OXCDATA] 2.11.1, PtypString8: text in the code page of the message. The library takes another for what is in
# recipients and attachments, which do not name one of their own.
EIGHT_BIT, TAKEN_FOR = 0x001E, "iso-8859-15"
# The sender's place in an Exchange directory, where a mail address is expected.
EXCHANGE_NAME = re.compile(r"\s*</o=[^>]*>", re.IGNORECASE)


def _codec(name: str) -> codecs.CodecInfo | None:
    """Find the code pages that the library calls ``windows-950`` and the like; Python knows them as ``cp950``."""
    page = name.replace("-", "_").removeprefix("windows_")
    return codecs.lookup(f"cp{page}") if page in CODE_PAGES else None


codecs.register(_codec)


def read(task: ReaderInput) -> Document:
    """Return the document. Title: the subject."""
    try:
        message = Message.load(task.content)
        shown_to = message.properties.str_prop_value(DISPLAY_TO)
    except KeyError as error:
        raise Refused("damaged", f"a message without its part {error}") from error
    assembly = Assembly(task)
    date = message.sent_date
    encoding = message.properties.body_encoding
    recipients = [shown for found in message.recipients if (shown := _recipient(found, encoding))]
    headers = [
        ("From", EXCHANGE_NAME.sub("", message.sender or "")),
        ("To", "; ".join(recipients) or shown_to or ""),
        ("Date", date.isoformat(sep=" ", timespec="seconds") if date else ""),
        ("Subject", message.subject),
    ]
    add_headers(assembly, headers, message.subject, 1)
    body = message.body
    if body and body.strip():
        add_body(assembly, body)
    elif page := message.html_body:
        add_page(assembly, page, 1)
    elif message.properties.binary_prop_value(RTF_BODY):
        assembly.warn(["not_read: the body, which is there as rich text only"])
    names = [collapse(normalise(_file_name(found, encoding))[0]) for found in message.attachments]
    assembly.warn(attachment_warning(names))
    return assembly.document(title=collapse(normalise(message.subject)[0]) or None)


def _recipient(found: Recipient, encoding: str) -> str | None:
    try:
        name, address = _mended(found.name, found.properties, encoding), found.email_address
    except KeyError:
        # Its storage is empty; the message as a whole names the recipients too.
        return None
    return f"{name} <{address}>" if address else None


def _file_name(found: Attachment, encoding: str) -> str:
    try:
        return _mended(found.file_name or "unnamed", found.properties, encoding)
    except KeyError:
        return "unnamed"


def _mended(text: str, properties: Properties, encoding: str) -> str:
    if text.isascii() or all(found.ptyp != EIGHT_BIT for found in properties):
        return text
    try:
        return text.encode(TAKEN_FOR).decode(encoding)
    except (ValueError, LookupError):
        return text
