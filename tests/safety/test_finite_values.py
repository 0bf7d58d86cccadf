"""How many values expressions and columns can have: by example, and never fewer than there are."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.choices import Choices
from tests.oracle.generate_data import BOOLEAN, DATE, DECIMAL, DOUBLE, INT, STRING, TIMESTAMP
from tests.oracle.generate_expressions import Typed, few_valued, predicate, scalar
from tests.oracle.oracle import Oracle

from headgate.safety.reasons.column_values import column_values
from headgate.safety.reasons.constants import constant
from headgate.safety.reasons.finite_values import Values
from headgate.safety.reasons.known_values import ColumnValues
from headgate.session import Session

COLUMNS = {"ts": TIMESTAMP, "k": "BIGINT", "v": INT, "i": "TINYINT", "h": "SMALLINT", "c": STRING, "d": DATE}
MORE = {"f": BOOLEAN, "z": DOUBLE, "m": DECIMAL}
STREAM = f"""
CREATE STREAM s ({", ".join(f"{name} {kind}" for name, kind in (COLUMNS | MORE).items())}) TIMESTAMP BY ts;
CREATE TABLE t (k BIGINT, j BIGINT, c STRING);
CREATE TABLE u (k BIGINT) USING json OPTIONS (path 'u', changeTime 'at', changeOp 'op');
"""


CONSTANTS = {
    "(3)": 3,
    "((-3))": -3,
    "- -3": 3,
    "-2.5": Decimal("-2.5"),
    "7.0": 7,
    "7.50": Decimal("7.50"),
    "1e3": Decimal(1000),
    "1e-3": Decimal("0.001"),
    "TRUE": True,
    "FALSE": False,
    "-TRUE": None,
    "'7'": "7",
    "-'x'": None,
    "k": None,
    "-k": None,
    "NULL": None,
    "1 + 1": None,
    "CAST(3 AS BIGINT)": 3,
    "CAST(3.0 AS INT)": 3,
    "CAST(2.5 AS INT)": None,
    "CAST(TRUE AS INT)": None,
    "CAST('5' AS INT)": None,
    "CAST('5' AS DECIMAL(3, 1))": None,
    "CAST(3 AS BOOLEAN)": None,
    "CAST(3 AS STRING)": None,
    "CAST(TRUE AS STRING)": None,
    "CAST('x' AS STRING)": "x",
    "CAST('x' AS TIMESTAMP)": None,
    "CAST('2026-01-01' AS DATE)": date(2026, 1, 1),
    "CAST('x' AS DATE)": None,
    "CAST(3 AS DATE)": None,
    "CAST(k AS INT)": None,
    "CAST(0.1 AS DOUBLE)": Decimal("0.1000000000000000055511151231257827021181583404541015625"),
    "CAST(0.1 AS FLOAT)": Decimal("0.100000001490116119384765625"),
    "CAST(16777217 AS FLOAT)": Decimal(16777216),
    "CAST(16777217 AS DOUBLE)": Decimal(16777217),
    "CAST(1e300 AS FLOAT)": None,
    "CAST(1e999 AS DOUBLE)": None,
    "CAST(1.25 AS DECIMAL(3, 1))": None,
    "CAST(1.25 AS DECIMAL(3, 2))": Decimal("1.25"),
    "CAST(1.5 AS DECIMAL(3, 2))": Decimal("1.5"),
    "CAST(12.5 AS DECIMAL(3, 2))": None,
    "CAST(0.5 AS DECIMAL(1, 1))": Decimal("0.5"),
    "CAST(0 AS DECIMAL(1, 1))": 0,
    "CAST(1 AS DECIMAL(1, 1))": None,
    "CAST(1 AS DECIMAL(1, 0))": 1,
    "CAST(-10 AS DECIMAL(2, 1))": None,
    "CAST(100 AS DECIMAL(3, 0))": 100,
    "CAST(100 AS DECIMAL)": 100,
}


@pytest.mark.parametrize(("text", "value"), CONSTANTS.items(), ids=CONSTANTS)
def test_a_constant_is_read_off_where_it_is_exact(text: str, value: Any) -> None:
    found = constant(sqlglot.parse_one(text, dialect="spark"))
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("listed", "low", "high", "left"),
    [
        ([1, 5, 9], 5, None, {5, 9}),
        ([1, 5, 9], None, 5, {1, 5}),
        ([1, 5, 9], 2, 8, {5}),
        ([1, 5, 9], 6, 8, set()),
        ([date(1970, 1, 2), date(1970, 1, 4)], 2, None, {date(1970, 1, 4)}),
        (["x", "y"], None, 5, {"x", "y"}),
    ],
)
def test_bounds_leave_values_of_a_list(
    listed: list[Any], low: int | None, high: int | None, left: set[Any]
) -> None:
    for found in (
        Values.of(listed).met(Values.between(low, high)),
        Values.between(low, high).met(Values.of(listed)),
    ):
        assert (found.listed, found.count) == (left, len(left))


def test_of_two_bounds_the_narrower_one_holds() -> None:
    found = Values.between(1, 9).met(Values.between(3, 20))
    assert (found.low, found.high, found.count) == (3, 9, 7)
    assert Values.between(1, 4).met(Values.between(6, 9)).count == 0
    assert (Values.of([2, 7]).low, Values.of([2, 7]).high) == (2, 7)
    assert (Values.of([2, "x"]).low, Values.of([2, "x"]).high) == (None, None)


def known(query: str) -> ColumnValues:
    """What is known of the columns of a query's answer."""
    found = Session().sql(f"{STREAM} CREATE QUERY q AS {query};")
    assert found is not None
    return column_values(found.plan.input)


def values(expression: str, where: str = "") -> Values:
    return known(f"SELECT {expression} AS e FROM s {where and 'WHERE ' + where}").column("e")


@pytest.mark.parametrize(
    ("expression", "where", "low", "high"),
    [
        ("k % 10", "", -9, 9),
        ("k % -10", "", -9, 9),
        ("k % 10", "k >= 0", 0, 9),
        ("k % v", "k >= 0 AND v BETWEEN 1 AND 5", 0, 4),
        ("pmod(k, 10)", "", 0, 9),
        ("(k % 10) * 2 - 1", "", -19, 17),
        ("k & 7", "", 0, 7),
        ("12 & k", "k BETWEEN 0 AND 5", 0, 5),
        ("k & v", "k >= 0", 0, None),
        ("k & -8", "", None, None),
        ("(k & 7) + 1", "", 1, 8),
        ("-(k % 3)", "", -2, 2),
        ("abs(k % 3)", "", 0, 2),
        ("abs(k)", "", 0, None),
        ("k", "k > 2.5 AND k < 7.5", 3, 7),
        ("k", "3 < k AND 7 >= k", 4, 7),
        ("k", "k BETWEEN 0 AND 9 OR k = 20", 0, 20),
        ("k", "CAST(k AS BIGINT) BETWEEN 0 AND 9", 0, 9),
        ("v", "CAST(v AS BIGINT) BETWEEN 0 AND 9", 0, 9),
        ("k", "CAST(k AS INT) BETWEEN 0 AND 9", None, None),
        ("k + v", "k BETWEEN 0 AND 9 AND v IN (1, 5)", 1, 14),
        ("v", "CAST(v AS DECIMAL(10, 0)) BETWEEN 0 AND 9", 0, 9),
        ("k", "CAST(k AS DECIMAL(19, 0)) BETWEEN 0 AND 9", 0, 9),
        ("v", "CAST(v AS DECIMAL(9, 0)) BETWEEN 0 AND 9", None, None),
        ("k", "CAST(k AS DECIMAL(18, 0)) BETWEEN 0 AND 9", None, None),
        ("k", "k BETWEEN 0 AND 3000000000000000000", 0, None),
        ("greatest(k, v) % 10", "", -9, 9),
        ("coalesce(k, 0) % 10", "", -9, 9),
        ("greatest(k, 1.5) % 10", "", None, None),
        ("round(k) % 10", "", None, None),
        ("nvl2(k, 1, 2) % 10", "", None, None),
        ("coalesce(k, 2.5) % 10", "", None, None),
        ("hour(ts)", "", 0, 23),
        ("month(d)", "", 1, 12),
        ("quarter(d)", "", 1, 4),
        ("day(d)", "", 1, 31),
        ("dayofmonth(d)", "", 1, 31),
        ("dayofweek(d)", "", 1, 7),
        ("dayofyear(d)", "", 1, 366),
        ("weekofyear(d)", "", 1, 53),
        ("minute(ts)", "", 0, 59),
        ("second(ts)", "", 0, 59),
        ("weekday(ts)", "", 0, 6),
        ("i", "", -128, 127),
        ("h", "", -(2**15), 2**15 - 1),
        ("CAST(k AS TINYINT)", "", -128, 127),
        ("CAST(k % 300 AS TINYINT)", "", -128, 127),
        ("CAST(k % 3 AS INT)", "", -2, 2),
        ("CAST(k AS TINYINT)", "k BETWEEN -128 AND 0", -128, 0),
        ("CAST(k AS TINYINT)", "k BETWEEN 0 AND 127", 0, 127),
        ("CAST(k AS TINYINT)", "k BETWEEN 0 AND 128", -128, 127),
        ("CAST(k AS TINYINT)", "k BETWEEN -129 AND 0", -128, 127),
        ("CASE WHEN f THEN k % 3 ELSE 7 END", "", -2, 7),
        ("coalesce(k % 3, 7)", "", -2, 7),
        ("greatest(k % 3, 1)", "", -2, 2),
        ("k", "", None, None),
        ("k", "k > 3", 4, None),
        ("k", "k = 5", 5, 5),
        ("k", "5 = k", 5, 5),
        ("k", "5 <=> k", 5, 5),
        ("k", "3 > k AND k > -2", -1, 2),
        ("k", "k = v AND v BETWEEN 1 AND 3", 1, 3),
        ("v", "k = v AND k BETWEEN 1 AND 3", 1, 3),
        ("k * 2", "k BETWEEN 0 AND 3000000000000000000 AND v > 0", None, None),
    ],
)
def test_whole_numbers_stay_between(expression: str, where: str, low: int | None, high: int | None) -> None:
    found = values(expression, where)
    assert (found.low, found.high) == (low, high)
    assert found.finite == (low is not None and high is not None)


@pytest.mark.parametrize(
    ("expression", "where", "listed", "nullable"),
    [
        ("v > 3", "", {False, True}, True),
        ("v IS NULL", "", {False, True}, False),
        ("f AND c LIKE 'a%'", "", {False, True}, True),
        ("startswith(c, 'a')", "", {False, True}, True),
        ("CASE WHEN v > 3 THEN 'a' WHEN v < 3 THEN 'b' END", "", {"a", "b"}, True),
        ("if(v > 3, 'a', 'b')", "", {"a", "b"}, False),
        ("c", "c = 'x' OR c = 'y'", {"x", "y"}, False),
        ("c", "c IN ('x', 'y', NULL)", {"x", "y"}, False),
        ("c", "c IN ('x', 'y') AND c <> 'z' AND c IN ('y', 'z')", {"y"}, False),
        ("c", "c <=> 'x' OR c IS NULL", {"x"}, True),
        ("upper(c)", "upper(c) IN ('A', 'B')", {"A", "B"}, False),
        ("k % 10", "k % 10 = 3", {3}, False),
        ("f", "f", {True}, False),
        ("f", "NOT f", {False}, False),
        ("coalesce(c, 'z')", "c IN ('x', 'y') OR c IS NULL", {"x", "y", "z"}, False),
        ("nullif(c, 'x')", "c IN ('x', 'y')", {"x", "y"}, True),
        ("d", "d = DATE '2026-01-01'", {date(2026, 1, 1)}, False),
        ("c", "k = 1 OR c = 'x'", None, True),
        ("c", "NOT (c = 'x' OR c IS NULL)", None, False),
    ],
)
def test_lists_of_values(expression: str, where: str, listed: set[Any] | None, nullable: bool) -> None:
    found = values(expression, where)
    assert found.listed == (None if listed is None else frozenset(listed))
    assert found.nullable == nullable


@pytest.mark.parametrize(
    ("expression", "where", "count"),
    [
        ("z % 10", "", None),
        ("sqrt(k) % 10", "", None),
        ("(z + 1) % 10", "", None),
        ("(1 - z) % 10", "", None),
        ("(k * z) % 10", "", None),
        ("btrim(c)", "", None),
        ("year(d)", "", None),
        ("left(c, 1)", "", None),
        ("upper(c)", "c IN ('a', 'b', 'A')", 3),
        ("concat(c, CAST(f AS STRING))", "c IN ('a', 'b')", 6),
        ("m", "m IN (1.25, 1.5)", 3),
        ("m", "m BETWEEN 1 AND 2", None),
        ("z", "z BETWEEN 1 AND 2", None),
        ("z", "z = 0", 2),
        ("CAST(z AS STRING)", "0 = z", 2),
        ("sign(z)", "", 5),
    ],
)
def test_counts_of_values(expression: str, where: str, count: int | None) -> None:
    assert values(expression, where).count == count


def test_rows_of_a_static_table() -> None:
    joined = known("SELECT s.k, t.j, s.c, s.k + t.j AS e, s.v FROM s, t WHERE s.k = t.k")
    (table,) = joined.column("k").tables
    assert table.name == "t"
    assert joined.count(["k", "j", "e"]) is not None
    assert joined.column("c").count is None
    assert joined.count(["k", "j"]) == (1, frozenset([table]))
    assert known("SELECT s.k FROM s WHERE EXISTS (SELECT * FROM t WHERE t.k = s.k)").column("k").tables
    assert (
        not known("SELECT s.k FROM s WHERE NOT EXISTS (SELECT * FROM t WHERE t.k = s.k)").column("k").finite
    )
    assert not known("SELECT s.k FROM s, u WHERE s.k = u.k").column("k").finite


@pytest.mark.parametrize(
    ("where", "empty"),
    [
        ("k > 5 AND k < 3", True),
        ("k > 5 AND k < 7", False),
        ("k > 5 AND k < 6", True),
        ("c = 'x' AND c = 'y'", True),
        ("c = 'x' AND upper(c) = 'Y'", False),
        ("k IS NULL AND k = 3", True),
        ("k IS NULL AND k <=> NULL", False),
        ("f AND NOT f", True),
        ("k % 10 = 12", True),
        ("hour(ts) = 24", True),
        ("d > DATE '2026-01-01' AND d < DATE '2026-01-02'", True),
        ("(k = 1 OR k = 2) AND k = 3", True),
        ("(k = 1 AND k = 2) OR (c = 'x' AND c = 'y')", True),
        ("z > 5 AND z < 3", False),
        ("z = 0.1 AND z = 0.10000000000000000001", False),
        ("m = CAST(1.25 AS DECIMAL(3, 1)) AND m = 1.3", False),
        ("k = CAST(1.5 AS BIGINT) AND k = 2", False),
        ("k = CAST('5' AS BIGINT) AND k = 5", False),
        ("k = NULL", True),
        ("c IN (NULL)", True),
        ("dayofyear(d) = 1 AND weekofyear(d) = 1 AND quarter(d) = 1 AND dayofmonth(d) = 1", False),
        ("FALSE", True),
        ("k NOT IN (1, NULL)", False),
    ],
)
def test_contradictions(where: str, empty: bool) -> None:
    """What is not recognized is only not used; what is, must be so."""
    assert known(f"SELECT k FROM s WHERE {where}").empty == empty


@pytest.mark.parametrize("where", ["k < v", "v >= k", "k = v", "k <> v AND k > 1 AND v > 1"])
def test_what_is_compared_is_not_null(where: str) -> None:
    assert not values("k", where).nullable
    assert not values("v", where).nullable


def test_bounds_that_are_too_large_for_a_bigint_are_none() -> None:
    found = values("k * 2", "k BETWEEN 0 AND 2000000000000000000")
    assert (found.low, found.high) == (None, None)


def test_null_is_one_more_value() -> None:
    assert values("CASE WHEN f THEN 7 END").total == 2
    assert values("CASE WHEN f THEN 7 ELSE 7 END").total == 1


@pytest.mark.parametrize("where", ["k <=> NULL", "NULL <=> k", "k IS NULL"])
def test_what_is_like_null_is_null(where: str) -> None:
    found = values("k", where)
    assert (found.count, found.nullable) == (0, True)


def test_a_count_of_few_values_is_one_of_few_numbers() -> None:
    found = known("SELECT x.n AS e FROM (SELECT COUNT(DISTINCT k % 3) AS n FROM s) x").column("e")
    assert (found.low, found.high, found.nullable) == (0, 5, False)


def test_a_join_of_what_is_empty_is_empty() -> None:
    assert known("SELECT s.k FROM s, t WHERE s.k = t.k AND s.v > 5 AND s.v < 3").empty
    assert known("SELECT s.k FROM t, s WHERE s.k = t.k AND s.v > 5 AND s.v < 3").empty


def test_checks_are_believed_only_where_that_is_asked_for() -> None:
    """A row that breaks a CHECK is late only where something relies on the CHECK."""
    stream = "CREATE STREAM s (ts TIMESTAMP, k BIGINT, CHECK (k < 3)) TIMESTAMP BY ts;"
    found = Session().sql(f"{stream} CREATE QUERY q AS SELECT ISTREAM(k) FROM s WHERE k > 5;")
    assert found is not None
    assert not column_values(found.plan.input).empty
    assert column_values(found.plan.input, checks=True).empty


# -- never fewer than there are -------------------------------------------------------------------

USED = {name: kind for name, kind in (COLUMNS | MORE).items() if kind not in ("TINYINT", "SMALLINT")}


def rows_of(random: Random, count: int) -> pa.Table:
    whole = [-7, -3, -1, 0, 1, 2, 3, 4, 9, 12, None]
    domains: dict[str, list[Any]] = {
        "k": whole,
        "v": whole,
        "i": [-128, 127, 0, 1, None],
        "h": [-1, 300, None],
        "c": ["a", "b", "Ab", "", "x", None],
        "d": [date(2024, 1, 31), date(2024, 2, 1), date(1969, 12, 31), None],
        "f": [True, False, None],
        "z": [0.0, -0.0, 0.5, 2.0, -3.25, float("nan"), None],
        "m": [None, Decimal("0.00"), Decimal("1.25"), Decimal("1.50"), Decimal("-2.00")],
    }
    rows = [
        {"ts": number * 977_777_777, **{name: random.choice(each) for name, each in domains.items()}}
        for number in range(count)
    ]
    kinds = {
        "k": pa.int64(),
        "v": pa.int32(),
        "i": pa.int8(),
        "h": pa.int16(),
        "c": pa.string(),
        "d": pa.date32(),
    }
    kinds |= {"f": pa.bool_(), "z": pa.float64(), "m": pa.decimal128(9, 2)}
    schema = pa.schema([("ts", pa.timestamp("us", tz="UTC")), *kinds.items()])
    return pa.Table.from_pylist(rows, schema=schema)


@settings(max_examples=150)
@given(st.binary(min_size=48, max_size=48), st.integers(0, 1_000))
def test_what_is_known_of_an_expression_is_true_of_its_values(tape: bytes, seed: int) -> None:
    choices = Choices(tape)
    columns = [Typed(name, kind) for name, kind in USED.items()]
    expression = choices.choose((few_valued, few_valued, scalar))(choices, columns).text
    where = choices.choose(("TRUE", predicate(choices, columns, 2), predicate(choices, columns, 1)))
    query = f"SELECT ISTREAM({expression} AS e) FROM s WHERE {where}"
    found = known(query)
    # The oracle knows nothing of what is known here; the engine may leave rows out because of it.
    oracle = Oracle(f"{STREAM} CREATE QUERY q AS {query};", {"s": rows_of(Random(seed), 60)}, {})
    seen = {each.row[0] for each in oracle.output("q")}
    _agrees(found, found.column("e"), seen, query)


def _agrees(found: ColumnValues, claimed: Values, seen: set[Any], query: str) -> None:
    assert not (found.empty and seen), (query, seen)
    told = {value for value in seen if value is not None}
    assert claimed.nullable or None not in seen, (query, claimed, seen)
    if claimed.count is not None and not claimed.tables:
        assert len(told) <= claimed.count, (query, claimed, seen)
    if claimed.listed is not None:
        assert told <= claimed.listed, (query, claimed, seen)
    for value in told:
        if isinstance(value, int):
            assert claimed.low is None or value >= claimed.low, (query, claimed, seen)
            assert claimed.high is None or value <= claimed.high, (query, claimed, seen)
