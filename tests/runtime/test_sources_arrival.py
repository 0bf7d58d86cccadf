"""Arrival: instants, the clock of a stream, and late rows."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.reading import csv, declare

from headgate.model.batch import BORN
from headgate.model.errors import DataError, DeclarationError
from headgate.model.time import BEGINNING
from headgate.plan.catalog import StreamDef
from headgate.runtime.io import Admitted, Arrival, ArrivalState


def stream(slack: int = 0, dtype: str = "TIMESTAMP") -> StreamDef:
    within = f"WITHIN INTERVAL {slack} MICROSECONDS" if slack else ""
    return declare(f"n BIGINT, ts {dtype}", f"TIMESTAMP BY ts {within} {csv()}")


def chunk(*instants: int | None, zone: str | None = "UTC") -> pl.DataFrame:
    times = pl.Series("ts", instants, pl.Int64).cast(pl.Datetime("us", zone))
    return pl.DataFrame([pl.Series("n", range(len(instants)), pl.Int64), times])


def instants(admitted: Admitted) -> tuple[list[int], list[int], int]:
    return admitted.rows[BORN].to_list(), admitted.late[BORN].to_list(), admitted.clock


def test_rows_get_their_instant_in_microseconds() -> None:
    frame = pl.DataFrame({"n": [1], "ts": [datetime(1970, 1, 1, 0, 0, 1, 5, UTC)]})
    admitted = Arrival(stream()).admit(frame)
    assert admitted.rows.schema == {"n": pl.Int64, "ts": pl.Datetime("us", "UTC"), BORN: pl.Int64}
    assert instants(admitted) == ([1_000_005], [], 1_000_005)


def test_a_time_without_zone_is_taken_as_it_is() -> None:
    assert instants(Arrival(stream(dtype="TIMESTAMP_NTZ")).admit(chunk(7, zone=None))) == ([7], [], 7)


def test_the_clock_is_the_largest_instant_less_the_slack() -> None:
    assert instants(Arrival(stream(slack=3)).admit(chunk(10, 8, 20, 15, 17))) == ([10, 8, 20, 17], [15], 17)


def test_without_slack_a_row_is_late_if_a_later_one_came_before() -> None:
    assert instants(Arrival(stream()).admit(chunk(5, 5, 4, 6))) == ([5, 5, 6], [4], 6)


def test_the_clock_carries_over_to_the_next_chunk() -> None:
    arrival = Arrival(stream(slack=3))
    assert arrival.clock == BEGINNING
    assert instants(arrival.admit(chunk(10))) == ([10], [], 7)
    assert instants(arrival.admit(chunk(6, 7))) == ([7], [6], 7)
    assert instants(arrival.admit(chunk())) == ([], [], 7)
    assert arrival.clock == 7


def test_a_late_row_does_not_turn_the_clock_back() -> None:
    assert instants(Arrival(stream()).admit(chunk(10, 1, 9, 10))) == ([10, 10], [1, 9], 10)


def test_before_the_first_row_there_is_no_clock_however_early_that_is() -> None:
    assert instants(Arrival(stream(slack=5)).admit(chunk(-62_135_596_800_000_000)))[0] == [
        -62_135_596_800_000_000
    ]


def test_late_rows_keep_all_their_columns() -> None:
    late = Arrival(stream()).admit(chunk(10, 1)).late
    assert late.select("n", "ts").equals(chunk(10, 1).slice(1))


def test_a_row_without_time_is_named_by_its_number() -> None:
    arrival = Arrival(stream())
    arrival.admit(chunk(1, 2, 3))
    with pytest.raises(DataError, match=r"stream s, row 5: the event time ts is NULL"):
        arrival.admit(chunk(4, None))


def test_a_stream_without_time_has_no_arrival() -> None:
    with pytest.raises(DeclarationError, match="stream s has no event time"):
        Arrival(declare("n BIGINT", csv()))


def test_a_restored_arrival_goes_on() -> None:
    first = Arrival(stream(slack=1))
    first.admit(chunk(10, 20))
    assert first.state == ArrivalState(latest=20, rows=2)
    assert instants(Arrival(stream(slack=1), ArrivalState(20, 2)).admit(chunk(18, 19))) == ([19], [18], 19)


@given(
    times=st.lists(st.integers(-50, 50), max_size=40),
    slack=st.integers(0, 30),
    cuts=st.lists(st.integers(0, 40), max_size=5),
)
def test_any_split_into_chunks_gives_the_rows_that_the_definition_says(
    times: list[int], slack: int, cuts: list[int]
) -> None:
    arrival, on_time, late = Arrival(stream(slack)), [], []
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(times)], strict=True):
        admitted = arrival.admit(chunk(*times[start:end]))
        on_time += admitted.rows[BORN].to_list()
        late += admitted.late[BORN].to_list()
    clocks = [max(times[:i], default=BEGINNING) - slack for i in range(len(times))]
    assert on_time == [t for t, clock in zip(times, clocks, strict=True) if t >= clock]
    assert late == [t for t, clock in zip(times, clocks, strict=True) if t < clock]
    assert arrival.clock == (max(times) - slack if times else BEGINNING)
