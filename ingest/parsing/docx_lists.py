"""Numbers of lists in Word files: kept where they are what Word shows, and taken away where they would be others.

Word counts items itself, over whatever stands between them, and writes numbers as ``Art. IV`` or ``2.1``; mammoth makes
lists that count from 1. A wrong number is worse than none, so such items become those of a list with bullets. Source:
ECMA-376 part 1, 17.9.
"""

from xml.etree import ElementTree as ET

__all__ = ["WORD", "mend_lists"]

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
W = f"{{{WORD}}}"
VALUE = f"{W}val"
# How a number has to be written to be that of a list that counts from 1: alone, or with a sign that ends it.
PLAIN = frozenset({"%{}", "%{}.", "%{})", "(%{})"})
BULLETS = "bullets"
LEVELS = 9

Level = tuple[str, str]


def mend_lists(document: ET.Element, numbering: ET.Element) -> None:
    """Point items whose numbers would be wrong to a numbering with bullets, which is added."""
    levels = _levels(numbering)
    items = _items(document)
    broken = _broken(items)
    for item in items:
        if item is not None:
            numbers, level = item
            name = _value(numbers)
            # A level that is not there makes no item, neither in Word nor in mammoth.
            if (name, level) in levels and (name in broken or not levels[name, level]):
                numbers.set(VALUE, BULLETS)
    _add_bullets(numbering)


def _levels(numbering: ET.Element) -> dict[Level, bool]:
    """Return the levels, by numbering; true are those with bullets, or with plain numbers that count from 1."""
    known: dict[str, dict[str, bool]] = {}
    for abstract in numbering.iterfind(f"{W}abstractNum"):
        levels = {level.get(f"{W}ilvl", ""): _is_plain(level) for level in abstract.iterfind(f"{W}lvl")}
        if abstract.find(f"{W}numStyleLink") is not None:
            # A numbering that is a style has its levels elsewhere; mammoth finds them.
            levels = {str(level): True for level in range(LEVELS)}
        known[abstract.get(f"{W}abstractNumId", "")] = levels
    found: dict[Level, bool] = {}
    for number in numbering.iterfind(f"{W}num"):
        from_one = {_value(start) for start in number.iter(f"{W}startOverride")} <= {"1"}
        for level, is_plain in known.get(_value(number.find(f"{W}abstractNumId")), {}).items():
            found[number.get(f"{W}numId", ""), level] = is_plain and from_one
    return found


def _is_plain(level: ET.Element) -> bool:
    kind = level.find(f"{W}numFmt")
    if kind is not None and _value(kind) == "bullet":
        return True
    text = level.find(f"{W}lvlText")
    number = level.get(f"{W}ilvl", "")
    written = "%{}" if text is None else _value(text).replace(f"%{int(number) + 1 if number.isdecimal() else 1}", "%{}")
    start = level.find(f"{W}start")
    is_decimal = kind is None or _value(kind) == "decimal"
    return is_decimal and written in PLAIN and (start is None or _value(start) == "1")


def _items(document: ET.Element) -> list[tuple[ET.Element, str] | None]:
    """Return the list items of a document in order, each as its numbering and level; None for other text."""
    found: list[tuple[ET.Element, str] | None] = []
    for paragraph in document.iter(f"{W}p"):
        properties = paragraph.find(f"{W}pPr/{W}numPr")
        numbers = properties.find(f"{W}numId") if properties is not None else None
        if properties is not None and numbers is not None:
            level = properties.find(f"{W}ilvl")
            found.append((numbers, "0" if level is None else _value(level)))
        elif next(paragraph.iter(f"{W}t"), None) is not None:
            found.append(None)
    return found


def _broken(items: list[tuple[ET.Element, str] | None]) -> set[str]:
    """Return the numberings whose items do not all stand together, or stand right behind those of another."""
    ended: set[str] = set()
    broken: set[str] = set()
    before = ""
    for item in items:
        name = "" if item is None else _value(item[0])
        if name != before:
            if before and name:
                broken.add(name)
            ended.add(before)
        if name in ended:
            broken.add(name)
        before = name
    return broken - {""}


def _add_bullets(numbering: ET.Element) -> None:
    abstract = ET.SubElement(numbering, f"{W}abstractNum", {f"{W}abstractNumId": BULLETS})
    for number in range(LEVELS):
        level = ET.SubElement(abstract, f"{W}lvl", {f"{W}ilvl": str(number)})
        ET.SubElement(level, f"{W}numFmt", {VALUE: "bullet"})
    number_element = ET.SubElement(numbering, f"{W}num", {f"{W}numId": BULLETS})
    ET.SubElement(number_element, f"{W}abstractNumId", {VALUE: BULLETS})


def _value(element: ET.Element | None) -> str:
    return "" if element is None else element.get(VALUE, "")
