"""What a comparison says when engines disagree, and what memory is where nothing tells."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli_runner import headgate

from headgate.lab.bench import streams
from headgate.lab.bench.engines.outcome import Outcome
from headgate.lab.process_tree import tree_use


def test_engines_that_disagree_end_in_a_message_and_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    results = iter((3, 4))
    monkeypatch.setattr(
        streams, "measure", lambda engine, *rest: Outcome(engine, [(10, 1.0)], None, next(results))
    )
    done = headgate("bench", "join", "--rows", "20", "--batch", "10", "--engines", "polars,spark-hdfs")
    assert done.code == 1
    assert "error[HG701]: spark-hdfs found 4 results" in done.err
    assert "Traceback" not in done.err


def test_memory_is_not_zero_where_nobody_knows_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert tree_use(os.getpid(), proc=tmp_path) is None
    monkeypatch.setattr(streams, "measure", lambda engine, *rest: Outcome(engine, [(10, 1.0)], None, 3))
    done = headgate("bench", "join", "--rows", "20", "--batch", "10", "--engines", "polars")
    assert done.code == 0
    assert "n/a" in done.out


def test_a_file_gets_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Outcome("", [(10_000_000, 1.0)] * 3, 2_101_234_567, 43_388_412, memory_bytes=6_263_000_000)
    monkeypatch.setattr(streams, "measure", lambda engine, *rest: replace(found, name=engine))
    done = headgate("bench", "join", "--rows", "20", "--batch", "10", "--engines", "polars,spark-rocksdb-v4")
    for number in ("10,000,000", "2,101.2", "6,263", "43,388,412", "1.00", "spark-rocksdb-v4"):
        assert number in done.out


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_what_this_process_uses() -> None:
    found = tree_use(os.getpid())
    assert found is not None
    assert found.processes >= 1
    assert found.total == found.jvm + found.other > 10_000_000
    assert found.processor_seconds > 0.1
