"""Types of expressions as in Spark SQL, every conversion written out, and what does not fit refused."""

from __future__ import annotations

import pytest
from tests.plan.outline import query

from headgate.model.errors import TypeMismatchError, UnsupportedError
from headgate.model.types import spark_name
from headgate.plan.nodes import Project

TYPES = {
    # constants
    "1": "INT",
    "2147483647": "INT",
    "2147483648": "BIGINT",
    "9223372036854775807": "BIGINT",
    "9223372036854775808": "DECIMAL(19, 0)",
    "1.50": "DECIMAL(3, 2)",
    ".5": "DECIMAL(1, 1)",
    "1e3": "DOUBLE",
    "12345678901234567890123456789012345678901": "DOUBLE",
    "TRUE": "BOOLEAN",
    "'x'": "STRING",
    "DATE '2026-01-01'": "DATE",
    "TIMESTAMP '2026-01-01 00:00:00'": "TIMESTAMP",
    "CAST(NULL AS DECIMAL(5, 2))": "DECIMAL(5, 2)",
    # whole numbers and floating point
    "i + 1": "INT",
    "i + a": "BIGINT",
    "i + 2147483648": "BIGINT",
    "tiny + small": "SMALLINT",
    "fl + fl": "FLOAT",
    "small + fl": "DOUBLE",
    "fl + i": "DOUBLE",
    "-i": "INT",
    "i / 2": "DOUBLE",
    "i DIV i": "BIGINT",
    "i % 2": "INT",
    "i % a": "BIGINT",
    "d + NULL": "DOUBLE",
    # decimals
    "i + 1.5": "DECIMAL(12, 1)",
    "i * 1.5": "DECIMAL(13, 1)",
    "dec + 1": "DECIMAL(11, 2)",
    "dec + i": "DECIMAL(13, 2)",
    "dec + dec": "DECIMAL(11, 2)",
    "dec * dec": "DECIMAL(21, 4)",
    "dec / dec": "DECIMAL(23, 13)",
    "dec % dec": "DECIMAL(10, 2)",
    "dec + d": "DOUBLE",
    "dec * 12345678901234567890123456789012345678": "DECIMAL(38, 2)",
    # time
    "ts + INTERVAL 5 SECONDS": "TIMESTAMP",
    "INTERVAL 5 SECONDS + ts": "TIMESTAMP",
    "ntz - INTERVAL 1 HOUR": "TIMESTAMP_NTZ",
    "day + INTERVAL 1 DAY": "DATE",
    "INTERVAL 2 WEEKS + day": "DATE",
    "day + INTERVAL 24 HOURS": "TIMESTAMP",
    "day - INTERVAL '1 00:00:00' DAY TO SECOND": "TIMESTAMP",
    "day - INTERVAL 1 MONTH": "DATE",
    "INTERVAL 3 YEARS + ts": "TIMESTAMP",
    "ntz - INTERVAL '2' QUARTER": "TIMESTAMP_NTZ",
    "3 + day": "DATE",
    "day - a": "DATE",
    "day - day": "INTERVAL",
    "ts - day": "INTERVAL",
    "INTERVAL 5 SECONDS * 2": "INTERVAL",
    "0.5 * INTERVAL '1:30' HOUR TO MINUTE": "INTERVAL",
    "INTERVAL '1 DAY 2 HOURS' / a": "INTERVAL",
    "-INTERVAL 1 HOUR": "INTERVAL",
    "a & 1": "BIGINT",
    "~a": "BIGINT",
    "concat(a, '-', day)": "STRING",
    "-2147483648": "INT",
    "-9223372036854775808": "BIGINT",
    "-9223372036854775809": "DECIMAL(19, 0)",
    "-128Y": "TINYINT",
    "INTERVAL 1 DAY + INTERVAL 1 HOUR": "INTERVAL",
    "ts - ts": "INTERVAL",
    "ts - ntz": "INTERVAL",
    "year(ts)": "INT",
    "year(c)": "INT",
    "EXTRACT(HOUR FROM ts)": "INT",
    "date_trunc('hour', ts)": "TIMESTAMP",
    "datediff(day, ts)": "INT",
    "datediff(HOUR, day, ts)": "BIGINT",
    "to_date(c)": "DATE",
    # conditions
    "a = i": "BOOLEAN",
    "f AND a > 1 OR NOT f": "BOOLEAN",
    "a IN (1, 2.5)": "BOOLEAN",
    "i BETWEEN 1 AND a": "BOOLEAN",
    "c LIKE 'x%'": "BOOLEAN",
    "ts >= day": "BOOLEAN",
    "a <=> NULL": "BOOLEAN",
    "CASE WHEN f THEN 1 ELSE a END": "BIGINT",
    "CASE WHEN f THEN 1 END": "INT",
    "CASE WHEN f THEN 1 ELSE 2.5 END": "DECIMAL(11, 1)",
    "CASE i WHEN 1 THEN 'x' ELSE NULL END": "STRING",
    "IF(f, i, d)": "DOUBLE",
    "COALESCE(i, a)": "BIGINT",
    "COALESCE(NULL, c)": "STRING",
    "GREATEST(i, a, d)": "DOUBLE",
    # functions
    "length(c)": "INT",
    "substring(c, 1, 2)": "STRING",
    "c || 'x'": "STRING",
    "abs(dec)": "DECIMAL(10, 2)",
    "round(d)": "DOUBLE",
    "floor(d)": "BIGINT",
    "floor(dec)": "DECIMAL(9, 0)",
    "sqrt(a)": "DOUBLE",
    "sign(i)": "DOUBLE",
    "pmod(i, a)": "BIGINT",
    # casts
    "CAST(a AS STRING)": "STRING",
    "CAST(f AS INT)": "INT",
    "CAST(ts AS DATE)": "DATE",
    "CAST(a AS TIMESTAMP)": "TIMESTAMP",
    "TRY_CAST(c AS INT)": "INT",
    "a::double": "DOUBLE",
    # inside values
    "st.x": "INT",
    "st.y.z": "STRING",
    "s.st.y.z": "STRING",
    "arr[0]": "INT",
    # aggregates
    "COUNT(*)": "BIGINT",
    "COUNT(DISTINCT c)": "BIGINT",
    "SUM(i)": "BIGINT",
    "SUM(fl)": "DOUBLE",
    "SUM(dec)": "DECIMAL(20, 2)",
    "AVG(i)": "DOUBLE",
    "AVG(dec)": "DECIMAL(14, 6)",
    "MIN(c)": "STRING",
    "MAX(ts)": "TIMESTAMP",
    "MEDIAN(i)": "DOUBLE",
    "QUANTILE(dec, 0.9)": "DOUBLE",
    "TOP(c, 3)": "ARRAY<STRUCT<item: STRING, count: BIGINT>>",
}


@pytest.mark.parametrize("expression", TYPES)
def test_the_type_of(expression: str) -> None:
    plan = query(f"SELECT {expression} AS r FROM s [NOW]").plan
    assert spark_name(plan.schema[0].type) == TYPES[expression]


CONVERSIONS = {
    "i + a": "CAST(`s.i` AS BIGINT) + `s.a`",
    "i / 2": "CAST(`s.i` AS DOUBLE) / CAST(2 AS DOUBLE)",
    "a > 1": "`s.a` > CAST(1 AS BIGINT)",
    "a > 1.5": "CAST(`s.a` AS DECIMAL(21, 1)) > CAST(1.5 AS DECIMAL(21, 1))",
    "a IN (1, i)": "`s.a` IN (CAST(1 AS BIGINT), CAST(`s.i` AS BIGINT))",
    "i BETWEEN 1 AND a": "`s.i` >= 1 AND CAST(`s.i` AS BIGINT) <= `s.a`",
    "ts > '2026-01-01'": "`s.ts` > CAST('2026-01-01' AS TIMESTAMP)",
    "day = '2026-01-01'": "`s.day` = CAST('2026-01-01' AS DATE)",
    "ts = ntz": "`s.ts` = CAST(`s.ntz` AS TIMESTAMP)",
    "CASE WHEN f THEN 1 ELSE a END": "CASE WHEN `s.f` THEN CAST(1 AS BIGINT) ELSE `s.a` END",
    "CASE i WHEN 1 THEN 'x' END": "CASE WHEN `s.i` = 1 THEN 'x' ELSE CAST(NULL AS STRING) END",
    "COALESCE(i, a)": "COALESCE(CAST(`s.i` AS BIGINT), `s.a`)",
    "sqrt(a)": "SQRT(CAST(`s.a` AS DOUBLE))",
    "dec + 1": "CAST(`s.dec` + CAST(1 AS DECIMAL(1, 0)) AS DECIMAL(11, 2))",
    "TRY_CAST(c AS INT)": "TRY_CAST(`s.c` AS INT)",
    "f IS TRUE": "`s.f` IS NOT DISTINCT FROM TRUE",
}


@pytest.mark.parametrize("expression", CONVERSIONS)
def test_conversions_are_written_out(expression: str) -> None:
    plan = query(f"SELECT {expression} AS r FROM s [NOW]").plan.input
    assert isinstance(plan, Project)
    assert plan.outputs[0].scalar.expression.sql(dialect="spark") == CONVERSIONS[expression]


MISMATCHES = {
    "a + c": "BIGINT and STRING cannot be combined in a + c",
    "'1' + 1": "STRING and INT cannot be combined in '1' + 1",
    "a = '5'": "BIGINT and STRING do not go together in a = '5'",
    "c LIKE 5": "5 is INT where STRING is needed",
    "NOT a": "a is BIGINT where BOOLEAN is needed",
    "f + f": "BOOLEAN and BOOLEAN cannot be combined in f + f",
    "-c": "-c needs a number, not STRING",
    "ts + 5": "TIMESTAMP and INT cannot be combined in ts + 5",
    "ts + ts": "TIMESTAMP and TIMESTAMP cannot be combined in ts + ts",
    "2 / INTERVAL 5 SECONDS": "INT and INTERVAL cannot be combined in 2 / INTERVAL '5' SECONDS",
    "a & 1.5": "BIGINT and DECIMAL(2, 1) cannot be combined in a & 1.5",
    "~c": "~c needs a whole number, not STRING",
    "a + INTERVAL 1 MONTH": "a + INTERVAL '1' MONTH moves a date or timestamp, not BIGINT",
    "day - ts - day": "INTERVAL and DATE cannot be combined in day - ts - day",
    "a IN (1, 'x')": "BIGINT and STRING do not go together in a IN (1, 'x')",
    "CASE WHEN a THEN 1 END": "a is BIGINT where BOOLEAN is needed",
    "CASE WHEN f THEN 1 ELSE 'x' END": "INT and STRING do not go together in CASE WHEN f THEN 1 ELSE 'x' END",
    "upper(a)": "a is BIGINT where STRING is needed",
    "substring(c, 'x')": "'x' must be an integer, not STRING",
    "sqrt(c)": "sqrt needs a number, not STRING",
    "year(a)": "a date, a timestamp or text is needed, not BIGINT",
    "date_trunc('hour', a)": "a is BIGINT where TIMESTAMP is needed",
    "st + 1": "STRUCT<x: INT, y: STRUCT<z: STRING>> and INT cannot be combined in st + 1",
    "st.q": "the struct has no field q",
    "arr['x']": "'x' must be an integer, not STRING",
    "a[0]": "[…] needs an ARRAY, not BIGINT",
    "arr > arr": "ARRAY<INT> has no order",
    "m = m": "maps cannot be compared",
    "CAST(INTERVAL 1 DAY AS STRING)": "INTERVAL cannot be cast to STRING",
    "CAST(st AS INT)": "STRUCT<x: INT, y: STRUCT<z: STRING>> cannot be cast to INT",
    "CAST(st AS STRUCT<a: INT>)": "STRUCT<x: INT, y: STRUCT<z: STRING>> cannot be cast to STRUCT<a: INT>",
    "CAST(st AS ARRAY<INT>)": "STRUCT<x: INT, y: STRUCT<z: STRING>> cannot be cast to ARRAY<INT>",
    "CAST(st AS STRUCT<a: INT, b: INT>)": "STRUCT<x: INT, y: STRUCT<z: STRING>> cannot be cast to "
    "STRUCT<a: INT, b: INT>",
    "CAST(a AS DATE)": "BIGINT cannot be cast to DATE",
    "CAST(f AS TIMESTAMP)": "BOOLEAN cannot be cast to TIMESTAMP",
    "SUM(c)": "SUM needs a number, not STRING",
    "MEDIAN(c)": "MEDIAN needs a number, not STRING",
    "MIN(arr)": "MIN needs an order, not ARRAY<INT>",
    "TOP(arr, 3)": "TOP needs an order, not ARRAY<INT>",
    "NULL": "NULL alone has no type",
}


@pytest.mark.parametrize("expression", MISMATCHES)
def test_what_does_not_fit_together(expression: str) -> None:
    with pytest.raises(TypeMismatchError) as caught:
        query(f"SELECT {expression} FROM s [NOW]")
    assert caught.value.cause == MISMATCHES[expression]
    assert caught.value.place is not None


UNSUPPORTED = {
    "c LIKE 'a/b' ESCAPE '/'": "the pattern 'a/b' has / before something other than %, _ and /",
    "c LIKE 'ab/' ESCAPE '/'": "the pattern 'ab/' has / before something other than %, _ and /",
    "c LIKE 'ab' ESCAPE '//'": "ESCAPE needs one character in quotes",
    "c LIKE c ESCAPE '/'": "ESCAPE needs LIKE or ILIKE with a pattern in quotes",
    "c RLIKE 'a' ESCAPE '/'": "ESCAPE needs LIKE or ILIKE with a pattern in quotes",
    **dict.fromkeys(
        ("INTERVAL 1 MONTH * 2", "INTERVAL 1 MONTH - ts"),
        "INTERVAL '1' MONTH is not an interval of a fixed length: numbers and units from microseconds to weeks",
    ),
    "ts + INTERVAL '1 2 3' DAY TO HOUR": "INTERVAL '1 2 3' DAY TO HOUR is not an interval of a fixed length: "
    "numbers and units from microseconds to weeks",
    "CAST(a AS DECIMAL(50, 2))": "there is no type DECIMAL(50, 2)",
    "QUANTILE(a, 2)": "QUANTILE takes a value and a constant between 0 and 1: QUANTILE(length, 0.9)",
    "TOP(a)": "TOP takes a value and how many: TOP(source, 10)",
    "TOP(a, 0)": "TOP keeps between 1 and 10000 values",
    "COUNT(a, b)": "COUNT takes one argument",
    "COUNT(DISTINCT a, b)": "COUNT(DISTINCT …) takes one value",
    "SUM(SUM(a))": "aggregates do not nest",
    "MEDIAN(DISTINCT a)": "MEDIAN does not take DISTINCT",
    "nosuch(a)": "there is no function nosuch",
    "rand()": "there is no function rand",
    "current_timestamp()": "there is no function current_timestamp",
    # Functions are called by the names that were written, whatever sqlglot calls them.
    "bit_and(a)": "the aggregate BIT_AND cannot stand here or is not supported",
    "Kurtosis(a)": "the aggregate KURTOSIS cannot stand here or is not supported",
    "STRING_AGG(c, ',')": "the aggregate STRING_AGG cannot stand here or is not supported",
    "kurtosis(a) FILTER (WHERE a > 1)": "KURTOSIS(a) FILTER(WHERE a > 1) is not supported",
    "get_json_object(c, '$.a')": "there is no function get_json_object",
    "base64(c)": "there is no function base64",
    "ceil()": "ceil needs an argument",
    "if(a > 1, 2)": "if needs three arguments",
    "ceil(a, b)": "ceil of a DECIMAL takes a whole number for its digits",
    "SUM(a) OVER (PARTITION BY b)": "OVER is not supported",
    "(SELECT a FROM u)": "a sub-query may stand in FROM, or as a condition of WHERE on its own: "
    "EXISTS, NOT EXISTS, IN",
    "a NOT IN (SELECT a FROM u)": "IN (SELECT …) is only understood as a condition of WHERE on its own, "
    "not inside OR or NOT",
    "X'1F'": "X'1F' is not supported",
    "regexp_replace(c, 'a', 'b', a)": "regexp_replace takes a constant for a",
    "a BETWEEN SYMMETRIC 5 AND 1": "SYMMETRIC is not supported",
    "a IN b": "IN without parentheses is not supported",
}


@pytest.mark.parametrize("expression", UNSUPPORTED)
def test_what_is_not_supported(expression: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        query(f"SELECT {expression} FROM s [NOW]")
    assert caught.value.cause == UNSUPPORTED[expression]


CLAUSES = {
    "SELECT a FROM s ORDER BY a": "ORDER BY has no meaning for an answer that changes over time",
    "SELECT a FROM s LIMIT 5": "LIMIT has no meaning for an answer that changes over time",
    "SELECT a FROM s WHERE EXISTS (SELECT * FROM u LIMIT 0)": "LIMIT has no meaning for an answer that "
    "changes over time",
    "SELECT a FROM s LEFT JOIN u ON s.a = u.a": "LEFT JOIN is not supported",
    "SELECT a FROM s NATURAL JOIN u": "NATURAL JOIN is not supported",
    "SELECT a FROM s LATERAL VIEW explode(arr) x AS y": "LATERAL VIEW is not supported",
    "SELECT a FROM s QUALIFY a > 1": "QUALIFY is not supported",
    "SELECT a FROM s TABLESAMPLE (10 PERCENT)": "TABLESAMPLE is not supported",
    "SELECT a INTO x FROM s": "INTO is not supported",
    "SELECT a FROM s FOR UPDATE": "FOR UPDATE is not supported",
    "SELECT * EXCEPT (a) FROM s": "* EXCEPT is not supported",
    "SELECT s.* EXCEPT (a) FROM s": "* EXCEPT is not supported",
    "SELECT x.a FROM u AS x(b, a)": "a list of columns in an alias is not supported",
    "WITH w(x) AS (SELECT a FROM s) SELECT x FROM w": "a list of columns in an alias is not supported",
    "WITH RECURSIVE w AS (SELECT a FROM s) SELECT a FROM w": "WITH RECURSIVE is not supported",
    "SELECT a, b FROM s UNION ALL BY NAME SELECT b, a FROM u": "BY NAME is not supported",
    "SELECT a FROM s INTERSECT ALL SELECT a FROM u": "INTERSECT ALL is not supported",
    "SELECT a FROM s GROUP BY ALL": "ALL is not supported",
    "SELECT a FROM VALUES (1), (2) AS x": "FROM takes streams, tables, queries and sub-queries",
    "SELECT 1 AS x": "a query reads at least one stream: FROM is missing",
    "SELECT a FROM s HAVING a > 1": "HAVING needs GROUP BY or an aggregate",
    "SELECT a FROM s WHERE a IN (SELECT a, b FROM u)": "IN (SELECT …) takes a sub-query with one column",
}


@pytest.mark.parametrize("text", CLAUSES)
def test_clauses_are_refused_by_name(text: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        query(text)
    assert caught.value.cause == CLAUSES[text]
    assert caught.value.place is not None


def test_both_sides_of_a_union_fit() -> None:
    with pytest.raises(
        TypeMismatchError, match="column a is BIGINT on the left of UNION and STRING on the right"
    ):
        query("SELECT a FROM s UNION ALL SELECT c FROM u")
    with pytest.raises(
        TypeMismatchError, match="both sides of EXCEPT need the same number of columns, not 1 and 2"
    ):
        query("SELECT a FROM s EXCEPT SELECT a, b FROM u")
