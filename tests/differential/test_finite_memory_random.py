"""Random queries over streams without windows that few rows can answer: they say what the oracle says.

The conditions are those of the Memory document (comparisons of columns with each other and with constants) and what
is read as such, between values that meet often; most queries are admitted because of them. Others run all the same.
"""

from __future__ import annotations

import re
from itertools import pairwise
from random import Random

import pyarrow as pa
from hypothesis import event, given
from hypothesis import strategies as st
from tests.differential.local import compiled, output_of
from tests.differential.punctuated import tables
from tests.differential.test_finite_memory import rows_of, text_of
from tests.differential.test_punctuated import pieces
from tests.oracle.oracle import Oracle
from tests.oracle.values import same_output

from headgate.physical.program import CompiledQuery, Program
from headgate.runtime.data import frame_of
from headgate.runtime.local.engine import LocalRun, Progress
from headgate.safety.cause import Cause
from headgate.safety.verdict import Verdict

NUMBERS = {"S": ("A", "B", "C"), "T": ("D", "E")}
OTHERS = {"S": ("x", "z", "m", "day"), "T": ("y", "w", "n", "date")}
JOINS = (
    (("S", "S"), ("T", "T")),
    (("S", "S"), ("T", "T")),
    (("U", "S"), ("V", "S")),
    (("S", "S"), ("T", "T"), ("V", "T")),
    (("U", "S"), ("V", "S"), ("T", "T")),
)
"""Which streams are joined, each by its name in the query and its own."""

Source = tuple[str, str]


def numbers(source: Source) -> st.SearchStrategy[str]:
    """A column of whole numbers."""
    name, stream = source
    return st.sampled_from([f"{name}.{column}" for column in NUMBERS[stream]])


def others(source: Source) -> list[str]:
    """The columns of text, fractions, decimals and days."""
    name, stream = source
    return [f"{name}.{column}" for column in OTHERS[stream]]


@st.composite
def conditions(draw: st.DrawFn, source: Source) -> str:
    """A condition on the columns of one stream, mostly one that leaves few of their values."""
    column, other = draw(numbers(source)), draw(numbers(source))
    low = draw(st.integers(9, 13))
    high = low + draw(st.integers(-1, 3))
    text, fraction, decimal, day = others(source)
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
                f"({column} & 3) = {low % 4}",
                f"TRY_CAST({column} AS TINYINT) BETWEEN {low} AND {high}",
                f"TRY_CAST({column} AS TINYINT) <= {other}",
                f"CAST({column} AS DECIMAL(20, 0)) = {low}",
                f"{column} <> {low}",
                f"{column} = {low}.5",
                f"{column} IS NULL",
                f"({column} = {low} OR {column} IS NULL)",
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
def meetings(draw: st.DrawFn, one: Source, two: Source) -> str:
    """A condition between two streams."""
    left, right = draw(numbers(one)), draw(numbers(two))
    op = draw(st.sampled_from(("=", "=", "<", "<=", ">=")))
    x, z, m, day = others(one)
    y, w, n, date = others(two)
    return draw(
        st.sampled_from(
            (
                f"{left} {op} {right}",
                f"{left} {op} {right}",
                f"{left} {op} {right}",
                f"{left} + 1 < {right}",
                f"TRY_CAST({left} AS TINYINT) < {right}",
                f"{left} >= TRY_CAST({right} AS TINYINT)",
                f"{left} <= CAST({right} AS DECIMAL(20, 0))",
                f"{left} <=> {right}",
                f"{left} IN ({right}, 11)",
                f"{left} % 3 = {right} % 3",
                f"{x} = {y}",
                f"{x} <= {y}",
                f"{z} < {w}",
                f"{z} = {w}",
                f"{m} = {n}",
                f"{m} <= {n}",
                f"{left} = {n}",
                f"{m} < {right}",
                f"{day} = {date}",
                f"{day} < {date}",
            )
        )
    )


def listed(source: Source) -> list[str]:
    """What a query may say of one stream."""
    name, stream = source
    first, last = NUMBERS[stream][0], NUMBERS[stream][-1]
    text, _, decimal, day = others(source)
    plain = [f"{name}.{column}" for column in NUMBERS[stream]]
    shaped = [f"{name}.{first} % 3", f"{name}.{last} > 11", f"hour({name}.ts)"]
    return [*plain, text, decimal, day, *shaped, f"TRY_CAST({name}.{first} AS TINYINT)"]


def calls(source: Source) -> list[str]:
    """Aggregates over one stream."""
    name, stream = source
    first, last = (f"{name}.{column}" for column in (NUMBERS[stream][0], NUMBERS[stream][-1]))
    text, _, _, day = others(source)
    said = [f"{function}({last})" for function in ("SUM", "MAX", "MIN", "MEDIAN", "AVG", "COUNT")]
    return [*said, f"COUNT(DISTINCT {first})", f"COUNT({text})", f"MAX({day})", f"SUM(DISTINCT {first})"]


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A join of two or three streams, kept with duplicates, without them, or grouped."""
    sources = draw(st.sampled_from(JOINS))
    said = [draw(meetings(one, two)) for one, two in pairwise(sources)]
    if draw(st.booleans()):
        said.append(draw(meetings(sources[0], sources[-1])))
    said += [draw(conditions(draw(st.sampled_from(sources)))) for _ in range(draw(st.integers(1, 6)))]
    named = ", ".join(stream if name == stream else f"{stream} AS {name}" for name, stream in sources)
    where = f"FROM {named} WHERE {' AND '.join(said)}"
    columns = [each for source in sources for each in listed(source)]
    chosen = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=2, unique=True))
    names = ", ".join(f"{each} AS c{number}" for number, each in enumerate(chosen))
    match draw(st.sampled_from(("all", "distinct", "distinct", "group", "group", "one row"))):
        case "all":
            return f"SELECT {names} {where}"
        case "distinct":
            return f"SELECT DISTINCT {names} {where}"
        case "group":
            names, where = f"{names}, ", f"{where} GROUP BY {', '.join(chosen)}"
        case _:
            names = ""
    functions = ["COUNT(*)", *(each for source in sources for each in calls(source))]
    asked = draw(st.lists(st.sampled_from(functions), min_size=1, max_size=2, unique=True))
    return f"SELECT {names}{', '.join(f'{call} AS v{number}' for number, call in enumerate(asked))} {where}"


def stated(verdict: Verdict) -> int | None:
    """How many rows a join may keep of all of its streams, as its reasons say; None if values do not bound it."""
    joins = [state for state in verdict.states if state.operator == "join"]
    if not joins or any(state.by is not Cause.VALUES for state in joins):
        return None
    numbers = (re.match(r"at most ([\d,]+) rows stand", state.reason) for state in joins)
    return sum(1 if found is None else int(found[1].replace(",", "")) for found in numbers)


def kept(ready: CompiledQuery, arrivals: list[dict[str, pa.Table]]) -> int:
    """The most rows that the join has kept."""
    streams = [
        (each, iter([frame_of(piece[each.name], each.columns) for piece in arrivals if each.name in piece]))
        for each in ready.streams
    ]
    run = LocalRun(Program((ready,)), streams)
    most = [0]

    def note(_: Progress) -> None:
        operators = run.shards["q"].state.query.metrics.operators
        most.append(sum(each["state_rows"] for name, each in operators.items() if name.endswith(":join")))

    run.run(lambda *_: None, lambda query, stream, late: None, note)
    return max(most)


@given(query=queries(), seed=st.integers(0, 1_000))
def test_the_oracle_agrees_and_no_more_is_kept_than_was_said(query: str, seed: int) -> None:
    random = Random(seed)
    text = text_of(query)
    ready = compiled(text, "q", {})
    most = stated(ready.verdict)
    event("otherwise" if most is None else "by values")
    # 300 fits no TINYINT.
    rows = tables(text, rows_of(random, 40, (*range(8, 17), 300)))
    expected = Oracle(text, rows, {}).output("q")
    assert same_output(output_of(text, "q", [rows], {}), expected)
    cut = pieces(rows, random)
    assert same_output(output_of(text, "q", cut, {}, restore_every_step=True), expected)
    assert most is None or kept(ready, cut) <= most
