"""One Spark session for all tests of a process that need one; they are skipped where Spark cannot run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headgate.runtime.spark.cluster import open_spark, why_not_spark


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    reason = why_not_spark()
    if reason is not None:
        pytest.skip(reason)
    # Few: each has a state store of its own, and Spark starts 200 where a query of a test is not told otherwise.
    session = open_spark("local[2]", {"spark.sql.shuffle.partitions": "5"})
    yield session
    session.stop()
