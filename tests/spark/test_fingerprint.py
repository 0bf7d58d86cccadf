"""A query is the same plan in every process: hashes of text differ between them, and order must not follow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.oracle.casefile import all_cases
from tests.spark.shards import stage_of

ROOT = Path(__file__).parents[2]


def descriptions() -> str:
    """What a checkpoint remembers of every query of every case."""
    lines = []
    for case in all_cases():
        for query in case.expected:
            stage = stage_of(case.text, query, case.tables, shards=4)
            lines += [f"{case} {query}", *stage.description()]
    return "\n".join(lines)


def test_other_processes_describe_a_query_the_same() -> None:
    program = "from tests.spark.test_fingerprint import descriptions; print(descriptions())"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    one, other = (process.communicate()[0] for process in running)
    assert all(process.returncode == 0 for process in running)
    assert len(one.splitlines()) > len(all_cases())
    assert one == other
