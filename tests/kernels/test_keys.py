from __future__ import annotations

import datetime as dt
import math
import subprocess
import sys
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.kernels.keys import has_null, key_hash, keys_equal, with_plain_zeros

COLUMNS = {
    "integer": ([1, None, 2], [1, None, 2]),
    "text": (["a", None, ""], ["a", None, ""]),
    "float": ([math.nan, None, 0.0], [-math.nan, None, -0.0]),
    "decimal": ([Decimal("1.10"), None, Decimal("2.00")], [Decimal("1.1"), None, Decimal("2")]),
    "date": ([dt.date(2026, 1, 1), None, dt.date(1969, 1, 1)],) * 2,
    "timestamp": ([dt.datetime(2026, 1, 1), None, dt.datetime(1969, 7, 1)],) * 2,  # noqa: DTZ001
    "boolean": ([True, None, False],) * 2,
    "binary": ([b"a", None, b""],) * 2,
    "list": ([[0.0, None], None, []], [[-0.0, None], None, []]),
    "struct": (
        [{"x": 0.0, "y": "a"}, None, {"x": math.nan, "y": None}],
        [{"x": -0.0, "y": "a"}, None, {"x": math.nan, "y": None}],
    ),
}
"""Two spellings of the same three values, the second of them NULL."""


def frames(name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    dtype = pl.Decimal(10, 2) if name == "decimal" else None
    one, other = (pl.Series("k", values, dtype=dtype).to_frame() for values in COLUMNS[name])
    return one, other


@pytest.mark.parametrize("name", COLUMNS)
def test_equal_values_have_equal_hashes_and_different_ones_do_not(name: str) -> None:
    one, other = frames(name)
    assert key_hash(one, ["k"]).tolist() == key_hash(other, ["k"]).tolist()
    assert len(set(key_hash(one, ["k"]).tolist())) == 3


@pytest.mark.parametrize("name", COLUMNS)
def test_null_equals_null_only_when_asked(name: str) -> None:
    one, other = frames(name)
    assert keys_equal(one, other, ["k"], ["k"], null_equal=True).tolist() == [True, True, True]
    assert keys_equal(one, other, ["k"], ["k"], null_equal=False).tolist() == [True, False, True]
    assert has_null(one, ["k"]).tolist() == [False, True, False]


def test_a_null_inside_a_value_is_not_a_null_key() -> None:
    frame = pl.DataFrame({"k": [[None, 1], None], "s": [{"x": None}, {"x": 1}]})
    assert has_null(frame, ["k"]).tolist() == [False, True]
    assert has_null(frame, ["s"]).tolist() == [False, False]


def test_columns_count_by_position_and_not_by_name() -> None:
    frame = pl.DataFrame({"a": [1, 2], "b": [2, 1]})
    forth, back = key_hash(frame, ["a", "b"]), key_hash(frame, ["b", "a"])
    assert forth[0] == back[1]
    assert forth[0] != back[0]


def test_the_same_column_may_occur_twice() -> None:
    frame = pl.DataFrame({"a": [1, 1, 2], "b": [1, 2, 2]})
    assert (key_hash(frame, ["a", "a"]) == key_hash(frame, ["a", "b"])).tolist() == [True, False, True]


def test_without_columns_all_rows_are_alike() -> None:
    frame = pl.DataFrame({"a": [1, 2]})
    assert key_hash(frame, []).tolist() == [0, 0]
    assert has_null(frame, []).tolist() == [False, False]
    assert keys_equal(frame, frame, [], [], null_equal=False).tolist() == [True, True]


def test_a_categorical_hashes_like_its_text() -> None:
    text = pl.DataFrame({"k": ["b", "a"]})
    assert key_hash(text.cast(pl.Categorical), ["k"]).tolist() == key_hash(text, ["k"]).tolist()


def test_every_column_must_agree() -> None:
    one, other = pl.DataFrame({"a": [1, 1], "b": [1, 1]}), pl.DataFrame({"c": [1, 1], "d": [1, 2]})
    assert keys_equal(one, other, ["a", "b"], ["c", "d"], null_equal=False).tolist() == [True, False]


def test_frames_of_different_height_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="2 and 1 rows"):
        keys_equal(pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [1]}), ["a"], ["a"], null_equal=True)


ROWS = st.lists(st.tuples(st.none() | st.integers(0, 3), st.none() | st.floats(width=16)), min_size=1)


@given(ROWS, st.data())
def test_a_row_hashes_the_same_wherever_it_stands(rows: list[object], data: st.DataObject) -> None:
    frame = pl.DataFrame(rows, schema={"a": pl.Int64, "b": pl.Float64}, orient="row")
    order = data.draw(st.permutations(range(len(rows))))
    cut = data.draw(st.integers(0, len(rows)))
    moved = pl.concat([frame[order][:cut], frame[order][cut:]])
    assert key_hash(moved, ["a", "b"]).tolist() == key_hash(frame, ["a", "b"])[order].tolist()


def test_another_process_computes_the_same_hashes() -> None:
    program = (
        "import polars as pl\n"
        "from headgate.kernels.keys import key_hash\n"
        "frame = pl.DataFrame({'a': [1, None], 'b': ['x', 'y'], 'c': [[1.5], None]})\n"
        "print(key_hash(frame, ['a', 'b', 'c']).tolist())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    frame = pl.DataFrame({"a": [1, None], "b": ["x", "y"], "c": [[1.5], None]})
    assert done.stdout.strip() == str(key_hash(frame, ["a", "b", "c"]).tolist())


def test_hashes_are_64_bits_wide() -> None:
    hashes = key_hash(pl.DataFrame({"a": np.arange(10_000)}), ["a"])
    assert hashes.dtype == np.uint64
    leading = np.bincount((hashes >> np.uint64(60)).astype(np.int64), minlength=16)
    assert leading.min() > 0.8 * 625
    assert leading.max() < 1.2 * 625


@pytest.mark.parametrize("dtype", [pl.Float32(), pl.Float64()], ids=str)
@pytest.mark.parametrize("values", [[], [-0.0], [-0.0, 0.0, None, math.nan, -1.5, math.inf]], ids=str)
def test_zeros_lose_their_sign_and_all_else_stays(values: list[float | None], dtype: pl.DataType) -> None:
    frame = pl.DataFrame({"x": pl.Series(values, dtype=dtype)})
    found = frame.select(with_plain_zeros("x", dtype))
    assert found.schema == {"x": dtype}
    # By their text, because -0.0 == 0.0.
    assert list(map(str, found["x"])) == [
        str(each).removeprefix("-") if each == 0 else str(each) for each in values
    ]
