"""Two streams in files, and queries over them: what lint judges and what Spark is then seen to keep."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

BATCHES = 7
ROWS = 10
START = datetime(2026, 1, 1, tzinfo=UTC)


def write_streams(folder: Path) -> None:
    """Files of ten rows, each three hours later than the one before, for the streams `l` and `r`."""
    for stream in ("l", "r"):
        (folder / stream).mkdir()
        for batch in range(BATCHES):
            file = folder / stream / f"{batch}.json"
            rows = (
                {
                    "id": batch * ROWS + row,
                    "ts": (START + timedelta(hours=3 * batch, minutes=row)).isoformat(),
                    "g": row % 2,
                }
                for row in range(ROWS)
            )
            file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            os.utime(file, (1e9 + batch, 1e9 + batch))


@dataclass(frozen=True)
class Streams:
    """The left stream has columns id, ts, g; the right one id2, ts2, g2; `wa` and `wb` have watermarks."""

    a: Any
    b: Any

    @property
    def wa(self) -> Any:
        return self.a.withWatermark("ts", "1 minute")

    @property
    def wb(self) -> Any:
        return self.b.withWatermark("ts2", "1 minute")


def read_streams(spark: Any, folder: Path) -> Streams:
    def read(stream: str, suffix: str) -> Any:
        reader = spark.readStream.schema("id long, ts timestamp, g int").option("maxFilesPerTrigger", 1)
        frame = reader.json(str(folder / stream))
        return frame.selectExpr(*(f"{name} AS {name}{suffix}" for name in frame.columns))

    return Streams(read("l", ""), read("r", "2"))


def kept(frame: Any, output_mode: str, checkpoint: Path) -> list[int]:
    """Runs a query over all files, one at a time; the rows in its state after each batch."""
    writer = frame.writeStream.format("noop").outputMode(output_mode).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    query.awaitTermination()
    return [sum(each["numRowsTotal"] for each in step["stateOperators"]) for step in query.recentProgress]


RANGE = "id = id2 AND ts BETWEEN ts2 - INTERVAL 1 HOUR AND ts2 + INTERVAL 1 HOUR"


@dataclass(frozen=True)
class Case:
    """A query, its output mode, and whether lint should find each of its states bounded."""

    build: Callable[[Streams, Any], Any]
    bounded: tuple[bool, ...]
    mode: str = "append"


CASES = {
    "join both watermarks and a range": Case(lambda s, f: s.wa.join(s.wb, f.expr(RANGE)), (True, True)),
    "join range in a later filter": Case(
        lambda s, f: s.wa.join(s.wb, f.expr("id = id2")).where(RANGE), (True, True)
    ),
    "join without a range": Case(lambda s, f: s.wa.join(s.wb, f.expr("id = id2")), (False, False)),
    "join without watermarks": Case(lambda s, f: s.a.join(s.b, f.expr(RANGE)), (False, False)),
    "join with one watermark and a range": Case(lambda s, f: s.wa.join(s.b, f.expr(RANGE)), (False, False)),
    "join with one watermark in the keys": Case(
        lambda s, f: s.wa.join(s.b, f.expr("id = id2 AND ts = ts2")), (True, True)
    ),
    "join with half a range": Case(
        lambda s, f: s.wa.join(s.wb, f.expr("id = id2 AND ts >= ts2")), (True, False)
    ),
    "join of windows": Case(
        lambda s, f: s.wa.select("id", f.window("ts", "1 hour").alias("w")).join(
            s.wb.select("id2", f.window("ts2", "1 hour").alias("w2")), f.expr("id = id2 AND w = w2")
        ),
        (True, True),
    ),
    "left outer join with a range": Case(lambda s, f: s.wa.join(s.wb, f.expr(RANGE), "left"), (True, True)),
    "left outer join with half a range": Case(
        lambda s, f: s.wa.join(s.wb, f.expr("id = id2 AND ts >= ts2"), "left"), (True, False)
    ),
    "full outer join with half a range": Case(
        lambda s, f: s.wa.join(s.wb, f.expr("id = id2 AND ts >= ts2"), "full"), (True, False)
    ),
    "left semi join with a range": Case(
        lambda s, f: s.wa.join(s.wb, f.expr(RANGE), "left_semi"), (True, True)
    ),
    "join with a table": Case(lambda s, f: s.a.join(s.a.sparkSession.range(5), "id"), ()),
    "dropDuplicates with a watermark elsewhere": Case(lambda s, f: s.wa.dropDuplicates(["id"]), (False,)),
    "dropDuplicates without a watermark": Case(lambda s, f: s.a.dropDuplicates(["id", "ts"]), (False,)),
    "dropDuplicates with event time": Case(lambda s, f: s.wa.dropDuplicates(["id", "ts"]), (True,)),
    "dropDuplicates of few values": Case(
        lambda s, f: s.a.select((f.col("g") == 1).alias("odd")).dropDuplicates(), (True,)
    ),
    "dropDuplicatesWithinWatermark": Case(lambda s, f: s.wa.dropDuplicatesWithinWatermark(["id"]), (True,)),
    "union, watermark on the second input": Case(
        lambda s, f: s.a.union(s.wa).dropDuplicates(["id", "ts"]), (False,)
    ),
    "union, watermark on the first input": Case(
        lambda s, f: s.wa.union(s.a).dropDuplicates(["id", "ts"]), (True,)
    ),
    "aggregate without event time": Case(lambda s, f: s.wa.groupBy("id").count(), (False,), "update"),
    "aggregate by window": Case(
        lambda s, f: s.wa.groupBy(f.window("ts", "1 hour"), "id").count(), (True,), "update"
    ),
    "aggregate by window, complete": Case(
        lambda s, f: s.wa.groupBy(f.window("ts", "1 hour"), "id").count(), (False,), "complete"
    ),
    "aggregate by an hour that lost its watermark": Case(
        lambda s, f: s.wa.groupBy(f.date_trunc("hour", "ts")).count(), (False,), "update"
    ),
    "aggregate by session": Case(
        lambda s, f: s.wa.groupBy(f.session_window("ts", "1 hour"), "id").count(), (True,)
    ),
    "aggregate of everything": Case(lambda s, f: s.a.groupBy().count(), (True,), "update"),
    "aggregate by a remainder": Case(lambda s, f: s.a.groupBy(f.col("id") % 5).count(), (True,), "update"),
    "aggregate of windows joined": Case(
        lambda s, f: (
            s.wa.groupBy(f.window("ts", "1 hour"), "id")
            .count()
            .join(
                s.wb.groupBy(f.window("ts2", "1 hour").alias("w2"), "id2").count(),
                f.expr("window = w2 AND id = id2"),
            )
        ),
        (True, True, True, True),
    ),
    "limit": Case(lambda s, f: s.a.limit(5), (True,)),
    "stateless": Case(lambda s, f: s.a.where("id > 3"), ()),
}
