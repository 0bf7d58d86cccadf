"""What an aggregate should say, in plain Python: the contents at an instant, aggregated row by row."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import polars as pl

from headgate.kernels.aggregate import Aggregate, AggregateCall, AggregateState, Function
from headgate.kernels.aggregate.coding import encode
from headgate.kernels.aggregate.coupons import coupons, estimate
from headgate.kernels.state.removed import POSITION
from headgate.model.batch import BORN, DIES, LIFETIME_SCHEMA, SIGN, Batch
from headgate.model.time import NEVER, Clock

Payload = tuple[Any, ...]

EXACT = Context(prec=100)
"""Decimals with more digits than any column has."""


@dataclass(frozen=True)
class Row:
    """A signed lifetime of a payload."""

    payload: Payload
    born: int
    dies: int = NEVER
    sign: int = 1


def run(
    kernel: Aggregate,
    rows: Sequence[Row],
    *,
    cuts: Iterable[int] = (),
    until: int = 100,
    start: int | None = 0,
    epoch: int = 0,
    restoring: bool = False,
) -> tuple[list[Row], AggregateState]:
    """What the kernel says over clock steps that end at the cuts and at `until`, and its state then.

    The kernel hears of all instants as so long after `epoch`, or before it.
    """
    opened = None if start is None else start - epoch
    stops = [cut - epoch for cut in cuts]
    moved = [_moved(row, -epoch) for row in rows]
    said, state = _run(kernel, moved, stops, -1 - epoch, until - epoch, opened, restoring)
    return [_moved(row, epoch) for row in said], state


def _moved(row: Row, by: int) -> Row:
    return Row(row.payload, row.born + by, row.dies if row.dies == NEVER else row.dies + by, row.sign)


def _run(
    kernel: Aggregate,
    rows: Sequence[Row],
    cuts: Iterable[int],
    after: int,
    until: int,
    start: int | None,
    restoring: bool,
) -> tuple[list[Row], AggregateState]:
    state = kernel.initial()
    said: list[Row] = []
    known: dict[str, pl.DataFrame] = {}
    for upto in sorted({*(cut for cut in cuts if cut < until), until}):
        clock = Clock(after, upto, None if start is None or start > upto else start)
        batch = batch_of(kernel.schema, [row for row in rows if after < row.born <= upto])
        if restoring:
            state = kernel.restore(dict(state.chunks()))
        state, output = kernel.advance(state, [batch], clock)
        output.check(clock)
        assert dict(output.frame.schema) == {**kernel.output_schema, **LIFETIME_SCHEMA}
        for name, frame in state.chunks().items():
            assert known.setdefault(name, frame).equals(frame), f"chunk {name} has other contents than before"
        runs = [frame for frame in state.chunks().values() if frame.columns != [POSITION]]
        assert state.rows == sum(frame.height for frame in runs)
        said.extend(rows_of(output))
        after = upto
    return said, state


def batch_of(schema: Mapping[str, pl.DataType], rows: Sequence[Row]) -> Batch:
    columns = {
        name: pl.Series(name, [row.payload[place] for row in rows], dtype, strict=False)
        for place, (name, dtype) in enumerate(schema.items())
    }
    lifetimes = {
        BORN: [row.born for row in rows],
        DIES: [row.dies for row in rows],
        SIGN: [row.sign for row in rows],
    }
    lives = {name: pl.Series(name, lifetimes[name], dtype) for name, dtype in LIFETIME_SCHEMA.items()}
    return Batch(pl.DataFrame(columns | lives))


def rows_of(batch: Batch) -> list[Row]:
    return [Row(comparable(row[:-3]), *row[-3:]) for row in batch.frame.rows()]


def contents(rows: Iterable[Row], instant: int) -> Counter[Payload]:
    """The payloads alive at an instant, with their multiplicities."""
    counts: Counter[Payload] = Counter()
    for row in rows:
        if row.born <= instant < row.dies:
            counts[comparable(row.payload)] += row.sign
    assert all(count >= 0 for count in counts.values()), counts
    return +counts


def expected(kernel: Aggregate, rows: Sequence[Row], instant: int, opens: int = 0) -> Counter[Payload]:
    """The contents of the output at an instant."""
    names = list(kernel.schema)
    groups: dict[Payload, list[Payload]] = {}
    if not kernel.keys and instant >= opens:
        groups[()] = []
    for payload, count in contents(rows, instant).items():
        key = tuple(payload[names.index(key)] for key in kernel.keys)
        if kernel.keys or instant >= opens:
            groups.setdefault(key, []).extend([payload] * count)
    return Counter(
        comparable((*key, *(_call(kernel, call, members) for call in kernel.calls)))
        for key, members in groups.items()
    )


def comparable(value: Any) -> Any:
    """The value in a form whose equality is that of SQL rows: NaN is one value, -0.0 is 0.0."""
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case float():
            return value + 0.0
        case dict():
            return tuple(comparable(part) for part in value.values())
        case list() | tuple():
            return tuple(comparable(part) for part in value)
        case _:
            return value


def _call(kernel: Aggregate, call: AggregateCall, members: Sequence[Payload]) -> Any:
    if call.argument is None:
        return len(members)
    place = list(kernel.schema).index(call.argument)
    if call.second is not None:
        pairs = [(member[list(kernel.schema).index(call.second)], member[place]) for member in members]
        return _of_pairs(call, [pair for pair in pairs if pair[0] is not None])
    values = [member[place] for member in members if member[place] is not None]
    if call.distinct:
        values = list(dict.fromkeys(values))
    if call.function == Function.COUNT:
        return len(values)
    if call.function == Function.COLLECT_SET:
        return sorted(set(values), key=_rank)
    if call.function == Function.APPROX_COUNT_DISTINCT:
        cells = coupons(encode(pl.Series(_plain(values), dtype=kernel.schema[call.argument], strict=False)))
        return int(estimate(np.array([cells.n_unique()]))[0])
    if not values:
        return None
    dtype = kernel.schema[call.argument]
    if dtype.is_float():
        values = [math.nan if value == "NaN" else value for value in values]
    match call.function:
        case Function.SUM if dtype.is_float():
            return _float_sum(values)
        case Function.SUM if isinstance(dtype, pl.Decimal):
            return _decimal_sum(values)
        case Function.SUM:
            return sum(values)
        case Function.AVG if isinstance(dtype, pl.Decimal):
            mean = EXACT.divide(_decimal_sum(values), Decimal(len(values)))
            return mean.quantize(Decimal(1).scaleb(-min(38, dtype.scale + 4)), ROUND_HALF_UP, EXACT)
        case Function.AVG:
            return (_float_sum(values) if dtype.is_float() else float(sum(values))) / len(values)
        case Function.BOOL_AND:
            return all(values)
        case Function.BOOL_OR:
            return any(values)
        case Function.VAR_POP | Function.VAR_SAMP:
            return _variance(values, sample=call.function == Function.VAR_SAMP)
        case Function.STDDEV_POP | Function.STDDEV_SAMP:
            found = _variance(values, sample=call.function == Function.STDDEV_SAMP)
            return None if found is None else math.sqrt(found)
        case Function.APPROX_PERCENTILE:
            ordered = sorted(map(_bucket, values), key=_rank)
            found = ordered[max(math.ceil(len(ordered) * call.share) - 1, 0)]
            return found if dtype.is_float() else int(found)
        case Function.MIN | Function.ANY_VALUE:
            return min(values, key=_rank)
        case Function.MAX:
            return max(values, key=_rank)
        case Function.MEDIAN | Function.QUANTILE:
            return _quantile(sorted(map(float, values), key=_rank), call.share)
        case Function.TOP:
            counts = Counter(comparable(values)).items()
            best = sorted(counts, key=lambda pair: (-pair[1], _rank(pair[0])))
            return best[: int(call.parameter or 0)]
        case _:
            raise AssertionError(call)


def _of_pairs(call: AggregateCall, pairs: Sequence[tuple[Any, Any]]) -> Any:
    """Calls of two arguments, over pairs of the second, which is never NULL, and the first."""
    ordered = sorted(pairs, key=lambda pair: (_rank(pair[0]), pair[1] is not None, _rank(pair[1])))
    whole = [pair for pair in ordered if pair[1] is not None]
    match call.function:
        case Function.MIN_BY | Function.FIRST:
            return ordered[0][1] if ordered else None
        case Function.MAX_BY | Function.LAST:
            return ordered[-1][1] if ordered else None
        case Function.COLLECT_LIST:
            return [value for _, value in whole]
        case Function.COVAR_POP | Function.COVAR_SAMP | Function.CORR:
            sample = call.function != Function.COVAR_POP
            if len(whole) < (2 if sample else 1):
                return None
            x, y = ([float(pair[side]) for pair in whole] for side in (1, 0))
            if not all(map(math.isfinite, (*x, *y))):
                return math.nan
            number = float(len(whole))
            if call.function != Function.CORR:
                return _spread(x, y) / (number * (number - 1) if sample else number * number)
            alone = _spread(x, x), _spread(y, y)
            if not all(alone):
                return math.nan
            found = _spread(x, y) / math.sqrt(alone[0]) / math.sqrt(alone[1])
            return found if math.isnan(found) else min(1.0, max(-1.0, found))
        case _:
            raise AssertionError(call)


def _variance(values: Sequence[Any], *, sample: bool) -> float | None:
    numbers, count = [float(value) for value in values], float(len(values))
    if sample and count < 2:
        return None
    if not all(map(math.isfinite, numbers)):
        return math.nan
    return _spread(numbers, numbers) / (count * (count - 1) if sample else count * count)


def _spread(x: Sequence[float], y: Sequence[float]) -> float:
    """n·Σxy − Σx·Σy, rounded once."""
    a, b = [Fraction(each) for each in x], [Fraction(each) for each in y]
    exact = len(a) * sum(map(operator.mul, a, b)) - sum(a) * sum(b)
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _bucket(value: Any) -> float:
    """The nearest number of eight significant binary digits; half-way, the one farther from zero."""
    number = math.nan if value == "NaN" else float(value)
    if not math.isfinite(number) or not number:
        return number
    fraction, exponent = math.frexp(abs(number))
    return math.copysign(math.ldexp(math.floor(fraction * 256 + 0.5), exponent - 8), number)


def _plain(values: Sequence[Any]) -> list[Any]:
    return [math.nan if value == "NaN" else value for value in values]


def _decimal_sum(values: Sequence[Decimal]) -> Decimal:
    return reduce(EXACT.add, values)


def _float_sum(values: Sequence[float]) -> float:
    if not all(map(math.isfinite, values)):
        return sum(value for value in values if not math.isfinite(value))
    return float(sum(map(Fraction, values)))


def _rank(value: Any) -> Any:
    """Where a value stands in order: NaN above all numbers."""
    if value == "NaN" or (isinstance(value, float) and math.isnan(value)):
        return (1, 0)
    return (0, value)


def _quantile(values: Sequence[float], share: float) -> float:
    place = (len(values) - 1) * share
    low, high = math.floor(place), math.ceil(place)
    if low == high or values[low] == values[high]:
        return values[low]
    return (high - place) * values[low] + (place - low) * values[high]
