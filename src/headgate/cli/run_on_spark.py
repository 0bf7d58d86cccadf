"""`headgate run` on Spark, with a live view."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any

from rich.text import Text

from headgate.cli.console import open_console
from headgate.cli.interrupt import report_kept_on_interrupt, stopped
from headgate.cli.live_view import FIRST_LINE_SECONDS, LINE_SECONDS, LiveView
from headgate.cli.monitor_warnings import warn_of_unused
from headgate.cli.run_display import RunDisplay, summary_table

if TYPE_CHECKING:
    from headgate.physical.program import Program
    from headgate.session import Session


def run_on_spark(
    session: Session,
    program: Program,
    output: str,
    options: dict[str, Any],
    display: RunDisplay,
    *,
    master: str | None,
    checkpoint: str | None,
    overwrite: bool,
    format: str,
    follow: bool,
    to: str | None,
    settings: dict[str, str],
) -> None:
    """Runs queries to the end of their input or, if they are to follow it, until interrupted."""
    from headgate.runtime.spark.cluster import SHORT_RUN, open_spark, require_spark

    require_spark()
    from headgate.runtime.io.address import formats_of, sink_at
    from headgate.runtime.io.changes import change_stream
    from headgate.runtime.io.declared import check_sources, require_time
    from headgate.runtime.output import escaped_name, safe_name
    from headgate.runtime.spark.failures import close
    from headgate.runtime.spark.options import SparkOptions
    from headgate.runtime.spark.run import RunTarget, run_to_folder
    from headgate.runtime.spark.run import follow as run_on
    from headgate.runtime.spark.sources.connectors import packages_for
    from headgate.runtime.spark.sources.streams import is_file
    from headgate.runtime.spark.sources.tables import ReadTables

    console = open_console(stderr=True)
    # What is wrong with the input is said before the seconds that Spark takes to start.
    changes = [found.stream for table in program.tables if (found := change_stream(table)) is not None]
    streams = [*program.streams, *changes]
    for query in program:
        safe_name(query.name)
        if to is not None:
            sink_at(to, query.name)
    for stream in streams:
        require_time(stream)
        escaped_name(stream.name)
    for query in program:
        check_sources(query.plan)
    keeps = options["rejects"] is not None
    tables = ReadTables().reading(program.tables, session.base, keeps=keeps)
    needed = packages_for(streams, [*formats_of(to), format])
    quick = {} if follow or not all(map(is_file, streams)) else SHORT_RUN
    view = LiveView(
        console,
        quiet=display.quiet,
        title="following" if follow else "running",
        first_line=LINE_SECONDS if follow else FIRST_LINE_SECONDS,
    )
    with report_kept_on_interrupt(output, checkpoint), display.serving(view.registry, console), view:
        spark = open_spark(master, quick | needed | settings)
        try:
            place = RunTarget(output, checkpoint, overwrite, view.registry.put, format, to, tables)
            if follow:
                with _interruptible() as interrupted:
                    summary = run_on(
                        spark,
                        program,
                        session.base,
                        SparkOptions(**options),
                        place,
                        is_over=interrupted.is_set,
                    )
            else:
                summary = run_to_folder(spark, program, session.base, SparkOptions(**options), place)
        finally:
            close(spark)
    if not display.quiet:
        unbounded = [name for name, metrics in summary.metrics.items() if metrics["allowed_unbounded"]]
        console.print(summary_table(summary, output, unbounded))
        if follow:
            console.print(Text(stopped(output, checkpoint)), soft_wrap=True)
    view.late.end(summary.metrics)
    warn_of_unused(console, summary.metrics)


@contextmanager
def _interruptible() -> Iterator[Event]:
    """Within it, the first SIGINT or SIGTERM only sets an event; the run then ends in order.

    Where all processes are told to end, as a service manager does, Java may be gone before the run has ended.
    """
    from headgate.runtime.spark.failures import SparkEndedError

    event = Event()
    heard: list[int] = []

    def hear(number: int, _: object) -> None:
        heard.append(number)
        event.set()

    before = {each: signal.signal(each, hear) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield event
    except SparkEndedError:
        if heard:
            sys.exit(128 + heard[0])
        raise
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
