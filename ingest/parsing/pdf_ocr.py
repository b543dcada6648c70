"""Text of pages that are pictures, by rapidocr: offline, with the models of its wheel. Needs the extra ``ocr``.

Source: PP-OCRv6 (small), which knows some fifty languages in Latin letters, Chinese and Japanese. The two models are
named by their paths, since rapidocr would fetch one that it does not find. Its third, which turns lines that it takes
for upside down, stays off: it turned upright ones of 200 dpi, and cost a tenth of the words of a page.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import rapidocr
from numpy.typing import NDArray

from .pdf_columns import Box, lines_of, read_columns

__all__ = ["in_reading_order", "read_picture"]

MODELS = Path(rapidocr.__file__).parent / "models"
# One thread, since the pool has a worker for each core; one line at a time, since six, the default, only take memory.
PARAMETERS: dict[str, object] = {
    "Global.log_level": "critical",
    "Global.use_cls": False,
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    "Det.model_path": str(MODELS / "PP-OCRv6_det_small.onnx"),
    "Rec.model_path": str(MODELS / "PP-OCRv6_rec_small.onnx"),
    "Rec.rec_batch_num": 1,
}
# What the runtime says when it runs out of memory; it has no error of its own for that.
OUT_OF_MEMORY = ("bad_alloc", "Failed to allocate", "Insufficient memory")


def read_picture(picture: NDArray[np.uint8], pixels_per_point: float) -> str:
    """Return the text in a picture of a page (height, width, BGR), line by line; empty if there is none.

    Equal pictures give equal text on one machine. Raises ``MemoryError``.
    """
    try:
        found = _engine()(picture)
    except Exception as error:
        if any(words in str(error) for words in OUT_OF_MEMORY):
            raise MemoryError from error
        raise
    if found.boxes is None or found.txts is None:
        return ""
    height = picture.shape[0]
    texts = []
    for corners, text in zip(found.boxes, found.txts, strict=True):
        (left, top), (right, bottom) = np.min(corners, axis=0), np.max(corners, axis=0)
        edges = (left, height - bottom, right, height - top)
        texts.append((Box(*(float(edge) / pixels_per_point for edge in edges)), str(text)))
    return in_reading_order(texts)


def in_reading_order(texts: Sequence[tuple[Box, str]]) -> str:
    """Return texts as they are read: lines from the top of the page, columns of prose one after the other."""

    def text_in(around: Box) -> str:
        """Return the texts whose middle is in a box, from the left."""
        inside = [
            (box.left, text)
            for box, text in texts
            if around.left <= (box.left + box.right) / 2 <= around.right
            and around.bottom <= (box.bottom + box.top) / 2 <= around.top
        ]
        return " ".join(text for _, text in sorted(inside))

    boxes = [box for box, _ in texts]
    text = "\n".join(" ".join(text_in(box) for box in line) for line in lines_of(boxes))
    return read_columns(text, boxes, text_in)


@cache
def _engine() -> rapidocr.RapidOCR:
    return rapidocr.RapidOCR(params=PARAMETERS)
