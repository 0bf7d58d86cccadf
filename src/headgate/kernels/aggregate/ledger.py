"""Ledger: what is added up for each group (rows, NULLs, sums), as columns of integers.

A column is either of a step (a row per event, point or group, an absent column being zero) or of a table of
groups. In the table, the digits of a sum are one list, its first element the position of the first digit,
because which positions there are depends on the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from headgate.kernels.aggregate import digits, moments
from headgate.kernels.aggregate.call import AggregateCall
from headgate.kernels.aggregate.readings import X, Y
from headgate.model.aggregates import Accumulator, Structure, Term
from headgate.model.errors import DataError

Ints = npt.NDArray[np.int64]
Columns = dict[str, Ints]

ROWS = "rows"

# Values that no digits can express are counted apart, so that a sum is exact again when they have left.
_NAN, _HIGH, _LOW = "nan", "high", "low"


@dataclass(frozen=True)
class Measure:
    """What is added up of one argument, as the calls over it need."""

    name: str
    argument: str
    dtype: pl.DataType
    sums: tuple[Term, ...]
    distinct: bool
    distinct_sums: bool

    @staticmethod
    def of(calls: tuple[AggregateCall, ...], types: Mapping[str, pl.DataType]) -> tuple[Measure, ...]:
        """A measure for each thing that some calls read, of these types."""
        measures = []
        for number, argument in enumerate(types):
            mine = [call for call in calls if call.reads == argument]
            terms = (term for call in mine if not call.of_distinct for term in call.accumulator.terms)
            measures.append(
                Measure(
                    str(number),
                    argument,
                    types[argument],
                    sums=tuple(dict.fromkeys(terms)),
                    distinct=any(call.structure is Structure.PRESENCES for call in mine),
                    distinct_sums=any(call.of_distinct and bool(call.accumulator.terms) for call in mine),
                )
            )
        return tuple(measures)

    @property
    def nulls(self) -> str:
        return f"{self.name}.nulls"

    @property
    def presences(self) -> str:
        return f"{self.name}.distinct"

    @property
    def sum(self) -> str:
        return self.term(Term.X)

    def term(self, term: Term) -> str:
        return f"{self.name}.{term}"

    def added(self, columns: Columns) -> dict[Term, digits.Digits]:
        """The sums of the terms, from added-up columns."""
        return {term: _digits_of(columns, self.term(term)) for term in self.sums}

    def infinite(self, columns: Columns) -> Ints | None:
        """How many numbers were not finite, from added-up columns, where products are added up; None if none was."""
        return columns.get(f"{self.sum}.{_NAN}")

    @property
    def distinct_sum(self) -> str:
        return f"{self.name}.distinct_sum"

    def of_rows(self, values: pl.Series) -> Columns:
        """What rows with these values add."""
        columns: Columns = {}
        if values.null_count():
            columns[self.nulls] = values.is_null().cast(pl.Int64).to_numpy()
        if not self.sums:
            return columns
        if self.sums == (Term.X,):
            return columns | addends(values, self.sum)
        return columns | self._products(values)

    def _products(self, values: pl.Series) -> Columns:
        """What doubles, or pairs of them, add to the sums of their products."""
        paired = isinstance(values.dtype, pl.Struct)
        sides = [values.struct.field(name) for name in (X, Y)] if paired else [values]
        numbers = [side.fill_null(0.0).to_numpy() for side in sides]
        columns: Columns = {}
        finite = np.logical_and.reduce([np.isfinite(each) for each in numbers])
        if not finite.all():
            # Whatever is not finite, nothing but NaN comes of it.
            columns[f"{self.sum}.{_NAN}"] = (~finite).astype(np.int64)
        # Of a pair of which one side is NULL, the other does not count.
        counted = finite & values.is_not_null().to_numpy()
        x, y = (np.where(counted, each, 0.0) for each in (numbers[0], numbers[-1]))
        for term, parts in moments.of_terms(self.sums, x, y).items():
            columns |= {f"{self.term(term)}.{position}": part for position, part in parts.items()}
        return columns

    def of_presences(self, values: pl.Series, change: Ints) -> Columns:
        """What values add that appear (change 1) or disappear (-1)."""
        columns = {self.presences: change}
        if self.distinct_sums:
            parts = addends(values, self.distinct_sum)
            columns |= {name: part * change for name, part in parts.items()}
        return columns

    @property
    def sum_names(self) -> tuple[str, ...]:
        once_each = (self.distinct_sum,) if self.distinct_sums else ()
        return (*(self.term(term) for term in self.sums), *once_each)

    def schema(self) -> dict[str, pl.DataType]:
        """The columns of a table of groups."""
        columns: dict[str, pl.DataType] = {self.nulls: pl.Int64()}
        if self.distinct:
            columns[self.presences] = pl.Int64()
        for name in self.sum_names:
            columns[name] = pl.List(pl.Int64())
            if self.dtype.is_float() or self.dtype.is_nested():
                columns |= {f"{name}.{special}": pl.Int64() for special in (_NAN, _HIGH, _LOW)}
        return columns


def addends(values: pl.Series, name: str) -> Columns:
    """The columns whose sums make the sum called `name`; NULL adds nothing."""
    dtype = values.dtype
    columns: Columns = {}
    if isinstance(dtype, pl.Decimal):
        filled = values.fill_null(pl.Series([0]).cast(dtype).item()) if values.null_count() else values
        parts = digits.of_decimals(filled)
    elif dtype.is_float():
        numbers = values.fill_null(0).cast(pl.Float64).to_numpy()
        finite = np.isfinite(numbers)
        if not finite.all():
            specials = {_NAN: np.isnan(numbers), _HIGH: numbers == np.inf, _LOW: numbers == -np.inf}
            columns = {f"{name}.{special}": which.astype(np.int64) for special, which in specials.items()}
            numbers = np.where(finite, numbers, 0.0)
        parts = digits.of_floats(numbers)
    else:
        parts = digits.of_integers(values.cast(pl.Int64).fill_null(0).to_numpy())
    return columns | {f"{name}.{position}": part for position, part in parts.items()}


def total(columns: Columns, name: str, call: AggregateCall, dtype: pl.DataType, count: Ints) -> pl.Series:
    """SUM or AVG from the added-up columns of the sum `name` of `count` values; NULL where there are none."""
    size = count.size
    parts = _digits_of(columns, name)
    some = count > 0
    divisor = np.maximum(count, 1)
    average = call.accumulator is Accumulator.MEAN
    too_large = np.zeros(size, dtype=np.bool_)
    if isinstance(dtype, pl.Decimal):
        target = call.result_type({str(call.argument): dtype})
        assert isinstance(target, pl.Decimal)
        shape = target.precision, target.scale
        if average:
            result, too_large = digits.to_average_decimals(parts, divisor, target.scale - dtype.scale, *shape)
        else:
            result, too_large = digits.to_decimals(parts, size, *shape)
    elif dtype.is_float() or average:
        numbers = _with_specials(digits.to_floats(parts, size), columns, name)
        result = pl.Series(numbers / divisor if average else numbers)
    else:
        integers, too_large = digits.to_integers(parts, size)
        result = pl.Series(integers)
    if np.any(too_large & some):
        distinct = "DISTINCT " if call.distinct else ""
        raise DataError(
            f"{call.function}({distinct}{call.argument}) overflowed: the result does not fit its type",
            remedy="cast the argument to DOUBLE or to a DECIMAL with more digits",
        )
    return result if some.all() else pl.select(pl.when(pl.Series(some)).then(result)).to_series()


def packed(columns: Columns, measures: tuple[Measure, ...], size: int) -> dict[str, pl.Series]:
    """Columns with a row per group, as columns of the table of groups."""
    zero: Ints = np.zeros(size, dtype=np.int64)
    table = {ROWS: pl.Series(columns.get(ROWS, zero))}
    for measure in measures:
        for name, dtype in measure.schema().items():
            if dtype == pl.Int64:
                table[name] = pl.Series(columns.get(name, zero))
            else:
                table[name] = _packed_digits(_digits_of(columns, name), size)
    return table


def unpacked(table: pl.DataFrame, measures: tuple[Measure, ...], place: Ints, size: int) -> Columns:
    """Columns with `size` rows from those of a table of groups, whose rows go to the places given."""
    columns: Columns = {}
    for name in (ROWS, *(name for measure in measures for name in measure.schema())):
        if table.schema[name] == pl.Int64:
            numbers = table[name].to_numpy()
            if numbers.any():
                columns[name] = np.zeros(size, dtype=np.int64)
                columns[name][place] = numbers
        else:
            columns |= _unpacked_digits(table[name], name, place, size)
    return columns


def _digits_of(columns: Columns, name: str) -> digits.Digits:
    suffixes = {
        key.removeprefix(f"{name}."): part for key, part in columns.items() if key.startswith(f"{name}.")
    }
    return {int(suffix): part for suffix, part in suffixes.items() if suffix not in (_NAN, _HIGH, _LOW)}


def _with_specials(numbers: digits.Floats, columns: Columns, name: str) -> digits.Floats:
    names = [f"{name}.{special}" for special in (_NAN, _HIGH, _LOW)]
    if not any(special in columns for special in names):
        return numbers
    zero: Ints = np.zeros(numbers.size, dtype=np.int64)
    nan, high, low = (columns.get(special, zero) > 0 for special in names)
    numbers = np.where(high, np.inf, np.where(low, -np.inf, numbers))
    return np.where(nan | (high & low), np.nan, numbers)


def _packed_digits(parts: digits.Digits, size: int) -> pl.Series:
    first, last = (min(parts), max(parts)) if parts else (0, -1)
    rows = np.zeros((size, last - first + 2), dtype=np.int64)
    rows[:, 0] = first
    for position, part in parts.items():
        rows[:, position - first + 1] = part
    offsets = np.arange(size + 1) * rows.shape[1]
    series = pl.from_arrow(pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(rows.ravel())))
    assert isinstance(series, pl.Series)
    return series


def _unpacked_digits(lists: pl.Series, name: str, place: Ints, size: int) -> Columns:
    if not lists.len():
        return {}
    flat = lists.explode().to_numpy()
    length = lists.list.len().cast(pl.Int64).to_numpy()
    start = np.cumsum(length) - length
    row = np.repeat(np.arange(length.size), length)
    within = np.arange(flat.size) - start[row]
    digit = within > 0
    position = flat[start][row][digit] + within[digit] - 1
    columns: Columns = {}
    for value in np.unique(position).tolist():
        here = position == value
        column = np.zeros(size, dtype=np.int64)
        column[place[row[digit][here]]] = flat[digit][here]
        if column.any():
            columns[f"{name}.{value}"] = column
    return columns
