"""`headgate run` on a cluster: files, tables, answers and state are in the store, where another driver goes on."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from tests.cluster.standalone import Cluster
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
QUERIES = ("pairs", "named", "busiest")


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


def expected(folder: Path, tables: list[pa.Table]) -> dict[str, list[str]]:
    """What the local engine says."""
    for name in "ab":
        (folder / name).mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, folder / "a" / f"{number}.parquet")
        (folder / "b" / f"{number}.csv").write_text(as_csv(table))
    (folder / "names.csv").write_text(NAMES)
    session = hg.Session()
    session.sql(TEXT.format(root=folder))
    return {name: shown(result.to_polars()) for name, result in session.run().items()}


def shown(found: pl.DataFrame) -> list[str]:
    return sorted(map(repr, found.drop("batch", strict=False).rows()))


def test_a_program_of_the_store_goes_on_from_another_driver(
    cluster: Cluster, store: Store, tmp_path: Path
) -> None:
    root = store.address("run")
    parts = [rows(0, 40), rows(40, 90), rows(90, 130)]
    store.put("run/names.csv", NAMES.encode())

    def run(part: int, *words: str) -> None:
        store.put_table(f"run/a/{part}.parquet", parts[part])
        store.put(f"run/b/{part}.csv", as_csv(parts[part]).encode())
        with cluster.driver() as driver:
            driver.write("/tmp/queries/q.cql", TEXT.format(root=root))
            done = driver.headgate(
                *("run", "/tmp/queries/q.cql", "--master", cluster.url, "--shards", "2", *words),
                *("--output", f"{root}/out", "--checkpoint", f"{root}/state", "--quiet"),
            )
            assert done.returncode == 0, done.stderr[-4000:]
            assert driver.written() == ["queries/q.cql"]

    run(0, "--no-drain")
    run(1, "--no-drain")
    run(2)
    for name, answer in expected(tmp_path, parts).items():
        assert shown(pl.DataFrame(pl.from_arrow(store.table(f"run/out/{name}")))) == answer, name
        metrics = json.loads(store.get(f"run/out/{name}/_metrics.json"))
        assert metrics["late_rows"] == 0
    assert "run/state/headgate/query.json" in store.keys("run/state")
