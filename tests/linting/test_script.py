"""A script is run with nothing started; what it would have started is judged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.cli_runner import headgate

HEAD = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession, functions as f
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.readStream.format("rate").load()
"""


@pytest.fixture(autouse=True)
def _spark_can_run() -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    if shutil.which("java") is None:
        pytest.skip("there is no Java")


def script(folder: Path, text: str) -> Path:
    file = folder / "job.py"
    file.write_text(HEAD + text, encoding="utf-8")
    return file


def test_every_query_is_judged_and_none_starts(tmp_path: Path) -> None:
    job = script(
        tmp_path,
        """
marked = rows.withWatermark("timestamp", "1 minute")
def touch(batch, number):
    Path("called").touch()
first = marked.dropDuplicates(["value"]).writeStream.queryName("first").foreachBatch(touch).start()
first.awaitTermination()
assert not first.isActive and first.lastProgress is None
counts = marked.groupBy(f.window("timestamp", "1 minute")).count()
counts.writeStream.outputMode("complete").format("memory").queryName("second").start()
counts.writeStream.start(format="memory", outputMode="update", queryName="third")
counts.writeStream.option("checkpointLocation", "here").toTable("counts")
spark.streams.awaitAnyTermination()
assert sys.argv[1:] == ["--date", "today"] and __name__ == "__main__"
print("not shown")
""",
    )
    done = headgate("lint", "--format", "json", job, "--", "--date", "today")
    assert done.code == 1, done.err
    queries = json.loads(done.out)["queries"]
    assert [(each["name"], each["output_mode"], each["verdict"]) for each in queries] == [
        ("first", "append", "unbounded"),
        ("second", "complete", "unbounded"),
        ("third", "update", "bounded"),
        ("query 4", "append", "bounded"),
    ]
    assert queries[0]["place"] == "job.py:11"
    assert queries[0]["states"][0] == {
        "operator": "dropDuplicates",
        "of": "by value",
        "bounded": False,
        "by": "none",
        "reason": "the watermark is on timestamp, which is not among the keys, so no key ever leaves",
    }
    assert set(queries[0]["fixes"][0]) == {"kind", "edit", "changes_answer", "effect"}
    assert not (tmp_path / "called").exists()
    assert not (tmp_path / "here").exists()
    assert "not shown" not in done.out + done.err


def test_a_script_that_fails_is_bad_input_after_what_was_found(tmp_path: Path) -> None:
    job = script(tmp_path, "rows.writeStream.queryName('fine').start()\nrows.select('nothing')\n")
    done = headgate("lint", job)
    assert done.code == 2
    assert done.out.startswith("bounded    fine  job.py:7  (append mode)\n  keeps nothing\n")
    assert "failed while lint ran it" in done.err
    assert "UNRESOLVED_COLUMN" in done.err


def test_a_script_that_starts_nothing_has_its_frames_judged(tmp_path: Path) -> None:
    job = script(tmp_path, "once = rows.dropDuplicates(['value'])\n")
    done = headgate("lint", job)
    assert done.code == 1, done.err
    assert done.out.startswith("unbounded  once  (append mode)\n")
    assert "rows" not in done.out.splitlines()[0]


def test_a_script_without_queries_is_bad_input(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text("print('hello')\n", encoding="utf-8")
    done = headgate("lint", job)
    assert done.code == 2
    assert "starts no streaming query" in done.err


def test_a_script_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text("import time\ntime.sleep(1000)\n", encoding="utf-8")
    done = headgate("lint", "--timeout", 3, job)
    assert done.code == 2
    assert "did not end within 3 seconds" in done.err


def test_a_missing_script_is_bad_input(tmp_path: Path) -> None:
    done = headgate("lint", tmp_path / "nothing.py")
    assert done.code == 2
    assert "there is no such file" in done.err
