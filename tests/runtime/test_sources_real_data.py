"""Real data in the forms in which it is published, read whole."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.runtime.reading import csv, declare, jsonl, read

from headgate.runtime.io import Arrival

DATA = Path(__file__).parents[2].parent / "shared" / "data"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"there is no real data in {DATA}")

FLIGHTS = (
    "year INT, month INT, day INT, dep_time INT, dep_delay DOUBLE, carrier STRING, flight INT, tailnum STRING, "
    "origin STRING, dest STRING, distance DOUBLE, time_hour TIMESTAMP"
)
NA = "header 'true', nullValue 'NA'"


@pytest.fixture(scope="module")
def flights() -> pl.DataFrame:
    return read(DATA, FLIGHTS, csv("nycflights13/flights.csv.gz", NA), chunk=100_000)


def test_flights_are_read_as_polars_reads_them(flights: pl.DataFrame) -> None:
    expected = pl.read_csv(DATA / "nycflights13" / "flights.csv.gz", null_values="NA", infer_schema=False)
    assert flights.height == 336_776
    for name in flights.columns:
        other = expected[name]
        times = other.str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_zone="UTC") if name == "time_hour" else other
        assert flights[name].equals(times.cast(flights[name].dtype), check_dtypes=True), name


def test_the_months_of_flights_come_in_the_order_of_letters(flights: pl.DataFrame) -> None:
    assert flights["month"].rle().struct.field("value").to_list() == [1, 10, 11, 12, 2, 3, 4, 5, 6, 7, 8, 9]
    arrival = Arrival(declare(FLIGHTS, "TIMESTAMP BY time_hour WITHIN INTERVAL 1 DAY " + csv()))
    late = pl.concat(arrival.admit(chunk).late for chunk in flights.iter_slices(50_000))
    # All that is behind December, and nothing else: a day's flights are not in order, but not off by a day.
    assert late.height == flights.filter(pl.col("month").is_between(2, 9)).height == 225_480


def test_weather_and_planes_are_read_whole() -> None:
    weather = read(
        DATA,
        "origin STRING, temp DOUBLE, wind_gust DOUBLE, time_hour TIMESTAMP",
        csv("nycflights13/weather.csv.gz", NA),
    )
    planes = read(DATA, "tailnum STRING, year INT, seats INT, speed INT", csv("nycflights13/planes.csv", NA))
    assert (weather.height, weather["wind_gust"].null_count()) == (26_115, 20_778)
    assert (planes.height, planes["speed"].null_count()) == (3_322, 3_299)


def test_wikipedia_edits_are_in_order_of_time() -> None:
    columns = "time TIMESTAMP, channel STRING, cityName STRING, isRobot BOOLEAN, delta BIGINT, metroCode INT"
    using = "TIMESTAMP BY time " + jsonl("wikipedia-edits/*.json.gz")
    edits = read(DATA, columns, using, chunk=10_000)
    assert (edits.height, edits["metroCode"].null_count()) == (39_244, 38_817)
    assert Arrival(declare(columns, using)).admit(edits).late.is_empty()


@pytest.mark.parametrize(
    ("file", "columns", "height"),
    [
        ("bid", "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, date_time TIMESTAMP", 50),
        (
            "auction",
            "id BIGINT, item_name STRING, reserve BIGINT, date_time TIMESTAMP, expires TIMESTAMP",
            40,
        ),
        ("person", "id BIGINT, name STRING, credit_card STRING, date_time TIMESTAMP", 20),
    ],
)
def test_nexmark_is_read_whole(file: str, columns: str, height: int) -> None:
    found = read(DATA, columns, csv(f"nexmark-risingwave/{file}.csv", "header 'true'"))
    assert found.height == height
    assert found.null_count().sum_horizontal().item() == 0
