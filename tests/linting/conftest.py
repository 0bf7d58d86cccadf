"""One Spark session for all tests of lint; skipped where Spark cannot run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.linting.streams import Streams, read_streams, write_streams


@pytest.fixture(scope="package")
def spark() -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql", reason="PySpark is not installed")
    if shutil.which("java") is None:
        pytest.skip("there is no Java")
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="package")
def streams(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Streams:
    folder: Path = tmp_path_factory.mktemp("streams")
    write_streams(folder)
    return read_streams(spark, folder)
