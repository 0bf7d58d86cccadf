"""Output folders of the local engine: late rows belong to their queries, and nothing is replaced unasked."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli_runner import Outcome, headgate

from headgate.model.errors import InputError
from headgate.runtime.output import as_declared, safe_name

QUERY = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT, m MAP<STRING, INT>) TIMESTAMP BY ts USING json OPTIONS (path 's.json');
CREATE QUERY qa AS SELECT ISTREAM(k) FROM s [RANGE 5 SECONDS];
CREATE QUERY qb AS SELECT ISTREAM(k + 1 AS k) FROM s [RANGE 5 SECONDS];
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "q.cql").write_text(QUERY)
    give(tmp_path, (5, 1), (1, 2), (6, 3))
    return tmp_path


def give(folder: Path, *rows: tuple[int, int]) -> None:
    lines = (f'{{"ts": "2026-01-01T00:00:0{at}", "k": {key}, "m": {{"a": {key}}}}}\n' for at, key in rows)
    (folder / "s.json").write_text("".join(lines))


def run(folder: Path, *words: str) -> Outcome:
    return headgate(
        "run", folder / "q.cql", "--output", folder / "out", "--engine", "local", "--quiet", *words
    )


def late(folder: Path, query: str) -> list[object]:
    files = sorted((folder / "out" / "_late" / "s").glob(f"part-{query}.*.parquet"))
    return [row["m"] for file in files for row in pq.read_table(file).to_pylist()]


def test_every_query_has_its_late_rows(folder: Path) -> None:
    assert run(folder).code == 0
    assert late(folder, "qa") == late(folder, "qb") == [[("a", 2)]]


def test_queries_in_one_folder_do_not_meet(folder: Path) -> None:
    assert run(folder, "--query", "qa").code == 0
    assert run(folder, "--query", "qb").code == 0
    give(folder, (5, 1), (1, 4))
    assert run(folder, "--query", "qa", "--overwrite").code == 0
    assert (late(folder, "qa"), late(folder, "qb")) == ([[("a", 4)]], [[("a", 2)]])
    give(folder, (1, 2), (5, 1))
    assert run(folder, "--query", "qa", "--overwrite").code == 0
    assert (late(folder, "qa"), late(folder, "qb")) == ([], [[("a", 2)]])


def test_late_rows_are_not_replaced_unasked(folder: Path) -> None:
    assert run(folder, "--query", "qa").code == 0
    (folder / "out" / "qa").rename(folder / "elsewhere")
    give(folder, (1, 2), (5, 1))
    refused = run(folder, "--query", "qa")
    assert refused.code == 2
    assert "_late/s/part-qa.00000.parquet exists already" in refused.err
    assert late(folder, "qa") == [[("a", 2)]]
    assert not (folder / "out" / "qa").exists()


@pytest.mark.parametrize("name", ["_late", "a/b", "_late/a", "..", ".hidden", "", "_"])
def test_names_that_are_no_folders(name: str) -> None:
    with pytest.raises(InputError, match="cannot name an output folder"):
        safe_name(name)


MAP = pa.map_(pa.string(), pa.int32())


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (MAP, [[("a", 1)], None, [], [("b", 2), ("c", None)], [("d", 4)]]),
        (pa.list_(MAP), [[[("a", 1)], None], None, [], [[], [("b", 2), ("c", 3)]], [[("d", 4)]]]),
        (
            pa.struct([("x", MAP), ("y", pa.int32())]),
            [
                {"x": [("a", 1)], "y": 1},
                None,
                {"x": None, "y": 2},
                {"x": [], "y": None},
                {"x": [("b", 2)], "y": 3},
            ],
        ),
        (
            pa.map_(pa.string(), MAP),
            [[("k", [("a", 1)]), ("l", None)], None, [], [("m", [])], [("n", [("b", 2)])]],
        ),
    ],
)
def test_maps_are_maps_wherever_they_stand(dtype: pa.DataType, values: list[object]) -> None:
    schema = pa.schema([("v", dtype)])
    rows = pa.Table.from_pylist([{"v": each} for each in values], schema=schema)
    frame = pl.DataFrame(rows)
    pieces = pl.concat([frame, frame], rechunk=False)
    for part, expected in (
        (frame, values),
        (frame[1:4], values[1:4]),
        (frame[:0], []),
        (pieces, values * 2),
        (frame.filter(pl.Series([False, True, True, False, True])), [values[1], values[2], values[4]]),
    ):
        found = as_declared(part, schema)
        found.validate(full=True)
        assert found.column("v").to_pylist() == expected
