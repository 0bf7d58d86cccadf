"""The Python that Spark's workers run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.model.errors import SetupError
from headgate.runtime.spark import workers
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.run import RunTarget, run_to_folder
from headgate.runtime.spark.start_settings import checkpoint_files, start_settings
from headgate.runtime.spark.workers import prepare_workers
from headgate.session import Session


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


def test_workers_import_pyspark_as_it_is_installed_and_not_from_its_archive(spark: Any) -> None:
    prepare_workers(spark)

    def where(_: Iterator[int]) -> Iterator[str]:
        import pyspark  # noqa: PLC0415 - in the worker

        return iter([pyspark.__file__])

    [found] = spark.sparkContext.parallelize([0], 1).mapPartitions(where).collect()
    assert Path(found).is_file()


def test_another_module_that_python_imports_when_it_starts_is_not_hidden(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('mine')")
    ours = Path(workers.__file__).parent / "worker_path"
    script = "import sys, sitecustomize; print(sitecustomize.__file__, len(sys.path) - len(set(sys.path)))"
    run = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ours), str(tmp_path)])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.splitlines() == ["mine", f"{tmp_path / 'sitecustomize.py'} 0"]


def test_a_checkpoint_on_a_disk_is_written_with_few_processes_and_settings_come_back(
    spark: Any, tmp_path: Path
) -> None:
    manager = "spark.sql.streaming.checkpointFileManagerClass"
    before = spark.conf.get("spark.sql.shuffle.partitions")
    with start_settings(spark, 7, tmp_path / "checkpoint"):
        name = spark.conf.get(manager)
        assert spark.conf.get("spark.sql.shuffle.partitions") == "7"
        assert spark._jvm.java.lang.Class.forName(name).getName() == name
    assert spark.conf.get(manager, None) is None
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def test_a_way_to_write_checkpoints_that_somebody_has_chosen_stands(spark: Any, tmp_path: Path) -> None:
    manager = "spark.sql.streaming.checkpointFileManagerClass"
    spark.conf.set(manager, "chosen")
    try:
        assert checkpoint_files(spark, tmp_path) == {}
    finally:
        spark.conf.unset(manager)


def test_what_a_worker_has_imported_is_not_looked_through_after_each_task(spark: Any) -> None:
    def looked_through(_: Iterator[int]) -> Iterator[tuple[int, int]]:
        import gc  # noqa: PLC0415 - in the worker

        from headgate.runtime.spark.job_shard import advance_place  # noqa: F401, PLC0415 - with all that it imports
        from headgate.runtime.spark.worker_memory import leave_out_imports  # noqa: PLC0415

        gc.unfreeze()
        before = len(gc.get_objects())
        leave_out_imports("a kind of task that no other test has")
        return iter([(before, len(gc.get_objects()))])

    [(before, after)] = spark.sparkContext.parallelize([0], 1).mapPartitions(looked_through).collect()
    assert after < before / 100


def test_tasks_of_a_query_leave_out_what_they_have_imported(spark: Any, tmp_path: Path) -> None:
    session = Session()
    session.sql(
        "CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts USING csv OPTIONS (path 's.csv', header 'true');"
        "CREATE QUERY q AS SELECT ISTREAM(k) FROM s;"
    )
    (tmp_path / "s.csv").write_text("ts,k\n2024-01-01 00:00:00,1\n")
    run_to_folder(spark, session.compile(["q"]), tmp_path, SparkOptions(), RunTarget(str(tmp_path / "out")))

    def left_out(_: Iterator[int]) -> Iterator[int]:
        import gc  # noqa: PLC0415 - in the worker

        return iter([gc.get_freeze_count()])

    assert max(spark.sparkContext.parallelize([0, 0], 2).mapPartitions(left_out).collect()) > 0
