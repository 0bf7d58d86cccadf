"""What holds of a folder of this machine holds of one in the store."""

from __future__ import annotations

from tests.cluster.standalone import Cluster
from tests.cluster.store import Store


def test_a_folder_in_the_store(cluster: Cluster, store: Store) -> None:
    program = f"""
from pyspark.sql import SparkSession
from tests.spark.folder_contract import require_contract
from headgate.runtime.spark.filesystem import Folder

spark = SparkSession.builder.master("local[1]").getOrCreate()
folder = Folder(spark, {store.address("contract")!r})
require_contract(folder)
assert folder.local is None
"""
    with cluster.driver() as driver:
        driver.python(program)
        assert driver.written() == []
    assert store.keys("contract") == ["contract/a", "contract/nothing"]
    assert store.get("contract/a") == b"other"
