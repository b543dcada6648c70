"""Which code points may pass, in which direction. Pure; one code point in, one code point out, so spans still fit.

Outgoing text keeps its length: every code point that could hide, reorder or forge something is replaced by U+FFFD.
Incoming text is refused, never mended: a query that was silently changed would not be the one that was asked. A lone
surrogate (file names have them) cannot be encoded, and kills a stdio server that tries (mcp 2.3.0).
Source: Unicode 16.0, chapters 23.1 to 23.7; UTS 55 (source code handling) for the bidirectional controls.
"""

import re

__all__ = ["clean_label", "clean_text", "has_refused", "has_refused_in_path"]

REPLACEMENT = "\ufffd"

# C0 and C1 controls and DEL, but for TAB, LF and CR.
_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
# Zero-width and invisible operators, the byte order mark, embeddings, overrides and isolates, tags and the
# supplementary variation selectors (which can carry hidden text), lone surrogates. Joiners, directional marks and
# U+FE00-FE0F stay: Persian, Indic scripts and emoji are written with them.
_HIDDEN = "\u200b\u2060-\u2064\ufeff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e01ef\ud800-\udfff"
# What may stand in a text, but not in a header, which is one line.
_LINE_ENDS = "\t\n\u2028\u2029"

_BAD_IN_QUERY = re.compile(f"[{_CONTROLS}{_HIDDEN}]")
_BAD_IN_TEXT = re.compile(f"[\r{_CONTROLS}{_HIDDEN}]")
_BAD_IN_LABEL = re.compile(f"[\r{_CONTROLS}{_HIDDEN}{_LINE_ENDS}]")


def clean_text(text: str) -> str:
    """Return a passage's text with every bad code point replaced; equal length."""
    return _BAD_IN_TEXT.sub(REPLACEMENT, text)


def clean_label(text: str) -> str:
    """Return a path, title, heading or root as one line with every bad code point replaced; equal length."""
    return _BAD_IN_LABEL.sub(REPLACEMENT, text)


def has_refused(query: str) -> bool:
    """True where a query holds a code point that is refused; TAB, LF and CR are not."""
    return _BAD_IN_QUERY.search(query) is not None


def has_refused_in_path(path: str) -> bool:
    """True where a path holds a code point that is refused."""
    return _BAD_IN_LABEL.search(path) is not None
