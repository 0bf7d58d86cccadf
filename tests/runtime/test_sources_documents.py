"""JSON documents that come one by one are read as lines of a file would be; bad ones are named by their place."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.schema import Column
from headgate.model.types import BIGINT, STRING, TIMESTAMP
from headgate.plan.catalog import StreamDef
from headgate.runtime.io import documents
from headgate.runtime.io.documents import Documents

STREAM = StreamDef("s", (Column("ts", TIMESTAMP), Column("k", BIGINT), Column("name", STRING)), time="ts")
AT = '"ts": "2026-01-01T00:00:00Z"'


def read(*values: str | bytes | None, stops: bool = False, complete: bool = False) -> documents.Read:
    array = pa.array([each.encode() if isinstance(each, str) else each for each in values], pa.binary())
    return Documents(STREAM, complete=complete).read(array, stops=stops)


def test_values_are_rows() -> None:
    found = read(f'{{{AT}, "k": 1, "name": "a"}}', f'{{{AT},\n"k":\r\n2}}')
    assert found.rows.select("k", "name").rows() == [(1, "a"), (2, None)]
    assert found.places.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("value", "column", "reason"),
    [
        (None, None, "there is no value"),
        ("", None, "the value is empty"),
        (" \n", None, "the value is empty"),
        ("no", None, "not valid JSON"),
        ('{"ts": ', None, ""),
        (f'{{{AT}, "k": "x"}}', "k", "x"),
        ('{"k": 1}', "ts", "the event time is NULL"),
        (f'{{{AT}, "k": 99999999999999999999}}', "k", "99999999999999999999"),
        (b'{"ts": "\xff"}', None, "UTF-8"),
        ('{"a": 1}{"b": 2}', None, ""),
    ],
)
def test_bad_values_are_named(value: str | bytes | None, column: str | None, reason: str) -> None:
    good = f'{{{AT}, "k": 1}}'
    found = read(good, value, good)
    assert found.places.tolist() == [0, 2]
    assert found.rows["k"].to_list() == [1, 1]
    assert [(each.row, each.column) for each in found.bad] == [(1, column)]
    assert reason in found.bad[0].reason
    assert read(good, value, good, stops=True).bad[0].row == 1


def test_a_missing_field_can_be_made_a_flaw() -> None:
    values = [f'{{{AT}, "k": 1, "name": null}}', f'{{{AT}, "k": 2}}', f'{{{AT}, "name": "k"}}']
    assert not read(*values).bad
    found = read(*values, complete=True)
    assert found.rows["k"].to_list() == [1]
    assert [(each.row, each.column, each.reason) for each in found.bad] == [
        (1, "name", "the field is missing"),
        (2, "k", "the field is missing"),
    ]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (f'{{{AT}, "k": 2, "extra": {{"name": "q"}}}}', "the field is missing"),
        (f'{{{AT}, "k": 2, "extra": [{{"name": null}}]}}', "the field is missing"),
        (f'{{{AT}, "k": 2, "extra": "\\"name\\": 1"}}', "the field is missing"),
        (f'{{{AT}, "k": 2, "extra": "\\"name\\": null"}}', "the field is missing"),
        (f'{{{AT}, "k": 2, "extra": {{"name": null}}}}', "the field is missing"),
        (f'{{{AT}, "k": 2, "extra": "name", "other": null}}', "the field is missing"),
        (f'{{{AT}, "k": 2, "name" :  null}}', None),
        (f'{{{AT}, "k": 2, "extra": {{"name": 1}}, "name": null}}', None),
        (f'{{{AT}, "k": 2, "Name": "q"}}', "the field is named Name"),
        (f'{{{AT}, "k": 2, "NAME": null}}', None),
    ],
)
def test_only_a_field_of_the_document_itself_is_there(value: str, reason: str | None) -> None:
    found = read(f'{{{AT}, "k": 1, "name": "a"}}', value, complete=True)
    assert [(each.row, each.column, each.reason) for each in found.bad] == (
        [(1, "name", reason)] if reason else []
    )


def test_a_byte_order_mark_before_a_document_is_no_part_of_it() -> None:
    mark = b"\xef\xbb\xbf"
    good = f'{{{AT}, "k": 1}}'.encode()
    found = read(good, mark + good, None, mark, mark + mark + good, mark + b"no")
    assert found.rows["k"].to_list() == [1, 1]
    assert found.places.tolist() == [0, 1]
    assert [(each.row, each.reason) for each in found.bad] == [
        (2, "there is no value"),
        (3, "the value is empty"),
        (4, "the row begins with a byte order mark"),
        (5, "the row is not valid JSON: Expecting value: line 1 column 1 (char 0)"),
    ]


@given(st.lists(st.one_of(st.integers(0, 9), st.sampled_from(["x", None, "{"])), max_size=30))
def test_blocks_do_not_matter(values: list[int | str | None]) -> None:
    texts = [f'{{{AT}, "k": {json.dumps(each)}}}' if isinstance(each, int) else each for each in values]
    whole = read(*texts)
    before = documents.BLOCK
    documents.BLOCK = 100
    try:
        cut = read(*texts)
    finally:
        documents.BLOCK = before
    assert cut.rows.equals(whole.rows)
    assert cut.places.tolist() == whole.places.tolist()
    assert [(each.row, each.reason) for each in cut.bad] == [(each.row, each.reason) for each in whole.bad]
    assert cut.places.tolist() == [n for n, each in enumerate(values) if isinstance(each, int)]
