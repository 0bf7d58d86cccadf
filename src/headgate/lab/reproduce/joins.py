"""`headgate reproduce joins`: the join orders and algorithms of the Windows document, chapter 5 (Figures 5.2 to 5.4).

The document's nested loops are not built: every join here probes sorted runs. Eager evaluation with eager or lazy
expiry is the join kernel's own choice; lazy evaluation (with and without restoring short-lived results) is SLIDE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from time import process_time
from typing import Any

from headgate.kernels.join import Join as JoinKernel
from headgate.lab.generators.synthetic import TABLE_5_5, Synthetic
from headgate.lab.plots import figure
from headgate.lab.reproduce.claims import Claim
from headgate.optimize.estimate import join_inputs
from headgate.optimize.join_order import order_cost
from headgate.optimize.statistics import Statistics, StreamStatistics
from headgate.physical.graph import KernelStep, OperatorGraph
from headgate.physical.lower import lower
from headgate.plan.nodes import Join
from headgate.runtime.local.data import frame_of
from headgate.runtime.local.engine import LocalRun, RunnableQuery
from headgate.runtime.local.start import used_streams
from headgate.safety.gate import admit
from headgate.session import Query, Session

ALGORITHMS = ("eager", "eager, lazy expiry", "lazy", "lazy, restore")
_STEP_ROWS = 500


@dataclass(frozen=True)
class JoinTime:
    """Seconds per 1,000 rows of one algorithm with one order, and the model's cost of that order."""

    algorithm: str
    order: str
    predicted: float
    seconds: float
    results: int


@dataclass(frozen=True)
class JoinsReproduction:
    """All measured joins, and the document's claims judged by them."""

    times: tuple[JoinTime, ...]
    claims: tuple[Claim, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "reproduce": "joins",
            "times": [vars(each) for each in self.times],
            "claims": [each.as_dict() for each in self.claims],
        }


def reproduce(steps: int = 60_000) -> JoinsReproduction:
    """Measures the best, the heuristic's first, the all-the-way-up and the worst order of Table 5.5."""
    data = Synthetic(TABLE_5_5, steps=steps, seed=3)
    tables = {shape.name: data[shape.name].table() for shape in TABLE_5_5}
    times: list[JoinTime] = []
    for algorithm in ALGORITHMS:
        query = _query(algorithm)
        costs = _costs(query)
        ranked = sorted(costs, key=lambda order: costs[order])
        for order in dict.fromkeys((ranked[0], (0, 1, 2, 3), (1, 2, 3, 0), ranked[-1])):
            seconds, results = _measure(query, order, algorithm, tables)
            name = " ".join(TABLE_5_5[index].name for index in order)
            times.append(JoinTime(algorithm, name, costs[order], seconds, results))
    return JoinsReproduction(tuple(times), tuple(_claims(times)))


def _query(algorithm: str) -> Query:
    session = Session()
    for shape in TABLE_5_5:
        session.sql(f"CREATE STREAM {shape.name} (ts TIMESTAMP, a BIGINT, id BIGINT) TIMESTAMP BY ts")
    session.statistics = Statistics(
        {s.name.casefold(): StreamStatistics(rate=s.rate, distinct={"a": s.distinct}) for s in TABLE_5_5},
        True,
    )
    slide = " SLIDE 10 SECONDS" if algorithm.startswith("lazy") else ""
    emit = "ISTREAM RESTORE" if algorithm == "lazy, restore" else "ISTREAM"
    names = [shape.name for shape in TABLE_5_5]
    inputs = ", ".join(f"{name} [RANGE 100 SECONDS{slide}]" for name in names)
    equal = " AND ".join(f"{names[0]}.a = {name}.a" for name in names[1:])
    ids = ", ".join(f"{name}.id AS {name}_id" for name in names)
    query = session.sql(f"SELECT {emit}({ids}) FROM {inputs} WHERE {equal}")
    assert query is not None
    return query


def _costs(query: Query) -> dict[tuple[int, ...], float]:
    facts = query.optimized.best
    join = next(node for node in facts.plan.walk() if isinstance(node, Join))
    inputs = join_inputs(join, [facts.estimates.edges[member] for member in join.members])
    return {order: order_cost(inputs, order) for order in permutations(range(len(inputs)))}


def _measure(query: Query, order: Sequence[int], algorithm: str, tables: dict[str, Any]) -> tuple[float, int]:
    facts = query.optimized.best
    graph = lower(admit(query.bound, facts.plan), facts)
    ready = RunnableQuery(_with_order(graph, tuple(order), lazy="lazy expiry" in algorithm), facts.plan)
    streams = [
        (stream, frame_of(tables[stream.name], stream.columns).iter_slices(_STEP_ROWS))
        for stream in used_streams([ready])
    ]
    run = LocalRun([ready], streams, drain=False)
    begun = process_time()
    run.run(lambda name, frame: None, lambda stream, late: None)
    metrics = run.states[graph.query].metrics
    return (process_time() - begun) / max(1, metrics.rows_in) * 1_000, metrics.rows_out


def _with_order(graph: OperatorGraph, order: tuple[int, ...], *, lazy: bool) -> OperatorGraph:
    steps = tuple(
        replace(step, kernel=replace(step.kernel, order=order, expiry="lazy" if lazy else "eager"))
        if isinstance(step, KernelStep) and isinstance(step.kernel, JoinKernel)
        else step
        for step in graph.steps
    )
    return replace(graph, steps=steps)


def _claims(times: Sequence[JoinTime]) -> Iterator[Claim]:
    by_algorithm = {name: [each for each in times if each.algorithm == name] for name in ALGORITHMS}
    for name, found in by_algorithm.items():
        best, worst = found[0], found[-1]
        ratio = worst.seconds / best.seconds
        predicted = worst.predicted / best.predicted
        yield Claim(
            f"{name}: the cheapest order is fastest, by less than predicted",
            f"predicted {predicted:.1f}×, measured less",
            f"{ratio:.1f}×",
            1.0 <= ratio <= predicted,
        )
    eager, lazy, restore = (by_algorithm[name][0].seconds for name in ("eager", "lazy", "lazy, restore"))
    yield Claim("lazy evaluation is cheaper than eager", "cheaper", f"{eager / lazy:.1f}×", lazy < eager)
    yield Claim(
        "restoring costs more than not restoring",
        "noticeable penalty",
        f"{restore / lazy:.1f}×",
        restore >= lazy,
    )
    lost = 1 - by_algorithm["lazy"][0].results / max(1, by_algorithm["lazy, restore"][0].results)
    yield Claim("re-evaluating every 10 s loses about 10/100 of the results", "10 %", f"{lost:.0%}", lost > 0)


def draw(found: JoinsReproduction, path: Path) -> None:
    """Times of each algorithm, one bar per order."""
    with figure(path, width=10.0) as panel:
        for place, algorithm in enumerate(ALGORITHMS):
            chosen = [each for each in found.times if each.algorithm == algorithm]
            for number, each in enumerate(chosen):
                panel.bar(place + number * 0.2, 1e3 * each.seconds, width=0.18, color=f"C{number}")
                panel.text(
                    place + number * 0.2,
                    0,
                    f" {each.order}",
                    rotation=90,
                    ha="center",
                    va="bottom",
                    fontsize=7,
                )
        panel.set(
            title="four-way join of Table 5.5: orders and algorithms",
            ylabel="ms per 1,000 rows",
            xticks=[place + 0.3 for place in range(len(ALGORITHMS))],
            xticklabels=ALGORITHMS,
        )
