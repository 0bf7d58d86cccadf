"""Messages of a query's output, made on Spark without a server."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.runtime.io.kafka_topic import as_messages


@pytest.mark.parametrize("dtype", ["double", "float"])
@pytest.mark.parametrize("key", [(), ("x",), ("x", "k")], ids=str)
def test_equal_rows_have_equal_keys_whatever_the_sign_of_their_zeros(
    dtype: str, key: tuple[str, ...], spark: Any
) -> None:
    births, deaths = (
        spark.createDataFrame(
            [(zero, 1, "+"), (1.5, 1, "+"), (float("nan"), 1, "+"), (None, 1, "+")],
            f"x {dtype}, k int, _op string",
        )
        for zero in (0.0, -0.0)
    )
    born, dead = (
        [(each.key, each.value) for each in as_messages(rows.coalesce(1), 0, "run", key).collect()]
        for rows in (births, deaths)
    )
    assert born == dead
    assert len({each for each, _ in born}) == 4
