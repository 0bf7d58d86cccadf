"""Case files on Spark, equal to the oracle: a sample always, all of them under `make test-long`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.oracle.casefile import Case, all_cases
from tests.oracle.values import same_output
from tests.spark.on_spark import output_on_spark
from tests.spark.shards import stage_of

CASES = {case.name: case for case in all_cases()}
SAMPLE = (
    "late",
    "clustered-within-time",
    "table-changes",
    "join",
    "types",
    "rstream-slide-aggregate",
    "except",
)


def in_batches(inputs: Mapping[str, pa.Table], count: int) -> list[dict[str, pa.Table]]:
    """All streams' rows in so many micro-batches."""
    return [
        {
            name: table.slice(
                start := table.num_rows * at // count, table.num_rows * (at + 1) // count - start
            )
            for name, table in inputs.items()
        }
        for at in range(count)
    ]


def agree(spark: Any, folder: Path, case: Case, *, shards: int, batches: int) -> None:
    """Raises unless Spark and the case file say the same."""
    for query, expected in case.expected.items():
        place = folder / f"{case.name}-{query}-{shards}-{batches}"
        place.mkdir()
        arrivals = in_batches(case.inputs, batches)
        found, metrics = output_on_spark(spark, place, case.text, query, arrivals, case.tables, shards=shards)
        assert same_output(found, expected), f"{case}: expected {expected}\nfound {found}"
        streams = stage_of(case.text, query, case.tables, shards=shards).graph.streams
        read = {stream: n for stream, n in case.aside.items() if stream in streams}
        assert not read or metrics["late_rows"] == sum(read.values())


def test_a_sample_of_the_cases(spark: Any, tmp_path: Path) -> None:
    for name in SAMPLE:
        agree(spark, tmp_path, CASES[name], shards=4, batches=2)


@pytest.mark.long
@pytest.mark.parametrize(("shards", "batches"), [(1, 1), (1, 3), (4, 1), (4, 4)])
@pytest.mark.parametrize("case", CASES.values(), ids=str)
def test_every_case(spark: Any, tmp_path: Path, case: Case, shards: int, batches: int) -> None:
    agree(spark, tmp_path, case, shards=shards, batches=batches)
