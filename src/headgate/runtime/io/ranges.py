"""Ranges of time: the years 1 to 9999, which Spark SQL has and every Arrow array of days or instants may leave."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.model.time import DAY, FIRST_DAY, LAST_DAY

FIRST_INSTANT, LAST_INSTANT = FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1


def outside_calendar(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    """A mask of the days or instants of an array that lie outside the calendar; None if none does."""
    days = pa.types.is_date32(array.type)
    numbers = array.view(pa.int32() if days else pa.int64())
    first, last = (FIRST_DAY, LAST_DAY) if days else (FIRST_INSTANT, LAST_INSTANT)
    return outside(numbers, first, last)


def outside(numbers: pa.Array, first: int, last: int) -> npt.NDArray[np.bool_] | None:
    """A mask of the numbers that are below `first` or above `last`; None if there are none."""
    extremes = pc.min_max(numbers)
    smallest, largest = extremes["min"].as_py(), extremes["max"].as_py()
    if smallest is None or (smallest >= first and largest <= last):
        return None
    beyond = pc.or_(pc.less(numbers, first), pc.greater(numbers, last)).fill_null(False)
    mask: npt.NDArray[np.bool_] = beyond.to_numpy(zero_copy_only=False)
    return mask


def without(array: pa.Array, failed: npt.NDArray[np.bool_] | None) -> pa.Array:
    """The array with NULL where the mask is set."""
    return array if failed is None else pc.if_else(pa.array(failed), None, array)
