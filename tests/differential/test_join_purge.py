"""A join that is told when partners have come for the last time does not keep what it is told of."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.differential.test_null_promises import played

from headgate.model.time import SECOND

KEYS = 1_000


def closed(stream: int) -> pa.Table:
    """Two rows of each key, one after the other, of which the second says that it is the last."""
    instants = [(4 * (number // 2) + 2 * (number % 2) + stream) * SECOND for number in range(2 * KEYS)]
    return pa.table(
        {
            "ts": pa.array(instants, pa.timestamp("us", tz="UTC")),
            "k": pa.array([number // 2 for number in range(2 * KEYS)], pa.int64()),
            "last": pa.array([number % 2 == 1 for number in range(2 * KEYS)], pa.bool_()),
        }
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ISTREAM(a.k) FROM a, b WHERE a.k = b.k",
        "SELECT ISTREAM(a.k) FROM a, b, c [RANGE 1 MINUTE] WHERE a.k = b.k AND b.k = c.k",
    ],
)
def test_closed_values_are_forgotten(query: str) -> None:
    names = ("a", "b", "c")
    declared = "".join(
        f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, last BOOLEAN) TIMESTAMP BY ts "
        "PUNCTUATED BY (k) WHEN last;\n"
        for name in names
    )
    rows = {name: closed(number) for number, name in enumerate(names)}
    largest, late = played(f"{declared}CREATE QUERY q AS {query};", rows, step=100)
    assert late.is_empty()
    assert largest < KEYS
