"""Parquet: columns by name, nested columns, several files, and files that are not what they say."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.runtime.reading import parquet, read, refusal, rejected, rows, source

from headgate.model.errors import DataError, InputError
from headgate.runtime.io import parquet as parquet_source

AB = "a BIGINT, b STRING"


def write(
    folder: Path, table: pa.Table | dict[str, object], name: str = "a.parquet", **options: object
) -> Path:
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), folder / name, **options)
    return folder


def test_columns_go_by_name_in_any_case_of_letters(tmp_path: Path) -> None:
    write(tmp_path, {"B": ["x", None], "c": [0, 0], "A": [1, 2]})
    assert read(tmp_path, AB, parquet()).to_dicts() == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]


def test_rows_come_in_chunks_across_row_groups_and_files(tmp_path: Path) -> None:
    for file in range(3):
        write(
            tmp_path,
            {"a": range(file * 10, file * 10 + 10), "b": ["x"] * 10},
            f"{file}.parquet",
            row_group_size=3,
        )
    chunks = list(source(tmp_path, AB, parquet("*.parquet"), chunk=7).chunks())
    assert [chunk.height for chunk in chunks] == [7, 7, 7, 7, 2]
    assert [x for chunk in chunks for x in chunk["a"]] == list(range(30))


def test_few_large_rows_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        tmp_path,
        {"a": range(100), "b": [f"{i}" * 1_000 for i in range(100)]},
        use_dictionary=False,
        compression="none",
    )
    monkeypatch.setattr(parquet_source, "_BATCH_BYTES", 20_000)
    src = source(tmp_path, AB, parquet(), chunk=1_000)
    pieces = list(src._reader.pieces(tmp_path / "a.parquet", None, 1_000, stops=True))
    assert max(len(piece.columns[0]) for piece in pieces) <= 20
    assert sum(len(piece.columns[0]) for piece in pieces) == 100


def test_a_file_without_rows_or_row_groups_is_fine(tmp_path: Path) -> None:
    write(tmp_path, pa.schema([("a", pa.int64()), ("b", pa.string())]).empty_table())
    assert rows(tmp_path, AB, parquet()) == []


def test_what_polars_writes_is_read_back(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"a": [1, 2], "b": ["x", "y"], "c": [[1], None], "d": [{"x": 1.5}, {"x": None}]},
        schema_overrides={"c": pl.List(pl.Int32)},
    )
    frame.write_parquet(tmp_path / "a.parquet")
    assert read(tmp_path, f"{AB}, c ARRAY<INT>, d STRUCT<x: DOUBLE>", parquet()).equals(frame)


def test_maps_are_lists_of_entries(tmp_path: Path) -> None:
    write(tmp_path, {"m": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32()))})
    assert rows(tmp_path, "m MAP<STRING, INT>", parquet()) == [([{"key": "a", "value": 1}],), (None,)]


def test_old_timestamps_reach_beyond_nanoseconds(tmp_path: Path) -> None:
    write(tmp_path, {"t": pa.array([0, 10**9], pa.timestamp("ns"))}, use_deprecated_int96_timestamps=True)
    found = read(tmp_path, "t TIMESTAMP", parquet())["t"]
    assert found.dtype == pl.Datetime("us", "UTC")
    assert found.dt.epoch("us").to_list() == [0, 10**6]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": [1]}, "there is no column b"),
        ({"a": [1], "b": ["x"], "B": ["y"]}, "column b is there twice"),
        ({"a": ["1"], "b": ["x"]}, "column a is declared BIGINT but is STRING"),
        ({"a": [1.0], "b": ["x"]}, "column a is declared BIGINT but is DOUBLE"),
        ({"a": [1], "b": [["x"]]}, "column b is declared STRING but is ARRAY<STRING>"),
    ],
)
def test_a_schema_that_does_not_match_is_named(
    tmp_path: Path, table: dict[str, object], message: str
) -> None:
    assert f"a.parquet: {message}" in refusal(write(tmp_path, table), AB, parquet())


def test_a_file_with_another_schema_than_the_others_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"a": [1], "b": ["x"]}, "1.parquet")
    write(tmp_path, {"a": ["2"], "b": ["y"]}, "2.parquet")
    write(tmp_path, {"a": pa.array([3], pa.int8()), "b": pa.array(["z"], pa.large_string())}, "3.parquet")
    assert "2.parquet: column a is declared BIGINT but is STRING" in refusal(
        tmp_path, AB, parquet("*.parquet")
    )
    good, refused = rejected(tmp_path, AB, parquet("*.parquet"))
    assert good == [(1, "x"), (3, "z")]
    assert [(each["file"][-9:], each["row"]) for each in refused] == [("2.parquet", None)]


def test_a_value_that_does_not_fit_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"a": [1, 2, 2**40, 4], "b": ["x", "y", "z", "w"]}, row_group_size=2)
    message = refusal(tmp_path, "a INT, b STRING", parquet())
    assert "a.parquet, row 3, column a: '1099511627776' is not of type INT" in message
    good, refused = rejected(tmp_path, "a INT, b STRING", parquet())
    assert [row[0] for row in good] == [1, 2, 4]
    assert [(each["row"], each["line"], each["text"]) for each in refused] == [(3, None, "1099511627776")]


def test_a_time_out_of_range_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"t": pa.array([0, 2**62], pa.timestamp("us", "UTC"))})
    message = refusal(tmp_path, "t TIMESTAMP", parquet())
    assert (
        "row 2, column t: '4611686018427387904 us since 1970' is not of type TIMESTAMP (of the years"
        in message
    )


def test_a_date_out_of_range_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"t": pa.array([0, 2**30], pa.date32())})
    assert "row 2, column t: '1073741824 days since 1970' is not" in refusal(tmp_path, "t DATE", parquet())


def test_a_time_that_is_null_is_a_bad_row(tmp_path: Path) -> None:
    write(tmp_path, {"t": pa.array([0, None], pa.timestamp("us", "UTC"))})
    assert "row 2, column t: the event time is NULL" in refusal(
        tmp_path, "t TIMESTAMP", "TIMESTAMP BY t " + parquet()
    )
    assert len(rows(tmp_path, "t TIMESTAMP", parquet())) == 2


def test_text_that_is_not_utf8_is_a_bad_row(tmp_path: Path) -> None:
    text = pa.array([b"ok", b"\xff\xfe", b"fine"]).view(pa.string())
    good, refused = rejected(write(tmp_path, {"a": [1, 2, 3], "b": text}), AB, parquet())
    assert good == [(1, "ok"), (3, "fine")]
    assert [(each["row"], each["column"]) for each in refused] == [(2, "b")]


# -- corrupt files ----------------------------------------------------------------------------------


@pytest.fixture
def whole(tmp_path: Path) -> bytes:
    table = {"a": [i * 7_919 for i in range(20_000)], "b": [f"text {i * 104_729}" for i in range(20_000)]}
    write(tmp_path, table, write_page_checksum=True)
    return (tmp_path / "a.parquet").read_bytes()


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: b"a,b\n1,x\n",
        lambda whole: b"PAR1",
        lambda whole: b"XXXX" + whole[4:-4] + b"XXXX",
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:-1],
        lambda whole: whole[: len(whole) // 2] + b"\xff" * 64 + whole[len(whole) // 2 + 64 :],
        lambda whole: whole[:-500] + bytes(400) + whole[-100:],
        lambda whole: whole[:-8] + b"\xff\xff\xff\x7f" + whole[-4:],
    ],
    ids=[
        "empty",
        "csv",
        "magic only",
        "bad magic",
        "cut",
        "cut by a byte",
        "bad page",
        "bad footer",
        "bad length",
    ],
)
def test_a_corrupt_file_is_named(tmp_path: Path, whole: bytes, damage: object) -> None:
    (tmp_path / "a.parquet").write_bytes(damage(whole))  # type: ignore[operator]
    message = refusal(tmp_path, AB, parquet(), InputError)
    assert f"cannot read {tmp_path / 'a.parquet'}: " in message
    assert "check that the file is complete" in message


def test_a_corrupt_file_among_good_ones_can_be_set_aside(tmp_path: Path, whole: bytes) -> None:
    (tmp_path / "b.parquet").write_bytes(whole[: len(whole) // 2])
    shutil.copy(tmp_path / "a.parquet", tmp_path / "c.parquet")
    good, refused = rejected(tmp_path, AB, parquet("*.parquet"))
    assert len(good) == 40_000
    assert [(each["file"][-9:], each["row"]) for each in refused] == [("b.parquet", None)]


def test_a_corrupt_file_alone_is_an_error_in_any_case(tmp_path: Path, whole: bytes) -> None:
    (tmp_path / "a.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError):
        rejected(tmp_path, AB, parquet())


def test_a_folder_is_read_without_the_marks_that_spark_leaves(tmp_path: Path) -> None:
    folder = tmp_path / "out.parquet"
    folder.mkdir()
    write(folder, {"a": [1], "b": ["x"]}, "part-00000.snappy.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".part-00000.snappy.parquet.crc").write_bytes(b"crc")
    assert rows(tmp_path, AB, parquet("out.parquet")) == [(1, "x")]


def test_the_same_error_for_a_missing_column_has_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(write(tmp_path, {"a": [1], "bb": ["x"]}), AB, parquet())
    assert caught.value.remedy == "did you mean bb?"
