"""`Session(spark)` on a cluster: rows, answers and state are in the store, and another driver goes on from there."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
from tests.cluster.standalone import Cluster, written
from tests.cluster.store import Store

_PROGRAM = """
import os
from pyspark.sql import SparkSession
import headgate as hg
from headgate.model.errors import InputError

spark = SparkSession.builder.master(os.environ["HEADGATE_MASTER"]).getOrCreate()
session = hg.Session(spark)
session.stream("a", spark.readStream.schema("ts timestamp, item string").parquet("{store}/in/a"), time="ts")
session.sql("CREATE STREAM b (ts TIMESTAMP, item STRING) TIMESTAMP BY ts USING parquet OPTIONS (path '{store}/in/b')")

def start(seconds):
    query = session.sql(f'''CREATE QUERY q{{seconds}} AS SELECT ISTREAM(b.item, a.ts)
      FROM a [RANGE {{seconds}} SECONDS], b [RANGE {{seconds}} SECONDS] WHERE a.item = b.item''')
    return query.start(
        "parquet", shards=2, trigger={{"availableNow": True}}, checkpoint="{store}/state",
        sink_options={{"path": "{store}/out"}},
    )

start(10).awaitTermination()
try:
    start(20)
except InputError as error:
    print(error.cause.splitlines()[0])
"""


def rows(*pairs: tuple[int, str]) -> pa.Table:
    instants = pa.array([seconds * 1_000_000 for seconds, _ in pairs], pa.timestamp("us", tz="UTC"))
    return pa.table({"ts": instants, "item": [item for _, item in pairs]})


def test_another_driver_goes_on_from_the_store(cluster: Cluster, store: Store) -> None:
    place = store.address("session")
    program = _PROGRAM.format(store=place)
    store.put_table("session/in/a/1.parquet", rows((1, "x"), (2, "y")))
    store.put_table("session/in/b/1.parquet", rows((3, "x"), (30, "y")))
    with cluster.driver() as driver:
        refused = driver.python(program)
        assert written(driver.node) == []
    assert refused == f"the checkpoint {place}/state belongs to query q10, and this run is of query q20\n"

    # x is answered now: of the first rows, only those before the second of a were certain.
    store.put_table("session/in/a/2.parquet", rows((90, "z"), (100, "w")))
    store.put_table("session/in/b/2.parquet", rows((91, "z"), (101, "w")))
    with cluster.driver() as driver:
        driver.python(program)
        assert written(driver.node) == []
    answers = store.table("session/out")
    # Spark writes instants as INT96, which is UTC and does not say so.
    instants = answers["_time"].cast(pa.timestamp("us", tz="UTC")).to_pylist()
    assert sorted(zip(answers["item"].to_pylist(), instants, strict=True)) == [
        ("x", datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC)),
        ("z", datetime(1970, 1, 1, 0, 1, 31, tzinfo=UTC)),
    ]
    assert "session/state/headgate/query.json" in store.keys("session/state")
