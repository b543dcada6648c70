"""Rich text: paragraphs, headings by their outline level, lists as numbered, tables and notes.

A reader of our own, linear in the size of the file: striprtf decodes no text by the character set of its font, as most
files in Cyrillic or Greek have it, loses the results of fields and runs tables into lines with bars; its patterns are
quadratic on some inputs. Pictures, embedded objects, page headers and deleted text are left out, nothing is fetched.
Source: the RTF specification 1.9.1.
"""

from .assembly import Assembly
from .document import Document
from .headings import usable_title
from .normalise import collapse
from .registry import ReaderInput
from .rows import barred
from .rtf_groups import Group, RtfText, Tokens

__all__ = ["read"]

HEADING_LEVELS = 6
END_OF_PARAGRAPH = frozenset({"par", "sect", "page"})
WHITE_SPACE = {
    "tab": "\t", "line": "\n", "lbr": "\n", "nestcell": " ", "emspace": " ", "enspace": " ", "qmspace": " ",
}  # fmt: skip


def read(task: ReaderInput) -> Document:
    """Return the document. Title: that of the properties, else the first heading if its level is 1."""
    assembly = Assembly(task)
    text = RtfText(task.options.fallback_encoding)
    writer = _Writer(assembly)
    for event in text.events(Tokens(task.content)):
        writer.take(event.word, event.text, event.group)
    writer.finish()
    undecodable = text.undecodable
    if undecodable:
        assembly.warn([f"undecodable: characters outside of their code page: {undecodable}"])
    if text.has_hidden:
        assembly.warn(["not_read: hidden text"])
    return assembly.document(title=usable_title(collapse(text.title)) or assembly.first_heading)


class _Writer:
    """Takes text and the words that end something; holds the open paragraph, cell, row and notes."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._pieces: list[str] = []
        self._is_item = False
        self._cell: list[str] = []
        self._cells: list[str] = []
        self._is_header = False
        self._note: list[str] = []
        self._open_note = 0
        self._notes: list[str] = []

    def take(self, word: str, text: str, group: Group) -> None:
        """Take what a word, or a stretch of text where ``word`` is empty, says in its group."""
        if group.note != self._open_note:
            self._end_note()
            self._open_note = group.note
        if group.note:
            self._note.append(text or (" " if word in END_OF_PARAGRAPH else WHITE_SPACE.get(word, "")))
        elif text:
            self._is_item |= group.is_number
            self._pieces.append(text)
        elif word in WHITE_SPACE:
            self._pieces.append(WHITE_SPACE[word])
        elif word in END_OF_PARAGRAPH:
            if group.in_table:
                self._cell.append(self._text())
            else:
                self._paragraph(group)
        elif word == "cell":
            self._end_cell()
        elif word == "row":
            self._end_row()
        elif word == "trowd":
            self._end_loose()
            self._is_header = False
        elif word == "trhdr":
            self._is_header = True

    def finish(self) -> None:
        """Add what was begun and not ended."""
        self._paragraph(Group())

    def _text(self) -> str:
        text, self._pieces = "".join(self._pieces), []
        return text

    def _end_cell(self) -> None:
        self._cell.append(self._text())
        self._cells.append(collapse(" ".join(self._cell)))
        self._cell, self._is_item = [], False

    def _end_row(self) -> None:
        if self._cells and any(text.strip() for text in (*self._cell, *self._pieces)):
            self._end_cell()
        self._end_loose()
        if any(self._cells):
            self._assembly.add("table_row", barred(self._cells), is_header=self._is_header)
        self._cells = []
        self._flush_notes()

    def _end_loose(self) -> None:
        """Add the paragraphs that say they are in a table, and stand in no row: behind one, where nothing ended it."""
        if not self._cells:
            for text in self._cell:
                self._assembly.add("paragraph", text.strip())
            self._cell = []

    def _paragraph(self, group: Group) -> None:
        text, is_item = self._text().strip(), self._is_item
        if self._cells or self._cell:
            # A row that never ended.
            self._end_row()
        if group.outline < HEADING_LEVELS:
            self._assembly.add("heading", text.replace("\t", " "), group.outline + 1)
        elif is_item and text:
            marker, _, words = text.partition("\t")
            self._assembly.add(
                "list_item", "  " * group.list_level + f"{marker} {words}".rstrip(), group.list_level + 1
            )
        else:
            self._assembly.add("paragraph", text)
        self._is_item = False
        self._flush_notes()

    def _end_note(self) -> None:
        if self._note:
            self._notes.append(collapse("".join(self._note)))
            self._note = []

    def _flush_notes(self) -> None:
        self._end_note()
        for note in self._notes:
            self._assembly.add("footnote", note)
        self._notes = []
