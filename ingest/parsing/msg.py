"""Outlook messages, read like mail: subject, headers, body, the names of attachments.

python-oxmsg opens them; it is young and pinned. Attachments are named and not opened, a body that is only rich text is
named as not read. Source: [MS-OXMSG] through python-oxmsg.
"""

from oxmsg import Message

from .assembly import Assembly
from .document import Document
from .mail import add_body, add_headers, add_page, attachment_warning
from .normalise import collapse, normalise
from .registry import ReaderInput

__all__ = ["read"]

# [MS-OXPROPS], PidTagDisplayTo and PidTagRtfCompressed: the recipients as shown, the body as compressed rich text.
DISPLAY_TO, RTF_BODY = 0x0E04, 0x1009


def read(task: ReaderInput) -> Document:
    """Return the document. Title: the subject."""
    message = Message.load(task.content)
    assembly = Assembly(task)
    date = message.sent_date
    recipients = [f"{found.name} <{found.email_address}>" for found in message.recipients if found.email_address]
    headers = [
        ("From", message.sender or ""),
        ("To", "; ".join(recipients) or message.properties.str_prop_value(DISPLAY_TO) or ""),
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
    names = [collapse(normalise(found.file_name or "unnamed")[0]) for found in message.attachments]
    assembly.warn(attachment_warning(names))
    return assembly.document(title=collapse(normalise(message.subject)[0]) or None)
