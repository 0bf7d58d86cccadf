"""Lists: the values that each group holds at each point, in order, as arrays."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from headgate.kernels.aggregate.bag import Histories
from headgate.kernels.aggregate.call import AggregateCall
from headgate.kernels.aggregate.coding import as_series, decode, joined, order_keys, taken
from headgate.kernels.aggregate.readings import value_of
from headgate.kernels.aggregate.sorted_pairs import ranges
from headgate.kernels.aggregate.tally import Entries


def collected(
    held: Entries,
    histories: Histories,
    call: AggregateCall,
    read: pl.DataType,
    argument: pl.DataType,
    *,
    once_each: bool,
) -> pl.Series:
    """At each point, an array of the group's values in ascending order, each as often as it is there or once.

    `held` is what the step's groups hold before it; `read` and `argument` are the types of what the call reads and
    of its values. Costs as much as the arrays are long.
    """
    points, pairs = histories.points, histories.pairs
    pair, low, high, count = histories.spans()
    rest = held.take(~pairs.find(held.group, held.codes)[1])
    low = np.concatenate([low, points.first[rest.group]])
    high = np.concatenate([high, points.first[rest.group + 1]])
    count = np.concatenate([count, rest.count])
    codes = as_series(joined([taken(pairs.codes, pair), rest.codes]))
    point, owner = ranges(low, high)
    if not once_each:
        times = count[owner]
        point, owner = np.repeat(point, times), np.repeat(owner, times)
    order = np.lexsort((order_keys(codes, largest=False)[owner], point))
    offsets = np.searchsorted(point[order], np.arange(points.size + 1))
    values = value_of(call, decode(as_series(taken(codes, owner[order])), read), argument)
    arrays = pa.LargeListArray.from_arrays(pa.array(offsets), values.to_arrow())
    series = pl.from_arrow(arrays)
    assert isinstance(series, pl.Series)
    return series
