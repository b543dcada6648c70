"""HTML: what a person sees of the page."""

from collections.abc import Sequence

import pytest

from ingest.parsing.document import Document
from ingest.parsing.html_events import is_hostile
from ingest.parsing.reading import read_document


def parsed(html: str | bytes, *, lenient: bool = False) -> Document:
    """Return the document of a page; ``lenient`` by html.parser."""
    content = html if isinstance(html, bytes) else html.encode()
    found = read_document(content, "html", "page.html", use_fallback=lenient)
    assert isinstance(found, Document), found
    return found


def blocks(html: str) -> list[tuple[str, str]]:
    """Return kind and text of each block; both parsers must agree."""
    document, other = parsed(html), parsed(html, lenient=True)
    assert (document.text, document.blocks) == (other.text, other.blocks)
    return [(block.kind, document.text[block.start : block.end]) for block in document.blocks]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>one\n  two<p>three", [("paragraph", "one two"), ("paragraph", "three")]),
        ("<p>one<br>two<br><br>three</p>", [("paragraph", "one\ntwo"), ("paragraph", "three")]),
        ("<pre><li>x</li></pre>y", [("code", "x"), ("paragraph", "y")]),
        ("<h2>A <b>b</b></h2>text", [("heading", "A b"), ("paragraph", "text")]),
        ("<h2>Rust<a href='#rust'>§</a></h2>text", [("heading", "Rust"), ("paragraph", "text")]),
        (
            "<ul><li>a<li>b<ol start=3><li>c</ol></ul>",
            [("list_item", "- a"), ("list_item", "- b"), ("list_item", "  3. c")],
        ),
        ("<ul><li><p>a</p><p>more</p></li></ul>", [("list_item", "- a"), ("list_item", "more")]),
        ("<dl><dt>term<dd>meaning<dt>two<dd><p>x</p></dl>", [("list_item", "term\nmeaning"), ("list_item", "two\nx")]),
        ("<blockquote><p>said</p><h2>not a heading</h2></blockquote>", [("quote", "said"), ("quote", "not a heading")]),
        ("<pre>\n  a\n\n<span>b</span></pre>", [("code", "  a\n\nb")]),
        ("<p>a&nbsp;b &lt;c&gt; &#x1F6A2;", [("paragraph", "a\u00a0b <c> \U0001f6a2")]),
        ("<p>soft&shy;ly o&#xFB03;ce", [("paragraph", "softly office")]),
        ("<figure><img src=x><figcaption>The pier</figcaption></figure>", [("caption", "The pier")]),
        ("<ol><li id='fn:1'>the note <a href='#fnref:1'>back</a></ol>", [("footnote", "the note")]),
    ],
)
def test_elements_become_blocks(html: str, expected: Sequence[tuple[str, str]]) -> None:
    """Each element by one example, the same from both parsers."""
    assert blocks(html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (
            "<table><caption>Prices</caption><tr><th>a<th>b<tr><td>1<td>2<br>3<tr><td></td><td>4</td></tr></table>",
            [("caption", "Prices"), ("table_row", "| a | b |"), ("table_row", "| 1 | 2 3 |"), ("table_row", "| | 4 |")],
        ),
        (
            "<table><tr><td rowspan=2>x</td><td colspan=2>y</td></tr><tr><td>z</td><td>w</td></tr></table>",
            [("table_row", "| x | y | |"), ("table_row", "| | z | w |")],
        ),
        (
            "<table><thead><tr><th rowspan=9>a<th>b<tbody><tr><td>1<td rowspan=2>2<td>3<tr><td>4<td>5<tr><td>6</table>",
            [
                ("table_row", "| a | b |"),
                ("table_row", "| 1 | 2 | 3 |"),
                ("table_row", "| 4 | | 5 |"),
                ("table_row", "| 6 |"),
            ],
        ),
        (
            "<table><tr><td>a</td><td><table><tr><td>in</td><td>ner</td></tr></table></td></tr></table>",
            [("table_row", "| a | in ner |")],
        ),
        (
            "<table><tr><td>only</td></tr><tr><td>lines</td></tr></table>",
            [("paragraph", "only"), ("paragraph", "lines")],
        ),
        (
            "<table><tr><td>menu</td><td><h1>Head</h1><p>text</p></td></tr></table>",
            [("paragraph", "menu"), ("heading", "Head"), ("paragraph", "text")],
        ),
        (
            "<table><tr><td class='linenos'><pre>1\n2</pre></td><td><pre>x = 1\ny = 2</pre></td></tr></table>",
            [("code", "x = 1\ny = 2")],
        ),
    ],
)
def test_data_tables_have_rows_and_layout_tables_have_none(html: str, expected: Sequence[tuple[str, str]]) -> None:
    """A value stands once, inner tables lie flat, and a table that only places things is not one."""
    assert blocks(html) == expected


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>no</script>", "<style>no</style>", "<template><p>no</p></template>",
        "<noscript>no</noscript>", "<!-- no -->",
        "<svg><title>no</title><text>no</text></svg>", "<nav>no</nav>", "<footer>no</footer>",
        "<div role=navigation>no</div>",
        "<div role=banner>no</div>", "<div hidden>no</div>", "<p aria-hidden=true>no</p>",
        "<p style='display: none'>no</p>",
        "<select><option>no</option></select>", "<button>no</button>", "<textarea>no</textarea>",
        "<div id='cookie-banner'><p>no</p></div>", "<div class='gdpr_notice'>no</div>", "<iframe>no</iframe>",
        "<div hidden><div>no</div><p>no</p></div>",
    ],
)  # fmt: skip
def test_what_nobody_reads_is_left_out(hidden: str) -> None:
    """Machinery, navigation and what the page hides never become a passage."""
    assert blocks(f"<p>before</p>{hidden}<p>after</p>") == [("paragraph", "before"), ("paragraph", "after")]


def test_a_main_part_with_half_of_the_text_stands_alone() -> None:
    """Side bars go where the page says what its content is; a small article in a long page does not hide the rest."""
    assert blocks("<div>side bar</div><main><p>the long content of the page</p></main>") == [
        ("paragraph", "the long content of the page")
    ]
    assert len(blocks("<p>a long text outside of it</p><article>short</article>")) == 2


def test_the_title_is_the_title_element_else_the_first_heading() -> None:
    """The title of a drawing is not that of the page."""
    assert parsed("<title> The\n page </title><h1>Head</h1>").title == "The page"
    assert parsed("<svg><title>icon</title></svg><h1>Head</h1>").title == "Head"
    assert parsed("<title></title><h2>Minor</h2>").title is None


def test_the_declared_encoding_is_honoured() -> None:
    """Old pages say what they are in."""
    page = "<html><head><meta http-equiv='Content-Type' content='text/html; charset=iso-8859-2'></head><p>Łódź i żółw"
    assert parsed(page.encode("iso8859-2")).text == "Łódź i żółw"
    assert parsed("<?xml version='1.0' encoding='koi8-r'?><html><p>насос".encode("koi8-r")).text == "насос"


def test_nothing_of_a_page_is_fetched_or_expanded() -> None:
    """Entities of a document type are text, not instructions."""
    page = "<!DOCTYPE html [<!ENTITY x SYSTEM 'file:///etc/hostname'>]><html><p>name: &x;"
    assert "name: &x;" in parsed(page).text


HOSTILE = {
    "nesting": "<div>" * 50_000,
    "mismatched": "<div></span>" * 20_000,
    "attributes": "<p " + " ".join(f"a{number}" for number in range(50_000)) + ">",
    "one tag": "<p title='" + "x" * 200_000 + "'>",
}


@pytest.mark.parametrize("case", sorted(HOSTILE))
def test_pages_that_are_quadratic_for_a_tree_go_to_the_linear_parser(case: str) -> None:
    """Depth and size of tags are seen before a tree is built, and the text is still read."""
    assert is_hostile(HOSTILE[case])
    assert parsed(HOSTILE[case] + "tail").text == "tail"


@pytest.mark.parametrize("unit", ["<!-- ", "<a ", "</", "<![CDATA[", "<?x ", "<a b='"])
def test_markup_that_nothing_ends_takes_the_rest_of_a_hostile_page(unit: str) -> None:
    """As in a browser; the linear parser would look for the end of each piece of it, and take hours."""
    assert parsed("<div>" * 3000 + "words" + unit * 1_000_000).text == "words"


@pytest.mark.parametrize("page", ["<script><!-- x</script>words", "<!-- x --><p>words", "<p>words<style>a<b", "words<"])
def test_the_linear_parser_reads_all_that_stands_behind_what_ends(page: str) -> None:
    """What looks like a comment in a script is none."""
    found = read_document(page.encode(), "html", use_fallback=True)
    assert isinstance(found, Document)
    assert found.text.removesuffix("<") == "words"


def test_cells_that_reach_far_do_not_fill_the_text_with_blanks() -> None:
    """A page of a few KiB could make gigabytes of them."""
    wide = "<tr><td colspan=1000>x<td>y" * 1000
    tall = "<tr>" + "<td rowspan=65534>x" * 1000 + "<tr><td>y" * 1000
    for page in (wide, tall):
        assert len(parsed(f"<table>{page}</table>").text) < 200_000


def test_tables_in_tables_lay_out_the_page_where_the_innermost_holds_a_heading() -> None:
    """However deep it stands; a table of data beside it stays one."""
    page = "<table><tr><td>{}<td><table><tr><td><table><tr><td>a<td><h2>b</h2></table></table></table>"
    data = "<table><tr><td>1<td>2</table>"
    assert [block.kind for block in parsed(page.format(data)).blocks] == [
        "table_row", "paragraph", "heading",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "page",
    [
        "<p>a" * 3000, "<ul>" + "<li>a" * 3000 + "</ul>", "<br>" * 3000, "<table>" + "<tr><td>a" * 3000,
        "<script>" + "if(a<b)x='<div>';" * 3000 + "</script>", "<!--" + "<div>" * 3000 + "-->",
        "<script>" + "<div>" * 3000,
    ],
)  # fmt: skip
def test_long_ordinary_pages_are_not_hostile(page: str) -> None:
    """End tags that authors leave out, scripts and comments do not make a tree deep."""
    assert not is_hostile(page)


@pytest.mark.parametrize(
    "unit", ["<b>", "<a>x", "<ul><li>", "<blockquote>", "<table><tr><td>", "<dl><dd>", "<", "&amp", "<!--", "</p>"]
)
def test_any_markup_ends_without_recursion(unit: str) -> None:
    """A thousand levels of anything, closed nowhere."""
    found = read_document(("<p>head</p>" + unit * 1900).encode(), "html")
    assert isinstance(found, Document)
    assert "head" in found.text
