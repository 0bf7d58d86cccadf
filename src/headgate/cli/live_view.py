"""The live view of a run: a table that follows it on a terminal, now and then a line elsewhere. Never on stdout.

```
 query   ┃ batch ┃ rows in ┃ rows out ┃ rows/s ┃ late ┃ clock               ┃ state                    ┃ over time
 hot     │    12 │ 170,036 │      590 │  5,120 │    0 │ 2025-01-01 00:54:59 │ 49,981 rows, 1.9 MB      │ ▁▂▄▆▇██
         │       │         │          │        │      │                     │   4:join 49,620          │
```
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from time import monotonic
from types import TracebackType

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headgate.cli.assumption_warnings import AssumptionWarnings
from headgate.cli.late_warnings import LateWarnings
from headgate.runtime.metrics_registry import Metrics, MetricsRegistry

FIRST_LINE_SECONDS, LINE_SECONDS = 60.0, 15.0
_HISTORY = 24
_BARS = "▁▂▃▄▅▆▇█"
_SHOWN_OPERATORS = 3


class LiveView:
    """Shows the metrics of a registry while a run goes on; `changed` is told of each that is put there."""

    def __init__(
        self,
        console: Console,
        *,
        quiet: bool = False,
        title: str = "running",
        first_line: float = FIRST_LINE_SECONDS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.registry = MetricsRegistry(self._changed)
        self._console, self._quiet, self._title, self._now = console, quiet, title, clock
        self._begun = clock()
        self._line_due = self._begun + first_line
        self._history: dict[str, deque[int]] = {}
        self._moments: dict[str, deque[tuple[float, int]]] = {}
        self._warnings = AssumptionWarnings(console)
        self.late = LateWarnings(console)
        self._live = Live(console=console, refresh_per_second=4, transient=True, get_renderable=self._render)

    def __enter__(self) -> LiveView:
        if self._on_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._on_terminal:
            self._live.stop()

    @property
    def _on_terminal(self) -> bool:
        return self._console.is_terminal and not self._quiet

    def _changed(self, metrics: Metrics) -> None:
        name, now = str(metrics["query"]), self._now()
        self._warnings.note(metrics)
        self.late.note(metrics)
        self._history.setdefault(name, deque(maxlen=_HISTORY)).append(int(metrics["state_rows"]))
        self._moments.setdefault(name, deque(maxlen=8)).append((now, int(metrics["rows_in"])))
        if not self._quiet and not self._console.is_terminal and now >= self._line_due:
            for each in self.registry.all():
                self._console.print(Text(line(each, now - self._begun)), soft_wrap=True)
            self._line_due = now + LINE_SECONDS

    def _rate(self, query: str) -> float:
        """Rows per second over the last few micro-batches."""
        moments = self._moments.get(query)
        if not moments or len(moments) < 2 or moments[-1][0] <= moments[0][0]:
            return 0.0
        return (moments[-1][1] - moments[0][1]) / (moments[-1][0] - moments[0][0])

    def _render(self) -> RenderableType:
        seconds = int(self._now() - self._begun)
        all_metrics = self.registry.all()
        title = f"{self._title}  {seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        if not all_metrics:
            return Text(f"{title}  starting …")
        table = Table(title=title, title_justify="left", show_edge=False)
        for name in (
            "query",
            "batch",
            "rows in",
            "rows out",
            "rows/s",
            "late",
            "clock",
            "state",
            "over time",
        ):
            table.add_column(name, justify="right" if name in _NUMBERS else "left", no_wrap=True)
        for metrics in all_metrics:
            name = str(metrics["query"])
            table.add_row(
                Text(name + (" (unbounded)" if metrics["allowed_unbounded"] else "")),
                f"{metrics.get('batches', metrics['steps']):,}",
                f"{metrics['rows_in']:,}",
                f"{metrics['rows_out']:,}",
                f"{self._rate(name):,.0f}",
                f"{metrics['late_rows']:,}",
                instant(metrics.get("clock")),
                Text(_state(metrics)),
                bars(list(self._history.get(name, ()))),
            )
        return table


_NUMBERS = {"batch", "rows in", "rows out", "rows/s", "late"}


def _state(metrics: Metrics) -> str:
    """The state of a query, of the operators that hold most of it, and the k of constraints that are monitored."""
    operators = metrics.get("operators") or {}
    largest = sorted(operators.items(), key=lambda each: -each[1]["state_rows"])[:_SHOWN_OPERATORS]
    lines = [f"{metrics['state_rows']:,} rows, {metrics['state_bytes'] / 1e6:,.1f} MB"]
    lines += [f"  {name} {sizes['state_rows']:,}" for name, sizes in largest if sizes["state_rows"]]
    for known in (metrics.get("constraints") or {}).values():
        k = "–" if known["k"] is None else f"{known['k']:,}"
        lines.append(f"  k {k}: {known['constraint']}")
    return "\n".join(lines)


def line(metrics: Metrics, seconds: float) -> str:
    """Where a query stands, in one line."""
    return (
        f"{seconds:6.0f} s  {metrics['query']}: batch {metrics.get('batches', metrics['steps'])}, "
        f"{metrics['rows_in']:,} rows in, {metrics['rows_out']:,} out, {metrics['late_rows']:,} late, "
        f"state {metrics['state_rows']:,} rows, {metrics['state_bytes'] / 1e6:,.1f} MB, "
        f"clock {instant(metrics.get('clock'))}"
    )


def instant(clock: int | None) -> str:
    """An instant in microseconds, in words."""
    if clock is None:
        return "–"
    try:
        return datetime.fromtimestamp(clock / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return f"{clock} µs"


def bars(values: list[int]) -> str:
    """Values as a row of bars, the largest as high as a line is."""
    most = max(values, default=0) or 1
    return "".join(_BARS[min(len(_BARS) - 1, value * len(_BARS) // (most + 1))] for value in values)
