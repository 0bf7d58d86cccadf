"""The Python that Spark's workers run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.model.errors import SetupError
from headgate.runtime.spark.workers import prepare_workers


@pytest.fixture
def context(spark: Any) -> Iterator[Any]:
    before = spark.sparkContext.pythonExec
    yield spark.sparkContext
    spark.sparkContext.pythonExec = before


def test_workers_of_this_machine_run_this_python(
    spark: Any, context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON")
    context.pythonExec = "python-that-nobody-has"
    prepare_workers(spark)
    assert context.pythonExec == sys.executable


def test_a_python_that_lacks_packages_is_told_of_before_a_query_starts(
    spark: Any, context: Any, tmp_path: Path
) -> None:
    bare = tmp_path / "bare-python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    context.pythonExec = str(bare)
    with pytest.raises(SetupError, match=r"has no .*polars") as error:
        prepare_workers(spark)
    assert "PYSPARK_PYTHON" in str(error.value)


def test_a_python_that_is_not_there_is_told_of(spark: Any, context: Any, tmp_path: Path) -> None:
    context.pythonExec = str(tmp_path / "none")
    with pytest.raises(SetupError, match="workers cannot run"):
        prepare_workers(spark)
