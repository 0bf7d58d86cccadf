"""What a name means: inputs, columns, aliases, and the names of outputs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.outline import outline, query
from tests.timeout import time_limit

from headgate.model.errors import DeclarationError, HeadgateError, NameResolutionError
from headgate.model.source import SourceText
from headgate.plan.nodes import Project
from headgate.session import Session


def outputs(text: str) -> list[str]:
    """The select list of a query as `expression as name`."""
    plan = query(text).plan.input
    assert isinstance(plan, Project)
    return outline(plan).splitlines()[0].removeprefix("project ").split(", ")


MEANT = {
    "SELECT A, S.b FROM s": ["s.a as A", "s.b as b"],
    "SELECT x.a FROM s AS x": ["x.a as a"],
    "SELECT `a` FROM `s`": ["s.a as a"],
    "SELECT u.* FROM s [NOW], u [NOW]": ["u.ts as ts", "u.a as a", "u.b as b", "u.c as c"],
    "SELECT * FROM u [NOW] AS x, n WHERE a = n.x": [
        *("x.ts as ts", "x.a as a", "x.b as b", "x.c as c"),
        *("n.x as x", "n.y as y", "n.name as name"),
    ],
    "SELECT * FROM u [NOW] AS x, u [NOW] AS y": [
        *("x.ts as ts", "x.a as a", "x.b as b", "x.c as c"),
        *("y.ts as ts_1", "y.a as a_1", "y.b as b_1", "y.c as c_1"),
    ],
    "SELECT a AS k, b AS a FROM s": ["s.a as k", "s.b as a"],
    "SELECT a, a + 1, a FROM s": ["s.a as a", "s.a + 1 as a + 1", "s.a as a_1"],
    # equal columns are not ambiguous
    "SELECT a FROM s [NOW], u [NOW] WHERE s.a = u.a": ["s.a as a"],
    "SELECT a FROM s [NOW], u [NOW], v [NOW] WHERE s.a = u.a AND v.a = u.a": ["s.a as a"],
    "SELECT a FROM s [NOW] JOIN u [NOW] USING (a)": ["s.a as a"],
    "SELECT u.a FROM v [NOW], s [NOW] JOIN u [NOW] USING (a)": ["u.a as a"],
    "SELECT * FROM u [NOW] JOIN v [NOW] USING (b, a)": [
        "u.b as b",
        "u.a as a",
        "u.ts as ts",
        "u.c as c",
        "v.ts as ts_1",
        "v.c as c_1",
    ],
    # a sub-query's aggregate answers to its column
    "SELECT x.a FROM (SELECT SUM(a) FROM s [NOW]) x": ["SUM(s.a) as a"],
    "SELECT a FROM (SELECT SUM(a), MAX(b) AS a FROM s [NOW]) x": ["MAX(s.b) as a"],
    # names of CTEs hide those of streams
    "WITH u AS (SELECT a AS z FROM s) SELECT z FROM u": ["s.a as z"],
    "WITH s AS (SELECT a FROM s), x AS (SELECT a FROM s) SELECT a FROM x": ["s_2.a as a"],
}


@pytest.mark.parametrize("text", MEANT)
def test_what_a_name_means(text: str) -> None:
    assert outputs(text) == MEANT[text]


UNKNOWN = {
    "SELECT q FROM s": ("there is no column q", "there is a, arr, b, c, d, day, dec, f, …"),
    "SELECT nmae FROM n, s WHERE a = n.x": ("there is no column nmae", "did you mean name?"),
    "SELECT n.nam FROM n, s WHERE a = n.x": ("there is no column n.nam", "did you mean name?"),
    "SELECT s.a FROM s AS x": ("there is no input named s in this query", "there is x"),
    "SELECT strem.a FROM s AS stream": (
        "there is no input named strem in this query",
        "did you mean stream?",
    ),
    "SELECT x.* FROM s": ("there is no input named x in this query", "there is s"),
    "SELECT a FROM z": (
        "there is no stream, table or query named z",
        "there is fixed, n, query_1, s, t, u, v",
    ),
    "SELECT a FROM other.s": ("other.s: names of streams have one part", None),
    "SELECT s.a.b FROM s": (".b needs a STRUCT, not BIGINT", None),
    "SELECT x.s.a FROM s": ("there is no column x", "there is a, arr, b, c, d, day, dec, f, …"),
    "SELECT a FROM s [NOW], u [NOW]": ("a is ambiguous: it can be s.a or u.a", "write s.a or u.a"),
    "SELECT a FROM s [NOW], u [NOW] WHERE s.a = u.b": (
        "a is ambiguous: it can be s.a or u.a",
        "write s.a or u.a",
    ),
    "SELECT a FROM s [NOW] JOIN u [NOW] USING (zz)": (
        "USING (zz): both sides need a column of that name",
        "there is a, arr, b, c, d, day, dec, f, …",
    ),
    "SELECT s.a FROM s [NOW] JOIN u [NOW] ON s.a = u.b JOIN v [NOW] USING (c)": (
        "USING (c) is ambiguous: on the left it can be s.c or u.c",
        "write ON and the columns that are meant",
    ),
    "SELECT a FROM s [PARTITION BY q ROWS 1]": (
        "there is no column q",
        "there is a, arr, b, c, d, day, dec, f, …",
    ),
    "SELECT b FROM s GROUP BY a": (
        "b is neither in GROUP BY nor inside an aggregate",
        "add it to GROUP BY, ",
    ),
    "SELECT a FROM s GROUP BY 2": ("GROUP BY 2: the select list has 1 items", None),
    "SELECT a FROM s WHERE EXISTS (SELECT * FROM u WHERE u.q = s.a)": (
        "there is no column u.q",
        "there is a, b, c, ts",
    ),
}


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_a_name_does_not_mean(text: str) -> None:
    cause, remedy = UNKNOWN[text]
    with pytest.raises(HeadgateError) as caught:
        query(text)
    assert caught.value.cause == cause
    assert caught.value.place is not None
    assert (caught.value.remedy or "").startswith(remedy or "")
    assert (remedy is None) == (caught.value.remedy is None)


def test_names_of_inputs_and_outputs_differ() -> None:
    with pytest.raises(DeclarationError, match="two inputs are named S"):
        query("SELECT s.a FROM s, S")
    with pytest.raises(DeclarationError, match="two outputs are named K"):
        query("SELECT a AS k, b AS K FROM s")
    with pytest.raises(DeclarationError, match="_time is a name that Headgate keeps"):
        query("SELECT a AS _time FROM s")


def test_a_sub_query_sees_the_query_around_it_and_no_further() -> None:
    with pytest.raises(HeadgateError, match="may only refer to the query directly around it"):
        query(
            "SELECT a FROM s WHERE EXISTS (SELECT * FROM u WHERE u.a = s.a AND"
            " EXISTS (SELECT * FROM v WHERE v.a = s.a))"
        )


def test_a_sub_query_in_from_sees_nothing_outside() -> None:
    with pytest.raises(NameResolutionError, match="there is no input named s in this query"):
        query("SELECT s.a FROM s, (SELECT u.a FROM u WHERE u.a = s.a) x")


def test_an_alias_with_a_dot_is_no_other_column() -> None:
    assert outputs("SELECT `x.a`.b, x.a FROM s [NOW] AS `x.a`, u [NOW] AS x WHERE x.a = `x.a`.a") == [
        "x_a.b as b",
        "x.a as a",
    ]


def test_an_error_in_a_query_that_is_read_points_into_that_query() -> None:
    session = Session()
    session.read(SourceText("first.cql", "CREATE STREAM s (a INT);"))
    text = "CREATE QUERY outer_ AS SELECT a FROM inner_;\nCREATE QUERY inner_ AS SELECT z FROM s;"
    with pytest.raises(NameResolutionError) as caught:
        session.read(SourceText("second.cql", text))
    assert caught.value.render().startswith("second.cql:2:31: ")


NAMES = ["a", "b", "c", "i", "ts", "f", "x", "name", "z", "s", "u", "t"]
VALUES = [*NAMES, *(f"{source}.{name}" for source in "sutz" for name in "abcx"), "1", "'x'", "NULL", "1.5"]
OPERATORS = ["+", "=", "<", "AND", "OR", "||", "LIKE", "%"]
CALLS = ["SUM", "COUNT", "MAX", "upper", "abs", "year", "length", "coalesce", "MEDIAN", "sqrt"]


@st.composite
def strange_queries(draw: st.DrawFn) -> str:
    """A query that is well formed, whether or not its names and types fit."""

    def expression(depth: int) -> str:
        if depth == 0:
            return draw(st.sampled_from(VALUES))
        left = expression(depth - 1)
        match draw(st.integers(0, 3)):
            case 0:
                return f"({left} {draw(st.sampled_from(OPERATORS))} {expression(depth - 1)})"
            case 1:
                return f"{draw(st.sampled_from(CALLS))}({left})"
            case 2:
                return f"CASE WHEN {left} THEN {expression(depth - 1)} END"
        return left

    def some(depth: int) -> str:
        return ", ".join(expression(depth) for _ in range(draw(st.integers(1, 2))))

    windows = st.sampled_from(
        ["", " [NOW]", " [ROWS 3]", " [PARTITION BY a ROWS 1]", " [RANGE 1 MINUTE INTERNAL]"]
    )
    sources = ", ".join(
        draw(st.sampled_from(["s", "u", "t", "n", "z", "s AS x"])) + draw(windows)
        for _ in range(draw(st.integers(1, 3)))
    )
    text = f"SELECT {draw(st.sampled_from(['', 'DISTINCT ']))}{some(2)} FROM {sources}"
    if draw(st.booleans()):
        text += f" WHERE {expression(2)}"
    if draw(st.booleans()):
        text += f" AND NOT EXISTS (SELECT * FROM u WHERE {expression(1)})" if "WHERE" in text else ""
    if draw(st.booleans()):
        text += f" GROUP BY {some(1)}"
        if draw(st.booleans()):
            text += f" HAVING {expression(2)}"
    return text


@given(strange_queries())
def test_names_and_types_that_do_not_fit_are_errors_for_people(text: str) -> None:
    refused: HeadgateError | None = None
    with time_limit():
        try:
            asked = query(text)
            asked.explain(alternatives=True).to_json()
            asked.check()
        except HeadgateError as error:
            refused = error
    assert refused is None or refused.place is not None
