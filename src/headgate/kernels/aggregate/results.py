"""Results: the value of every call at every point of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import numpy.typing as npt
import polars as pl

from headgate.kernels.aggregate import coupons, digits, moments
from headgate.kernels.aggregate.bag import Bag, Histories
from headgate.kernels.aggregate.call import AggregateCall
from headgate.kernels.aggregate.coding import as_series, decode, joined, order_keys, taken
from headgate.kernels.aggregate.extremes import least_cover
from headgate.kernels.aggregate.frequent import most_frequent
from headgate.kernels.aggregate.ledger import ROWS, Columns, Measure, total
from headgate.kernels.aggregate.lists import collected
from headgate.kernels.aggregate.points import Points
from headgate.kernels.aggregate.ranks import at_rank, quantile, rounded_to
from headgate.kernels.aggregate.readings import value_of
from headgate.kernels.aggregate.tally import Entries
from headgate.model.aggregates import Accumulator, Structure, Term

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Covers:
    """Values and the points that they cover, from `low` to just before `high`; the values are codes."""

    low: Ints
    high: Ints
    value: pl.Series

    def extreme(self, points: Points, largest: bool, count: Ints, dtype: pl.DataType) -> pl.Series:
        """The smallest, or largest, value at each point; NULL where `count` says that there is none."""
        keys = order_keys(self.value, largest)
        found = least_cover(self.low, self.high, keys, points.size)
        found = ~found if largest else found
        if self.value.dtype != pl.Int64:
            # Ranks lead back to the values: any value of the rank will do. Rank 0 is nobody's.
            holder = np.full(keys.size + 1, keys.size)
            holder[~keys if largest else keys] = np.arange(keys.size)
            index = holder[np.where(count > 0, found, 0)]
            return as_series(taken(pl.concat([self.value, self.value.clear(1)]), index))
        chosen = pl.select(pl.when(pl.Series(count > 0)).then(pl.Series(found))).to_series()
        return decode(chosen, dtype)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All that is known of a step when its results are computed.

    `totals` are the ledger's columns at the points. By argument there are the bag before the step, what it
    held of the step's groups (if some call needs that) and the histories; by argument and whether the largest
    is asked for, what covers the points, unless the bag knows. `schema` has the types of the input's columns.
    """

    points: Points
    groups: Ints
    totals: Columns
    measures: Mapping[str, Measure]
    bags: Mapping[str, Bag]
    held: Mapping[str, Entries]
    histories: Mapping[str, Histories]
    covers: Mapping[tuple[str, bool], Covers]
    schema: Mapping[str, pl.DataType]

    def column(self, call: AggregateCall) -> pl.Series:
        """The value of a call at every point."""
        if call.reads is None:
            return pl.Series(self.totals[ROWS])
        measure = self.measures[call.reads]
        zero: Ints = np.zeros(self.points.size, dtype=np.int64)
        if call.structure is Structure.PRESENCES:
            count = self.totals.get(measure.presences, zero)
        else:
            count = self.totals[ROWS] - self.totals.get(measure.nulls, zero)
        found = from_sums(call, measure, self.totals, count)
        return self._from_values(call, call.reads, count) if found is None else found

    def _from_values(self, call: AggregateCall, reads: str, count: Ints) -> pl.Series:
        """The value of a call that needs more than sums, of `count` values."""
        assert call.argument is not None
        read, argument = self.measures[reads].dtype, self.schema[call.argument]
        match call.accumulator:
            case Accumulator.LEAST | Accumulator.GREATEST:
                largest = call.function.is_largest
                extreme = self._covers(reads, largest).extreme(self.points, largest, count, read)
                return value_of(call, extreme, argument)
            case Accumulator.QUANTILE:
                return quantile(self.held[reads], self.histories[reads], count, call.share, read)
            case Accumulator.RANK:
                found = at_rank(self.held[reads], self.histories[reads], count, call.share, read)
                return rounded_to(found, argument)
            case Accumulator.FREQUENT:
                assert isinstance(call.parameter, int)
                return most_frequent(self.held[reads], self.histories[reads], call.parameter, read)
            case Accumulator.LIST | Accumulator.SET:
                once_each = call.accumulator is Accumulator.SET
                held, histories = self.held[reads], self.histories[reads]
                return collected(held, histories, call, read, argument, once_each=once_each)
            case Accumulator.COUPONS:
                return pl.Series(coupons.estimate(count))
            case (
                Accumulator.COUNT
                | Accumulator.SUM
                | Accumulator.MEAN
                | Accumulator.SAMPLE_VARIANCE
                | Accumulator.POPULATION_VARIANCE
                | Accumulator.SAMPLE_DEVIATION
                | Accumulator.POPULATION_DEVIATION
                | Accumulator.SAMPLE_COVARIANCE
                | Accumulator.POPULATION_COVARIANCE
                | Accumulator.CORRELATION
                | Accumulator.ALL_TRUE
                | Accumulator.SOME_TRUE
            ):
                raise AssertionError(f"{call.function} follows from sums")
            case never:
                assert_never(never)

    def _covers(self, argument: str, largest: bool) -> Covers:
        known = self.covers.get((argument, largest))
        return self._covers_of_bag(argument, largest) if known is None else known

    def _covers_of_bag(self, argument: str, largest: bool) -> Covers:
        """What changes, while it is there, and of the rest the one extreme value in each group."""
        histories = self.histories[argument]
        pairs = histories.pairs
        pair, low, high, _ = histories.spans()
        changing = Entries(self.groups[pairs.group], pairs.codes, pairs.count)
        rest = self.bags[argument].tally.extremes(self.groups, changing, largest)
        group = np.searchsorted(self.groups, rest.group)
        return Covers(
            np.concatenate([low, self.points.first[group]]),
            np.concatenate([high, self.points.first[group + 1]]),
            as_series(joined([taken(pairs.codes, pair), rest.codes])),
        )


def from_sums(call: AggregateCall, measure: Measure, columns: Columns, count: Ints) -> pl.Series | None:
    """The value of a call over `count` values from the added-up columns; None if it does not follow from them."""
    match call.accumulator:
        case Accumulator.COUNT:
            return pl.Series(count)
        case Accumulator.SUM | Accumulator.MEAN:
            name = measure.distinct_sum if call.of_distinct else measure.sum
            return total(columns, name, call, measure.dtype, count)
        case Accumulator.ALL_TRUE | Accumulator.SOME_TRUE:
            true = digits.to_integers(measure.added(columns)[Term.X], count.size)[0]
            holds = true == count if call.accumulator is Accumulator.ALL_TRUE else true > 0
            return pl.select(pl.when(pl.Series(count > 0)).then(pl.Series(holds))).to_series()
        case Accumulator.SAMPLE_VARIANCE:
            found = moments.variance(measure.added(columns), count, sample=True, root=False)
        case Accumulator.POPULATION_VARIANCE:
            found = moments.variance(measure.added(columns), count, sample=False, root=False)
        case Accumulator.SAMPLE_DEVIATION:
            found = moments.variance(measure.added(columns), count, sample=True, root=True)
        case Accumulator.POPULATION_DEVIATION:
            found = moments.variance(measure.added(columns), count, sample=False, root=True)
        case Accumulator.SAMPLE_COVARIANCE:
            found = moments.covariance(measure.added(columns), count, sample=True)
        case Accumulator.POPULATION_COVARIANCE:
            found = moments.covariance(measure.added(columns), count, sample=False)
        case Accumulator.CORRELATION:
            found = moments.correlation(measure.added(columns), count)
        case (
            Accumulator.LEAST
            | Accumulator.GREATEST
            | Accumulator.QUANTILE
            | Accumulator.RANK
            | Accumulator.FREQUENT
            | Accumulator.LIST
            | Accumulator.SET
            | Accumulator.COUPONS
        ):
            return None
        case never:
            assert_never(never)
    odd = measure.infinite(columns)
    if odd is None or not odd.any():
        return found
    return pl.select(
        pl.when(pl.Series(odd > 0) & found.is_not_null()).then(np.nan).otherwise(found)
    ).to_series()
