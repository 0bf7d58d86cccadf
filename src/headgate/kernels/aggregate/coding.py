"""Coding: argument values as state keeps them, so that comparing codes is comparing values as Spark does.

Numbers, dates, times and booleans become 64-bit integers in the same order: NaN above all numbers, -0.0 as
0.0. What does not fit (strings, long decimals) stays itself; Polars compares it. Codes are never NULL.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from headgate.kernels.aggregate import digits

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Codes = Ints | pl.Series
"""Codes as integers, or values that are their own codes."""

_LONGEST_INTEGER = 18
_MAGNITUDE_BITS = np.int64(2**63 - 1)


def code_type(dtype: pl.DataType) -> pl.DataType:
    """The type of the codes of values of a type."""
    if dtype.is_float() or dtype.is_temporal() or dtype.is_integer() or dtype == pl.Boolean:
        return pl.Int64()
    if isinstance(dtype, pl.Decimal) and dtype.precision <= _LONGEST_INTEGER:
        return pl.Int64()
    return dtype


def encode(values: pl.Series) -> pl.Series:
    """The codes of values, none of them NULL."""
    dtype = values.dtype
    if code_type(dtype) != pl.Int64:
        return values
    if dtype.is_float():
        return pl.Series(_ordered_bits(values.cast(pl.Float64).to_numpy()))
    return values.to_physical().cast(pl.Int64)


def decode(codes: pl.Series, dtype: pl.DataType) -> pl.Series:
    """The values behind codes; NULL where the code is."""
    if code_type(dtype) != pl.Int64:
        return codes
    if dtype.is_float():
        values = pl.Series(_from_ordered_bits(codes.fill_null(0).to_numpy())).cast(dtype)
    elif isinstance(dtype, pl.Decimal):
        values = digits.decimals_of_integers(codes.fill_null(0).to_numpy(), dtype.precision, dtype.scale)
    else:
        return codes.cast(dtype)
    if not codes.null_count():
        return values
    return pl.select(pl.when(codes.is_not_null()).then(values)).to_series()


def searchable(codes: pl.Series) -> Codes:
    """Codes as NumPy sees them if they are integers."""
    return codes.to_numpy() if codes.dtype == pl.Int64 else codes


def as_series(codes: Codes) -> pl.Series:
    return pl.Series(codes) if isinstance(codes, np.ndarray) else codes


def taken(codes: Codes, index: Ints) -> Codes:
    """The codes at some places."""
    if isinstance(codes, np.ndarray):
        return codes[index]
    return codes.gather(pl.Series(index.astype(np.uint32)))


def joined(pieces: Sequence[Codes]) -> Codes:
    """Codes of one kind, one piece after the other."""
    arrays = [piece for piece in pieces if isinstance(piece, np.ndarray)]
    if arrays:
        return np.concatenate(arrays)
    return pl.concat([as_series(piece) for piece in pieces])


def less(left: Codes, right: Codes) -> Mask:
    """Row by row, whether the left code lies before the right one."""
    if isinstance(left, pl.Series) and left.dtype.is_nested():
        # Polars ranks structs and does not compare them.
        keys = order_keys(pl.concat([left, as_series(right)]), largest=False)
        return keys[: left.len()] < keys[left.len() :]
    return np.asarray(left < right, dtype=np.bool_)


def same(left: Codes, right: Codes) -> Mask:
    """Row by row, whether two codes are equal."""
    return np.asarray(left == right, dtype=np.bool_)


def order_keys(codes: pl.Series, largest: bool) -> Ints:
    """Integers in the order of the codes, or in the reverse order if the largest matters most.

    Comparable within one call only: values that are their own codes are ranked among one another.
    """
    keys = codes.to_numpy() if codes.dtype == pl.Int64 else codes.rank("dense").cast(pl.Int64).to_numpy()
    return ~keys if largest else keys


def _ordered_bits(values: npt.NDArray[np.float64]) -> Ints:
    plain = np.where(np.isnan(values), np.nan, values + 0.0)
    bits = plain.view(np.int64)
    # The bits of negative numbers grow towards minus infinity.
    return np.where(bits < 0, bits ^ _MAGNITUDE_BITS, bits)


def _from_ordered_bits(codes: Ints) -> npt.NDArray[np.float64]:
    return np.where(codes < 0, codes ^ _MAGNITUDE_BITS, codes).view(np.float64)
