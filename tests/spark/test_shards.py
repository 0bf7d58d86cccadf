"""Every case file through packs, shards and stores: whole and row by row, with one shard and with four."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest
from tests.differential.test_cases import row_by_row
from tests.oracle.casefile import Case, all_cases
from tests.oracle.values import same_output
from tests.spark.shards import Cluster, arriving, stage_of

from headgate.runtime.spark import store

CASES = all_cases()


def in_partitions(inputs: Mapping[str, pa.Table], count: int) -> dict[str, list[pa.Table]]:
    """Every stream's rows in so many partitions, in order."""
    return {
        name: [
            table.slice(table.num_rows * part // count, size)
            for part in range(count)
            if (size := table.num_rows * (part + 1) // count - table.num_rows * part // count)
        ]
        for name, table in inputs.items()
    }


@pytest.mark.parametrize("shards", [1, 4])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_all_at_once(case: Case, shards: int) -> None:
    for query, expected in case.expected.items():
        cluster = Cluster(stage_of(case.text, query, case.tables, shards=shards))
        [whole] = arriving(cluster.stage, [case.inputs], case.tables)
        cluster.batch(in_partitions(whole, 3))
        cluster.end()
        assert same_output(cluster.changes(), expected)
        read = {name: count for name, count in case.aside.items() if name in cluster.stage.graph.streams}
        assert cluster.late == {name: count for name, count in read.items() if count}


@pytest.mark.parametrize("shards", [1, 4])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_row_by_row_in_workers_that_forget(case: Case, shards: int) -> None:
    for query, expected in case.expected.items():
        cluster = Cluster(stage_of(case.text, query, case.tables, shards=shards))
        for number, piece in enumerate(arriving(cluster.stage, row_by_row(case.inputs), case.tables)):
            if number % 2:
                store._CACHE.clear()
            cluster.batch({name: [table] for name, table in piece.items() if table.num_rows})
        cluster.end()
        assert same_output(cluster.changes(), expected)
