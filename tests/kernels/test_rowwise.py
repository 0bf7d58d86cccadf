"""Filter, project and union act row by row and keep lifetime and sign."""

from __future__ import annotations

import polars as pl
import pytest
import sqlglot
from sqlglot import exp
from tests.kernels.stepping import rows, run

from headgate.kernels.filter import Filter
from headgate.kernels.project import Project
from headgate.kernels.union import Union
from headgate.model import types
from headgate.model.batch import BORN, DIES, LIFETIME_COLUMNS, SIGN, Batch
from headgate.model.errors import DataError
from headgate.model.scalar import Scalar, column
from headgate.model.time import NEVER, Clock

PAYLOAD: dict[str, pl.DataType] = {"k": pl.Int64(), "v": pl.Int64()}
FRAME = rows(PAYLOAD, [(1, 10, 1, 9, 1), (None, 20, 2, NEVER, 1), (3, 30, 3, 9, 1), (1, 10, 5, 9, -1)])


def scalar(text: str) -> Scalar:
    def flat(node: exp.Expr) -> exp.Expr:
        return column(node.name) if isinstance(node, exp.Column) else node

    return Scalar(sqlglot.parse_one(text, read="spark").transform(flat), types.NULL)


def test_filter_keeps_rows_and_endings_where_the_predicate_is_true() -> None:
    state, output = run(Filter(scalar("k < 3")), [FRAME], [2])
    assert output.rows() == [(1, 10, 1, 9, 1), (1, 10, 5, 9, -1)]
    assert state.rows == state.nbytes == len(state.chunks()) == 0


def test_project_computes_columns_and_keeps_lifetimes() -> None:
    kernel = Project((("twice", scalar("v * 2L")), ("k", scalar("k")), ("one", scalar("1"))))
    _, output = run(kernel, [FRAME], [2], restore=True)
    assert output.columns == ["twice", "k", "one", *LIFETIME_COLUMNS]
    assert output.select("twice", "k", "one").rows() == [(20, 1, 1), (40, None, 1), (60, 3, 1), (20, 1, 1)]
    assert output.select(BORN, DIES, SIGN).rows() == FRAME.select(BORN, DIES, SIGN).rows()


def test_project_to_constants_has_as_many_rows_as_came() -> None:
    _, output = run(Project((("one", scalar("1")),)), [FRAME], [2])
    assert output["one"].to_list() == [1, 1, 1, 1]


def test_a_value_that_does_not_exist_stops_the_step() -> None:
    kernel = Project((("bad", scalar("1 / (k - 3L)")),))
    with pytest.raises(DataError, match="divides by zero") as failure:
        kernel.advance(kernel.initial(), [Batch(FRAME)], Clock(0, 9, 1))
    assert failure.value.remedy is not None


def test_union_is_in_order_of_birth_then_of_inputs() -> None:
    left = rows(PAYLOAD, [(1, 1, 2, NEVER, 1), (1, 2, 5, NEVER, 1)])
    right = rows(PAYLOAD, [(2, 1, 1, NEVER, 1), (2, 2, 2, 7, 1), (2, 1, 4, NEVER, -1)])
    for cuts in ([], [2], [4]):
        _, output = run(Union(PAYLOAD, 2), [left, right.select("v", "k", *LIFETIME_COLUMNS)], cuts)
        assert output.rows() == [
            (2, 1, 1, NEVER, 1), (1, 1, 2, NEVER, 1), (2, 2, 2, 7, 1), (2, 1, 4, NEVER, -1), (1, 2, 5, NEVER, 1),
        ]  # fmt: skip


def test_union_counts_its_inputs() -> None:
    with pytest.raises(ValueError, match="2 inputs got 1"):
        Union(PAYLOAD, 2).advance(Union(PAYLOAD, 2).initial(), [Batch(FRAME)], Clock(0, 9, 1))
