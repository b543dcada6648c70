"""Five texts and the ids of their chunks: the output must not change while the version stays.

A changed id is a vector computed again for every user. Where the change is meant, raise ``CHUNKER_VERSION`` and let
this file say so: the failing test prints the new ids.
"""

import re

import numpy as np
from numpy.typing import NDArray

from ingest.chunking.chunker import chunk
from ingest.chunking.sizes import CHUNKER_VERSION, Sizes
from ingest.parsing.document import Block, BlockKind, Document

# A passage of at most 64 tokens, so that short texts have several.
SIZES = Sizes.for_limit(114)

SECTIONS = """# Lamp room

## Cleaning

The lens is wiped with a dry cloth every morning. Salt leaves a film that scatters the beam. Water is never used, since
drops act as small lenses. A second cloth is kept for the brass, and the two are not to be mixed up. Dr. Holm wrote the
first rules in 1911; they still hold.

## Winding

The clockwork runs for six hours. Whoever has the watch winds it at ten and at four. If the weight touches the floor
the lamp stands still, and a standing lamp is worse than none! Ships take it for another light.

### Grease

Use the thin grease in winter. Thick grease makes the gears lose about two minutes a night. Note the loss in the log
before you correct it.

## Log

Write down the wind, the sea and every ship that signals. Sign each page.
"""

LIST_AND_CODE = """Steps before a dive:

- Check the pressure of both bottles and write it on the slate.
- Let your partner read the gauge as well, aloud.
- Agree on the turning point: one third out, one third back, one third in reserve.
- Look at the sky.
- Tell the boat how long you will be gone, and what they do if you are late.

```python
def turning_pressure(start, reserve):
    usable = start - reserve
    if usable <= 0:
        raise ValueError("not enough gas")

    return start - usable / 2

def minutes(pressure, litres, rate):
    total = pressure * litres
    return total / rate
```

The function knows nothing of depth. At ten metres you breathe twice as much as at the surface, so halve what it says.
"""

TABLE = """# Apples

| Name of the apple | Ripe | Keeps until |
|---|---|---|
| Early yellow, soft and sweet | July | eaten within a week |
| Red from the hill, somewhat sour | August | October if cool |
| Grey leather, for cakes above all | September | the new year |
| Winter bell, hard as wood at first | October | Easter in a dry cellar |
| Long green, the one the birds leave | October | February at the most |
| Twin of the garden wall, very rare | September | nobody ever kept one |
| Stone apple, pressed for juice | November | as juice for two years |
| Bishop's hat, ribbed and pale | September | Christmas, wrapped in paper |

Names differ from valley to valley.
"""

CHINESE = (
    "灯塔每天晚上六点点亮。值班的人要先看风向，再看海面的情况。如果有雾，就每隔三分钟敲一次钟！"
    "油箱里的油不能少于一半。清洁镜片时只用干布，不用水。冬天要换成更稀的油，因为厚油会让齿轮变慢。"
    "每一艘发出信号的船都要记在本子上，并且写下时间。早上太阳升起之后才可以关灯。"
    "交班的时候，两个人一起检查钟和绳子。绳子一旦磨损，当天就要更换。"
)

WITHOUT_STOPS = (
    "a list of words that never ends and has no stop because whoever wrote it was in a hurry and went on and on about "
    "ropes and knots and boats and how the tide came in while they were still talking about supper and the lamp and "
    "the dog that had run off with a shoe so that one of them had to walk home with a sock and a bucket over his foot "
    "which made everybody laugh until the rain began and they all ran under the old roof "
    + "".join(f"{number * number:x}" for number in range(400, 640))
    + " and after that line of figures nobody said anything for quite some time"
)

GOLDEN = {
    "cdc-1": {
        "sections": [
            "85c8909e-60af-8f75-bac8-c3fec0fdd42c",
            "3246a09c-1ec5-820e-99c5-05380d35345b",
            "974a5f6e-3dcc-8da9-a783-f6bb63342ccd",
        ],
        "list and code": [
            "7ad15dbf-ec94-8f22-9ba3-b6081c76b926",
            "c152f8f0-c60c-8b2d-b37c-430641c0c4c9",
            "ce88daba-b631-8e17-a0b7-c99642d142a6",
            "7562f921-77aa-82f7-b655-5e7f0d44bc5f",
        ],
        "table": [
            "ea59df3f-cd83-8670-a642-51cb2003054a",
            "bf627edb-8a5e-8aab-9c45-359d7e3d69e7",
            "5e23992b-d181-8fec-90c4-4ca1a4afb83a",
            "68348ee9-d7bd-8c96-8400-26093634b501",
        ],
        "chinese": [
            "e3dcb368-425f-8988-985c-a2128dfdbe4e",
            "0c2fea53-5dc0-8863-9f50-b404339ceb64",
            "4ef09563-90ea-8a06-9166-43d246f05fa4",
            "14009d04-ace2-875e-a32b-97c467513c9b",
            "181e372c-90d1-8612-9be1-8954e6e80c84",
        ],
        "without stops": [
            "f36dd9ee-5580-8e36-a503-08b6face0740",
            "246856d7-9327-8645-b349-a82afaff9392",
            "83ac7c16-daab-895a-b20a-bfe2c5deb519",
            "4b360430-0697-82bb-9376-86e29327f87d",
            "5e597796-8ca5-8d2e-bc0a-070194f1efd4",
            "e158e4f4-ad06-84ae-867b-e19a655d8a16",
            "46e75b3a-5077-8a47-a515-6fa5ab779a20",
            "d69907c4-2f8a-8b76-9872-409c97912121",
            "d7a2da24-2981-89a9-8fb4-b440acf23941",
            "402a7cae-fe39-8819-9dcc-53b8b967125e",
            "d5e30549-b5a2-8c4d-af86-c20779251dcb",
            "c6dc830a-6872-8312-ad00-21f517041ddb",
            "977f6bb4-b1ee-897d-b34b-74a2f1b01265",
            "50d66e2d-3881-82f6-91a9-e7702bb544c9",
            "07c7dfee-bb66-8173-b90e-20cec44012dc",
            "5aaa8eab-598c-81a3-9d40-669e7822d31a",
            "8259524c-d1fd-86b5-8d99-6153e2c1aa34",
        ],
    }
}

# Fenced code; a header row with its line of dashes; a line that a marker begins; lines up to a blank one.
BLOCK = re.compile(r"```.*?```|\|[^\n]*\n\|---[^\n]*|[-|#][^\n]*|[^\n]+(?:\n(?![-|#\n])[^\n]+)*", re.DOTALL)
KINDS: dict[str, BlockKind] = {"#": "heading", "-": "list_item", "|": "table_row", "`": "code"}


class WordTokenizer:
    """One token per ASCII word and per other character."""

    def token_ends(self, text: str) -> NDArray[np.int32]:
        return np.array([match.end() for match in re.finditer(r"[!-~]+|[^\s!-~]", text)], dtype=np.int32)


def document(text: str, title: str | None = None) -> Document:
    """Return a document of blocks parted by blank lines; list items and table rows one by one."""
    blocks = []
    for match in BLOCK.finditer(text):
        level = len(match[0]) - len(match[0].lstrip("#"))
        name = match[0].lstrip("# ") if level else None
        blocks.append(Block(KINDS.get(match[0][0], "paragraph"), match.start(), match.end(), level, name))
    return Document("markdown", "golden", text, tuple(blocks), title=title, lines=True)


def test_the_chunks_of_five_texts_change_only_with_the_version() -> None:
    """Sections, lists and code, a table, Chinese, and text without stops around a long word."""
    texts = {
        "sections": document(SECTIONS, "Lamp room"),
        "list and code": document(LIST_AND_CODE),
        "table": document(TABLE, "Fruit"),
        "chinese": document(CHINESE),
        "without stops": document(WITHOUT_STOPS),
    }
    found = {
        name: [passage.chunk_id for passage, _ in chunk(text, WordTokenizer(), SIZES)] for name, text in texts.items()
    }
    assert GOLDEN.get(CHUNKER_VERSION) == found, f"new output of {CHUNKER_VERSION}: {found}"
