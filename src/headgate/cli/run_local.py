"""`headgate run --engine local`: in this process, with a bar."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from headgate.cli.assumption_warnings import AssumptionWarnings
from headgate.cli.console import open_console
from headgate.cli.interrupt import report_kept_on_interrupt
from headgate.cli.late_warnings import LateWarnings
from headgate.cli.live_view import instant
from headgate.cli.monitor_warnings import warn_of_unused
from headgate.cli.run_display import RunDisplay, summary_table
from headgate.runtime.lateness import require_few
from headgate.runtime.metrics_registry import MetricsRegistry

if TYPE_CHECKING:
    from headgate.physical.program import Program
    from headgate.runtime.io.registry import FormatName
    from headgate.runtime.local.engine import Progress as Step
    from headgate.session import Session


def run_local(
    session: Session,
    program: Program,
    output: Path,
    options: dict[str, Any],
    display: RunDisplay,
    *,
    rejects: Path | None,
    overwrite: bool,
    format: FormatName,
    max_late: float | None,
) -> None:
    """Runs queries to the end of their input."""
    from headgate.runtime.io import RejectPolicy
    from headgate.runtime.local.files import run_to_folder

    policy = RejectPolicy.stop() if rejects is None else RejectPolicy.rejects(rejects)
    prepared, sources = session.local.prepare(
        program, session.catalog, base=session.base, policy=policy, **options
    )
    console = open_console(stderr=True)
    unbounded = [name for name, state in prepared.states.items() if state.graph.allowed_unbounded]
    for name in unbounded:
        console.print(
            f"[bold red]unbounded[/] {name}: run because of --allow-unbounded; its state may grow for ever"
        )
    warnings, late = AssumptionWarnings(console), LateWarnings(console)

    def note(metrics: Mapping[str, Any]) -> None:
        warnings.note(metrics)
        late.note(metrics)
        require_few(metrics, max_late)

    registry, total = MetricsRegistry(note), sum(source.total_bytes for source in sources)
    bar = _bar(console, total)
    with (
        report_kept_on_interrupt(output, None),
        display.serving(registry, console),
        nullcontext() if display.quiet else bar,
    ):
        task = bar.add_task("running", total=total or None, detail="")

        def on_progress(step: Step) -> None:
            detail = (
                f"{step.rows:,} rows  {instant(step.clock)}  state {step.state_rows:,} rows, "
                f"{step.state_bytes / 1e6:,.1f} MB"
            )
            bar.update(task, completed=sum(source.bytes_read for source in sources), detail=detail)

        summary = run_to_folder(
            prepared,
            sources,
            output,
            format=format,
            overwrite=overwrite,
            on_progress=on_progress,
            on_metrics=registry.put,
            on_end=lambda metrics: require_few(metrics, max_late, ended=True),
        )
    if not display.quiet:
        console.print(summary_table(summary, output, unbounded))
    late.end(summary.metrics)
    warn_of_unused(console, summary.metrics)


def _bar(console: Console, total: int) -> Progress:
    return Progress(
        SpinnerColumn(),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f}%" if total else ""),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
