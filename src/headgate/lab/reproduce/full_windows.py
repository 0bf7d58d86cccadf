"""Timing a run from the moment its windows are full: before that, the state still grows and rows cost less."""

from __future__ import annotations

from time import process_time

from headgate.runtime.local.engine import LocalRun, Progress


def seconds_per_thousand_rows(run: LocalRun, full: int) -> float:
    """Runs to the end; seconds of the processor per 1,000 rows after the clock has passed the instant `full`."""
    marks: list[tuple[int, float]] = []
    begun = process_time()

    def note(progress: Progress) -> None:
        if progress.clock is not None and progress.clock >= full:
            marks.append((progress.rows, process_time() - begun))

    run.run(lambda name, frame: None, lambda query, stream, late: None, note)
    (first_rows, first_time), (last_rows, last_time) = marks[0], marks[-1]
    return (last_time - first_time) / max(1, last_rows - first_rows) * 1_000
