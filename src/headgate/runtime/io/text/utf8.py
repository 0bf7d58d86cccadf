"""UTF-8: whether bytes are text, asked of many values at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def is_utf8(text: pa.Array) -> bool:
    """Whether every value of an array of text is valid, which Arrow does not ask by itself."""
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def one_text(data: bytes) -> pa.Array:
    """A block of bytes as an array of one text, without a copy."""
    return _array(data, np.array([0, len(data)], np.int64))


def texts(data: bytes, starts: npt.NDArray[np.int64]) -> pa.Array:
    """A block of bytes as an array of the texts that begin at `starts`, without a copy."""
    return _array(data, np.append(starts, len(data)))


def _array(data: bytes, offsets: npt.NDArray[np.int64]) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), offsets.size - 1, buffers)


def not_utf8(text: pa.Array) -> npt.NDArray[np.bool_]:
    """A mask of the values that are not UTF-8.

    A stretch of values that is fine is done with, and any other is halved: few bad values cost few questions.
    """
    failed = np.zeros(len(text), np.bool_)
    pending = [(0, len(text))]
    while pending:
        start, count = pending.pop()
        if is_utf8(text.slice(start, count)):
            continue
        if count == 1:
            failed[start] = True
        else:
            pending += [(start, count // 2), (start + count // 2, count - count // 2)]
    return failed
