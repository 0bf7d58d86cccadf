"""The Linear Road queries of the k-Mon document, section 9, answer as DuckDB does over the windows' contents."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.differential.local import output_of
from tests.differential.test_cases import row_by_row
from tests.oracle.oracle import Oracle
from tests.oracle.values import same_output

from headgate.lab.generators import LinearRoad
from headgate.model.time import SECOND
from headgate.session import Session

EXAMPLE = Path(__file__).parents[2] / "examples" / "linear_road_kmon.cql"
QUERIES = ("CurCarSeg", "AccSeg", "CarExitStr", "NegTollStr")


@pytest.fixture(scope="module")
def text() -> str:
    """The example as it is, but for the cars that make a segment dear."""
    written = EXAMPLE.read_text(encoding="utf-8")
    assert written.count("30)") == 2
    return written.replace("v.cars - 30", "v.cars - 1").replace("v.cars > 30", "v.cars > 1")


@pytest.fixture(scope="module")
def reports() -> dict[str, pa.Table]:
    """Few cars on few, long segments; many of them stop on the way."""
    road = LinearRoad(cars=30, cars_per_second=0.5, mean_trip=90 * SECOND, stopping=0.4)
    rows = road["CarStr"].table()
    # Twenty neighbouring segments are one.
    place = rows.schema.get_field_index("sid")
    return {"CarStr": rows.set_column(place, "sid", pc.divide(rows["sid"], 20))}


@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_duckdbs(query: str, text: str, reports: dict[str, pa.Table]) -> None:
    expected = Oracle(text, reports).output(query)
    assert len(expected) > 3
    for pieces in ([reports], row_by_row(reports, step=7)):
        assert same_output(output_of(text, query, pieces, {}), expected)


@pytest.mark.parametrize("query", QUERIES)
def test_the_example_is_admitted(query: str) -> None:
    assert Session.from_file(EXAMPLE).query(query).check().admitted
