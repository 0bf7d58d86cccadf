"""Random queries over streams without windows that few rows can answer: they say what the oracle says.

The conditions are those of the Memory document (comparisons of columns with each other and with constants) and what
is read as such, between values that meet often; most queries are admitted because of them. Others run all the same.
"""

from __future__ import annotations

from random import Random

from hypothesis import event, given
from hypothesis import strategies as st
from tests.differential.local import compiled, output_of
from tests.differential.punctuated import tables
from tests.differential.test_finite_memory import rows_of, text_of
from tests.differential.test_punctuated import pieces
from tests.oracle.oracle import Oracle
from tests.oracle.values import same_output

from headgate.safety.cause import Cause

SIDES = {"S": ("A", "B", "C"), "T": ("D", "E")}
OTHERS = {"S": ("x", "z", "m", "day"), "T": ("y", "w", "n", "date")}
CONVERTED = ("TRY_CAST(B AS TINYINT)", "TRY_CAST(D AS TINYINT)")


@st.composite
def conditions(draw: st.DrawFn, side: str) -> str:
    """A condition on the columns of one stream, mostly one that leaves few of their values."""
    column, other = draw(st.sampled_from(SIDES[side])), draw(st.sampled_from(SIDES[side]))
    low = draw(st.integers(9, 13))
    high = low + draw(st.integers(-1, 3))
    text, fraction, decimal, day = OTHERS[side]
    return draw(
        st.sampled_from(
            (
                f"{column} BETWEEN {low} AND {high}",
                f"{column} > {low} AND {column} < {high + 1}.5",
                f"({column} = {low} OR {column} = {high})",
                f"{column} IN ({low}, {high}, {low + 5})",
                f"{column} IN ({low}.0, {high}.5, {low + 5})",
                f"{column} = {low}",
                f"{column} IN ({low}, {other})",
                f"{column} = {other}",
                f"{column} <= {other}",
                f"{column} % 4 = {low % 4}",
                f"TRY_CAST({column} AS TINYINT) BETWEEN {low} AND {high}",
                f"TRY_CAST({column} AS TINYINT) <= {other}",
                f"CAST({column} AS DECIMAL(20, 0)) = {low}",
                f"{column} <> {low}",
                f"{column} = {low}.5",
                f"{text} IN ('p', 'q')",
                f"{text} = 'p'",
                f"({text} = 'q' OR {text} = 'r')",
                f"{text} IN ('p', NULL)",
                f"{text} > 'p'",
                *(f"{fraction} {said}" for said in ("< 1.5", "> 0.5", "= 1.5", "BETWEEN 0 AND 2")),
                *(f"{decimal} {said}" for said in ("< 11.25", "> 9.5", "= 11", "BETWEEN 9.5 AND 11.5")),
                *(f"{day} {said}" for said in ("= DATE '2024-01-02'", "> DATE '2024-01-01'")),
                f"{day} BETWEEN DATE '2024-01-02' AND DATE '2024-01-03'",
                f"{column} < {decimal}",
                f"{column} = {decimal}",
            )
        )
    )


@st.composite
def meetings(draw: st.DrawFn) -> str:
    """A condition between the two streams."""
    one, two = draw(st.sampled_from(SIDES["S"])), draw(st.sampled_from(SIDES["T"]))
    return draw(
        st.sampled_from(
            (
                f"{one} = {two}",
                f"{one} = {two}",
                f"{one} < {two}",
                f"{one} <= {two}",
                f"{one} >= {two}",
                f"{one} + 1 < {two}",
                f"TRY_CAST({one} AS TINYINT) < {two}",
                f"{one} >= TRY_CAST({two} AS TINYINT)",
                f"{one} <= CAST({two} AS DECIMAL(20, 0))",
                f"{one} <=> {two}",
                f"{one} IN ({two}, 11)",
                f"{one} % 3 = {two} % 3",
                "x = y",
                "x <= y",
                "z < w",
                "z = w",
                "m = n",
                "m <= n",
                f"{one} = n",
                f"m < {two}",
                "day = date",
                "day < date",
            )
        )
    )


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A join of S and T, kept with duplicates, without them, or grouped."""
    said = [draw(meetings()) for _ in range(draw(st.integers(1, 2)))]
    said += [draw(conditions(draw(st.sampled_from(("S", "T"))))) for _ in range(draw(st.integers(1, 5)))]
    where = f"FROM S, T WHERE {' AND '.join(said)}"
    columns = st.sampled_from(
        (*SIDES["S"], *SIDES["T"], "x", "y", "f", "m", "date", "A % 3", "E > 11", "hour(S.ts)", *CONVERTED)
    )
    listed = draw(st.lists(columns, min_size=1, max_size=2, unique=True))
    names = ", ".join(f"{each} AS c{number}" for number, each in enumerate(listed))
    match draw(st.sampled_from(("all", "distinct", "distinct", "group", "group"))):
        case "all":
            return f"SELECT {names} {where}"
        case "distinct":
            return f"SELECT DISTINCT {names} {where}"
    calls = ("COUNT(*)", "SUM(B)", "MAX(C)", "MIN(E)", "COUNT(DISTINCT A)", "COUNT(x)", "MEDIAN(D)", "AVG(C)")
    asked = ", ".join(
        f"{call} AS v{number}"
        for number, call in enumerate(draw(st.sets(st.sampled_from(calls), min_size=1, max_size=2)))
    )
    return f"SELECT {names}, {asked} {where} GROUP BY {', '.join(listed)}"


@given(query=queries(), seed=st.integers(0, 1_000))
def test_the_oracle_agrees(query: str, seed: int) -> None:
    random = Random(seed)
    text = text_of(query)
    verdict = compiled(text, "q", {}).verdict
    event("by values" if Cause.VALUES in {state.by for state in verdict.states} else "otherwise")
    # 300 fits no TINYINT.
    rows = tables(text, rows_of(random, 40, (*range(8, 17), 300)))
    expected = Oracle(text, rows, {}).output("q")
    assert same_output(output_of(text, "q", [rows], {}), expected)
    assert same_output(output_of(text, "q", pieces(rows, random), {}, restore_every_step=True), expected)
