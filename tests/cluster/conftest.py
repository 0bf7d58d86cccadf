"""A cluster of Spark whose nodes share nothing but a store, for all tests of a process."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from tests.cluster.node import why_no_nodes
from tests.cluster.standalone import Cluster
from tests.cluster.store import Store
from tests.services.conftest import free_port
from tests.services.jars import resolve

from headgate.runtime.spark.cluster import why_not_spark


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def s3a_jars() -> list[Path]:
    """Hadoop's connector for S3 of the version that Spark's own Hadoop has, and Spark's part of it."""
    home = Path(pyspark.__file__).parent / "jars"
    [hadoop] = [
        re.fullmatch(r"hadoop-client-api-(.+)\.jar", each.name) for each in home.glob("hadoop-client-api-*")
    ]
    assert hadoop is not None
    connector = resolve(
        [("org.apache.hadoop", "hadoop-aws", hadoop[1])], without=["org.apache.hadoop", "org.slf4j"]
    )
    assert connector, f"hadoop-aws {hadoop[1]} cannot be had from Maven"
    # A repository may be behind PyPI.
    for version in (pyspark.__version__, *_OLDER):
        cloud = resolve([("org.apache.spark", "spark-hadoop-cloud_2.13", version)], without=["*"])
        if cloud:
            return [*connector, *cloud]
    pytest.fail("spark-hadoop-cloud cannot be had from Maven")


_OLDER = ("4.1.2",)


@pytest.fixture(scope="session")
def store() -> Iterator[Store]:
    folder = Path(tempfile.mkdtemp(prefix="headgate-store-"))
    server = Store(folder, free_port())
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster(store: Store, s3a_jars: list[Path]) -> Iterator[Cluster]:
    reason = why_not_spark() or why_no_nodes()
    if reason is not None:
        pytest.fail(reason)
    running = Cluster(store, s3a_jars, free_port())
    try:
        running.start()
        yield running
    finally:
        running.stop()
