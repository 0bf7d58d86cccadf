"""The figures of the k-Mon document: what joins keep with constraints, beside what windows alone let them forget.

A figure is a join graph, the streams for it, and ways of declaring them: with windows alone (the document's
sliding-window join, SWJ), and with constraints besides. The query is the same in all ways, and so must the answer be.
Which kernel runs it is the optimizer's choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from statistics import fmean
from typing import Any, TypeAlias

import pyarrow as pa

from headgate.lab.generators.backbone import Backbone
from headgate.lab.generators.kmon import EDGES, FILTERS, RISES_AND_DROPS, Arrival, Graph, K, KMon, Varying
from headgate.lab.reproduce.claims import require_same
from headgate.lab.reproduce.watched_run import WatchedRun, kept_by_operators, watch_in_turns
from headgate.model.time import MICROSECOND, MINUTE, SECOND, format_duration
from headgate.physical.compile import compile_query
from headgate.session import Query, Session

WINDOW = 50_000
"""Rows of each stream that its window holds."""
ROWS = 600_000
"""Of all streams."""
STEP_ROWS = 4_000
"""Rows of all streams in a step: as many as in the blocks of which the document counts false negatives."""
STEPS = 30
"""A run has so many steps at least; if it is short, they are smaller."""
KS = (0, 1_000, 5_000, 10_000, 20_000)
"""Those of the document's Table 1; its figures leave out 1,000."""
SWJ = "SWJ"

Clauses: TypeAlias = Mapping[str, tuple[str, ...]]
"""What streams declare, by stream."""
Bound: TypeAlias = Callable[[K], str]
"""A k as streams declare it: `5000 ROWS`, or `AUTO` if it changes."""

KEYS: Mapping[Graph, Clauses] = {
    "a": {"S2": ("KEY (a)",), "S3": ("KEY (b)",)},
    "b": {"S3": ("KEY (a)",)},
    "c": {"S2": ("KEY (a)",)},
}
"""What makes the joins many-one."""


@dataclass(frozen=True)
class Figure:
    """One figure: streams that arrive so for a k, and ways of declaring that."""

    name: str
    graph: Graph
    arrivals: Callable[[K], tuple[Arrival, ...]]
    ways: Callable[[Bound, K], Mapping[str, Clauses]]
    ks: tuple[K, ...] = KS
    multiplicity: int = 5
    passing: int = 50
    """How many of 100 rows pass a filter."""


def _rids(k: str) -> Clauses:
    return {
        "S1": (
            f"FOREIGN KEY (a) REFERENCES S2 (a) WITHIN {k}",
            f"FOREIGN KEY (b) REFERENCES S3 (b) WITHIN {k}",
        )
    }


def _each(streams: str, clause: str) -> Clauses:
    return dict.fromkeys(streams.split(), (clause,))


FIGURES = (
    Figure("4", "a", lambda k: (Arrival(join=k),), lambda within, k: {"RIDS": _rids(within(k))}),
    Figure(
        "6",
        "b",
        lambda k: (Arrival(clustered=k),),
        lambda within, k: {"CA": _each("S1 S2", f"CLUSTERED BY (a) WITHIN {within(k)}")},
    ),
    Figure(
        "8",
        "b",
        lambda k: (Arrival(ordered=k),),
        lambda within, k: {"OAP": _each("S1 S2", f"ORDERED BY (a) WITHIN {within(k)}")},
    ),
    Figure(
        "10",
        "a",
        lambda k: (Arrival(clustered=0), Arrival(child_ordered=k, dangling=0.25)),
        lambda within, k: {
            "CA": _each("S1", f"CLUSTERED BY (a) WITHIN {within(0)}"),
            "OAC": _each("S3", f"ORDERED BY (b) WITHIN {within(k)}"),
            "CA and OAC": {
                **_each("S1", f"CLUSTERED BY (a) WITHIN {within(0)}"),
                **_each("S3", f"ORDERED BY (b) WITHIN {within(k)}"),
            },
        },
        ks=(5_000,),
    ),
    Figure(
        "11",
        "c",
        lambda k: (Arrival(join=k, clustered=5_000),),
        lambda within, k: {
            "CA": _each("S1", f"CLUSTERED BY (a) WITHIN {within(5_000)}"),
            "CA and RIDS": {
                "S1": (
                    f"CLUSTERED BY (a) WITHIN {within(5_000)}",
                    f"FOREIGN KEY (a) REFERENCES S2 (a) WITHIN {within(k)}",
                )
            },
        },
        ks=(0, 1_000, 2_000, 5_000, 10_000, 20_000),
        multiplicity=2,
        passing=10,
    ),
    Figure(
        "20",
        "c",
        lambda k: (Arrival(child_ordered=k),),
        lambda within, k: {"OAC": _each("S2", f"ORDERED BY (a) WITHIN {within(k)}")},
    ),
)
"""What is kept for one k after the other."""

OVER_TIME = (
    Figure(
        "5",
        "a",
        lambda k: (Arrival(join=k),),
        lambda within, k: {"RIDS": _rids(within(k))},
        (RISES_AND_DROPS,),
    ),
    Figure(
        "7",
        "b",
        lambda k: (Arrival(clustered=k),),
        lambda within, k: {"CA": _each("S1 S2", f"CLUSTERED BY (a) WITHIN {within(k)}")},
        (RISES_AND_DROPS,),
    ),
    Figure(
        "9",
        "b",
        lambda k: (Arrival(ordered=k),),
        lambda within, k: {"OAP": _each("S1 S2", f"ORDERED BY (a) WITHIN {within(k)}")},
        (RISES_AND_DROPS,),
    ),
)
"""False negatives while k changes, WITHIN AUTO."""


@dataclass(frozen=True)
class StateLine:
    """One line of a figure: what operators keep while rows come, the answer itself left out."""

    figure: str
    way: str
    k: int | None
    """None where it changes in the course of the run."""
    rows: tuple[int, ...]
    state_rows: tuple[int, ...]
    state_bytes: tuple[int, ...]
    results: tuple[int, ...]
    """How many there have been so far."""
    seconds: float
    """Of the processor, per 1,000 rows of the second half."""

    @property
    def settled(self) -> tuple[int, ...]:
        """What is kept in the second half of the run."""
        return self.state_rows[len(self.state_rows) // 2 :]

    @property
    def settled_bytes(self) -> tuple[int, ...]:
        return self.state_bytes[len(self.state_bytes) // 2 :]

    def share_of(self, other: StateLine) -> float:
        """What is kept on average over what another way keeps, in the second half of the run."""
        return fmean(self.settled) / max(1.0, fmean(other.settled))

    def false_negatives(self, exact: StateLine) -> tuple[float, ...]:
        """By step, the part of another way's results that is missing here."""
        found, wanted = ([new - old for old, new in pairwise((0, *each.results))] for each in (self, exact))
        return tuple(
            1 - mine / all_of_them if all_of_them else 0.0
            for mine, all_of_them in zip(found, wanted, strict=True)
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "figure": self.figure,
            "way": self.way,
            "k": self.k,
            "rows": list(self.rows),
            "state_rows": list(self.state_rows),
            "state_bytes": list(self.state_bytes),
            "results": list(self.results),
            "seconds_per_1000_rows": self.seconds,
        }


def measure_figure(
    figure: Figure, *, scale: float = 1.0, on_progress: Callable[[str], None] = lambda what: None
) -> tuple[StateLine, ...]:
    """All lines of a figure, with windows, ks and rows `scale` times as large; all ways must find the same.

    Where k changes in a run, what constraints lose is what is measured, and the ways may differ.
    """

    def within(k: K) -> str:
        return "AUTO" if isinstance(k, Varying) else f"{round(k * scale)} ROWS"

    lines = []
    for k in figure.ks:
        data = streams_of(figure, k, scale)
        tables = {name: stream.table() for name, stream in data.streams.items()}
        queries = {SWJ: asked(figure, data, {}, round(WINDOW * scale))}
        for way, clauses in figure.ways(within, k).items():
            declared = dict(_together(KEYS[figure.graph], clauses))
            queries[way] = asked(figure, data, declared, round(WINDOW * scale))
        on_progress(f"Figure {figure.name}, {within(k)}, {', '.join(queries)}")
        runs = in_turns(queries.values(), tables, step_rows(scale))
        mine = [_line(figure, way, k, scale, run) for way, run in zip(queries, runs, strict=True)]
        if not isinstance(k, Varying):
            require_same([each.results[-1] for each in mine], f"Figure {figure.name}, k = {k}")
        lines += mine
    return tuple(lines)


def streams_of(figure: Figure, k: K, scale: float) -> KMon:
    """The streams of a figure for one k."""
    arrivals = tuple(_scaled_arrival(each, scale) for each in figure.arrivals(k))
    one = KMon(figure.graph, 1, arrivals, figure.multiplicity)
    return KMon(figure.graph, round(ROWS * scale) // one.per_cycle, arrivals, figure.multiplicity, seed=1)


def asked(figure: Figure, data: KMon, clauses: Clauses, window: int) -> Query:
    """The query of a figure's join graph over windows of so many rows of each stream, which declare so much."""
    declared = []
    for name, stream in data.streams.items():
        columns = ", ".join(f"{each} BIGINT" for each in stream.schema.names[1:])
        words = " ".join(clauses.get(name, ()))
        declared.append(f"CREATE STREAM {name} (ts TIMESTAMP, {columns}) TIMESTAMP BY ts {words};")
    session = Session()
    # Streams refer to each other.
    session.sql("\n".join(declared))
    names = list(data.streams)
    inputs = ", ".join(f"{name} [RANGE {format_duration(_length(data, name, window))}]" for name in names)
    equal = [f"{each.parent}.{each.column} = {each.child}.{each.column}" for each in EDGES[figure.graph]]
    passing = [f"{name}.{column} < {figure.passing}" for name, column in FILTERS[figure.graph].items()]
    ids = ", ".join(f"{name}.id AS {name}_id" for name in names)
    query = session.sql(f"SELECT ISTREAM({ids}) FROM {inputs} WHERE {' AND '.join([*equal, *passing])}")
    assert query is not None
    return query


def _length(data: KMon, stream: str, rows: int) -> int:
    """The length of the window that holds so many rows of a stream, whole cycles of them."""
    return max(MICROSECOND, data.window(stream, rows - rows % data.multiplicity))


def _together(first: Clauses, second: Clauses) -> Iterator[tuple[str, tuple[str, ...]]]:
    for stream in dict.fromkeys((*first, *second)):
        yield stream, (*first.get(stream, ()), *second.get(stream, ()))


def _scaled_arrival(arrival: Arrival, scale: float) -> Arrival:
    scaled = [
        None if k is None else _scaled(k, scale)
        for k in (arrival.join, arrival.clustered, arrival.ordered, arrival.child_ordered)
    ]
    join, clustered, ordered, child_ordered = scaled
    assert join is not None
    return Arrival(join, clustered, ordered, child_ordered, arrival.dangling)


def _scaled(k: K, scale: float) -> K:
    if isinstance(k, Varying):
        return Varying(tuple((part, round(each * scale)) for part, each in k.points))
    return round(k * scale)


def step_rows(scale: float) -> int:
    """Rows of all streams in a step of a run that is so many times as long as the document's."""
    return max(1, min(STEP_ROWS, round(ROWS * scale) // STEPS))


def in_turns(queries: Iterable[Query], tables: Mapping[str, pa.Table], rows: int) -> tuple[WatchedRun, ...]:
    """Runs queries side by side in steps of so many rows, and looks at what their operators keep."""
    compiled = [compile_query(each.planned) for each in queries]
    return watch_in_turns(compiled, tables, rows, kept_by_operators)


def _line(figure: Figure, way: str, k: K, scale: float, run: WatchedRun) -> StateLine:
    return line_of(figure.name, way, None if isinstance(k, Varying) else round(k * scale), run)


def line_of(name: str, way: str, k: int | None, run: WatchedRun) -> StateLine:
    """What was seen of a run as a line of a figure."""
    return StateLine(name, way, k, run.rows, run.sizes["rows"], run.sizes["bytes"], run.results, run.seconds)


def measure_example(
    *, scale: float = 0.1, minutes: float = 10.0, on_progress: Callable[[str], None] = lambda what: None
) -> tuple[StateLine, StateLine]:
    """Section 1.1: traffic that goes over three links, by windows of so many minutes and with constraints.

    `scale` is the part of the document's rates: 1,000, 10,000 and 1,000 packets a second, of which a tenth goes on.
    """
    rates = (1_000 * scale, 10_000 * scale, 1_000 * scale)
    links = Backbone(seconds=72 * minutes, rates=rates, seed=1)
    tables = {name: stream.table() for name, stream in links.streams.items()}
    customer_to_backbone, backbone_to_out = (
        _most_within(delay, rate) for delay, rate in zip(links.delays, rates[1:], strict=True)
    )
    clauses: Clauses = {
        "C": ("KEY (pid)", f"FOREIGN KEY (pid) REFERENCES B (pid) WITHIN {customer_to_backbone} ROWS"),
        "B": (
            "KEY (pid)",
            "FOREIGN KEY (pid) REFERENCES C (pid) WITHIN 0 ROWS",
            f"FOREIGN KEY (pid) REFERENCES O (pid) WITHIN {backbone_to_out} ROWS",
        ),
        "O": ("KEY (pid)", "FOREIGN KEY (pid) REFERENCES B (pid) WITHIN 0 ROWS"),
    }
    on_progress("section 1.1")
    queries = []
    for declared in ({}, clauses):
        session = Session()
        session.sql(
            "\n".join(
                f"CREATE STREAM {name} (ts TIMESTAMP, pid BIGINT, size BIGINT) TIMESTAMP BY ts "
                f"{' '.join(declared.get(name, ()))};"
                for name in tables
            )
        )
        window = format_duration(round(minutes * MINUTE))
        inputs = ", ".join(f"{name} [RANGE {window}]" for name in tables)
        query = session.sql(
            f"SELECT ISTREAM(SUM(C.size) AS total) FROM {inputs} WHERE C.pid = B.pid AND B.pid = O.pid"
        )
        assert query is not None
        queries.append(query)
    by_windows, constrained = in_turns(queries, tables, STEP_ROWS)
    require_same([by_windows.results[-1], constrained.results[-1]], "section 1.1")
    return line_of("1.1", SWJ, None, by_windows), line_of("1.1", "RIDS", None, constrained)


def _most_within(delay: int, rate: float) -> int:
    """More rows than come within a delay, even if arrivals crowd."""
    mean = rate * delay / SECOND
    return round(mean + 6 * sqrt(mean)) + 10


def times(lines: Sequence[StateLine]) -> Iterator[tuple[str, int, float]]:
    """Table 1: for each way and k, the time of a row over that of the sliding-window join."""
    of_windows = {(each.figure, each.k): each for each in lines if each.way == SWJ}
    for each in lines:
        if each.way != SWJ and each.k is not None:
            yield each.way, each.k, each.seconds / of_windows[each.figure, each.k].seconds
