"""`headgate bench kernels`: time per step against the size of the state, rows per second, cost of result words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from sqlglot import exp

from headgate.kernels.aggregate import Aggregate, AggregateCall, Function
from headgate.kernels.distinct.distinct import Distinct
from headgate.kernels.emit.emit import Istream
from headgate.kernels.filter import Filter
from headgate.kernels.join.join import Join, JoinInput
from headgate.kernels.join.negation import Negation
from headgate.kernels.join.semi_join import SemiJoin
from headgate.kernels.kernel import Kernel
from headgate.kernels.project import Project
from headgate.kernels.state.structure import Structure
from headgate.kernels.window.time_window import Range, Rows, Window
from headgate.lab.bench.measure import Driver, Level, MakeBatches, levels
from headgate.lab.bench.result_words import Cost, compare
from headgate.lab.reproduce.claims import REPORT
from headgate.model.batch import Batch
from headgate.model.errors import DisagreementError
from headgate.model.scalar import Scalar, column
from headgate.model.time import BEGINNING, Clock

STATE_SIZES = (100_000, 1_000_000, 10_000_000)
BATCH, LARGE_BATCH = 10_000, 100_000
_LEFT = {"l.k": pl.Int64(), "l.v": pl.Int64()}
_RIGHT = {"r.k": pl.Int64(), "r.v": pl.Int64()}


@dataclass(frozen=True)
class Growth:
    """Time per step of one kernel at growing state sizes."""

    kernel: str
    levels: tuple[Level, ...]

    @property
    def ratio(self) -> float:
        """Mean time per step with the largest state over that with the smallest."""
        return self.levels[-1].mean / self.levels[0].mean


@dataclass(frozen=True)
class Throughput:
    """Rows per second of one kernel in large batches."""

    kernel: str
    rows_per_second: float


@dataclass(frozen=True)
class KernelBench:
    """All that the bench found."""

    growth: tuple[Growth, ...]
    throughput: tuple[Throughput, ...]
    polars_rows_per_second: float
    join_rows_per_second: float
    words: tuple[Cost, ...]

    @property
    def join_share(self) -> float:
        return self.join_rows_per_second / self.polars_rows_per_second

    def as_dict(self) -> dict[str, Any]:
        return {
            "bench": "kernels",
            "batch": BATCH,
            "growth": [
                {
                    "kernel": each.kernel,
                    "levels": [
                        {"state_rows": level.state_rows, "mean_s": level.mean, "median_s": level.median}
                        for level in each.levels
                    ],
                    "ratio": each.ratio,
                }
                for each in self.growth
            ],
            "large_batch": LARGE_BATCH,
            "throughput": [
                {"kernel": each.kernel, "rows_per_s": each.rows_per_second} for each in self.throughput
            ],
            "join": {
                "rows_per_s": self.join_rows_per_second,
                "polars_rows_per_s": self.polars_rows_per_second,
                "share": self.join_share,
            },
            "result_words": [
                {
                    "word": each.word,
                    "rows": each.rows,
                    "ticks": each.ticks,
                    "said": each.said,
                    "ns_per_row": each.nanoseconds_per_row,
                }
                for each in self.words
            ],
        }


def _keys(sent: int, rows: int, distinct: int, salt: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.random.default_rng((sent, salt)).integers(0, distinct, rows)


def window_rows(window: int, distinct: int, *, inputs: int = 1) -> MakeBatches:
    """Batches of rows one microsecond apart that live for `window` microseconds, keys uniform."""

    def make(sent: int, rows: int) -> tuple[list[Batch], int]:
        batches = []
        for number in range(inputs):
            prefix = "lr"[number]
            frame = pl.DataFrame(
                {
                    f"{prefix}.k": _keys(sent, rows, distinct, number),
                    f"{prefix}.v": np.arange(sent, sent + rows),
                    "_at": np.arange(sent, sent + rows),
                }
            )
            at = pl.col("_at")
            batch = Batch.of(frame, born=at, dies=at + window)
            batches.append(Batch(batch.frame.drop("_at")))
        return batches, sent + rows - 1

    return make


def window_join() -> Join:
    """The join of two time windows on one integer column."""
    sides = tuple(JoinInput(schema, False, Structure.RUNS) for schema in (_LEFT, _RIGHT))
    return Join(sides, (((0, "l.k"), (1, "r.k")),), (), (0, 1))


def growth(sizes: tuple[int, ...] = STATE_SIZES, steps: int = 200) -> tuple[Growth, ...]:
    """A window join and a DISTINCT at a fixed batch size while the state grows."""
    join = levels(
        lambda size: Driver(window_join(), window_rows(size, 2 * size, inputs=2)),
        [size // 2 for size in sizes],
        batch=BATCH // 2,
        steps=steps,
    )
    distinct = levels(
        lambda size: Driver(Distinct(_LEFT), window_rows(size, size)), list(sizes), batch=BATCH, steps=steps
    )
    return Growth("join", tuple(join)), Growth("distinct", tuple(distinct))


def throughput(steps: int = 12) -> tuple[Throughput, ...]:
    """Rows per second of each kernel, 100,000 rows a step, over a window of a million rows."""
    window = 1_000_000
    predicate = Scalar(exp.GT(this=column("l.v"), expression=exp.Literal.number(0)), pa.bool_())
    doubled = Scalar(exp.Add(this=column("l.v"), expression=column("l.k")), pa.int64())
    plain, pair = window_rows(window, 100_000), window_rows(window, 1_000_000, inputs=2)
    kernels: dict[str, tuple[Callable[[], Kernel[Any]], MakeBatches, int]] = {
        "window RANGE": (lambda: Window(Range(window), _LEFT), plain, 1),
        "window ROWS": (lambda: Window(Rows(window), _LEFT), _stream(100_000), 1),
        "filter": (lambda: Filter(predicate), plain, 1),
        "project": (lambda: Project((("s", doubled),)), plain, 1),
        "join": (window_join, pair, 2),
        "semijoin": (lambda: SemiJoin(_LEFT, _RIGHT, (("l.k", "r.k"),), None), pair, 2),
        "negation": (lambda: Negation(_LEFT, _RIGHT, (("l.k", "r.k"),), None), pair, 2),
        "distinct": (lambda: Distinct({"l.k": pl.Int64()}), _only_keys(plain), 1),
        "aggregate COUNT, SUM": (lambda: _aggregate(Function.COUNT, Function.SUM), plain, 1),
        "aggregate MIN, MAX": (lambda: _aggregate(Function.MIN, Function.MAX), plain, 1),
        "istream": (lambda: Istream(_LEFT), plain, 1),
    }
    found = []
    for name, (kernel, make, inputs) in kernels.items():
        driver = Driver(kernel(), make)
        driver.fill(window, LARGE_BATCH)
        rows = LARGE_BATCH // inputs
        spent = sum(driver.step(rows) for _ in range(steps))
        found.append(Throughput(name, steps * rows * inputs / spent))
    return tuple(found)


def _stream(distinct: int) -> MakeBatches:
    return window_rows(2**40, distinct)


def _only_keys(make: MakeBatches) -> MakeBatches:
    def keys(sent: int, rows: int) -> tuple[list[Batch], int]:
        batches, upto = make(sent, rows)
        return [Batch(batch.frame.drop("l.v")) for batch in batches], upto

    return keys


def _aggregate(*functions: Function) -> Aggregate:
    calls = tuple(AggregateCall(function, "l.v", function.name) for function in functions)
    return Aggregate(_LEFT, ("l.k",), calls, endings=False)


def against_polars(rows: int = 4_000_000, window: int = 600_000) -> tuple[float, float]:
    """Rows per second of one Polars join over all the data, and of the join kernel in 100,000-row batches.

    Both find the pairs with equal keys whose lives overlap; the same data, the same number of results.
    """
    each = rows // 2
    make = window_rows(window, each, inputs=2)
    (left, right), _ = make(0, each)
    begun = perf_counter()
    joined = left.frame.join(right.frame, left_on="l.k", right_on="r.k", suffix="_r")
    overlap = (pl.col("_born") < pl.col("_dies_r")) & (pl.col("_born_r") < pl.col("_dies"))
    expected = joined.filter(overlap).height
    polars_seconds = perf_counter() - begun
    kernel = window_join()
    state, found, spent = kernel.initial(), 0, 0.0
    step, after = LARGE_BATCH // 2, BEGINNING
    for start in range(0, each, step):
        batches = [Batch(side.frame.slice(start, step)) for side in (left, right)]
        upto = start + step - 1
        begun = perf_counter()
        state, output = kernel.advance(state, batches, Clock(after, upto, 0))
        spent += perf_counter() - begun
        found, after = found + output.height, upto
    if found != expected:
        raise DisagreementError(
            f"the kernel found {found} pairs where Polars found {expected}", remedy=REPORT
        )
    return rows / polars_seconds, rows / spent


def run(*, quick: bool = False, on_progress: Callable[[str], None] = lambda what: None) -> KernelBench:
    """The whole bench; `quick` with a tenth of the rows, to try it."""
    on_progress("join against Polars")
    sizes = tuple(size // 10 for size in STATE_SIZES) if quick else STATE_SIZES
    polars_rate, join_rate = against_polars(*((400_000, 60_000) if quick else (4_000_000, 600_000)))
    on_progress("time per step while the state grows")
    grown = growth(sizes, 10 if quick else 200)
    on_progress("rows per second of every kernel")
    rates = throughput(4 if quick else 12)
    on_progress("result words over an aggregate")
    return KernelBench(grown, rates, polars_rate, join_rate, compare(quick=quick))
