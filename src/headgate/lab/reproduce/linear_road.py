"""Table 3 of the k-Mon document: four queries of Linear Road, with constraints that cars keep, and without.

The queries are those of `examples/linear_road_kmon.cql`. The reports are generated; how long a car is on the road is
read off them, so that the constraints are the tightest that they keep:

```
CLUSTERED BY (cid) WITHIN d     the reports of a car are no further apart than its trip is long
ORDERED BY (cid) WITHIN d       cars have their numbers in the order in which they enter
```
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa

from headgate.lab.generators.linear_road import LinearRoad
from headgate.lab.reproduce.claims import require_same
from headgate.lab.reproduce.watched_run import WatchedRun, kept_by_operators, watch_in_turns
from headgate.model.source import SourceText
from headgate.model.time import MICROSECOND, MINUTE, format_duration
from headgate.physical.compile import compile_query
from headgate.session import Query, Session

CARS = 150_000
CARS_PER_SECOND = 30.0
MEAN_TRIP = 3 * MINUTE
QUERIES = ("CurCarSeg", "AccSeg", "CarExitStr", "NegTollStr")

_NAME = "linear_road_kmon.cql"
_PACKED = Path(__file__).with_name(_NAME)
_SOURCE = Path(__file__).parents[4] / "examples" / _NAME
"""In a checkout, where the package is used as it lies."""
_TIME = "TIMESTAMP BY ts"


@dataclass(frozen=True)
class RoadRun:
    """What a query keeps and what its rows cost, by way; means over the second half of a run."""

    query: str
    rows: tuple[float, float]
    """Without constraints, and with them; the answer itself left out."""
    bytes: tuple[float, float]
    seconds: tuple[float, float]
    """Of the processor, per 1,000 rows."""
    results: int

    @property
    def memory_ratio(self) -> float:
        return self.bytes[1] / max(1.0, self.bytes[0])

    @property
    def time_ratio(self) -> float:
        return self.seconds[1] / self.seconds[0]

    def as_dict(self) -> dict[str, Any]:
        def sides(values: tuple[float, float]) -> dict[str, float]:
            return {"without": values[0], "with": values[1]}

        return {
            "query": self.query,
            "state_rows": sides(self.rows),
            "state_bytes": sides(self.bytes),
            "seconds_per_1000_rows": sides(self.seconds),
            "results": self.results,
        }


def measure_road(
    *, scale: float = 1.0, step_rows: int = 4_000, on_progress: Callable[[str], None] = lambda what: None
) -> tuple[RoadRun, ...]:
    """All four queries over the same reports; with constraints and without they must answer the same."""
    cars = round(CARS * scale)
    road = LinearRoad(cars=cars, cars_per_second=CARS_PER_SECOND, mean_trip=MEAN_TRIP, seed=1)
    reports = {"CarStr": road["CarStr"].table()}
    return tuple(_measure(query, reports, step_rows, on_progress) for query in QUERIES)


def asked(name: str, clauses: str) -> Query:
    """A query of the example over cars that declare some clauses."""
    path = _PACKED if _PACKED.exists() else _SOURCE
    text = path.read_text(encoding="utf-8").replace(_TIME, f"{_TIME} {clauses}")
    session = Session()
    session.read(SourceText(_NAME, text))
    return session.query(name)


def constraints(reports: pa.Table) -> str:
    """What reports keep: the longest trip is how far apart those of a car are."""
    times = reports.select(["cid"]).append_column("ts", reports["ts"].cast(pa.int64()))
    trips = times.group_by("cid").aggregate([("ts", "min"), ("ts", "max")])
    longest = int((trips["ts_max"].to_numpy() - trips["ts_min"].to_numpy()).max(initial=0))
    within = format_duration(max(MICROSECOND, longest))
    return f"CLUSTERED BY (cid) WITHIN {within} ORDERED BY (cid) WITHIN {within}"


def _measure(
    name: str, reports: dict[str, pa.Table], step_rows: int, on_progress: Callable[[str], None]
) -> RoadRun:
    on_progress(f"Linear Road, {name}")
    ways = ("", constraints(reports["CarStr"]))
    compiled = [compile_query(asked(name, clauses).planned) for clauses in ways]
    without, constrained = watch_in_turns(compiled, reports, step_rows, kept_by_operators)
    require_same([without.results[-1], constrained.results[-1]], f"Linear Road, {name}")
    return RoadRun(
        name,
        (_settled(without, "rows"), _settled(constrained, "rows")),
        (_settled(without, "bytes"), _settled(constrained, "bytes")),
        (without.seconds, constrained.seconds),
        without.results[-1],
    )


def _settled(run: WatchedRun, size: str) -> float:
    sizes = run.sizes[size]
    return fmean(sizes[len(sizes) // 2 :])
