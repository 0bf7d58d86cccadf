"""`headgate reproduce windows`: Queries 1 to 4 of the Windows document, 3.6, under three strategies.

UPA follows update patterns, NT sends every expiry as a negative tuple, DIRECT scans its state for expired rows. The
document processes one row at a time; here a step brings `STEP_ROWS` rows of each link, so what is compared is the
cost of keeping state, not of calling a function per row. Times are of the processor, not of the wall.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.lab.plots import figure
from headgate.lab.reproduce.claims import Claim, Series, require_same
from headgate.lab.reproduce.full_windows import seconds_per_thousand_rows
from headgate.lab.reproduce.traffic import LINKS, Traffic, slices
from headgate.model.time import SECOND
from headgate.optimize.optimize import OptimizedPlan
from headgate.physical.compile import compile_query
from headgate.physical.edges import Strategy
from headgate.physical.program import Program
from headgate.plan.nodes import Join, Negation
from headgate.runtime.data import frame_of
from headgate.runtime.local.engine import LocalRun, Stop
from headgate.session import Query, Session

STEP_ROWS = 1_000
STEPS = 40
STRATEGIES: tuple[Strategy, ...] = ("UPA", "NT", "DIRECT")

# Window lengths in rows of one link, shortest first. A join's answer grows with the square of its windows.
WINDOWS: Mapping[str, tuple[int, ...]] = {
    "1 ftp": (500, 2_000, 8_000, 20_000, 50_000),
    "1 telnet": (500, 2_000, 8_000, 20_000),
    "2 sources": (2_000, 20_000, 200_000, 1_000_000),
    "2 pairs": (2_000, 20_000, 200_000, 1_000_000),
    "3": (500, 2_000, 8_000, 20_000, 200_000),
    "4": (500, 2_000, 8_000, 20_000),
}

_COLUMNS = "ts TIMESTAMP, duration DOUBLE, protocol STRING, bytes BIGINT, source STRING, destination STRING"

QUERIES: Mapping[str, str] = {
    "1 ftp": "SELECT a.source, a.destination AS d1, b.destination AS d2 FROM link1 [RANGE {w} SECONDS] a, "
    "link2 [RANGE {w} SECONDS] b WHERE a.source = b.source AND a.protocol = 'ftp' AND b.protocol = 'ftp'",
    "1 telnet": "SELECT a.source, a.destination AS d1, b.destination AS d2 FROM link1 [RANGE {w} SECONDS] a, "
    "link2 [RANGE {w} SECONDS] b WHERE a.source = b.source AND a.protocol = 'telnet' AND b.protocol = 'telnet'",
    "2 sources": "SELECT DISTINCT source FROM link1 [RANGE {w} SECONDS]",
    "2 pairs": "SELECT DISTINCT source, destination FROM link1 [RANGE {w} SECONDS]",
    "3": "SELECT a.source, a.destination FROM link1 [RANGE {w} SECONDS] a WHERE NOT EXISTS "
    "(SELECT * FROM link2 [RANGE {w} SECONDS] b WHERE b.source = a.source)",
    "4": "SELECT a.source, c.destination FROM link1 [RANGE {w} SECONDS] a, link3 [RANGE {w} SECONDS] c "
    "WHERE a.source = c.source AND c.protocol = 'ftp' AND NOT EXISTS "
    "(SELECT * FROM link2 [RANGE {w} SECONDS] b WHERE b.source = a.source)",
}


@dataclass(frozen=True)
class WindowsReproduction:
    """All measured lines, and the document's claims judged by them."""

    data: str
    series: tuple[Series, ...]
    claims: tuple[Claim, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "reproduce": "windows",
            "data": self.data,
            "series": [each.as_dict() for each in self.series],
            "claims": [each.as_dict() for each in self.claims],
        }


def reproduce(
    *,
    traffic: Traffic | None = None,
    longest: int | None = None,
    on_progress: Callable[[str], None] = lambda what: None,
) -> WindowsReproduction:
    """Measures every query, strategy and window length over the same rows, windows up to `longest` rows."""
    if traffic is None:
        most = min(longest or 2**60, max(map(max, WINDOWS.values())))
        traffic = Traffic.generated(most + 2 * STEPS * STEP_ROWS)
    rows = min(len(times) for times in traffic.times.values())
    room = rows - STEPS * STEP_ROWS if longest is None else min(longest, rows - STEPS * STEP_ROWS)
    series = []
    for name, text in QUERIES.items():
        windows = [window for window in WINDOWS[name] if window <= room] or [room]
        for variant in _variants(name):
            on_progress(f"Query {name}, {variant}")
            series.append(_line(name, text, variant, windows, traffic))
        require_same([each.results for each in series if each.query == name], f"Query {name}")
    return WindowsReproduction(traffic.name, tuple(series), tuple(_claims(series)))


def _variants(query: str) -> tuple[str, ...]:
    """Strategies; Query 4 is also run with the negation pushed below the join."""
    return ("UPA", "NT", "NT join up") if query == "4" else STRATEGIES


def _line(name: str, text: str, variant: str, windows: Sequence[int], traffic: Traffic) -> Series:
    points = [_measure(text, variant, window, traffic) for window in windows]
    seconds, state, results = zip(*points, strict=True)
    return Series(name, variant, tuple(float(w) for w in windows), seconds, state, results)


def _measure(text: str, variant: str, window: int, traffic: Traffic) -> tuple[float, int, int]:
    """Seconds per 1,000 rows once the windows are full, peak state rows, and rows of output."""
    session = Session()
    for link in LINKS:
        session.sql(f"CREATE STREAM {link} ({_COLUMNS}) TIMESTAMP BY ts")
    length = max(1, round(window * traffic.seconds_per_row))
    query = session.sql(text.format(w=length))
    assert query is not None
    strategy: Strategy = "NT" if variant.startswith("NT") else "DIRECT" if variant == "DIRECT" else "UPA"
    run = _run(query, strategy, pushed_down=variant == "NT join up", length=length, traffic=traffic)
    state = next(iter(run.states.values()))
    spent = seconds_per_thousand_rows(run, traffic.start + length * SECOND)
    return spent, state.metrics.peak_state_rows, state.metrics.rows_out


def _run(query: Query, strategy: Strategy, *, pushed_down: bool, length: int, traffic: Traffic) -> LocalRun:
    plan = _plan(query.optimized.compared, pushed_down=pushed_down)
    compiled = compile_query(query.planned, plan=plan, strategy=strategy)
    cuts = traffic.cuts(length, STEP_ROWS, STEPS)
    streams = []
    for stream in compiled.streams:
        rows = frame_of(traffic.tables[stream.name], stream.columns)
        streams.append((stream, slices(rows, traffic.times[stream.name], cuts)))
    return LocalRun(Program((compiled,)), streams, stop=Stop.LAST_ROW)


def _plan(compared: Sequence[OptimizedPlan], *, pushed_down: bool) -> OptimizedPlan:
    """The plan with the negation above the join, or below it; the cheapest if there is no choice."""
    for each in compared:
        below_join = any(
            isinstance(below, Negation)
            for node in each.plan.walk()
            if isinstance(node, Join)
            for below in node.walk()
        )
        if below_join == pushed_down:
            return each
    return compared[0]


def _claims(series: Sequence[Series]) -> Iterator[Claim]:
    lines = {(each.query, each.strategy): each for each in series}

    def speedup(query: str, rival: str, at: int = -1) -> float:
        return lines[query, rival].seconds[at] / lines[query, "UPA"].seconds[at]

    few, many = min(speedup("1 ftp", r) for r in ("NT", "DIRECT")), speedup("1 telnet", "NT")
    yield Claim("Query 1, few results: UPA nearly 2× NT and DIRECT", "nearly 2×", f"{few:.1f}×", few >= 1.6)
    best = max(speedup("1 telnet", r) for r in ("NT", "DIRECT"))
    yield Claim(
        "Query 1, many results: UPA up to 10× NT", "up to 10×", f"{many:.1f}× NT, {best:.1f}× best", best >= 5
    )
    sources = min(speedup("2 sources", r) for r in ("NT", "DIRECT"))
    yield Claim("Query 2, few values: UPA 10× NT and DIRECT", "10×", f"{sources:.1f}×", sources >= 5)
    pairs = speedup("2 pairs", "NT")
    yield Claim("Query 2, many values: UPA 2× NT", "2×", f"{pairs:.1f}×", pairs >= 1.6)
    space = max(
        lines["2 sources", rival].state_rows[-1] / max(1, lines["2 sources", "UPA"].state_rows[-1])
        for rival in ("NT", "DIRECT")
    )
    yield Claim("Query 2: UPA up to 100× less space", "up to 100×", f"{space:.0f}×", space >= 10)
    small, large = speedup("3", "NT", 0), speedup("3", "NT")
    yield Claim(
        "Query 3: UPA ahead of NT for small windows at least",
        "wins only for small windows",
        f"{small:.1f}× small, {large:.1f}× large",
        small >= 1.0,
    )
    pulled = min(speedup("4", r) for r in ("NT", "NT join up"))
    yield Claim(
        "Query 4: negation pulled up wins for large windows", "UPA best", f"{pulled:.1f}×", pulled >= 1.0
    )


def draw(found: WindowsReproduction, path: Path) -> None:
    """Processing times against window length, one panel per query."""
    names = list(dict.fromkeys(each.query for each in found.series))
    with figure(path, rows=2, columns=3, width=13.0, height=7.0) as axes:
        for name, panel in zip(names, axes.flat, strict=False):
            for each in found.series:
                if each.query == name:
                    panel.plot(each.x, [1e3 * s for s in each.seconds], marker="o", label=each.strategy)
            panel.set(title=f"Query {name}", xlabel="window, rows", ylabel="ms per 1,000 rows", xscale="log")
            panel.legend(fontsize=8, frameon=False)
