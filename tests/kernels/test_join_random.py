"""The join against brute force: random streams of every pattern, structure and shape, cut at random."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernels.signed import (
    LAST,
    PATTERNS,
    Contents,
    Payload,
    Row,
    assert_exact,
    canonical,
    contents,
    cuts,
    steps,
    stream,
)

from headgate.kernels import keys
from headgate.kernels.join.join import Join, JoinInput
from headgate.kernels.state import calendar, ending_matches, index, sorted_runs, store
from headgate.kernels.state.structure import Structure
from headgate.model.time import NEVER

STRUCTURES = {
    "MON": (Structure.RUNS, Structure.CALENDAR, Structure.ENDINGS),
    "WKS": (Structure.RUNS, Structure.SCAN),
    "WK": (Structure.CALENDAR, Structure.SCAN, Structure.RUNS),
    "STR": (Structure.ENDINGS,),
}

KEYS: Sequence[tuple[pl.DataType, Sequence[object]]] = (
    (pl.Int64(), (1, 2, 3, None)),
    (pl.Float64(), (0.0, -0.0, 1.5, math.nan, None)),
    (pl.String(), ("a", "b", "", None)),
)

Equalities = tuple[tuple[tuple[int, str], ...], ...]

SHAPES: Mapping[int, Sequence[Equalities]] = {
    2: (
        (((0, "0.a"), (1, "1.a")),),
        (((0, "0.a"), (1, "1.a")), ((0, "0.b"), (1, "1.b"))),
        (),
    ),
    3: (
        (((0, "0.a"), (1, "1.a"), (2, "2.a")),),
        (((0, "0.a"), (1, "1.a")), ((1, "1.b"), (2, "2.b"))),
        (((0, "0.b"), (1, "1.b")), ((1, "1.a"), (2, "2.a")), ((2, "2.b"), (0, "0.a"))),
        (((0, "0.a"), (0, "0.b"), (2, "2.a")),),
    ),
    4: (
        (((0, "0.a"), (1, "1.a"), (3, "3.a")), ((1, "1.b"), (2, "2.b"))),
        (((0, "0.a"), (1, "1.a")), ((2, "2.a"), (3, "3.a"))),
    ),
}


@dataclass(frozen=True)
class Case:
    join: Join
    streams: list[list[Row]]

    @property
    def schemas(self) -> list[Mapping[str, pl.DataType]]:
        return [each.schema for each in self.join.inputs]


@st.composite
def cases(draw: st.DrawFn, *, internal: bool) -> Case:
    count = draw(st.sampled_from([2, 2, 3, 3, 4]))
    dtype, values = draw(st.sampled_from(KEYS))
    payloads = st.tuples(st.sampled_from(values), st.sampled_from(values), st.integers(0, 1))
    inputs, streams = [], []
    for number in range(count):
        pattern = draw(st.sampled_from(PATTERNS))
        schema = {f"{number}.a": dtype, f"{number}.b": dtype, f"{number}.v": pl.Int64()}
        hidden = internal and draw(st.booleans())
        inputs.append(JoinInput(schema, hidden, draw(st.sampled_from(STRUCTURES[pattern])), days=3))
        streams.append(draw(stream(pattern, payloads, most={2: 10, 3: 6, 4: 4}[count])))
    join = Join(
        tuple(inputs),
        draw(st.sampled_from(SHAPES[count])),
        draw(st.sampled_from([(), (pl.col("0.v") <= pl.col("1.v"),)])),
        tuple(draw(st.permutations(range(count)))),
        draw(st.sampled_from(["eager", "eager", "lazy"])),
        lazy_steps=3,
    )
    return Case(join, streams)


@pytest.fixture(autouse=True)
def few_rows_do_what_many_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files arrivals at once and cuts probes into blocks."""
    small = calendar.Calendar.empty
    monkeypatch.setattr(calendar.Calendar, "empty", lambda layout, days: small(layout, days, smallest=2))
    monkeypatch.setattr(index, "_BLOCK", 3)


@pytest.fixture
def _crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets different keys share their hash."""

    def crowded(frame: pl.DataFrame, columns: Sequence[str]) -> keys.Hashes:
        return (keys.key_hash(frame, columns) % np.uint64(3)) << np.uint64(60)

    for module in (ending_matches, sorted_runs, store):
        monkeypatch.setattr(module, "key_hash", crowded)


def equal(left: object, right: object) -> bool:
    """As in a WHERE clause, of canonical values."""
    return left is not None and left == right


def agrees(join: Join, payloads: Sequence[Payload]) -> bool:
    """Whether the combination is in the answer; the only residual that the cases have is `0.v <= 1.v`."""
    values = {
        (number, name): value
        for number, (each, payload) in enumerate(zip(join.inputs, payloads, strict=True))
        for name, value in zip(each.schema, canonical(payload), strict=True)
    }
    if join.residual and values[0, "0.v"] > values[1, "1.v"]:  # type: ignore[operator]
        return False
    return all(equal(values[each[0]], values[other]) for each in join.equalities for other in each)


def joined(join: Join, *inputs: Contents) -> Contents:
    """The relational join of some contents."""
    found: Contents = Counter()
    for payloads in product(*inputs):
        if agrees(join, payloads):
            copies = math.prod(held[payload] for held, payload in zip(inputs, payloads, strict=True))
            found[sum(payloads, ())] += copies
    return found


def lifetimes(rows: Sequence[Row]) -> Iterator[tuple[Payload, int, int]]:
    """Payload, birth and true end of each row, if an ending takes the oldest row that it can."""
    births: dict[object, list[int]] = {}
    endings: dict[object, list[int]] = {}
    for payload, born, dies, sign in sorted(rows, key=lambda row: row[1]):
        (births if sign > 0 else endings).setdefault((canonical(payload), dies), []).append(born)
    for what, instants in births.items():
        payload, dies = what  # type: ignore[misc]
        for number, born in enumerate(instants):
            taken = endings.get(what, [])
            yield payload, born, taken[number] if number < len(taken) else dies


def joined_with_internal(case: Case) -> list[Row]:
    """Each combination alive together at its birth, until the first end outside the internal inputs."""
    found = []
    for rows in product(*(list(lifetimes(rows)) for rows in case.streams)):
        born = max(row[1] for row in rows)
        if born < min(row[2] for row in rows) and agrees(case.join, [row[0] for row in rows]):
            inputs = zip(case.join.inputs, rows, strict=True)
            dies = min((row[2] for each, row in inputs if not each.internal), default=NEVER)
            found.append((sum((row[0] for row in rows), ()), born, dies, 1))
    return found


def said(case: Case, stops: Sequence[int], *, restored: bool = False) -> list[str]:
    """All output rows, in an order of their own."""
    done = steps(case.join, case.schemas, case.streams, stops, restored=restored)
    rows = ((canonical(row[0]), *row[1:]) for step in done for row in step.said)
    return sorted(repr(row) for row in rows)


@given(cases(internal=False), cuts)
def test_contents_are_the_relational_join_of_the_contents(case: Case, stops: list[int]) -> None:
    assert_exact(case.join, case.schemas, case.streams, stops, lambda *held: joined(case.join, *held))


@pytest.mark.usefixtures("_crowded")
@given(cases(internal=False), cuts)
def test_keys_that_share_a_hash_are_told_apart(case: Case, stops: list[int]) -> None:
    assert_exact(case.join, case.schemas, case.streams, stops, lambda *held: joined(case.join, *held))


@given(cases(internal=True), cuts)
def test_internal_inputs_decide_births_and_not_deaths(case: Case, stops: list[int]) -> None:
    output = [row for step in steps(case.join, case.schemas, case.streams, stops) for row in step.said]
    expected = joined_with_internal(case)
    for instant in (*range(LAST + 1), NEVER - 1):
        assert contents(output, instant) == contents(expected, instant), f"at {instant}"


@given(cases(internal=True), cuts, cuts)
def test_the_cut_into_steps_leaves_no_trace_in_the_output(
    case: Case, stops: list[int], other_stops: list[int]
) -> None:
    assert said(case, stops) == said(case, other_stops)


@given(cases(internal=True), cuts)
def test_a_restored_state_continues_exactly(case: Case, stops: list[int]) -> None:
    assert said(case, stops, restored=True) == said(case, stops)


@given(cases(internal=True), cuts)
def test_the_state_is_empty_when_everything_has_died(case: Case, stops: list[int]) -> None:
    streams = [[row for row in rows if row[2] != NEVER] for rows in case.streams]
    eager = Join(case.join.inputs, case.join.equalities, case.join.residual, case.join.order)
    *_, last = steps(eager, case.schemas, streams, stops)
    assert last.state.rows == 0
    assert not last.state.chunks()
