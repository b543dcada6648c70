"""HTML: what a person sees of the page, without its machinery, as headings, paragraphs, lists, tables and code.

Left out are scripts, styles, forms, navigation, footers and whatever the page itself hides. Style sheets are not read,
nothing is fetched, and no script runs. Where the page has a ``main`` or ``article`` that holds half of its text, the
rest is left out too. Sources: the HTML Living Standard; parsing in ``html_events``, text in ``html_blocks``.
"""

import re
from collections.abc import Iterator, Sequence

from .decode import decode
from .document import Document
from .headings import MAX_HEADING_CHARS
from .html_blocks import Rendered, render
from .html_events import Event, events
from .normalise import collapse, deceptive_warnings, normalise
from .registry import ReaderInput

__all__ = ["declared_encoding", "read", "read_page"]

# The standard wants the declaration within the first KiB; some pages have long comments before it.
DECLARATION_WITHIN = 1 << 12
DECLARED = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})|<\?xml[^>]{0,100}?encoding\s*=\s*[\"']([\w.:-]{1,40})",
    re.IGNORECASE,
)
LEFT_OUT = frozenset(
    {
        "script", "style", "template", "noscript", "svg", "head", "title", "nav", "footer", "search",
        "button", "input", "select", "option", "optgroup", "datalist", "textarea", "output", "progress", "meter",
        "iframe", "object", "embed", "audio", "video", "canvas", "map", "noframes", "noembed",
    }
)  # fmt: skip
LEFT_OUT_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "alertdialog", "doc-backlink"})
DISPLAY_NONE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
COOKIE_NOTICE = re.compile(
    r"(?:cookie|gdpr|consent)s?[-_]?(?:banner|notice|bar|popup|modal|message|overlay|dialog|consent|law|bot)"
    r"|onetrust|usercentrics",
    re.IGNORECASE,
)
# Line numbers that highlighters put beside code, links from a note back to the text, and to the pages before and after
# as DocBook and Publican write them.
NOT_CONTENT = re.compile(
    r"(?:^|\s)(?:linenos|linenodiv|lineno|footnote-back(?:ref)?|navheader|navfooter|docnav)(?:\s|$)"
)
# What links a heading to itself.
SELF_LINK_SIGNS = frozenset({"¶", "§", "#", "🔗"})
REFERENCE_MARK = re.compile(r"(?:fnref|footnote-ref|endnote-ref)[-:_]?\w*$")
BACK_LINK = re.compile(r"#(?:fnref|footnote-ref|endnote-ref)")
MAIN_SHARE = 0.5


def read(task: ReaderInput) -> Document:
    """Return the document. Title: the ``title`` element, else the first ``h1``."""
    decoded = decode(
        task.content,
        declared=declared_encoding(task.content),
        fallback_encoding=task.options.fallback_encoding,
    )
    title, rendered = read_page(decoded.text, lenient=task.use_fallback)
    first = next((block for block in rendered.blocks if block.kind == "heading" and block.level == 1), None)
    return Document(
        kind=task.kind,
        reader=task.reader,
        text=rendered.text,
        blocks=rendered.blocks,
        title=title or (first.heading if first else None),
        meta=decoded.meta(),
        warnings=decoded.warnings + deceptive_warnings(rendered.deceptive),
    )


def read_page(source: str, *, lenient: bool = False) -> tuple[str | None, Rendered]:
    """Return the title element of a page and its text with blocks: for readers whose format holds or becomes HTML."""
    page = events(source, lenient=lenient)
    return _title(page), render(_main(list(_visible(page))))


def declared_encoding(content: bytes) -> str | None:
    """Return the encoding that a page or its XML declaration names."""
    declared = DECLARED.search(content[:DECLARATION_WITHIN])
    return (declared[1] or declared[2]).decode("ascii") if declared else None


def _title(page: Sequence[Event]) -> str | None:
    """Return the text of the first ``title`` that is not part of a drawing."""
    in_svg = 0
    for index, event in enumerate(page):
        if event.value == "svg" and event.kind != "text":
            in_svg += 1 if event.kind == "open" else -1
        if event.kind == "open" and event.value == "title" and not in_svg:
            text = page[index + 1]
            title = collapse(normalise(text.value)[0]) if text.kind == "text" else ""
            return title[:MAX_HEADING_CHARS].rstrip() or None
    return None


def _visible(page: Sequence[Event]) -> Iterator[Event]:
    """Yield the events outside of what is left out."""
    hidden = 0
    for index, event in enumerate(page):
        if event.kind == "text":
            if not hidden:
                yield event
        elif event.kind == "open":
            if hidden or _is_left_out(event) or _is_self_link(page, index):
                hidden += 1
            else:
                yield event
        elif hidden:
            hidden -= 1
        else:
            yield event


def _is_self_link(page: Sequence[Event], index: int) -> bool:
    return (
        page[index].value == "a"
        and page[index].attributes.get("href", "").startswith("#")
        and page[index + 1].kind == "text"
        and page[index + 1].value.strip() in SELF_LINK_SIGNS
    )


def _is_left_out(event: Event) -> bool:
    if event.value in LEFT_OUT:
        return True
    attributes = event.attributes
    if not attributes:
        return False
    names = f"{attributes.get('id', '')} {attributes.get('class', '')}"
    is_note_link = event.value == "a" and (
        BACK_LINK.match(attributes.get("href", "")) or REFERENCE_MARK.match(attributes.get("id", ""))
    )
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or attributes.get("role", "") in LEFT_OUT_ROLES
        or DISPLAY_NONE.search(attributes.get("style", "")) is not None
        or (event.value not in ("html", "body") and COOKIE_NOTICE.search(names) is not None)
        or NOT_CONTENT.search(names) is not None
        or bool(is_note_link)
    )


def _main(page: Sequence[Event]) -> Sequence[Event]:
    """Return the part of the page that is its content: the first ``main``, else ``article``, with half of the text."""
    total = 0
    totals: list[int] = []
    opened: list[int] = []
    spans: list[tuple[bool, int, int]] = []
    for index, event in enumerate(page):
        totals.append(total)
        if event.kind == "text":
            total += len(event.value) - event.value.count(" ")
        elif event.kind == "open":
            opened.append(index)
        else:
            start = opened.pop()
            first = page[start]
            is_main = first.value == "main" or first.attributes.get("role") == "main"
            if is_main or first.value == "article":
                spans.append((not is_main, start, index + 1))
    for _, start, end in sorted(spans):
        if totals[end - 1] - totals[start] >= MAIN_SHARE * total:
            return page[start:end]
    return page
