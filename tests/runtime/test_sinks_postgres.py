"""What a view is sent, and what is refused before a server is asked."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from headgate.runtime.sinks.postgres import _as_csv, _net

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def log(column: str, values: list[float | None], dtype: pa.DataType, op: str = "+") -> pa.Table:
    """A change log of one column, all births or all deaths."""
    return pa.table(
        {
            column: pa.array(values, dtype),
            "_time": pa.array([NOW] * len(values), pa.timestamp("us", "UTC")),
            "_op": pa.array([op] * len(values), pa.string()),
        }
    )


@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64()], ids=str)
def test_a_negative_zero_is_sent_as_zero(dtype: pa.DataType) -> None:
    # A row is found by a digest of its text, so a death must be written as the birth was.
    for zero in (0.0, -0.0):
        net = _net(log("x", [zero, 1.0, None, float("nan")], dtype), ["x"])
        assert sorted(_as_csv(net).splitlines()) == [b",1", b"0.0,1", b"1.0,1", b"NaN,1"]
