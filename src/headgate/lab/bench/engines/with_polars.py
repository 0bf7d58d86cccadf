"""A workload as one Polars batch query over all the data: what a machine can do without a stream."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

from headgate.lab.bench.engines.outcome import Outcome
from headgate.lab.bench.workload import Workload, batch_rows, by_polars


def run(name: str, workload: Workload, folder: Path, scratch: Path) -> Outcome:
    """Reads everything and answers once."""
    answer, rows = by_polars(workload, folder), sum(batch_rows(workload, folder))
    begun = perf_counter()
    frame = answer.collect()
    spent = perf_counter() - begun
    sums = {each: int(frame[each].sum()) for each in workload.sums}
    return Outcome(name, [(rows, spent)], None, frame.height, sums)
