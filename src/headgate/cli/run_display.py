"""What a run shows besides its results: metrics for Prometheus while it runs, and a summary at its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from headgate.runtime.metrics_registry import MetricsRegistry
    from headgate.runtime.output import RunSummary


@dataclass(frozen=True)
class RunDisplay:
    """What was asked for on the command line."""

    quiet: bool = False
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"

    @contextmanager
    def serving(self, registry: MetricsRegistry, console: Console) -> Iterator[None]:
        """Serves the metrics of a registry within the block, if that was asked for."""
        if self.metrics_port is None:
            yield
            return
        from headgate.runtime.exposition import exposition
        from headgate.runtime.metrics_server import serve_metrics

        with serve_metrics(
            lambda: exposition(registry.all()), self.metrics_port, self.metrics_host
        ) as address:
            if not self.quiet:
                console.print(f"metrics: {address}", soft_wrap=True)
            yield


def summary_table(summary: RunSummary, output: Path | str, unbounded: list[str]) -> Table:
    """What every query did, as a table."""
    from headgate.explain.glossary import POINTER

    table = Table(
        title=Text(f"results in {output}", style="table.title"),
        title_justify="left",
        show_edge=False,
        caption_justify="left",
    )
    for name in ("query", "rows in", "rows out", "peak state rows", "peak state MB", "late"):
        table.add_column(name, justify="left" if name == "query" else "right")
    for query, metrics in summary.metrics.items():
        table.add_row(
            query + (" (unbounded)" if query in unbounded else ""),
            f"{metrics['rows_in']:,}",
            f"{metrics['rows_out']:,}",
            f"{metrics['peak_state_rows']:,}",
            f"{metrics['peak_state_bytes'] / 1e6:,.2f}",
            f"{metrics['late_rows']:,}",
        )
    table.caption = POINTER
    if summary.rejected_rows:
        rows = "row" if summary.rejected_rows == 1 else "rows"
        table.caption = f"{summary.rejected_rows:,} bad {rows} rejected\n{POINTER}"
    return table
