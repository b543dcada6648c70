"""PDFs written by hand to break readers: loops, counts and sizes that lie, nesting without end.

Each is small; what is unbounded in it is what a reader would do with it. All but a few hold one page with ``SENTENCE``.
"""

import zlib
from collections.abc import Mapping, Sequence

__all__ = ["HOSTILE", "SENTENCE", "one_page", "page"]

SENTENCE = "The lamp at the pier head burns all night."
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
DRAW = f"BT /F1 12 Tf 40 200 Td ({SENTENCE}) Tj ET".encode()
DEEP = 100_000
MANY = 1_000_000


def stream(content: bytes, entries: bytes = b"") -> bytes:
    """Return a stream object."""
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), entries, content)


def pdf(objects: Mapping[int, bytes], *, trailer: bytes = b"/Root 1 0 R", tail: bytes | None = None) -> bytes:
    """Return a file of these objects by number, with its table; ``tail`` replaces the table and what follows it."""
    content, offsets = b"%PDF-1.7\n", {}
    for number, body in objects.items():
        offsets[number] = len(content)
        content += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    if tail is not None:
        return content + tail
    size = max(objects) + 1
    rows = [b"%010d 00000 n \n" % offsets[n] if n in offsets else b"0000000000 65535 f \n" for n in range(size)]
    table = b"xref\n0 %d\n%strailer\n<< /Size %d %s >>\n" % (size, b"".join(rows), size, trailer)
    return content + table + b"startxref\n%d\n%%%%EOF\n" % len(content)


def page(entries: bytes = b"/Parent 2 0 R /MediaBox [0 0 420 300]", contents: bytes = b"5 0 R") -> bytes:
    """Return a page object."""
    return b"<< /Type /Page %s /Resources << /Font << /F1 4 0 R >> >> /Contents %s >>" % (entries, contents)


def one_page(changes: Mapping[int, bytes] | None = None, catalog: bytes = b"", **options: bytes) -> bytes:
    """Return a file of one page; ``changes`` replaces or adds objects, ``catalog`` adds to the catalog."""
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R %s >>" % catalog,
        2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        3: page(),
        4: FONT,
        5: stream(DRAW),
    }
    return pdf({**objects, **(changes or {})}, **options)


def nested(opening: bytes, closing: bytes, inside: bytes = b"") -> bytes:
    """Return brackets ``DEEP`` levels deep."""
    return opening * DEEP + inside + closing * DEEP


def outline(items: Mapping[int, bytes]) -> bytes:
    """Return a page with bookmarks 10, 11 ...; each entry of ``items`` says how one is linked."""
    title = b"<< /Title (The lamp) /Parent 9 0 R /Dest [3 0 R /Fit] %s >>"
    return one_page(
        {9: b"<< /Type /Outlines /First 10 0 R /Last 10 0 R /Count 1 >>", **{n: title % at for n, at in items.items()}},
        catalog=b"/Outlines 9 0 R",
    )


def object_stream(number: int, index: bytes, body: bytes, entries: bytes = b"") -> bytes:
    """Return an object stream that holds ``index`` and ``body``."""
    return stream(index + body, b"/Type /ObjStm /N %d /First %d %s" % (number, len(index), entries))


def crossed(rows: Sequence[tuple[int, int, int]], objects: Mapping[int, bytes], extends: bytes = b"") -> bytes:
    """Return a file whose table is a stream of ``rows`` (kind, place, index); it stands as object 20."""
    content, offsets = b"%PDF-1.7\n", {}
    for number, body in objects.items():
        offsets[number] = len(content)
        content += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    offsets[20] = start = len(content)
    packed = b"".join(
        bytes([kind]) + (offsets.get(number, 0) if kind == 1 else place).to_bytes(4, "big") + bytes([index])
        for number, (kind, place, index) in enumerate(rows)
    )
    entries = b"/Type /XRef /Size %d /W [1 4 1] /Root 1 0 R %s" % (len(rows), extends)
    return content + b"20 0 obj\n%s\nendobj\nstartxref\n%d\n%%%%EOF\n" % (stream(packed, entries), start)


def _form_loop() -> bytes:
    resources = b"/Resources << /Font << /F1 4 0 R >> /XObject << /X 6 0 R >> >>"
    form = b"/Type /XObject /Subtype /Form /BBox [0 0 420 300] %s" % resources
    return one_page(
        {
            3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 420 300] %s /Contents 5 0 R >>" % resources,
            5: stream(DRAW + b" /X Do"),
            6: stream(b"/X Do /X Do", form),
        }
    )


def _forms_doubling() -> bytes:
    """Forms each of which draws the next one twice: two to the power of forty texts."""
    objects = {}
    for number in range(6, 46):
        inside = b"<< /Font << /F1 4 0 R >> /XObject << /X %d 0 R >> >>" % (number + 1)
        entries = b"/Type /XObject /Subtype /Form /BBox [0 0 420 300] /Resources %s" % inside
        objects[number] = stream(b"/X Do /X Do", entries)
    objects[46] = stream(
        DRAW, b"/Type /XObject /Subtype /Form /BBox [0 0 420 300] /Resources << /Font << /F1 4 0 R >> >>"
    )
    first = b"<< /Font << /F1 4 0 R >> /XObject << /X 6 0 R >> >>"
    objects[3] = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 420 300] /Resources %s /Contents 5 0 R >>" % first
    objects[5] = stream(DRAW + b" /X Do")
    return one_page(objects)


def _bomb(layers: int = 1) -> bytes:
    """A page of 400 MB of blanks before its sentence, packed to some KB."""
    content = b" " * (400 << 20) + DRAW
    for _ in range(layers):
        content = zlib.compress(content, 9)
    return one_page({5: stream(content, b"/Filter [%s]" % (b"/FlateDecode " * layers))})


LABELS = b"/PageLabels 9 0 R"
XREF = b"xref\n0 1\n0000000000 65535 f \ntrailer\n<< /Size 6 /Root 1 0 R /Prev %d >>\nstartxref\n%d\n%%%%EOF\n"
_BODY = one_page(tail=b"")
HOSTILE: Mapping[str, bytes] = {
    "kids that hold themselves": one_page({2: b"<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 2 >>"}),
    "kids in a circle": one_page(
        {
            2: b"<< /Type /Pages /Kids [6 0 R] /Count 2 >>",
            6: b"<< /Type /Pages /Parent 2 0 R /Kids [7 0 R 3 0 R] /Count 2 >>",
            7: b"<< /Type /Pages /Parent 6 0 R /Kids [6 0 R] /Count 1 >>",
        }
    ),
    "the same page ten thousand times": one_page(
        {2: b"<< /Type /Pages /Kids [%s] /Count 10000 >>" % (b"3 0 R " * 10_000)}
    ),
    "kids that double": one_page(
        {
            2: b"<< /Type /Pages /Kids [6 0 R 6 0 R] /Count 1048576 >>",
            **{
                n: b"<< /Type /Pages /Kids [%d 0 R %d 0 R] /Count %d >>" % (n + 1, n + 1, 1 << (25 - n))
                for n in range(6, 25)
            },
            25: page(),
        }
    ),
    "a deep page tree": one_page(
        {
            2: b"<< /Type /Pages /Kids [6 0 R] /Count 1 >>",
            **{n: b"<< /Type /Pages /Kids [%d 0 R] /Count 1 >>" % (n + 1) for n in range(6, 5_000)},
            5_000: page(),
        }
    ),
    "a count of a million": one_page({2: b"<< /Type /Pages /Kids [3 0 R] /Count 1000000 >>"}),
    "a count of fifty thousand": one_page({2: b"<< /Type /Pages /Kids [3 0 R] /Count 50000 >>"}),
    "a count of two to the 31": one_page({2: b"<< /Type /Pages /Kids [3 0 R] /Count 2147483647 >>"}),
    "a count below zero": one_page({2: b"<< /Type /Pages /Kids [3 0 R] /Count -5 >>"}),
    "no count": one_page({2: b"<< /Type /Pages /Kids [3 0 R] >>"}),
    "a parent in a circle": one_page(
        {3: page(b"/Parent 6 0 R"), 6: b"<< /Type /Pages /Parent 7 0 R >>", 7: b"<< /Type /Pages /Parent 6 0 R >>"}
    ),
    "a page that is its own parent": one_page({3: page(b"/Parent 3 0 R")}),
    "a huge page": one_page({3: page(b"/Parent 2 0 R /MediaBox [-1e30 -1e30 1e30 1e30] /UserUnit 1e30")}),
    "a page without size": one_page({3: page(b"/Parent 2 0 R /MediaBox [0 0 0 0] /Rotate 45")}),
    "bookmarks in a circle": outline({10: b"/Next 11 0 R", 11: b"/Next 10 0 R"}),
    "a bookmark that is its own child": outline({10: b"/First 10 0 R /Last 10 0 R"}),
    "a chain of first children": outline({n: b"/First %d 0 R /Last %d 0 R" % (n + 1, n + 1) for n in range(10, 5_010)}),
    "bookmarks that double": outline({n: b"/First %d 0 R /Next %d 0 R" % (n + 1, n + 1) for n in range(10, 50)}),
    "twenty thousand bookmarks": outline({n: b"/Next %d 0 R" % (n + 1) for n in range(10, 20_010)}),
    "labels in a circle": one_page({9: b"<< /Kids [9 0 R] >>"}, catalog=LABELS),
    "labels that double": one_page(
        {n: b"<< /Kids [%d 0 R %d 0 R] /Limits [0 0] >>" % (n + 1, n + 1) for n in range(9, 49)}, catalog=LABELS
    ),
    "labels of a huge number": one_page({9: b"<< /Nums [0 << /S /r /St 2000000000 >>] >>"}, catalog=LABELS),
    "letters of a huge number": one_page({9: b"<< /Nums [0 << /S /A /St 2000000000 >>] >>"}, catalog=LABELS),
    "a long label": one_page({9: b"<< /Nums [0 << /P (%s) >>] >>" % (b"x" * MANY)}, catalog=LABELS),
    "labels that lie": one_page({9: b"<< /Nums [-7 (x) 99999999999 << /S /D >> null] >>"}, catalog=LABELS),
    "names in a circle": one_page({9: b"<< /Kids [9 0 R] >>"}, catalog=b"/Names << /Dests 9 0 R >>"),
    "a table that goes back to itself": _BODY + XREF % (len(_BODY), len(_BODY)),
    "tables in a circle": _BODY
    + XREF % (len(_BODY), len(_BODY))
    + XREF % (len(_BODY), len(_BODY) + len(XREF % (len(_BODY), len(_BODY)))),
    "a table before the file": _BODY + XREF % (-1, 0),
    "a table of a billion": _BODY
    + b"xref\n0 1000000000\ntrailer\n<< /Size 1000000000 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(_BODY),
    "an object stream that holds itself": crossed(
        [(0, 0, 0), (2, 6, 0), (2, 6, 1), (1, 0, 0), (1, 0, 0), (1, 0, 0), (2, 6, 2)],
        {
            3: page(),
            4: FONT,
            5: stream(DRAW),
            6: object_stream(3, b"1 0 2 20 6 40 ", b"<< /Pages 2 0 R >>  << /Kids [3 0 R] >> 6 0 R"),
        },
    ),
    "object streams in a circle": crossed(
        [(0, 0, 0), (2, 6, 0), (2, 7, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0), (2, 7, 0), (2, 6, 0)],
        {
            3: page(),
            4: FONT,
            5: stream(DRAW),
            6: object_stream(1, b"1 0 ", b"<< >>", b"/Extends 7 0 R"),
            7: object_stream(1, b"2 0 ", b"<< >>", b"/Extends 6 0 R"),
        },
    ),
    "an object stream of a billion": crossed(
        [(0, 0, 0), (2, 6, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0)],
        {
            2: b"<< /Kids [3 0 R] /Count 1 >>",
            3: page(),
            4: FONT,
            5: stream(DRAW),
            6: stream(b"1 0 << /Pages 2 0 R >>", b"/Type /ObjStm /N 1000000000 /First 4"),
        },
    ),
    "a table stream that goes back to itself": crossed(
        [(0, 0, 0)] + [(1, 0, 0)] * 5,
        {1: b"<< /Pages 2 0 R >>", 2: b"<< /Kids [3 0 R] /Count 1 >>", 3: page(), 4: FONT, 5: stream(DRAW)},
        b"/Prev 9",
    ),
    "an object that is itself": one_page({2: b"2 0 R"}),
    "a length that is itself": one_page({5: b"<< /Length 5 0 R >>\nstream\n" + DRAW + b"\nendstream"}),
    "a length of an exabyte": one_page({5: b"<< /Length 1000000000000000000 >>\nstream\n" + DRAW + b"\nendstream"}),
    "deep arrays": one_page({6: nested(b"[", b"]")}, catalog=b"/Nested 6 0 R"),
    "deep arrays on the way": one_page({2: b"<< /Type /Pages /Kids %s /Count 1 >>" % nested(b"[", b"]", b"3 0 R")}),
    "deep dictionaries": one_page({3: page(b"/Parent 2 0 R /X %s" % nested(b"<< /X ", b" >>", b"1"))}),
    "deep arrays in a page": one_page({5: stream(nested(b"[", b"]") + b" TJ " + DRAW)}),
    "deep brackets in a text": one_page({5: stream(b"BT /F1 12 Tf (%s) Tj ET " % nested(b"(", b")") + DRAW)}),
    "saved states without end": one_page({5: stream(b"q " * MANY + DRAW)}),
    "a form that draws itself": _form_loop(),
    "forms that double": _forms_doubling(),
    "a million words of nothing": one_page({5: stream(b"BT /F1 12 Tf " + b"( ) Tj " * MANY + b"ET " + DRAW)}),
    "a packed page": _bomb(),
    "a page packed twice": _bomb(2),
    "a filter a thousand times": one_page({5: stream(DRAW, b"/Filter [%s]" % (b"/ASCIIHexDecode " * 1_000))}),
    "a font that describes itself": one_page(
        {4: b"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /DescendantFonts [4 0 R] >>"}
    ),
    "a character map that uses itself": one_page(
        {
            4: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>",
            6: stream(b"/X usecmap 1 beginbfrange <00> <FFFFFFFF> <0000> endbfrange", b"/UseCMap 6 0 R"),
        }
    ),
    "a huge character map": one_page(
        {
            4: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>",
            6: stream(
                b"1 begincodespacerange <00> <FF> endcodespacerange 100 beginbfrange "
                + b"<00000000> <7FFFFFFF> <0041> " * 100
                + b"endbfrange"
            ),
        }
    ),
    "a text that is its own title": one_page(trailer=b"/Root 1 0 R /Info 6 0 R"),
    "a lock that is itself": one_page(
        {6: b"<< /Filter 6 0 R /V 6 0 R /R 6 0 R /O 6 0 R /U 6 0 R /P 6 0 R >>"}, trailer=b"/Root 1 0 R /Encrypt 6 0 R"
    ),
    "a lock of a million rounds": one_page(
        {6: b"<< /Filter /Standard /V 5 /R 6 /Length 2147483647 /O (x) /U (x) /P -1 >>"},
        trailer=b"/Root 1 0 R /Encrypt 6 0 R /ID [(a) (b)]",
    ),
    "annotations that are themselves": one_page(
        {
            3: page(b"/Parent 2 0 R /MediaBox [0 0 420 300] /Annots 6 0 R"),
            6: b"[6 0 R 3 0 R 7 0 R null (x) 4711]",
            7: b"<< /Type /Annot /Subtype /Widget /V 7 0 R /F 7 0 R /Parent 7 0 R /Kids [7 0 R] >>",
        }
    ),
    "a million annotations": one_page(
        {
            3: page(b"/Parent 2 0 R /MediaBox [0 0 420 300] /Annots [%s]" % (b"7 0 R " * MANY)),
            7: b"<< /Type /Annot /Subtype /Widget /V (x) >>",
        }
    ),
    "a catalog that is a number": one_page({1: b"4711"}),
    "pages that are a text": one_page({2: b"(pages)"}),
    "kids that are numbers": one_page({2: b"<< /Type /Pages /Kids [1 2 3 (x) null true << >>] /Count 7 >>"}),
    "NULs and no end": b"%PDF-1.7\n" + b"\x00" * MANY,
    "headers and no end": b"%PDF-1.7\n" * DEEP,
    "objects and no end": b"%PDF-1.7\n" + b"1 0 obj\n" * DEEP,
    "tables and no end": b"%PDF-1.7\n" + b"startxref\n9\n%%EOF\n" * DEEP,
}
