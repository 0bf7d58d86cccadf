"""The cluster of these tests is one: nodes have nothing in common but the store, and that keeps what it is given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.cluster.standalone import Cluster, written
from tests.cluster.store import Store

# One application for all that is asked here: each takes long to start.
_PROGRAM = """
import json
import os
from pathlib import Path
from pyspark import BarrierTaskContext
from pyspark.sql import SparkSession
from tests.spark.folder_contract import require_contract
from headgate.runtime.spark.filesystem import Folder

spark = SparkSession.builder.master(os.environ["HEADGATE_MASTER"]).getOrCreate()
spark.read.parquet("{store}/plain/in").groupBy("k").sum("v").write.parquet("{store}/plain/out")

def look(_):
    import headgate.runtime.shard
    me = os.environ["SPARK_LOCAL_IP"]
    Path(f"/tmp/of-{{me}}").write_text("mine")
    BarrierTaskContext.get().barrier()
    yield me, sorted(each.name for each in Path("/tmp").glob("of-*"))

folder = Folder(spark, "{store}/contract")
require_contract(folder)
print(json.dumps({{
    "workers": dict(spark.sparkContext.parallelize(range(2), 2).barrier().mapPartitions(look).collect()),
    "driver": sorted(each.name for each in Path("/tmp").glob("of-*")),
    "local": folder.local,
}}))
"""


@pytest.fixture(scope="module")
def seen(cluster: Cluster, store: Store) -> Any:
    store.put_table("plain/in/part.parquet", pa.table({"k": [1, 2, 1], "v": [10, 20, 30]}))
    with cluster.driver() as driver:
        said = driver.python(_PROGRAM.format(store=store.address("")[:-1]))
        assert written(driver.node) == []
    return json.loads(said)


@pytest.mark.usefixtures("seen")
def test_a_job_reads_and_writes_the_store(store: Store) -> None:
    found = store.table("plain/out").to_pylist()
    assert sorted(found, key=lambda row: row["k"]) == [{"k": 1, "sum(v)": 40}, {"k": 2, "sum(v)": 20}]


def test_a_file_of_a_node_is_its_own(cluster: Cluster, seen: Any) -> None:
    """Each task has written a file; no node sees more than its own."""
    assert seen["workers"] == {node.address: [f"of-{node.address}"] for node in cluster.workers}
    assert seen["driver"] == []
    assert not list(Path("/tmp").glob("of-*"))
    for node in cluster.workers:
        assert written(node) == [f"/tmp/of-{node.address}"]
        node.path(f"/tmp/of-{node.address}").unlink()


def test_nodes_write_nowhere_but_to_their_own_places(cluster: Cluster) -> None:
    here = Path(__file__).parent
    done = cluster.workers[0].run(["touch", str(here / "written")])
    assert "Read-only file system" in done.stderr
    assert not (here / "written").exists()


def test_what_holds_of_a_folder_of_this_machine_holds_of_one_in_the_store(seen: Any, store: Store) -> None:
    assert seen["local"] is None
    assert store.keys("contract") == ["contract/a", "contract/nothing"]
    assert store.get("contract/a") == b"other"
