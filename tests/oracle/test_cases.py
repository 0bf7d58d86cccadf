"""Every case file says what the oracle says; each is a behaviour worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.oracle.casefile import Case, all_cases, microseconds, read_case
from tests.oracle.oracle import Oracle
from tests.oracle.values import same_output

CASES = all_cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_oracle_agrees(case: Case) -> None:
    oracle = Oracle(case.text, case.inputs, case.tables)
    for query, expected in case.expected.items():
        assert same_output(oracle.output(query), expected)
    assert {stream: oracle.late(stream).num_rows for stream in case.late} == case.late
    assert not oracle.order_matters


@pytest.mark.parametrize("case", CASES, ids=str)
def test_oracle_agrees_instant_by_instant(case: Case) -> None:
    oracle = Oracle(case.text, case.inputs, case.tables, plain=True)
    assert all(same_output(oracle.output(query), expected) for query, expected in case.expected.items())


def test_every_query_of_every_case_is_expected_or_read_by_one_that_is() -> None:
    for case in CASES:
        queries = Oracle(case.text, case.inputs, case.tables).queries
        assert set(queries) >= set(case.expected)
        assert queries[-1] in case.expected


def test_seconds_are_whole_microseconds() -> None:
    assert microseconds(1) == 1_000_000
    assert microseconds(1.000001) == 1_000_001
    assert microseconds(-0.5) == -500_000
    with pytest.raises(ValueError, match="whole microseconds"):
        microseconds(0.0000001)


def test_a_case_is_called_like_its_file(tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    path.write_text("name: this\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"other\.yaml is not a case"):
        read_case(path)
