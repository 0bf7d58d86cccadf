"""Sums in digits are exact: they are compared with Python's fractions and decimals."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.kernels.aggregate import digits
from headgate.kernels.aggregate.ranks import rounded_to

finite = st.floats(allow_nan=False, allow_infinity=False)
EXACT = Context(prec=200)


def added(parts: list[digits.Digits]) -> digits.Digits:
    total: digits.Digits = {}
    for part in parts:
        for position, digit in part.items():
            total[position] = total.get(position, 0) + digit
    return total


@given(st.lists(finite, min_size=1, max_size=8))
def test_a_sum_of_doubles_is_the_exact_one_rounded_once(values: list[float]) -> None:
    total = added([digits.of_floats(np.array([value])) for value in values])
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        rounded = float(exact)
    except OverflowError:
        rounded = math.inf if exact > 0 else -math.inf
    assert digits.to_floats(total, 1).tolist() == [rounded]


@given(st.lists(finite, min_size=1, max_size=8), st.randoms())
def test_what_is_taken_back_leaves_nothing(values: list[float], random: object) -> None:
    parts = [digits.of_floats(np.array([value])) for value in values]
    back = [{position: -digit for position, digit in part.items()} for part in parts]
    both = parts + back
    random.shuffle(both)  # type: ignore[attr-defined]
    assert all(not digit.any() for digit in added(both).values())


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6))
def test_a_sum_of_integers_knows_whether_it_fits(values: list[int]) -> None:
    total, too_large = digits.to_integers(
        added([digits.of_integers(np.array([value])) for value in values]), 1
    )
    exact = sum(values)
    assert bool(too_large[0]) == (not -(2**63) <= exact < 2**63)
    assert too_large[0] or total.tolist() == [exact]
    floats = digits.to_floats(added([digits.of_integers(np.array([value])) for value in values]), 1)
    assert floats.tolist() == [float(exact)]


@given(
    st.lists(st.integers(1 - 10**38, 10**38 - 1), min_size=1, max_size=6),
    st.integers(1, 2**31 - 1),
    st.integers(0, 4),
)
def test_decimals_are_added_and_divided_as_on_paper(values: list[int], count: int, shift: int) -> None:
    column = pl.Series([Decimal(value) for value in values], dtype=pl.Decimal(38, 0))
    total = added([digits.of_decimals(column.slice(place, 1)) for place in range(len(values))])
    exact = sum(values)
    (plain,), (too_large,) = digits.to_decimals(total, 1, 38, 0)
    assert too_large == (abs(exact) >= 10**38)
    assert too_large or plain == exact

    (mean,), (too_large,) = digits.to_average_decimals(total, np.array([count]), shift, 38, shift)
    quotient = EXACT.divide(Decimal(exact), Decimal(count))
    rounded = quotient.quantize(Decimal(1).scaleb(-shift), ROUND_HALF_UP, EXACT)
    assert too_large == (rounded.copy_abs() >= Decimal(10**38).scaleb(-shift, EXACT))
    assert too_large or mean == rounded


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("precision", range(1, 39))
def test_decimals_fit_up_to_their_last_digit(precision: int, sign: int) -> None:
    column = pl.Series([Decimal(sign * (10**precision - 1)), Decimal(sign)], dtype=pl.Decimal(38, 0))
    largest, one = digits.of_decimals(column.slice(0, 1)), digits.of_decimals(column.slice(1, 1))
    (plain,), (too_large,) = digits.to_decimals(largest, 1, precision, 0)
    assert (plain, too_large) == (column[0], False)
    _, (too_large,) = digits.to_decimals(added([largest, one]), 1, precision, 0)
    assert too_large


@pytest.mark.parametrize("count", [4, 7, 2_000_000_000])
def test_what_lies_beyond_both_words_of_a_decimal_is_too_large(count: int) -> None:
    # 2**128 is less than four times the largest value, so what is left of the sum in both words may fit.
    column = pl.Series([Decimal(86 * 10**36)], dtype=pl.Decimal(38, 0))
    sums = {position: digit * count for position, digit in digits.of_decimals(column).items()}
    _, (too_large,) = digits.to_decimals(sums, 1, 38, 0)
    assert too_large


@pytest.mark.parametrize("exponent", [-20, -60, -1_000])
def test_what_lies_far_below_decides_a_tie(exponent: int) -> None:
    # 2**53 + 1 lies half-way between two doubles; alone it goes to the even one, which is below.
    values = [2.0**53, 1.0, 2.0**exponent]
    total = added([digits.of_floats(np.array([value])) for value in values])
    assert digits.to_floats(total, 1).tolist() == [2.0**53 + 2]


@pytest.mark.parametrize("exponent", [95, 127])
def test_the_last_bit_of_all_decides_a_tie(exponent: int) -> None:
    values = [2.0**exponent, 2.0 ** (exponent - 53), 1.0]
    total = added([digits.of_floats(np.array([value])) for value in values])
    assert digits.to_floats(total, 1).tolist() == [2.0**exponent + 2.0 ** (exponent - 52)]


def test_zeros_need_no_digits() -> None:
    assert digits.of_floats(np.zeros(3)) == {}
    assert digits.of_integers(np.zeros(3, dtype=np.int64)) == {}
    assert digits.to_floats({}, 2).tolist() == [0.0, 0.0]


def test_small_integers_need_one_digit() -> None:
    assert set(digits.of_integers(np.array([-5, 7, -(2**31), 2**31 - 1]))) == {0}
    assert set(digits.of_decimals(pl.Series([Decimal(-5), Decimal(7)], dtype=pl.Decimal(38, 0)))) == {0}


@given(
    st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**31 - 1)), min_size=1, max_size=5)
)
def test_sums_times_factors_are_exact(pairs: list[tuple[int, int]]) -> None:
    values, factors = (np.array(each, dtype=np.int64) for each in zip(*pairs, strict=True))
    found = digits.times(digits.of_integers(values), factors)
    totals = [
        sum(int(part[place]) << (32 * position) for position, part in found.items())
        for place in range(len(pairs))
    ]
    assert totals == [value * factor for value, factor in pairs]


def test_doubles_are_rounded_to_the_nearest_number_of_a_type() -> None:
    found = rounded_to(pl.Series([1e30, -1e30, 2.6]), pl.Int64()).to_list()
    assert found == [2**63 - 1024, -(2**63), 3]
    assert rounded_to(pl.Series([300.0, -300.0]), pl.Int8()).to_list() == [127, -128]


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(1, 38).flatmap(lambda digits: st.tuples(st.just(digits), st.integers(0, digits))),
)
def test_doubles_are_rounded_to_decimals_within_their_digits(number: float, digits: tuple[int, int]) -> None:
    precision, scale = digits
    unit = Fraction(1, 10**scale)
    largest = 10 ** (precision - scale) - unit
    found = Fraction(rounded_to(pl.Series([number]), pl.Decimal(precision, scale)).item())
    expected = max(-largest, min(largest, Fraction(number)))
    assert abs(found - expected) <= max(unit, abs(expected) / 2**51)
