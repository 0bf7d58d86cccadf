"""Numbers in another type: as long as each comes back as it was, or as long as the types alone promise that."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from headgate.kernels.expressions.dtypes import polars_type
from headgate.runtime.io.literals import Converted

_EXACT_BITS = {16: 11, 32: 24, 64: 53}
"""By the width of a floating-point type, up to how many bits it holds all whole numbers."""


def is_number(found: pa.DataType) -> bool:
    """Whether values of a type, of any sign and width, are numbers."""
    kinds = pa.types
    return bool(kinds.is_integer(found) or kinds.is_floating(found) or kinds.is_decimal(found))


def widens(found: pa.DataType, declared: pa.DataType) -> bool:
    """Whether every number of one type is also one of another."""
    kinds = pa.types
    if kinds.is_integer(found):
        bits = found.bit_width - kinds.is_signed_integer(found)
        if kinds.is_floating(declared):
            return bool(bits <= _EXACT_BITS[declared.bit_width])
        if kinds.is_decimal(declared):
            return bool(len(str(1 << bits)) <= declared.precision - declared.scale)
        return bool(kinds.is_integer(declared) and bits < declared.bit_width)
    if kinds.is_floating(found):
        return bool(kinds.is_floating(declared) and found.bit_width <= declared.bit_width)
    return bool(
        kinds.is_decimal(declared)
        and found.scale <= declared.scale
        and found.precision - found.scale <= declared.precision - declared.scale
    )


def same_number(array: pa.Array, declared: pa.DataType) -> Converted:
    """Numbers that come back as they were."""
    if array.type == declared:
        return array, None
    kinds = pa.types
    # Elsewhere Arrow rounds without a word.
    if kinds.is_integer(array.type) or (kinds.is_decimal(array.type) and not kinds.is_floating(declared)):
        try:
            return array.cast(declared), None
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
    series = _series(array)
    converted = series.cast(polars_type(declared), strict=False)
    back = converted.cast(series.dtype, strict=False)
    return _where(converted, declared, (back == series) | series.is_null())


def nearest(array: pa.Array, declared: pa.DataType) -> Converted:
    """Numbers as the nearest of a floating-point type; one beyond its range has none."""
    series = _series(array)
    converted = series.cast(polars_type(declared), strict=False)
    return _where(converted, declared, converted.is_finite() | ~series.is_finite() | series.is_null())


def _where(converted: pl.Series, declared: pa.DataType, kept: pl.Series) -> Converted:
    """A converted column, NULL and failed where it is not kept."""
    kept = kept.fill_null(value=False)
    if kept.all():
        return converted.to_arrow().cast(declared), None
    held = converted.to_frame().select(pl.when(pl.lit(kept)).then(pl.col(converted.name))).to_series()
    return held.to_arrow().cast(declared), (~kept).to_numpy()


def _series(array: pa.Array) -> pl.Series:
    series = pl.from_arrow(array)
    assert isinstance(series, pl.Series)
    return series.alias("value")
