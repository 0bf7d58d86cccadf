"""Many queries over one stream on Spark: what the second and the sixteenth cost beside the first.

All queries of a file are one job: the stream is read once, and what queries want by the same keys is sent once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from headgate.lab.bench.workload import WORKLOADS, write
from headgate.runtime.spark.cluster import open_spark, require_spark

COUNTS = (1, 4, 16)
_STREAM = WORKLOADS["aggregate"]
_ASKED = (
    "SELECT k, COUNT(*) AS n FROM R [RANGE {w} SECONDS SLIDE {w} SECONDS] GROUP BY k",
    "SELECT k, SUM(v) AS total, MAX(v) AS most FROM R [RANGE {w} SECONDS SLIDE {w} SECONDS] GROUP BY k",
    "SELECT ISTREAM(k, v) FROM R [RANGE {w} SECONDS] WHERE v % 100 = {w} % 100",
    "SELECT COUNT(*) AS n, AVG(v) AS mean FROM R [RANGE {w} SECONDS SLIDE {w} SECONDS]",
)
"""Questions of four kinds, each over windows of different lengths."""


@dataclass(frozen=True)
class QueriesResult:
    """A run with so many queries."""

    queries: int
    seconds: float
    rows_per_second: float


@dataclass(frozen=True)
class QueriesBench:
    """Runs over the same rows with more and more queries."""

    rows: int
    batch: int
    results: tuple[QueriesResult, ...]

    def share(self, result: QueriesResult) -> float:
        """How many rows per second are left of those of one query."""
        return result.rows_per_second / self.results[0].rows_per_second

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def run(*, rows: int, batch: int, on_progress: Callable[[str], None] = lambda step: None) -> QueriesBench:
    """Measures the runs one after the other in one Spark session, after one that nobody measures."""
    require_spark()
    with TemporaryDirectory(prefix="headgate-bench-") as name:
        folder = Path(name)
        on_progress("writing rows")
        write(_STREAM, folder, rows, batch)
        spark = open_spark(None, {})
        try:
            results = []
            for number, count in enumerate((COUNTS[0], *COUNTS)):
                on_progress(f"{count} queries")
                seconds = _measured(spark, folder, f"out-{number}", count, batch)
                results.append(QueriesResult(count, seconds, rows / seconds))
        finally:
            spark.stop()
    return QueriesBench(rows, batch, tuple(results[1:]))


def statements(count: int) -> str:
    """The stream, and so many queries over it."""
    stream = _STREAM.statements().partition("CREATE QUERY")[0]
    asked = [
        f"CREATE QUERY q{number} AS {_ASKED[number % len(_ASKED)].format(w=10 + 5 * (number // len(_ASKED)))};"
        for number in range(count)
    ]
    return stream + "\n".join(asked)


def _measured(spark: Any, folder: Path, output: str, count: int, batch: int) -> float:
    """How long Spark was busy with the micro-batches of a run."""
    from headgate.runtime.spark.options import SparkOptions  # noqa: PLC0415 - after it is known that Spark is there
    from headgate.runtime.spark.run import RunTarget, run_to_folder  # noqa: PLC0415
    from headgate.session import Session  # noqa: PLC0415

    session = Session()
    session.base = folder
    session.sql(statements(count))
    summary = run_to_folder(
        spark, session.compile(None), folder, SparkOptions(batch_rows=batch), RunTarget(folder / output)
    )
    return float(summary.metrics["q0"]["spark"]["seconds"]["triggerExecution"])
