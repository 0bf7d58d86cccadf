"""Results: the value of every call at every point of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from headgate.kernels.aggregate.bag import Bag, Histories
from headgate.kernels.aggregate.call import AggregateCall, Function
from headgate.kernels.aggregate.coding import as_series, decode, joined, order_keys, taken
from headgate.kernels.aggregate.extremes import least_cover
from headgate.kernels.aggregate.frequent import most_frequent
from headgate.kernels.aggregate.ledger import ROWS, Columns, Measure, total
from headgate.kernels.aggregate.points import Points
from headgate.kernels.aggregate.ranks import quantile
from headgate.kernels.aggregate.tally import Entries

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
    is asked for, what covers the points, unless the bag knows.
    """

    points: Points
    groups: Ints
    totals: Columns
    measures: Mapping[str, Measure]
    bags: Mapping[str, Bag]
    held: Mapping[str, Entries]
    histories: Mapping[str, Histories]
    covers: Mapping[tuple[str, bool], Covers]

    def column(self, call: AggregateCall) -> pl.Series:
        """The value of a call at every point."""
        if call.argument is None:
            return pl.Series(self.totals[ROWS])
        measure = self.measures[call.argument]
        zero: Ints = np.zeros(self.points.size, dtype=np.int64)
        if call.of_distinct:
            count = self.totals.get(measure.presences, zero)
        else:
            count = self.totals[ROWS] - self.totals.get(measure.nulls, zero)
        match call.function:
            case Function.COUNT:
                return pl.Series(count)
            case Function.SUM | Function.AVG:
                name = measure.distinct_sum if call.of_distinct else measure.sum
                return total(self.totals, name, call, measure.dtype, count)
            case Function.MIN | Function.MAX:
                largest = call.function == Function.MAX
                return self._covers(call.argument, largest).extreme(
                    self.points, largest, count, measure.dtype
                )
            case Function.MEDIAN | Function.QUANTILE:
                histories = self.histories[call.argument]
                return quantile(self.held[call.argument], histories, count, call.share, measure.dtype)
            case Function.TOP:
                assert isinstance(call.parameter, int)
                histories = self.histories[call.argument]
                return most_frequent(self.held[call.argument], histories, call.parameter, measure.dtype)

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
