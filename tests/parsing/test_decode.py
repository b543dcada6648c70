"""Which encoding a text is in: seven steps, the first that fits."""

import pytest

from ingest.parsing.decode import decode
from ingest.parsing.failure import Refused

GERMAN = "Größe und Übermut über die Straße, für fünf Kronen"
RUSSIAN = "Ремонт насоса завершён в четверг, следующая проверка назначена на март. " * 4


@pytest.mark.parametrize(
    "encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
)
def test_unicode_is_read_with_and_without_a_mark(encoding: str) -> None:
    """Every form of Unicode gives the same text; one without a mark says that it was guessed."""
    found = decode(f"Build 4417, {GERMAN}.\n".encode(encoding))
    assert found.text == f"Build 4417, {GERMAN}.\n"
    assert found.low_confidence == encoding.endswith("e")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Fünf “Kronen” – sofort €5", "cp1252"),
        (RUSSIAN, "koi8-r"),
        (RUSSIAN, "cp1251"),
        ("日本語の文書です。倉庫の鍵は赤い箱の中にあります。" * 4, "shift_jis"),
        ("日本語の文書です。倉庫の鍵は赤い箱の中にあります。" * 4, "euc_jp"),
        ("日本語の文書です。", "iso2022_jp"),
        ("제삼 창고의 냉각 장치는 화요일에 교체되었습니다. " * 4, "iso2022_kr"),
    ],
)
def test_legacy_encodings_are_recognised(text: str, encoding: str) -> None:
    """The bytes of old systems come out as the letters they meant."""
    assert decode(text.encode(encoding)).text == text


def test_valid_utf_8_wins_over_every_guess() -> None:
    """Three bytes above 127 that are valid UTF-8 are UTF-8, whatever a statistic would say."""
    assert decode("日本".encode()).encoding == "utf-8"
    assert decode("Naïve".encode()).text == "Naïve"


def test_a_cut_utf_8_text_is_still_utf_8_and_says_what_is_missing() -> None:
    """One broken sequence among many does not turn a text into another encoding."""
    found = decode((GERMAN * 3).encode() + b"\xc3")
    assert found.encoding == "utf-8"
    assert found.text == GERMAN * 3 + "\ufffd"
    assert found.warnings == ("undecodable: 1 places are not valid utf-8",)


def test_a_declared_encoding_counts_only_where_it_fits() -> None:
    """A page's own declaration beats the statistic, not the bytes."""
    assert decode("Łódź".encode("iso8859-2"), declared="iso-8859-2").text == "Łódź"
    assert decode("Łódź".encode(), declared="iso-8859-2").text == "Łódź"
    assert decode(b"caf\xe9 \x93ouvert\x94", declared="iso-8859-1").text == "café “ouvert”"
    assert decode(b"caf\xe9", declared="rot13").text == "café"
    assert decode(b"caf\xe9", declared="utf-7").text == "café"


def test_the_fallback_encoding_is_used_where_little_can_be_told() -> None:
    """A handful of bytes above 127 is read as the user's own code page if that gives letters."""
    assert decode(b"Zo\xeb covers Fridays").text == "Zoë covers Fridays"
    assert decode("Żona ma małego żółwia".encode("cp1250"), fallback_encoding="cp1250").text == "Żona ma małego żółwia"


@pytest.mark.parametrize(
    "content",
    [
        bytes(range(256)) * 40,
        b"\x00\x01\x02\x03" * 100,
        bytes(range(1, 32)) * 40,
        b"MZ\x90\x00\x03\x00\x00\x00\x04\x00\x00\x00\xff\xff" + bytes(200),
        b"".join(value.to_bytes(2, "little") for value in range(30)) * 9,
    ],
)
def test_bytes_that_are_no_text_are_refused(content: bytes) -> None:
    """Binary data is never decoded into thousands of passages of noise."""
    with pytest.raises(Refused) as refusal:
        decode(content)
    assert refusal.value.failure.status == "binary"


def test_a_few_nuls_do_not_make_a_text_binary() -> None:
    """A log with a NUL in every twentieth place or less is read."""
    assert decode(b"retry \x00 scheduled for the pump at noon\n" * 9).encoding == "utf-8"
    assert decode("Jänner \x00 und auch noch März\n".encode() * 9).encoding == "utf-8"


def test_central_european_texts_are_not_taken_for_western_ones() -> None:
    """A few dozen letters above 127 are enough to tell the code pages of Latin letters apart."""
    for text, encoding in [
        ("Příliš žluťoučký kůň úpěl ďábelské ódy. Večeře bude v sedm hodin, přijďte včas.", "cp1250"),
        ("Zażółć gęślą jaźń. Łódź jest pięknym miastem, a wieczorem przyjdą goście.", "iso8859_2"),
        ("Bugün hava çok güzel, akşam denize gireceğiz. Şişli'de buluşalım.", "cp1254"),
    ]:
        assert decode(text.encode(encoding)).text == text
