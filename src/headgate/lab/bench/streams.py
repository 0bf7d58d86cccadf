"""`headgate bench join`, `distinct`, `aggregate`, `multijoin`: engines side by side on the same data.

`join --interval` has no windows. `join --many-one` has three streams with constraints, which one engine ignores.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.lab.bench.engines.outcome import Outcome
from headgate.lab.bench.engines.process import ENGINES, available, measure
from headgate.lab.bench.workload import WORKLOADS, write
from headgate.lab.plots import figure
from headgate.lab.reproduce.claims import REPORT
from headgate.model.errors import DisagreementError, InputError

OURS = "headgate-spark"


@dataclass(frozen=True)
class StreamBench:
    """What every engine did with one workload."""

    name: str
    rows: int
    batch: int
    engines: tuple[Outcome, ...]

    def ratio(self, engine: Outcome) -> float | None:
        """Headgate's rows per second over an engine's."""
        ours = next((each for each in self.engines if each.name == OURS), None)
        return None if ours is None else ours.rows_per_second / engine.rows_per_second

    def as_dict(self) -> dict[str, Any]:
        return {
            "bench": self.name,
            "rows": self.rows,
            "batch": self.batch,
            "engines": [each.as_dict() for each in self.engines],
        }


def run(
    name: str,
    *,
    rows: int,
    batch: int,
    engines: Sequence[str] | None = None,
    scratch: Path | None = None,
    on_progress: Callable[[str], None] = lambda what: None,
) -> StreamBench:
    """Writes the data, runs one engine after the other and requires that all found the same."""
    engines = available(name) if engines is None else engines
    unknown = [each for each in engines if each not in ENGINES]
    if unknown or not engines:
        raise InputError(f"no engine {', '.join(unknown)}", remedy=f"the engines are {', '.join(ENGINES)}")
    workload = WORKLOADS[name]
    if not len(workload.streams) <= batch <= rows:
        raise InputError(
            f"{rows} rows cannot be cut into batches of {batch}",
            remedy=f"a batch has at least {len(workload.streams)} rows and at most all of them",
        )
    place = Path(tempfile.mkdtemp(prefix="headgate-bench-", dir=scratch))
    found = []
    try:
        on_progress(f"writing {rows:,} rows")
        write(workload, place / "data", rows, batch)
        for engine in engines:
            on_progress(f"{engine}: {rows:,} rows in batches of {batch:,}")
            found.append(measure(engine, name, place / "data", place))
            _require_same(found)
    except (KeyboardInterrupt, SystemExit):
        shutil.rmtree(place, ignore_errors=True)
        raise
    # What failed stays, so that it can be looked at.
    shutil.rmtree(place)
    return StreamBench(name, rows, batch, tuple(found))


def _require_same(found: Sequence[Outcome]) -> None:
    first, last = found[0], found[-1]
    if (first.results, dict(first.sums)) != (last.results, dict(last.sums)):
        raise DisagreementError(
            f"{last.name} found {last.results} results, sums {dict(last.sums)}, "
            f"where {first.name} found {first.results}, {dict(first.sums)}",
            remedy=REPORT,
        )


def draw(found: StreamBench, path: Path) -> None:
    """Rows per second of every engine, and the time of each of its batches."""
    with figure(path, rows=1, columns=2, width=12.0) as (rates, times):
        names = [each.name for each in found.engines]
        rates.barh(names[::-1], [each.rows_per_second for each in found.engines][::-1])
        rates.set(
            title=f"{found.name}: {found.rows:,} rows, {found.batch:,} a batch", xlabel="rows per second"
        )
        for each in found.engines:
            if len(each.batches) > 1:
                times.plot([seconds for rows, seconds in each.batches if rows > 1], label=each.name)
        times.set(title="time of each batch", xlabel="batch", ylabel="seconds", yscale="log")
        times.legend(fontsize=8, frameon=False)
