"""The gate and the theory agree: random queries written as CQL are judged as the documents judge them, and run so."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from tests.differential.local import output_of
from tests.differential.punctuated import Punctuated, Rows, random_rows, tables
from tests.oracle.values import same_output
from tests.safety.memory_queries import ALL, random_queries
from tests.safety.punctuation_queries import TRIANGLE, join, random_joins

from headgate.kernels.state import closings
from headgate.safety.theory.memory.answers import Row, answer
from headgate.safety.theory.memory.closure import close
from headgate.safety.theory.memory.query import Attribute, SpjQuery
from headgate.safety.theory.memory.verdict import judge
from headgate.safety.theory.punctuation.graph import is_safe
from headgate.safety.theory.punctuation.plans import cheapest_plan
from headgate.safety.theory.punctuation.query import JoinQuery, Scheme
from headgate.safety.verdict import Verdict
from headgate.session import Session


def verdict(text: str) -> Verdict:
    found = Session().sql(text)
    assert found is not None
    return found.judged


# -- values ---------------------------------------------------------------------------------------


def values_text(query: SpjQuery) -> str:
    """A query over whole numbers as CQL; a column is declared once for each stream that has it."""
    text = ""
    for stream in dict.fromkeys(schema.stream for schema in query.streams):
        names = {a: None for schema in query.streams if schema.stream == stream for a in schema.attributes}
        text += f"CREATE STREAM {stream} (ts TIMESTAMP, {', '.join(f'{a} BIGINT' for a in names)}) TIMESTAMP BY ts;\n"
    outputs = ", ".join(f"{a.stream}.{a.name} AS o{n}" for n, a in enumerate(query.projection)) or "TRUE AS o"
    inputs = ", ".join(f"{schema.stream} AS {schema.occurrence}" for schema in query.streams)
    where = " AND ".join(f"{_side(p.left)} {p.op} {_side(p.right)}" for p in query.predicates)
    distinct = "DISTINCT " if query.distinct else ""
    return f"{text}CREATE QUERY q AS SELECT {distinct}{outputs} FROM {inputs}{f' WHERE {where}' if where else ''};"


def _side(element: object) -> str:
    return f"{element.stream}.{element.name}" if isinstance(element, Attribute) else str(element)


@given(random_queries(ops=ALL, max_attributes=5), st.integers(0, 1_000))
def test_joins_are_judged_as_the_memory_document_judges_them(query: SpjQuery, seed: int) -> None:
    event("satisfiable" if close(query) is not None else "contradictory")
    found, expected = verdict(values_text(query)), judge(query)
    event("bounded" if expected.bounded else "refused")
    assert found.admitted is expected.bounded, found
    if expected.bounded:
        _runs_as_it_should(query, Random(seed))


def _runs_as_it_should(query: SpjQuery, random: Random) -> None:
    """What was said over some rows is the relational answer over all of them."""
    rows: Rows = {schema.stream: [] for schema in query.streams}
    seen: dict[str, list[Row]] = {schema.stream: [] for schema in query.streams}
    for clock in range(12):
        schema = random.choice(query.streams)
        values = tuple(random.randint(-2, 7) for _ in schema.attributes)
        rows[schema.stream].append({"ts": clock, **dict(zip(schema.attributes, values, strict=True))})
        seen[schema.stream].append(values)
    text = values_text(query)
    said = output_of(text, "q", [tables(text, rows)], {})
    total: Counter[tuple[object, ...]] = Counter()
    for change in said:
        total[tuple(change.row) if query.projection else ()] += 1 if change.op == "+" else -1
    assert +total == answer(query, seen)


# -- punctuation ----------------------------------------------------------------------------------


def punctuated(query: JoinQuery) -> dict[str, Punctuated]:
    return {
        stream: Punctuated(
            "abc",
            tuple("".join(sorted(s.attributes)) for s in query.schemes if s.stream == stream),
        )
        for stream in query.streams
    }


def join_text(query: JoinQuery, *, promises: bool = True) -> str:
    declared = "".join(
        about.declared(stream)
        if promises
        else f"CREATE STREAM {stream} (ts TIMESTAMP, {about.without_promises()}) TIMESTAMP BY ts;\n"
        for stream, about in punctuated(query).items()
    )
    where = " AND ".join(f"{'.'.join(p.left)} = {'.'.join(p.right)}" for p in query.predicates)
    outputs = ", ".join(f"{stream}.{name} AS {stream}{name}" for stream in query.streams for name in "abc")
    condition = f" WHERE {where}" if where else ""
    return f"{declared}CREATE QUERY q AS SELECT {outputs} FROM {', '.join(query.streams)}{condition};"


@given(random_joins())
def test_joins_are_judged_as_the_punctuation_document_judges_them(query: JoinQuery) -> None:
    event("safe" if is_safe(query) else "unsafe")
    assert verdict(join_text(query)).admitted is is_safe(query)


@st.composite
def safe_joins(draw: st.DrawFn) -> JoinQuery:
    """Joins with schemes added until they are safe."""
    query = draw(random_joins(max_streams=3))
    for column in draw(st.permutations(sorted(query.partners))):
        if is_safe(query):
            break
        query = query.with_schemes(dict.fromkeys((*query.schemes, Scheme.on(*column))))
    assume(is_safe(query))
    return query


@settings(suppress_health_check=list(HealthCheck), max_examples=settings().max_examples // 3)
@given(safe_joins(), st.integers(0, 1_000))
def test_admitted_joins_forget_nothing_that_matters(query: JoinQuery, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(closings, "_FEW", 1)
        rows = random_rows(punctuated(query), Random(seed), rounds=5, per_round=3)
        given_ = tables(join_text(query), rows)
        step = [{name: table.slice(at, 4) for name, table in given_.items()} for at in range(0, 400, 4)]
        remembered = output_of(join_text(query, promises=False), "q", [given_], {})
        assert same_output(output_of(join_text(query), "q", step, {}), remembered)


def test_what_only_one_join_of_all_can_run_is_admitted() -> None:
    """Plans of two-way joins are not needed: the cycle has none that is safe."""
    cycle = join(TRIANGLE, "S1(B), S2(C), S3(A)")
    assert is_safe(cycle)
    assert cheapest_plan(cycle, lambda inputs: 1.0, max_inputs=2) is None
