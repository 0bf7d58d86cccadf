"""The cluster of these tests is one: nodes have nothing in common but the store."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from tests.cluster.standalone import Cluster
from tests.cluster.store import Store

_OPEN = """
import os
from pyspark.sql import SparkSession
spark = SparkSession.builder.master(os.environ["HEADGATE_MASTER"]).getOrCreate()
"""


def test_a_job_reads_and_writes_the_store(cluster: Cluster, store: Store) -> None:
    store.put_table("plain/in/part.parquet", pa.table({"k": [1, 2, 1], "v": [10, 20, 30]}))
    program = f"""{_OPEN}
rows = spark.read.parquet("{store.address("plain/in")}").groupBy("k").sum("v")
rows.write.parquet("{store.address("plain/out")}")
"""
    with cluster.driver() as driver:
        driver.python(program)
        assert driver.written() == []
    found = store.table("plain/out").to_pylist()
    assert sorted(found, key=lambda row: row["k"]) == [{"k": 1, "sum(v)": 40}, {"k": 2, "sum(v)": 20}]


def test_a_file_of_a_node_is_its_own(cluster: Cluster) -> None:
    """Each task writes a file; no node sees more than its own."""
    program = f"""{_OPEN}
from pathlib import Path
from pyspark import BarrierTaskContext

def look(_):
    context = BarrierTaskContext.get()
    me = os.environ["SPARK_LOCAL_IP"]
    Path(f"/tmp/of-{{me}}").write_text("mine")
    context.barrier()
    yield me, sorted(each.name for each in Path("/tmp").glob("of-*"))

print(dict(spark.sparkContext.parallelize(range(2), 2).barrier().mapPartitions(look).collect()))
print(sorted(each.name for each in Path("/tmp").glob("of-*")))
"""
    with cluster.driver() as driver:
        seen, at_driver = map(eval, driver.python(program).splitlines())
    assert seen == {node.address: [f"of-{node.address}"] for node in cluster.workers}
    assert at_driver == []
    assert not list(Path("/tmp").glob("of-*"))


def test_nodes_write_nowhere_but_to_their_own_places(cluster: Cluster) -> None:
    here = Path(__file__).parent
    done = cluster.workers[0].run(["touch", str(here / "written")])
    assert "Read-only file system" in done.stderr
    assert not (here / "written").exists()


def test_headgate_is_in_the_workers(cluster: Cluster) -> None:
    program = f"""{_OPEN}
def name(_):
    import headgate.runtime.shard
    yield headgate.__name__

print(spark.sparkContext.parallelize(range(4), 4).mapPartitions(name).collect())
"""
    with cluster.driver() as driver:
        assert eval(driver.python(program)) == ["headgate"] * 4
