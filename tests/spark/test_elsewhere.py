"""Runs whose files, tables, answers and checkpoints are at addresses that only Spark's file systems know.

Here these are a file system of Hadoop that shows a folder of this machine under a name of its own (viewfs).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.cluster.test_run import NAMES, PARTS, TEXT, as_csv, expected, rows, shown

import headgate as hg
from headgate.model.errors import DataError, InputError
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.run import RunTarget, run_to_folder

pytestmark = pytest.mark.spark
ROOT = "viewfs://headgate/d"


@pytest.fixture
def elsewhere(spark: Any, tmp_path: Path) -> Iterator[Path]:
    """The folder behind the address ROOT."""
    folder = tmp_path / "behind"
    for name in "ab":
        (folder / name).mkdir(parents=True)
    (folder / "names.csv").write_text(NAMES)
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    key = "fs.viewfs.mounttable.headgate.link./d"
    settings.set(key, folder.as_uri())
    settings.set("fs.viewfs.impl.disable.cache", "true")
    yield folder
    settings.unset(key)


def run(spark: Any, **options: Any) -> Any:
    session = hg.Session()
    session.sql(TEXT.format(root=ROOT))
    output = options.pop("output", f"{ROOT}/out")
    place = RunTarget(output, options.pop("checkpoint", f"{ROOT}/state"), options.pop("overwrite", False))
    chosen = SparkOptions(shards=2, **options)
    return run_to_folder(spark, session.compile(None), Path("/nowhere"), chosen, place)


def test_a_run_goes_on_at_an_address(spark: Any, elsewhere: Path, tmp_path: Path) -> None:
    parts = [rows(*seconds) for seconds in PARTS]
    local = tmp_path / "local"
    local.mkdir()
    answers = expected(local)
    for number, part in enumerate(parts):
        pq.write_table(part, elsewhere / "a" / f"{number}.parquet")
        (elsewhere / "b" / f"{number}.csv").write_text(as_csv(part))
        run(spark, drain=number == len(parts) - 1)
    for name, answer in answers.items():
        found = pl.read_parquet(elsewhere / "out" / name / "batch=*" / "*.parquet", hive_partitioning=True)
        assert shown(found) == answer, name
    metrics = json.loads((elsewhere / "out" / "pairs" / "_metrics.json").read_text())
    assert metrics["late_rows"] == 0
    assert not Path("viewfs:").exists()
    # Another run may not add to it, or replace it unasked.
    with pytest.raises(InputError, match=r"out/pairs exists already"):
        run(spark, checkpoint=f"{ROOT}/other")
    run(spark, checkpoint=f"{ROOT}/other", overwrite=True)
    for name, answer in answers.items():
        assert shown(pl.read_parquet(elsewhere / "out" / name / "batch=*" / "*.parquet")) == answer, name


def test_late_rows_and_bad_ones_at_an_address(spark: Any, elsewhere: Path) -> None:
    pq.write_table(rows(50, 60), elsewhere / "a" / "0.parquet")
    (elsewhere / "b" / "0.csv").write_text(as_csv(rows(50, 60)))
    run(spark, drain=False)
    pq.write_table(rows(10, 13), elsewhere / "a" / "1.parquet")
    pq.write_table(rows(60, 70), elsewhere / "a" / "2.parquet")
    found = run(spark)
    late = pl.read_parquet(elsewhere / "out" / "_late" / "a" / "query=pairs" / "batch=*" / "*.parquet")
    assert sorted(late["v"]) == [70, 77, 84]
    assert found.metrics["pairs"]["late_rows"] == 3
    (elsewhere / "b" / "1.csv").write_text("ts,item,v\nsoon,x,1\n")
    with pytest.raises(DataError, match=r"viewfs://headgate/d/b/1\.csv, row 1 \(line 2\), column ts: 'soon'"):
        run(spark)
    # What stopped the run is set aside when it goes on, at an address too; and a table's bad rows are.
    (elsewhere / "names.csv").write_text(f"{NAMES}one too many,1,2,3\n")
    for number in (2, 3):
        found = run(spark, rejects=f"{ROOT}/bad")
        assert (found.rejected_rows, found.metrics["pairs"]["rejected_rows"]) == (number, number - 1)
        (elsewhere / "b" / f"{number}.csv").write_text("ts,item,v\nsoon,x,1\n")
    rejects = [json.loads(file.read_text()) for file in sorted((elsewhere / "bad" / "b").glob("*.json"))]
    assert [(each["file"], each["row"], each["column"]) for each in rejects] == [
        (f"{ROOT}/b/{number}.csv", 1, "ts") for number in (1, 2)
    ]
    (bad,) = [json.loads(file.read_text()) for file in (elsewhere / "bad" / "names").glob("*.json")]
    assert bad["file"].startswith(f"{ROOT}/names.csv")
    with pytest.raises(InputError, match="rejects of an earlier run"):
        run(spark, rejects=f"{ROOT}/bad", checkpoint=f"{ROOT}/other", output=f"{ROOT}/other_out")


def test_what_an_address_cannot_do_is_said(spark: Any, elsewhere: Path) -> None:
    pq.write_table(rows(0, 4), elsewhere / "a" / "0.parquet")
    (elsewhere / "b" / "0.csv").write_text(as_csv(rows(0, 4)))
    with pytest.raises(InputError, match="needs --checkpoint"):
        run(spark, checkpoint=None)
    (elsewhere / "names.csv").unlink()
    with pytest.raises(InputError, match=r"table names: there is no file at viewfs://headgate/d/names\.csv"):
        run(spark)
