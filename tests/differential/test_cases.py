"""Every case file on the local engine: whole, in pieces, and row by row, restored before every step."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest
from tests.differential.local import output_of
from tests.oracle.casefile import Case, all_cases
from tests.oracle.values import same_output

CASES = all_cases()


def row_by_row(inputs: Mapping[str, pa.Table], step: int = 1) -> list[dict[str, pa.Table]]:
    """One row of every stream at a time, or `step` rows."""
    longest = max((table.num_rows for table in inputs.values()), default=0)
    return [{name: table.slice(at, step) for name, table in inputs.items()} for at in range(0, longest, step)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_all_at_once(case: Case) -> None:
    for query, expected in case.expected.items():
        assert same_output(output_of(case.text, query, [case.inputs], case.tables), expected)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_in_pairs(case: Case) -> None:
    for query, expected in case.expected.items():
        found = output_of(case.text, query, row_by_row(case.inputs, step=2), case.tables)
        assert same_output(found, expected)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_restored_before_every_step(case: Case) -> None:
    for query, expected in case.expected.items():
        pieces = row_by_row(case.inputs)
        found = output_of(case.text, query, pieces, case.tables, restore_every_step=True)
        assert same_output(found, expected)


@pytest.mark.parametrize("strategy", ["NT", "DIRECT"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_other_strategies(case: Case, strategy: str) -> None:
    for query, expected in case.expected.items():
        found = output_of(case.text, query, row_by_row(case.inputs, step=3), case.tables, strategy=strategy)
        assert same_output(found, expected)
