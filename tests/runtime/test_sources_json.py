"""JSON lines: fields by name, nested values, maps, and lines that are no rows."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.reading import jsonl, read, refusal, rejected, rows

from headgate.model import types
from headgate.model.errors import DataError
from headgate.runtime.io import json as json_source
from headgate.runtime.io.text import textfile
from headgate.runtime.io.text.jsonmaps import maps_as_entries

AB = "a BIGINT, b STRING"


def write(folder: Path, text: str | bytes, name: str = "a.json") -> Path:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def test_fields_go_by_name_and_others_are_ignored(tmp_path: Path) -> None:
    write(tmp_path, '{"b":"x","a":1,"c":{"d":[1]}}\n{"a":2,"b":null}\n{"a":3}\n')
    assert rows(tmp_path, AB, jsonl()) == [(1, "x"), (2, None), (3, None)]


def test_a_byte_order_mark_begins_a_file_and_no_row(tmp_path: Path) -> None:
    write(tmp_path, b'\xef\xbb\xbf{"a":1,"b":"x"}\n{"a":2}\n', "1.json")
    assert rows(tmp_path, AB, jsonl("1.json")) == [(1, "x"), (2, None)]
    write(tmp_path, b'{"a":1,"b":"x"}\n\xef\xbb\xbf{"a":2}\n', "2.json")
    message = refusal(tmp_path, AB, jsonl("2.json"))
    assert "the row begins with a byte order mark" in message
    assert "pyarrow" not in message


def test_names_are_found_in_any_case_of_letters(tmp_path: Path) -> None:
    write(tmp_path, '{"A":1,"B":"x"}\n', "1.json")
    write(tmp_path, '{"a":2,"b":"y","A":7}\n', "2.json")
    assert rows(tmp_path, AB, jsonl("*.json")) == [(1, "x"), (2, "y")]


def test_a_name_that_could_be_two_is_refused(tmp_path: Path) -> None:
    write(tmp_path, '{"User":1,"USER":2}\n')
    assert "column user could be USER or User" in refusal(tmp_path, "user BIGINT", jsonl())


def test_a_field_that_no_row_has_is_a_mistake(tmp_path: Path) -> None:
    write(tmp_path, '{"a":1,"price":2}\n')
    message = refusal(tmp_path, "a BIGINT, prize BIGINT", jsonl())
    assert "no row of s has a field prize" in message
    assert "did you mean price?" in message


def test_a_field_that_some_row_says_is_null_is_none(tmp_path: Path) -> None:
    write(tmp_path, '{"a":1}\n', "1.json")
    write(tmp_path, '{"a":2,"b":null}\n', "2.json")
    assert rows(tmp_path, AB, jsonl("*.json")) == [(1, None), (2, None)]


def test_blank_lines_and_space_around_rows_are_nothing(tmp_path: Path) -> None:
    write(tmp_path, '\n  {"a":1}\t\r\n   \r\n\n{"a":2,"b":"x"} \n')
    assert rows(tmp_path, AB, jsonl()) == [(1, None), (2, "x")]


def test_a_byte_order_mark_and_a_missing_last_line_break_are_no_matter(tmp_path: Path) -> None:
    assert rows(write(tmp_path, '\ufeff{"a":1,"b":"é"}'), AB, jsonl()) == [(1, "é")]


@pytest.mark.parametrize("text", ["", "\n\n", " \r\n"])
def test_a_file_of_nothing_has_no_rows(tmp_path: Path, text: str) -> None:
    assert rows(write(tmp_path, text), AB, jsonl()) == []


def test_compressed_files_are_read(tmp_path: Path) -> None:
    write(tmp_path, gzip.compress(b'{"a":1,"b":"x"}\n' * 100), "a.json.gz")
    assert rows(tmp_path, AB, jsonl("a.json.gz")) == [(1, "x")] * 100


def test_text_fields_become_times_and_decimals(tmp_path: Path) -> None:
    write(tmp_path, '{"t":"2025-01-31T10:00:00.5Z","d":12.345}\n{"t":"2025-01-31 11:00","d":"0.1"}\n')
    assert rows(tmp_path, "t TIMESTAMP, d DECIMAL(10, 2)", jsonl()) == [
        (datetime(2025, 1, 31, 10, 0, 0, 500_000, UTC), Decimal("12.35")),
        (datetime(2025, 1, 31, 11, 0, tzinfo=UTC), Decimal("0.10")),
    ]


def test_nested_values_are_converted_inside(tmp_path: Path) -> None:
    write(tmp_path, '{"x":[{"t":"2025-01-31","n":[1,null]},null],"y":{"d":"2.5"}}\n{"x":[],"y":null}\n')
    columns = "x ARRAY<STRUCT<t: TIMESTAMP, n: ARRAY<INT>>>, y STRUCT<d: DECIMAL(4, 1)>"
    when = datetime(2025, 1, 31, tzinfo=UTC)
    assert rows(tmp_path, columns, jsonl()) == [
        ([{"t": when, "n": [1, None]}, None], {"d": Decimal("2.5")}),
        ([], None),
    ]


def test_a_bad_value_inside_makes_its_row_bad(tmp_path: Path) -> None:
    write(tmp_path, '{"x":["2025-01-31"]}\n{"x":["2025-01-31","never"]}\n{"x":null}\n')
    good, refused = rejected(tmp_path, "x ARRAY<DATE>", jsonl())
    assert len(good) == 2
    assert [(each["row"], each["column"]) for each in refused] == [(2, "x")]
    assert "never" in refused[0]["reason"]


def test_maps_are_objects(tmp_path: Path) -> None:
    write(tmp_path, '{"m":{"a":1,"b":null}}\n{"m":{}}\n{"m":null}\n{"m":{ "x\\"}" : 3 } }\n')
    assert rows(tmp_path, "m MAP<STRING, INT>", jsonl()) == [
        ([{"key": "a", "value": 1}, {"key": "b", "value": None}],),
        ([],),
        (None,),
        ([{"key": 'x"}', "value": 3}],),
    ]


def test_maps_may_be_inside_of_anything_and_have_keys_of_any_type(tmp_path: Path) -> None:
    write(tmp_path, '{"x":[{"m":{"1":{"a":[{"k":2}]},"2":{}}}]}\n')
    columns = "x ARRAY<STRUCT<m: MAP<INT, MAP<STRING, ARRAY<MAP<STRING, INT>>>>>>"
    inner = [{"key": "a", "value": [[{"key": "k", "value": 2}]]}]
    assert rows(tmp_path, columns, jsonl()) == [
        ([{"m": [{"key": 1, "value": inner}, {"key": 2, "value": []}]}],)
    ]


def test_maps_of_other_fields_stay_as_they_are() -> None:
    data = b'{"m":{"a":1},"n":{"a":1},"s":"{\\"m\\":{}}"}\n'
    assert maps_as_entries(data, [("m", pa.map_(types.STRING, types.INT))]) == (
        b'{"m":[{"key":"a","value":1}],"n":{"a":1},"s":"{\\"m\\":{}}"}\n'
    )


BAD = [
    (
        '{"a":2,"b":"y"',
        "row 2 (line 2): the row is not valid JSON: Expecting ',' delimiter: line 1 column 15",
    ),
    ("{'a':2}", "row 2 (line 2): the row is not valid JSON"),
    ("2,y", "row 2 (line 2): the row is not valid JSON: Extra data"),
    ("[2]", "row 2 (line 2): the row is an array and not an object"),
    ("null", "row 2 (line 2): the row is null and not an object"),
    ('{"a":2}{"a":3}', "row 2 (line 2): the row is not valid JSON: Extra data"),
    ('{"a":"2"}', "row 2 (line 2), column a: the text '2' is not of type BIGINT"),
    ('{"a":{"x":1}}', "row 2 (line 2), column a: the object '{\"x\": 1}' is not of type BIGINT"),
    ('{"a":[1]}', "row 2 (line 2), column a: an array '[1]' is not of type BIGINT"),
    ('{"a":1.5}', "row 2 (line 2), column a: the number '1.5' is not of type BIGINT"),
    ('{"a":true}', "row 2 (line 2), column a: the boolean 'true' is not of type BIGINT"),
    ('{"a":99999999999999999999}', "column a: the number '99999999999999999999' is not of type BIGINT"),
    ('{"b":7}', "row 2 (line 2), column b: the number '7' is not of type STRING"),
    ('{"a":2,"a":3}', "row 2 (line 2), column a: the field is there twice"),
    ('{"a":2,"b":"\\ud800"}', "row 2 (line 2): the row cannot be read"),
    (
        '{"a":2,"b":"' + "[" * 3 + "\x07" + '"}',
        "row 2 (line 2): the row is not valid JSON: Invalid control character",
    ),
    ('{"a":' + "[" * 100_000, "row 2 (line 2)"),
    (b'{"a":2,"b":"\xff"}', "row 2 (line 2): the row is not UTF-8 text"),
    (b'{"a":2,"c":"\xff"}', "row 2 (line 2): the row is not UTF-8 text"),
    (b'{"a":2,"b":"\0"}', "row 2 (line 2): the row has a NUL byte"),
    (b"\0", "row 2 (line 2): the row has a NUL byte"),
]


@pytest.mark.parametrize(("line", "message"), BAD)
def test_a_bad_row_stops_or_is_set_aside(tmp_path: Path, line: str | bytes, message: str) -> None:
    raw = line if isinstance(line, bytes) else line.encode()
    write(tmp_path, b'{"a":1,"b":"x"}\n' + raw + b'\n{"a":3,"b":"z"}\n')
    assert f"a.json, {message}" in (found := refusal(tmp_path, AB, jsonl())) or message in found
    good, refused = rejected(tmp_path, AB, jsonl())
    assert good == [(1, "x"), (3, "z")]
    assert [(each["row"], each["line"]) for each in refused] == [(2, 2)]


def test_a_value_that_text_does_not_say_is_named(tmp_path: Path) -> None:
    write(tmp_path, '{"t":"2025-01-31"}\n{"t":"soon"}\n')
    assert "row 2 (line 2), column t: 'soon' is not of type TIMESTAMP" in refusal(
        tmp_path, "t TIMESTAMP", jsonl()
    )


def test_a_time_that_is_missing_is_a_bad_row(tmp_path: Path) -> None:
    write(tmp_path, '{"t":"2025-01-31","a":1}\n{"a":2}\n')
    message = refusal(tmp_path, "t TIMESTAMP, a BIGINT", "TIMESTAMP BY t " + jsonl())
    assert "row 2 (line 2), column t: the event time is NULL" in message


def test_the_first_of_many_bad_rows_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    table = json_source._JsonFile._table

    def counted(self: Any, data: bytes) -> Any:
        tried.append(len(data))
        return table(self, data)

    monkeypatch.setattr(json_source._JsonFile, "_table", counted)
    write(tmp_path, '{"a":1}\n' * 2_000 + '{"a":"x"}\n' * 20_000)
    assert "row 2001 (line 2001)" in refusal(tmp_path, "a BIGINT", jsonl())
    assert len(tried) < 40


def test_a_line_without_end_is_refused_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(textfile, "BLOCK", 1_000)
    monkeypatch.setattr(textfile, "LONGEST_ROW", 4_000)
    write(tmp_path, '{"a":1}\n{"b":"' + "y" * 50_000 + '"}\n{"a":3,"b":"z"}\n')
    assert "row 2 (line 2): the row is longer than" in refusal(tmp_path, AB, jsonl())
    good, refused = rejected(tmp_path, AB, jsonl())
    assert good == [(1, None), (3, "z")]
    assert [(each["row"], each["line"]) for each in refused] == [(2, 2)]


def test_a_corrupt_rest_is_set_aside_and_the_rows_before_it_stay(tmp_path: Path) -> None:
    write(tmp_path, '{"a":1,"b":"x"}\n', "1.json")
    lines = b"".join(b'{"a":%d,"b":"y"}\n' % (i * 7_919) for i in range(100_000))
    write(tmp_path, gzip.compress(lines)[:-100], "2.json.gz")
    with pytest.raises(Exception, match=r"2\.json\.gz: Truncated"):
        read(tmp_path, AB, jsonl("*.json*"))
    good, refused = rejected(tmp_path, AB, jsonl("*.json*"))
    assert good[0] == (1, "x")
    assert [(each["row"], "Truncated" in each["reason"]) for each in refused] == [(None, True)]


# -- at random --------------------------------------------------------------------------------------

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i BIGINT": st.none() | st.integers(-(2**63), 2**63 - 1),
    "f DOUBLE": st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**50), 2**50),
    "t STRING": st.none() | st.text(max_size=8),
    "b BOOLEAN": st.none() | st.booleans(),
    "l ARRAY<INT>": st.none() | st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=3),
    "m MAP<STRING, STRUCT<x: INT>>": st.none()
    | st.dictionaries(
        st.text(max_size=4),
        st.none() | st.fixed_dictionaries({"x": st.none() | st.integers(0, 9)}),
        max_size=3,
    ),
}
ROWS = st.lists(st.fixed_dictionaries({name.split()[0]: value for name, value in VALUES.items()}), max_size=8)


@given(table=ROWS, block=st.integers(16, 400), ascii=st.booleans())
def test_what_the_json_module_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, table: list[dict[str, Any]], block: int, ascii: bool
) -> None:
    lines = "".join(json.dumps(row, ensure_ascii=ascii) + "\n" for row in table)
    folder = write(tmp_path_factory.mktemp("json"), lines.encode("utf-8", "surrogatepass"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(textfile, "BLOCK", block)
        found = read(folder, ", ".join(VALUES), jsonl()).to_dicts()
    for row, expected in zip(found, table, strict=True):
        entries = row.pop("m")
        assert (entries and {each["key"]: each["value"] for each in entries}) == (
            expected.pop("m") or entries
        )
        assert row == expected


@given(
    lines=st.lists(
        st.sampled_from(
            [
                '{"a":1}',
                '{"a":"x"}',
                '{"a":',
                "",
                " ",
                "[",
                '{"b":"\\u0000"}',
                '{"a":1}{"a":2}',
                "null",
                '{"a":1,"b":"}"}',
            ]
        ),
        max_size=12,
    ),
    block=st.integers(1, 40),
)
def test_how_the_blocks_fall_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], block: int
) -> None:
    folder = write(
        tmp_path_factory.mktemp("json"), '{"a":0,"b":""}\n' + "".join(line + "\n" for line in lines)
    )
    whole = rejected(folder, AB, jsonl())
    if whole[1]:
        (folder / "rejects").rename(folder / "before")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(textfile, "BLOCK", block)
        assert rejected(folder, AB, jsonl()) == whole
    good = [json.loads(line)["a"] for line in lines if line in ('{"a":1}', '{"a":1,"b":"}"}')]
    assert [row[0] for row in whole[0] if row[0] is not None] == [0, *good]


def test_a_bad_row_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(write(tmp_path, "x\n"), AB, jsonl())
    assert caught.value.exit_code == 2
