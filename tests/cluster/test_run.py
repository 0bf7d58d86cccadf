"""`headgate run` on a cluster: files that come, tables, answers and state are in the store, and machines fail."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from tests.cluster.standalone import Cluster, written
from tests.cluster.store import Store

import headgate as hg

TEXT = """
CREATE STREAM a (ts TIMESTAMP, item STRING, v BIGINT) TIMESTAMP BY ts USING parquet OPTIONS (path '{root}/a');
CREATE STREAM b (ts TIMESTAMP, item STRING, v BIGINT) TIMESTAMP BY ts
    USING csv OPTIONS (path '{root}/b', header 'true');
CREATE TABLE names (item STRING, name STRING) USING csv OPTIONS (path '{root}/names.csv', header 'true');
CREATE QUERY pairs AS SELECT ISTREAM(a.item, a.v, b.v AS w)
    FROM a [RANGE 30 SECONDS], b [RANGE 30 SECONDS] WHERE a.item = b.item;
CREATE QUERY named AS SELECT ISTREAM(a.v, names.name) FROM a [RANGE 5 SECONDS], names WHERE a.item = names.item;
CREATE QUERY busiest AS SELECT MAX(n) AS most
    FROM (SELECT item, COUNT(*) AS n FROM a [RANGE 1 MINUTE] GROUP BY item);
"""
NAMES = "item,name\nx,first\ny,second\n"
PARTS = ((0, 40), (40, 90), (90, 130), (130, 180))
"""The seconds of the rows that come together."""


def rows(first: int, last: int) -> pa.Table:
    seconds = [*range(first, last)]
    instants = pa.array([second * 1_000_000 for second in seconds], pa.timestamp("us", tz="UTC"))
    return pa.table({"ts": instants, "item": ["xyz"[n % 3] for n in seconds], "v": [n * 7 for n in seconds]})


def as_csv(table: pa.Table) -> str:
    return (
        pl.DataFrame(pl.from_arrow(table))
        .with_columns(pl.col("ts").dt.strftime("%Y-%m-%dT%H:%M:%SZ"))
        .write_csv()
    )


def expected(folder: Path) -> dict[str, list[str]]:
    """What the local engine says."""
    for name in "ab":
        (folder / name).mkdir()
    for number, seconds in enumerate(PARTS):
        pq.write_table(rows(*seconds), folder / "a" / f"{number}.parquet")
        (folder / "b" / f"{number}.csv").write_text(as_csv(rows(*seconds)))
    (folder / "names.csv").write_text(NAMES)
    session = hg.Session()
    session.sql(TEXT.format(root=folder))
    return {name: shown(result.to_polars()) for name, result in session.run().items()}


def shown(found: pl.DataFrame) -> list[str]:
    return sorted(map(repr, found.drop("batch", strict=False).rows()))


def test_a_run_outlives_its_workers_and_its_driver(cluster: Cluster, store: Store, tmp_path: Path) -> None:
    """Files come while it runs; one worker node after the other dies in a micro-batch, then the driver's."""
    root = store.address("run")
    store.put("run/names.csv", NAMES.encode())
    words = ("run", "/tmp/queries/q.cql", "--master", cluster.url, "--shards", "2", "--quiet")
    words += ("--output", f"{root}/out", "--checkpoint", f"{root}/state")
    first, second = cluster.workers

    def put(part: int) -> None:
        store.put_table(f"run/a/{part}.parquet", rows(*PARTS[part]))
        store.put(f"run/b/{part}.csv", as_csv(rows(*PARTS[part])).encode())

    def batches(folder: str) -> set[int]:
        """The micro-batches that a folder of Spark's checkpoint knows."""
        names = (key.rpartition("/")[2] for key in store.keys(f"run/state/{folder}"))
        return {int(name) for name in names if name.isdigit()}

    def begun() -> bool:
        return bool(batches("offsets") - batches("commits"))

    def half_written() -> bool:
        """Whether one query's rows of a micro-batch are in place that has not come to its end."""
        running = batches("offsets") - batches("commits")
        return any(f"/batch={each}/" in key for each in running for key in store.parquet("run/out/pairs"))

    def answered(part: int) -> bool:
        """Whether the join has said all of a part but its last instant, which the clock has to pass, for good."""
        last = 7 * (PARTS[part][1] - 2)
        try:
            found = store.table("run/out/pairs")
        except (FileNotFoundError, pa.ArrowInvalid):
            return False  # nothing yet, or a file of an attempt that has just been replaced
        return {"v": last, "w": last} in found.select(["v", "w"]).to_pylist() and not begun()

    with cluster.driver() as driver:
        driver.write("/tmp/queries/q.cql", TEXT.format(root=root))
        put(0)
        running = driver.start_headgate(*words, "--follow")

        def until(holds: Callable[[], bool]) -> None:
            for _ in range(12_000):
                if holds():
                    return
                assert running.poll() is None, driver.said()
                time.sleep(0.1)
            raise AssertionError(f"it does not come to that: {driver.said()}")

        until(lambda: answered(0))

        put(1)
        until(begun)
        assert first.crash() > 2
        until(lambda: answered(1))
        cluster.start_worker(first)()

        put(2)
        until(half_written)
        assert second.crash() > 2
        until(lambda: answered(2))
        cluster.start_worker(second)()

        put(3)
        until(begun)
        driver.node.crash()
        assert written(driver.node) == ["/tmp/queries/q.cql"]

    with cluster.driver() as driver:
        driver.write("/tmp/queries/q.cql", TEXT.format(root=root))
        done = driver.headgate(*words)
        assert done.returncode == 0, done.stderr[-4000:]
        assert written(driver.node) == ["/tmp/queries/q.cql"]

    for name, answer in expected(tmp_path).items():
        assert shown(pl.DataFrame(pl.from_arrow(store.table(f"run/out/{name}")))) == answer, name
        metrics = json.loads(store.get(f"run/out/{name}/_metrics.json"))
        assert metrics["late_rows"] == 0
    assert "run/state/headgate/query.json" in store.keys("run/state")
    assert [written(node) for node in cluster.workers] == [[], []]
