"""Readings: what a call reads of rows, as one column whatever its arguments are.

| reading | column |
|---|---|
| VALUE | the argument |
| REAL, REAL_PAIR | one double, or a struct of two |
| VALUE_BY, VALUE_AT | a struct of codes, what orders first: its order is that of the rows |
| BUCKET | doubles with eight significant binary digits |
| COUPON | the cell of a sketch (`coupons`) |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import numpy as np
import polars as pl

from headgate.kernels.aggregate.call import AggregateCall
from headgate.kernels.aggregate.coding import code_type, decode, encode
from headgate.kernels.aggregate.coupons import coupons
from headgate.model.aggregates import Reading

X, Y = "x", "y"
_BY, _VALUE = "by", "value"

# Of the 52 binary digits that a double has after its first.
_DROPPED = np.int64(45)


def read_type(call: AggregateCall, schema: Mapping[str, pl.DataType]) -> pl.DataType:
    """The type of what a call reads, given those of the columns."""
    assert call.argument is not None
    value = schema[call.argument]
    match call.reading:
        case Reading.VALUE:
            return value
        case Reading.REAL | Reading.BUCKET:
            return pl.Float64()
        case Reading.REAL_PAIR:
            return pl.Struct({X: pl.Float64(), Y: pl.Float64()})
        case Reading.VALUE_BY | Reading.VALUE_AT:
            assert call.second is not None
            return pl.Struct({_BY: code_type(schema[call.second]), _VALUE: code_type(value)})
        case Reading.COUPON:
            return pl.Int64()
        case never:
            assert_never(never)


def read(call: AggregateCall, frame: pl.DataFrame) -> pl.Series:
    """What a call reads of rows; NULL where it reads nothing."""
    assert call.argument is not None
    value = frame[call.argument]
    if call.reading is Reading.VALUE:
        return value
    match call.reading:
        case Reading.REAL:
            return value.cast(pl.Float64)
        case Reading.BUCKET:
            return _bucket(value.cast(pl.Float64))
        case Reading.COUPON:
            return _where(value.is_not_null(), coupons(_codes(value)))
        case Reading.REAL_PAIR | Reading.VALUE_BY | Reading.VALUE_AT:
            assert call.second is not None
            second = frame[call.second]
        case never:
            assert_never(never)
    match call.reading:
        case Reading.REAL_PAIR:
            pair = {X: value.cast(pl.Float64), Y: second.cast(pl.Float64)}
            whole = value.is_not_null() & second.is_not_null()
        case Reading.VALUE_BY:
            pair, whole = {_BY: _codes(second), _VALUE: _codes(value)}, second.is_not_null()
        case Reading.VALUE_AT:
            pair = {_BY: _codes(second), _VALUE: _codes(value)}
            whole = value.is_not_null() & second.is_not_null()
        case never:
            assert_never(never)
    return _where(whole, pl.DataFrame(pair).to_struct())


def value_of(call: AggregateCall, found: pl.Series, dtype: pl.DataType) -> pl.Series:
    """The argument, of type `dtype`, in what was read of rows; NULL where that is."""
    if call.reading in (Reading.VALUE_BY, Reading.VALUE_AT):
        return decode(found.struct.field(_VALUE), dtype)
    return found


def _where(given: pl.Series, values: pl.Series) -> pl.Series:
    return values if given.all() else pl.select(pl.when(given).then(values)).to_series()


def _codes(values: pl.Series) -> pl.Series:
    """The codes of values, NULL where these are."""
    if not values.null_count() or not values.dtype.is_float():
        return encode(values)
    return _where(values.is_not_null(), encode(values.fill_null(0.0)))


def _bucket(values: pl.Series) -> pl.Series:
    """The nearest doubles with eight significant binary digits: each lies within 2**-8 of its value."""
    numbers = values.fill_null(0.0).to_numpy()
    bits = numbers.view(np.int64)
    half = np.int64(1) << (_DROPPED - 1)
    rounded = (((bits + half) >> _DROPPED) << _DROPPED).view(np.float64)
    # What is not finite stays, and what rounds to infinity is cut off instead.
    cut = ((bits >> _DROPPED) << _DROPPED).view(np.float64)
    near = np.where(np.isfinite(rounded), rounded, cut)
    return _where(values.is_not_null(), pl.Series(np.where(np.isfinite(numbers), near, numbers)))
