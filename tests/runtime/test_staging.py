"""Runs that write to one folder at once: no results are lost, and whoever cannot go on is told why."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli_runner import Outcome, headgate

from headgate.model.errors import InputError, SetupError
from headgate.runtime.local.output_folder import OutputFolder

SCHEMA = pa.schema([("k", pa.int64())])


def folder(root: Path, *queries: str, overwrite: bool = False) -> OutputFolder:
    return OutputFolder(
        root, dict.fromkeys(queries, SCHEMA), {"s": SCHEMA}, format="parquet", overwrite=overwrite
    )


def rows(value: int) -> pa.Table:
    return pa.table({"k": [value]}, SCHEMA)


def found(root: Path, query: str) -> list[object]:
    files = sorted((root / query).glob("*.parquet"))
    return [row["k"] for file in files for row in pq.read_table(file).to_pylist()]


def put(root: Path, query: str, value: int) -> None:
    """Results that come from elsewhere."""
    (root / query).mkdir(parents=True)
    pq.write_table(rows(value), root / query / "part-00000.parquet")


# -- two runs at once -----------------------------------------------------------------------------


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_second_run_of_a_query_is_refused_while_the_first_lives(tmp_path: Path, overwrite: bool) -> None:
    with folder(tmp_path, "q", overwrite=overwrite) as first:
        with (
            pytest.raises(InputError, match="another run is writing results of q"),
            folder(tmp_path, "p", "q", overwrite=overwrite),
        ):
            raise AssertionError("it was not refused")
        first.append("q", rows(1))
    assert found(tmp_path, "q") == [1]
    assert [each.name for each in tmp_path.iterdir()] == ["q"]


def test_runs_of_other_queries_do_not_meet(tmp_path: Path) -> None:
    with folder(tmp_path, "q") as first, folder(tmp_path, "p") as second:
        first.append("q", rows(1))
        second.append("p", rows(2))
    assert (found(tmp_path, "q"), found(tmp_path, "p")) == ([1], [2])


@pytest.mark.parametrize("overwrite", [False, True])
def test_results_that_came_meanwhile_are_not_deleted(tmp_path: Path, overwrite: bool) -> None:
    if overwrite:
        put(tmp_path, "q", 0)
    output = folder(tmp_path, "p", "q", overwrite=overwrite).__enter__()
    output.append("p", rows(1))
    output.append("q", rows(2))
    if overwrite:
        (tmp_path / "q").rename(tmp_path / "elsewhere")
    put(tmp_path, "q", 7)
    with pytest.raises(InputError, match="another run has written results of q") as refused:
        output.__exit__(None)
    assert found(tmp_path, "q") == [7]
    assert not (tmp_path / "p").exists()
    (kept,) = tmp_path.glob("unpublished.*")
    assert (found(kept, "p"), found(kept, "q")) == ([1], [2])
    assert str(kept) in str(refused.value)


def test_late_rows_that_came_meanwhile_are_not_deleted(tmp_path: Path) -> None:
    late = tmp_path / "_late" / "s" / "part-q.00000.parquet"
    output = folder(tmp_path, "q").__enter__()
    late.parent.mkdir(parents=True)
    pq.write_table(rows(7), late)
    with pytest.raises(InputError, match="another run has written"):
        output.__exit__(None)
    assert pq.read_table(late).to_pylist() == [{"k": 7}]


def test_an_old_answer_is_replaced_when_asked(tmp_path: Path) -> None:
    put(tmp_path, "q", 0)
    with folder(tmp_path, "q", overwrite=True) as output:
        output.append("q", rows(1))
    assert found(tmp_path, "q") == [1]


# -- what a kill leaves ---------------------------------------------------------------------------


def killed(root: Path) -> None:
    """A run that is killed while it writes."""
    program = f"""
        import os, signal, pyarrow as pa
        from pathlib import Path
        from headgate.runtime.local.output_folder import OutputFolder
        schemas = {{"q": pa.schema([("k", pa.int64())])}}
        with OutputFolder(Path({str(root)!r}), schemas, {{}}, format="parquet", overwrite=False):
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", dedent(program)], check=False)
    assert done.returncode == -signal.SIGKILL


def test_what_a_killed_run_left_is_in_nobodys_way(tmp_path: Path) -> None:
    killed(tmp_path)
    (tmp_path / f".staging-{os.getpid()}").mkdir()
    assert len(list(tmp_path.iterdir())) == 2
    with folder(tmp_path, "q") as output:
        output.append("q", rows(1))
    assert [each.name for each in tmp_path.iterdir()] == ["q"]


# -- a disk without room --------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["write_table", "close"])
def test_a_full_disk_is_said_to_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    def no_room(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pq.ParquetWriter, method, no_room)
    with (
        pytest.raises(SetupError, match="there is no space left") as refused,
        folder(tmp_path, "q") as output,
    ):
        output.append("q", rows(1))
    assert refused.value.exit_code == 3
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_ends_a_local_run_with_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pq.ParquetWriter, "write_table", no_room)
    done = run(tmp_path, "s")
    assert done.code == 3
    assert done.err.startswith(f"error[HG601]: there is no space left for {tmp_path / 'out'}\n")


# -- names ----------------------------------------------------------------------------------------


def run(base: Path, stream: str) -> Outcome:
    """A run over a stream of which one row is late."""
    (base / "q.cql").write_text(
        f"CREATE STREAM `{stream}` (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts "
        "USING csv OPTIONS (path 's.csv', header true);\n"
        f"CREATE QUERY q AS SELECT ISTREAM(k) FROM `{stream}` [RANGE 5 SECONDS];\n"
    )
    (base / "s.csv").write_text("ts,k\n2026-01-01T00:00:05,1\n2026-01-01T00:00:01,2\n")
    return headgate("run", base / "q.cql", "--output", base / "out", "--engine", "local", "--quiet")


@pytest.mark.parametrize("stream", ["../x", "a b", "..", "Gebühren", "_late"])
def test_late_rows_of_a_stream_with_an_odd_name_stay_in_the_folder(tmp_path: Path, stream: str) -> None:
    done = run(tmp_path, stream)
    assert done.code == 0, done.err
    (late,) = (tmp_path / "out" / "_late").glob("*/part-q.*.parquet")
    assert pq.read_table(late).column("k").to_pylist() == [2]
    assert {each.name for each in tmp_path.iterdir()} == {"q.cql", "s.csv", "out"}


def test_a_name_that_is_too_long_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    done = run(tmp_path, "ü" * 100)
    assert done.code == 2
    assert "cannot name a folder for late rows" in done.err
    assert not (tmp_path / "out").exists()
