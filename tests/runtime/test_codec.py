"""Frames as bytes: what comes out is what went in, whatever the numbers."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from headgate.model.batch import BORN, DIES
from headgate.model.time import BEGINNING, NEVER
from headgate.runtime.spark.codec import decode, encode

_TYPES: dict[pl.DataType, tuple[int, int]] = {
    pl.Int8(): (-(2**7), 2**7 - 1),
    pl.Int16(): (-(2**15), 2**15 - 1),
    pl.Int32(): (-(2**31), 2**31 - 1),
    pl.Int64(): (-(2**63), 2**63 - 1),
    pl.UInt64(): (0, 2**64 - 1),
    pl.Date(): (-(2**31), 2**31 - 1),
    pl.Datetime("us", "UTC"): (-(2**63), 2**63 - 1),
    pl.Datetime("us"): (-(2**63), 2**63 - 1),
    pl.Duration("us"): (-(2**63), 2**63 - 1),
}


@st.composite
def _columns(draw: st.DrawFn, rows: int) -> pl.Series:
    """Numbers of a type around some base, as near to each other as it happens, some of them missing."""
    dtype = draw(st.sampled_from(list(_TYPES)))
    least, most = _TYPES[dtype]
    base = draw(st.integers(least, most))
    reach = draw(st.sampled_from([0, 1, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**64]))
    numbers = st.integers(base, min(most, base + reach))
    some = draw(st.lists(st.one_of(numbers, st.just(base + min(reach, most - base))), min_size=1, max_size=4))
    gaps = draw(st.booleans())
    values = [None if gaps and place % 7 == 3 else some[place % len(some)] for place in range(rows)]
    physical = pl.Series(
        values, dtype=pl.Int32 if dtype == pl.Date else pl.UInt64 if dtype == pl.UInt64 else pl.Int64
    )
    return physical.cast(dtype)


@given(st.data(), st.sampled_from([0, 1, 63, 64, 200]), st.booleans())
def test_numbers_come_back(data: st.DataObject, rows: int, compress: bool) -> None:
    columns = [
        data.draw(_columns(rows)).alias(f"c{number}") for number in range(data.draw(st.integers(1, 4)))
    ]
    frame = pl.DataFrame(columns)
    assert_frame_equal(decode(encode(frame, compress=compress)), frame)


@given(
    st.lists(st.tuples(st.integers(BEGINNING, NEVER), st.integers(BEGINNING, NEVER)), min_size=1, max_size=3)
)
def test_lifetimes_come_back(some: list[tuple[int, int]]) -> None:
    born, dies = ([each[side] for each in some] * 64 for side in (0, 1))
    frame = pl.DataFrame({"x": ["a"] * len(born), BORN: born, DIES: dies})
    assert_frame_equal(decode(encode(frame)), frame)


def test_other_types_pass_through() -> None:
    frame = pl.DataFrame(
        {
            "t": ["a", None, ""] * 50,
            "x": [0.5, None, float("inf")] * 50,
            "b": [True, None, False] * 50,
            "l": [[1]] * 150,
        }
    )
    assert_frame_equal(decode(encode(frame, compress=True)), frame)


def test_a_column_that_is_the_same_everywhere_weighs_nothing() -> None:
    one, many = (pl.DataFrame({"n": [7] * rows}) for rows in (100, 100_000))
    assert len(encode(many)) - len(encode(one)) < 100
    assert_frame_equal(decode(encode(many)), many)


def test_instants_weigh_half_and_deaths_nothing() -> None:
    born = pl.int_range(1_700_000_000_000_000, 1_700_000_000_000_000 + 100_000 * 100, 100, eager=True)
    frame = pl.DataFrame({BORN: born, DIES: born + 60_000_000})
    assert len(encode(frame)) < 4.1 * frame.height
