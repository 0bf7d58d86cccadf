"""`headgate reproduce joins`: the join orders and algorithms of the Windows document, chapter 5.

Figure 5.2 compares orders under eight algorithms, Figures 5.3 and 5.4 compare algorithms under one order while the
interval of expiry or evaluation grows. A hash table with few buckets, its functions plain remainders, is a join on
the remainder with the equality left to the residual; nested loops are one bucket. `runs` is what Headgate does.

The document joins row by row. A batch at a time, windows of a hundred rows cost nothing, so rates and distinct counts
are `_SCALE` times those of Table 5.5: each row still meets as many partners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from headgate.kernels.join.join import Join as JoinKernel
from headgate.lab.generators.dataset import START
from headgate.lab.generators.synthetic import TABLE_5_5, StreamShape, Synthetic
from headgate.lab.plots import figure
from headgate.lab.reproduce.claims import Claim, require_same
from headgate.lab.reproduce.full_windows import seconds_per_thousand_rows
from headgate.lab.reproduce.traffic import slices
from headgate.model.time import SECOND
from headgate.optimize.estimate import join_inputs
from headgate.optimize.join_order import order_cost
from headgate.optimize.statistics import Statistics, StreamStatistics
from headgate.physical.compile import compile_query
from headgate.physical.graph import KernelStep, OperatorGraph
from headgate.physical.program import Program
from headgate.plan.nodes import Join
from headgate.runtime.data import frame_of
from headgate.runtime.local.engine import LocalRun, Stop
from headgate.session import Query, Session

ALGORITHMS = ("eager", "eager, lazy expiry", "lazy", "lazy, restore")
BUCKETS: Mapping[str, int | None] = {
    "nested loops": 1,
    "2 buckets": 2,
    "5 buckets": 5,
    "10 buckets": 10,
    "runs": None,
}
INTERVALS = (10, 20, 50)
WINDOW = 100
"""Seconds, as are intervals."""
_BEST = (1, 0, 2, 3)
_ORDERS = (_BEST, (0, 1, 2, 3), (1, 2, 3, 0))
_SCALE = 3
_SHAPES = tuple(StreamShape(each.name, each.rate * _SCALE, each.distinct * _SCALE) for each in TABLE_5_5)
_STEP = 10


@dataclass(frozen=True)
class JoinTime:
    """Seconds per 1,000 rows of one algorithm with one order, and the model's cost of that order.

    `interval` is the time between expiries of an eager join and between evaluations of a lazy one.
    """

    state: str
    algorithm: str
    interval: int
    order: str
    predicted: float
    seconds: float
    results: int


@dataclass(frozen=True)
class JoinsReproduction:
    """All measured joins, and the document's claims judged by them."""

    orders: tuple[JoinTime, ...]
    intervals: tuple[JoinTime, ...]
    claims: tuple[Claim, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "reproduce": "joins",
            "orders": [vars(each) for each in self.orders],
            "intervals": [vars(each) for each in self.intervals],
            "claims": [each.as_dict() for each in self.claims],
        }


def reproduce(
    seconds: int = 180, *, on_progress: Callable[[str], None] = lambda what: None
) -> JoinsReproduction:
    """Measures orders of Table 5.5 under each algorithm, and algorithms under the best order for each interval."""
    data = Synthetic(_SHAPES, steps=round(seconds * sum(shape.rate for shape in _SHAPES)), seed=3)
    tables = {shape.name: data[shape.name].table() for shape in _SHAPES}
    costs = _costs(_query("eager", 0, None))

    def time(state: str, algorithm: str, interval: int, order: tuple[int, ...] | None) -> JoinTime:
        on_progress(f"{state}, {algorithm}, every {interval}")
        query = _query(algorithm, interval, BUCKETS[state])
        chosen = order or max(costs, key=lambda each: costs[each])
        spent, results = _measure(query, chosen, algorithm, interval, BUCKETS[state], tables)
        name = " ".join(_SHAPES[index].name for index in chosen)
        return JoinTime(state, algorithm, interval, name, costs[chosen], spent, results)

    orders = tuple(
        time(state, algorithm, 10, order)
        for state in ("nested loops", "10 buckets", "runs")
        for algorithm in ALGORITHMS
        for order in (*_ORDERS, None)
    )
    intervals = tuple(
        time(state, algorithm, interval, _BEST)
        for state in ("nested loops", "2 buckets", "5 buckets", "runs")
        for algorithm in ALGORITHMS
        for interval in ((0,) if algorithm == "eager" else INTERVALS)
    )
    for algorithm, interval in dict.fromkeys(
        (each.algorithm, each.interval) for each in (*orders, *intervals)
    ):
        same = [
            e.results for e in (*orders, *intervals) if (e.algorithm, e.interval) == (algorithm, interval)
        ]
        require_same(same, f"{algorithm}, every {interval} s")
    return JoinsReproduction(orders, intervals, tuple(_claims(orders, intervals)))


def _query(algorithm: str, interval: int, buckets: int | None) -> Query:
    session = Session()
    for shape in _SHAPES:
        session.sql(f"CREATE STREAM {shape.name} (ts TIMESTAMP, a BIGINT, id BIGINT) TIMESTAMP BY ts")
    session.statistics = Statistics(
        {s.name.casefold(): StreamStatistics(rate=s.rate, distinct={"a": s.distinct}) for s in _SHAPES},
        True,
    )
    slide = f" SLIDE {interval} SECONDS" if algorithm.startswith("lazy") else ""
    emit = "ISTREAM RESTORE" if algorithm == "lazy, restore" else "ISTREAM"
    names = [shape.name for shape in _SHAPES]
    rest = f"a % {buckets}" if buckets else "0"
    inputs = ", ".join(
        f"(SELECT a, id, {rest} AS bucket FROM {name} [RANGE {WINDOW} SECONDS{slide}]) AS {name}"
        for name in names
    )
    equal = " AND ".join(f"{names[0]}.a = {name}.a" for name in names[1:])
    if buckets:
        equal += "".join(f" AND {names[0]}.bucket = {name}.bucket" for name in names[1:])
    ids = ", ".join(f"{name}.id AS {name}_id" for name in names)
    query = session.sql(f"SELECT {emit}({ids}) FROM {inputs} WHERE {equal}")
    assert query is not None
    return query


def _costs(query: Query) -> dict[tuple[int, ...], float]:
    facts = query.optimized.best
    join = next(node for node in facts.plan.walk() if isinstance(node, Join))
    inputs = join_inputs(join, [facts.estimates.edges[member] for member in join.members])
    return {order: order_cost(inputs, order) for order in permutations(range(len(inputs)))}


def _measure(
    query: Query,
    order: tuple[int, ...],
    algorithm: str,
    interval: int,
    buckets: int | None,
    tables: Mapping[str, pa.Table],
) -> tuple[float, int]:
    """Seconds per 1,000 rows once the windows are full, and all results."""
    compiled = compile_query(query.planned)
    lazily = max(1, interval // _STEP) if algorithm == "eager, lazy expiry" else None
    compiled = replace(compiled, graph=_with(compiled.graph, order, lazily, buckets))
    last = max(table["ts"][-1].cast(pa.int64()).as_py() for table in tables.values())
    cuts = np.arange(START, last + _STEP * SECOND, _STEP * SECOND)
    streams = []
    for stream in compiled.streams:
        table = tables[stream.name]
        times = table["ts"].cast(pa.int64()).to_numpy()
        streams.append((stream, slices(frame_of(table, stream.columns), times, cuts)))
    run = LocalRun(Program((compiled,)), streams, stop=Stop.LAST_ROW)
    spent = seconds_per_thousand_rows(run, START + WINDOW * SECOND)
    return spent, run.states[compiled.name].metrics.rows_out


def _with(
    graph: OperatorGraph, order: tuple[int, ...], lazy_steps: int | None, buckets: int | None
) -> OperatorGraph:
    """The graph with its join in another order, with lazy expiry, or finding partners by bucket only."""

    def changed(kernel: JoinKernel) -> JoinKernel:
        kernel = replace(kernel, order=order)
        if lazy_steps is not None:
            kernel = replace(kernel, expiry="lazy", lazy_steps=lazy_steps)
        if buckets is None:
            return kernel
        of_values, *of_buckets = kernel.equalities
        columns = [pl.col(name) for _, name in of_values]
        residual = tuple(one == other for one, other in combinations(columns, 2))
        return replace(kernel, equalities=tuple(of_buckets) if buckets > 1 else (), residual=residual)

    steps = tuple(
        replace(step, kernel=changed(step.kernel))
        if isinstance(step, KernelStep) and isinstance(step.kernel, JoinKernel)
        else step
        for step in graph.steps
    )
    return replace(graph, steps=steps)


def _claims(orders: Sequence[JoinTime], intervals: Sequence[JoinTime]) -> Iterator[Claim]:
    for state in dict.fromkeys(each.state for each in orders):
        mine = [each for each in orders if each.state == state]
        best, worst = mine[:: len(_ORDERS) + 1], mine[len(_ORDERS) :: len(_ORDERS) + 1]
        ratios = [slow.seconds / quick.seconds for quick, slow in zip(best, worst, strict=True)]
        predicted = worst[0].predicted / best[0].predicted
        yield Claim(
            f"Figure 5.2, {state}: the worst order costs more than the best, by less than predicted",
            f"less than {predicted:.1f}×",
            ", ".join(f"{ratio:.1f}×" for ratio in ratios),
            min(ratios) > 1.0 and max(ratios) <= predicted,
        )
    times = {(each.state, each.algorithm, each.interval): each for each in intervals}

    def seconds(state: str, algorithm: str, interval: int) -> float:
        return times[state, algorithm, interval].seconds

    first, last = INTERVALS[0], INTERVALS[-1]
    for figure_name, state in (("5.3", "nested loops"), ("5.4", "2 buckets"), ("5.4", "5 buckets")):
        eager, lazy = seconds(state, "eager", 0), seconds(state, "lazy", last)
        restore = seconds(state, "lazy, restore", last)
        yield Claim(
            f"Figure {figure_name}, {state}: lazy evaluation is cheaper than eager, restoring lies between",
            "lazy < restore < eager",
            f"{lazy * 1e3:.0f} < {restore * 1e3:.0f} < {eager * 1e3:.0f} ms",
            lazy < restore < eager,
        )
    loops, five = (seconds(state, "eager", 0) for state in ("nested loops", "5 buckets"))
    yield Claim("Figure 5.4: more buckets are faster", "faster", f"{loops / five:.1f}×", five < loops)
    short, long = (seconds("nested loops", "lazy", interval) for interval in (first, last))
    yield Claim(
        "Figure 5.3: lazy evaluation gets cheaper as its interval grows",
        "cheaper",
        f"{short / long:.1f}×",
        long < short,
    )
    runs = seconds("runs", "eager", 0)
    yield Claim("Headgate's runs beat five buckets", "", f"{five / runs:.1f}×", runs < five)


def draw(found: JoinsReproduction, path: Path) -> None:
    """Orders as bars beside each other, then the cost of each algorithm against the interval."""
    with figure(path, rows=1, columns=3, width=16.0) as axes:
        bars, *lines = axes.flat
        chosen = [each for each in found.orders if each.state == "nested loops"]
        for place, algorithm in enumerate(ALGORITHMS):
            mine = [each for each in chosen if each.algorithm == algorithm]
            for number, each in enumerate(mine):
                bars.bar(
                    place + number * 0.2,
                    each.seconds / mine[0].seconds,
                    width=0.18,
                    color=f"C{number}",
                    label=each.order if place == 0 else None,
                )
        bars.set(
            title="orders, nested loops: time over the best order's",
            xticks=[place + 0.3 for place in range(len(ALGORITHMS))],
            xticklabels=[name.replace(", ", ",\n") for name in ALGORITHMS],
        )
        bars.legend(fontsize=8, frameon=False)
        for panel, states in zip(lines, (("nested loops",), ("2 buckets", "5 buckets", "runs")), strict=True):
            for state in states:
                for algorithm in ALGORITHMS:
                    mine = [e for e in found.intervals if (e.state, e.algorithm) == (state, algorithm)]
                    panel.plot(
                        [each.interval for each in mine],
                        [1e3 * each.seconds for each in mine],
                        marker="o",
                        label=f"{state}: {algorithm}",
                    )
            panel.set(title=", ".join(states), xlabel="interval", ylabel="ms per 1,000 rows", ylim=(0, None))
            panel.legend(fontsize=7, frameon=False)
