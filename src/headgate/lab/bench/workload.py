"""Workloads: the same generated streams and the same question for every engine.

Each stream is a folder of parquet files, one file for each micro-batch, rows 100 µs apart. What is asked is said in
CQL; what peers do instead is in `engines`. Times are never a multiple of a window, so it does not matter on which
side an engine closes its windows.

The keys of most workloads are random. In a many-one join, `k` of R and `m` of T are numbered through, and a row of S
refers to a row of each that comes a few rows before or after it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

WINDOW_SECONDS = 60
_STEP_US = 100
_OFFSET_US = 1
_START_US = 1_700_000_040_000_000
_WRITTEN = 1_700_000_000
_KEYS = 2_000_000
WINDOWED = "headgate-windowed"
"""Headgate without the constraints of a workload, where it has some: only windows let rows go."""
_MANY = "S"
"""The stream that has many rows for one of each other, where a join is many-one."""
_NEAR = 1_000
"""In a many-one join: at most so many rows of R and T come between a row of S and those that it refers to."""

_COLUMNS = "ts TIMESTAMP, k BIGINT, m BIGINT, v BIGINT"


@dataclass(frozen=True)
class Workload:
    """A question over some streams of `_COLUMNS`, and what is added up over its results to compare them."""

    name: str
    streams: tuple[str, ...]
    cql: str
    sums: tuple[str, ...]
    keys: int = _KEYS
    flush: bool = False
    """Whether two last rows, long after the others, close the windows that are still open.

    Two, because Spark lets a time take effect in the batch after the one that brought it.
    """
    constraints: Mapping[str, str] = field(default_factory=dict)
    """By stream: what its rows keep to, as clauses of its declaration. It makes the join many-one."""

    def statements(self, *, constrained: bool = True) -> str:
        """The streams, each read from a folder of its name, and the question as the query `answer`."""
        clauses = self.constraints if constrained else {}
        streams = [
            f"CREATE STREAM {name} ({_COLUMNS}) TIMESTAMP BY ts {clauses.get(name, '')} "
            f"USING parquet OPTIONS (path '{name}');"
            for name in self.streams
        ]
        return "\n".join([*streams, f"CREATE QUERY answer AS {self.cql};"])


_W = f"[RANGE {WINDOW_SECONDS} SECONDS]"
_TUMBLING = f"[RANGE {WINDOW_SECONDS} SECONDS SLIDE {WINDOW_SECONDS} SECONDS]"

_THREE = (
    f"SELECT ISTREAM(r.k, r.v, s.v AS w, t.v AS x) FROM R {_W} AS r, S {_W} AS s, T {_W} AS t "
    "WHERE r.k = s.k AND s.m = t.m"
)

WORKLOADS: Mapping[str, Workload] = {
    each.name: each
    for each in (
        Workload(
            "join",
            ("R", "S"),
            f"SELECT ISTREAM(r.k, r.v, s.v AS w) FROM R {_W} AS r, S {_W} AS s WHERE r.k = s.k",
            ("k", "v", "w"),
        ),
        Workload(
            "interval",
            ("R", "S"),
            "SELECT ISTREAM(r.k, r.v, s.v AS w) FROM R AS r, S AS s WHERE r.k = s.k "
            f"AND s.ts BETWEEN r.ts AND r.ts + INTERVAL {WINDOW_SECONDS} SECONDS",
            ("k", "v", "w"),
        ),
        Workload("multijoin", ("R", "S", "T"), _THREE, ("k", "v", "w", "x")),
        Workload(
            "many-one",
            ("R", "S", "T"),
            _THREE,
            ("k", "v", "w", "x"),
            constraints={
                "R": "KEY (k)",
                "S": f"FOREIGN KEY (k) REFERENCES R (k) WITHIN {_NEAR} ROWS "
                f"FOREIGN KEY (m) REFERENCES T (m) WITHIN {_NEAR} ROWS "
                f"ORDERED BY (k) WITHIN {2 * _NEAR} ROWS ORDERED BY (m) WITHIN {2 * _NEAR} ROWS",
                "T": "KEY (m)",
            },
        ),
        Workload(
            "distinct",
            ("R",),
            f"SELECT RSTREAM(DISTINCT k) FROM R {_TUMBLING}",
            ("k",),
            keys=200_000,
            flush=True,
        ),
        Workload(
            "aggregate",
            ("R",),
            f"SELECT RSTREAM(k, COUNT(*) AS n, SUM(v) AS total) FROM R {_TUMBLING} GROUP BY k",
            ("k", "n", "total"),
            keys=200_000,
            flush=True,
        ),
    )
}


def write(workload: Workload, folder: Path, rows: int, batch: int, seed: int = 5) -> None:
    """Writes all streams, `rows` rows together in batches of `batch`."""
    each, per_file = rows // len(workload.streams), max(1, batch // len(workload.streams))
    for place, name in enumerate(workload.streams):
        (folder / name).mkdir(parents=True)
        frames = _frames(workload, place, each, per_file, seed)
        for number, frame in enumerate(chain(frames, _closing(each) if workload.flush else ())):
            path = folder / name / f"{number:05}.parquet"
            frame.write_parquet(path, compression="lz4")
            # Spark reads files in the order of their times, and those of files written at once may be equal.
            os.utime(path, (_WRITTEN + number, _WRITTEN + number))


def _closing(rows: int) -> Iterator[pl.DataFrame]:
    for more in (1, 2):
        last = _START_US + rows * _STEP_US + 3 * more * WINDOW_SECONDS * 1_000_000 + _OFFSET_US
        yield _frame(np.array([last]), np.array([-1]), np.array([-1]), np.array([0]))


def _frames(workload: Workload, place: int, rows: int, per_file: int, seed: int) -> Iterator[pl.DataFrame]:
    for number, begin in enumerate(range(0, rows, per_file)):
        count = min(per_file, rows - begin)
        rng = np.random.default_rng((seed, place, number))
        numbers = np.arange(begin, begin + count)
        k, m = _keys_of(workload, place, numbers, rows, rng)
        yield _frame(_START_US + numbers * _STEP_US + _OFFSET_US, k, m, numbers)


def _keys_of(workload: Workload, place: int, numbers: Any, rows: int, rng: np.random.Generator) -> Any:
    """The values of `k` and `m` in the rows with these numbers."""
    if not workload.constraints:
        return rng.integers(0, workload.keys, len(numbers)), rng.integers(0, workload.keys, len(numbers))
    if workload.streams[place] == _MANY:
        return np.clip(numbers + rng.integers(1 - _NEAR, _NEAR, (2, len(numbers))), 0, rows - 1)
    return numbers, numbers


def _frame(ts: Any, k: Any, m: Any, v: Any) -> pl.DataFrame:
    times = pl.Series(ts).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame({"ts": times, "k": pl.Series(k), "m": pl.Series(m), "v": pl.Series(v)})


def by_polars(workload: Workload, folder: Path) -> pl.LazyFrame:
    """One batch query over all the data with the same results."""
    tables = {name: pl.scan_parquet(folder / name / "*.parquet") for name in workload.streams}
    window = pl.duration(seconds=WINDOW_SECONDS)

    def near(one: str, other: str) -> pl.Expr:
        return (pl.col(one) < pl.col(other) + window) & (pl.col(other) < pl.col(one) + window)

    if workload.name in ("join", "interval"):
        follows = (pl.col("ts_s") >= pl.col("ts")) & (pl.col("ts_s") <= pl.col("ts") + window)
        answer = (
            tables["R"]
            .join(tables["S"], on="k", suffix="_s")
            .filter(near("ts", "ts_s") if workload.name == "join" else follows)
            .select("k", "v", w="v_s")
        )
    elif workload.name in ("multijoin", "many-one"):
        answer = (
            tables["R"]
            .join(tables["S"], on="k", suffix="_s")
            .filter(near("ts", "ts_s"))
            .join(tables["T"], left_on="m_s", right_on="m", suffix="_t")
            .filter(near("ts", "ts_t") & near("ts_s", "ts_t"))
            .select("k", "v", w="v_s", x="v_t")
        )
    else:
        buckets = (
            tables["R"].filter(pl.col("k") >= 0).with_columns(pl.col("ts").dt.truncate(f"{WINDOW_SECONDS}s"))
        )
        grouped = buckets.group_by("ts", "k")
        answer = (
            grouped.agg().select("k")
            if workload.name == "distinct"
            else grouped.agg(n=pl.len().cast(pl.Int64), total=pl.col("v").sum()).select("k", "n", "total")
        )
    return answer


def batch_rows(workload: Workload, folder: Path) -> list[int]:
    """How many rows each batch has: those of the files of one number."""
    heights = [
        [
            int(pl.scan_parquet(file).select(pl.len()).collect().item())
            for file in sorted((folder / name).iterdir())
        ]
        for name in workload.streams
    ]
    return [sum(each) for each in zip(*heights, strict=True)]
