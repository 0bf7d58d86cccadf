"""The join against brute force: random signed lifetimes, random cuts into steps, every structure.

The oracle knows rows as (payload, born, dies, ended): ended is the instant of the ending, or None. It never looks at
how the kernel works: without internal inputs it joins the contents at each instant; with them it forms every combination.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate.kernels import join_partial
from headgate.kernels.join import Join, JoinInput
from headgate.kernels.state import calendar, index, structure
from headgate.kernels.state.structure import Structure
from headgate.model.batch import LIFETIME_SCHEMA, Batch
from headgate.model.time import BEGINNING, NEVER, Clock

END = 14
"""Instants are 0 to END - 1; every row that dies is dead by 2 * END."""


@dataclass(frozen=True)
class Row:
    payload: tuple[Any, ...]
    born: int
    dies: int
    ended: int | None

    @property
    def ends(self) -> int:
        return self.dies if self.ended is None else self.ended


@dataclass(frozen=True)
class Case:
    join: Join
    streams: tuple[tuple[Row, ...], ...]


# --- the oracle ---------------------------------------------------------------------------------------------


def same(left: Any, right: Any) -> bool:
    """Equality as in a WHERE clause, with NaN equal to NaN."""
    if left is None or right is None:
        return False
    if isinstance(left, float) and math.isnan(left):
        return isinstance(right, float) and math.isnan(right)
    return bool(left == right)


def agree(join: Join, payloads: Sequence[tuple[Any, ...]]) -> bool:
    """Whether a combination of payloads meets all equalities."""
    names = [list(each.schema) for each in join.inputs]
    for each in join.equalities:
        values = [payloads[number][names[number].index(name)] for number, name in each]
        if not all(same(values[0], value) for value in values):
            return False
    return True


def residual_holds(join: Join, payloads: Sequence[tuple[Any, ...]]) -> bool:
    """The only residual that the cases have: `0.v <= 1.v`."""
    return join.residual is None or bool(payloads[0][2] <= payloads[1][2])


def visible(row: Iterable[Any]) -> tuple[Any, ...]:
    """A row that can be counted: NaN is itself, -0.0 is 0.0, and lists are tuples."""
    return tuple(_visible(value) for value in row)


def _visible(value: Any) -> Any:
    match value:
        case float():
            return "NaN" if math.isnan(value) else value + 0.0
        case list():
            return tuple(value)
        case _:
            return value


def contents_of_join(case: Case, instant: int) -> Counter[tuple[Any, ...]]:
    """The relational join of the inputs' contents at an instant."""
    alive = [[row.payload for row in stream if row.born <= instant < row.ends] for stream in case.streams]
    return _combined(case.join, alive)


def _combined(join: Join, alive: Sequence[Sequence[tuple[Any, ...]]]) -> Counter[tuple[Any, ...]]:
    found = (each for each in product(*alive) if agree(join, each) and residual_holds(join, each))
    return Counter(visible(v for payload in each for v in payload) for each in found)


def contents_with_internal(case: Case, instant: int) -> Counter[tuple[Any, ...]]:
    """The combinations alive together at their birth, until the first death outside the internal inputs."""
    internal = [each.internal for each in case.join.inputs]
    streams = [list(resolved(stream)) for stream in case.streams]
    found: Counter[tuple[Any, ...]] = Counter()
    for rows in product(*streams):
        born = max(row.born for row in rows)
        if born >= min(row.ends for row in rows):
            continue
        dies = min((r.ends for r, hidden in zip(rows, internal, strict=True) if not hidden), default=NEVER)
        payloads = [row.payload for row in rows]
        if born <= instant < dies and agree(case.join, payloads) and residual_holds(case.join, payloads):
            found[visible(v for payload in payloads for v in payload)] += 1
    return found


def resolved(stream: Sequence[Row]) -> Iterable[Row]:
    """The rows of a stream if each ending takes the oldest row that is what it says."""
    groups: dict[Any, list[Row]] = {}
    for row in sorted(stream, key=lambda row: row.born):
        groups.setdefault((visible(row.payload), row.dies), []).append(row)
    for rows in groups.values():
        endings = sorted(row.ended for row in rows if row.ended is not None)
        for row, ended in zip(rows, [*endings, *[None] * len(rows)], strict=False):
            yield replace(row, ended=ended)


def contents_of_output(output: Sequence[tuple[Any, ...]], instant: int) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for *payload, born, dies, sign in output:
        if born <= instant < dies:
            found[visible(payload)] += sign
    assert all(count >= 0 for count in found.values())
    return +found


# --- running the kernel -------------------------------------------------------------------------------------


def batch(schema: Mapping[str, pl.DataType], stream: Sequence[Row], clock: Clock) -> Batch:
    """The signed rows of a stream for one step."""
    rows = [(*row.payload, row.born, row.dies, 1) for row in stream if clock.after < row.born <= clock.upto]
    rows += [
        (*row.payload, row.ended, row.dies, -1)
        for row in stream
        if row.ended is not None and clock.after < row.ended <= clock.upto
    ]
    return Batch(pl.DataFrame(rows, schema={**schema, **LIFETIME_SCHEMA}, orient="row"))


def run(case: Case, cuts: Iterable[int], *, restore: bool = False) -> list[tuple[Any, ...]]:
    """All output rows, with the promises of a kernel checked at every step."""
    join, output = case.join, []
    state = join.initial()
    known: dict[str, pl.DataFrame] = {}
    for after, upto in pairwise([BEGINNING, *sorted(set(cuts)), 2 * END]):
        clock = Clock(after, upto, 0)
        batches = [batch(e.schema, s, clock) for e, s in zip(join.inputs, case.streams, strict=True)]
        before = dict(state.chunks())
        new, out = join.advance(state, batches, clock)
        out.check(clock)
        assert out.payload == [name for each in join.inputs for name in each.schema]
        for name, frame in state.chunks().items():
            assert frame.equals(before[name]), "a step changed the state that it was given"
        for name, frame in new.chunks().items():
            assert name not in known or known[name].equals(frame), f"{name} was used for other contents"
        known |= new.chunks()
        assert new.nbytes >= 0
        state = join.restore(new.chunks()) if restore else new
        assert state.chunks().keys() == new.chunks().keys()
        output += out.frame.rows()
    immortal = any(row.ends == NEVER for stream in case.streams for row in stream)
    if not immortal and join.expiry == "eager":
        assert state.rows == 0, "the state outlives its rows"
        assert not state.chunks()
    return output


def sorted_rows(output: Sequence[tuple[Any, ...]]) -> list[str]:
    return sorted(repr(visible(row)) for row in output)


# --- random cases -------------------------------------------------------------------------------------------

PATTERNS = {
    "MON": [Structure.RUNS, Structure.CALENDAR, Structure.ENDINGS],
    "WKS": [Structure.FIFO, Structure.SCAN, Structure.RUNS],
    "WK": [Structure.CALENDAR, Structure.SCAN, Structure.RUNS],
    "STR": [Structure.ENDINGS],
}


def rows(pattern: str, payload: st.SearchStrategy[tuple[Any, ...]], size: int) -> st.SearchStrategy[list[Row]]:
    """Streams with an update pattern."""

    @st.composite
    def row(draw: st.DrawFn) -> Row:
        born = draw(st.integers(0, END - 1))
        span = draw(st.integers(1, END))
        ended = None
        match pattern:
            case "MON":
                dies = NEVER
            case "WKS":
                dies = born + 4
            case "WK":
                dies = draw(st.sampled_from([born + span, born + span, NEVER]))
            case _:
                dies = draw(st.sampled_from([NEVER, born + span]))
                ended = draw(st.none() | st.integers(born, min(dies - 1, END)))
        return Row(draw(payload), born, dies, ended)

    return st.lists(row(), max_size=size)


KEYS: dict[str, tuple[pl.DataType, st.SearchStrategy[Any]]] = {
    "integer": (pl.Int64(), st.sampled_from([1, 2, 3, None])),
    "float": (pl.Float64(), st.sampled_from([0.0, -0.0, 1.5, math.nan, None])),
    "text": (pl.String(), st.sampled_from(["a", "b", "", None])),
    "list": (pl.List(pl.Int64), st.sampled_from([[1], [1, 2], [], None])),
}

SHAPES: dict[int, list[tuple[tuple[tuple[int, str], ...], ...]]] = {
    2: [(((0, "0.a"), (1, "1.a")),), (((0, "0.a"), (1, "1.a")), ((0, "0.b"), (1, "1.b"))), ()],
    3: [
        (((0, "0.a"), (1, "1.a"), (2, "2.a")),),
        (((0, "0.a"), (1, "1.a")), ((1, "1.b"), (2, "2.b"))),
        (((0, "0.b"), (1, "1.b")), ((1, "1.a"), (2, "2.a")), ((2, "2.b"), (0, "0.a"))),
        (((0, "0.a"), (0, "0.b"), (2, "2.a")),),
    ],
    4: [
        (((0, "0.a"), (1, "1.a"), (3, "3.a")), ((1, "1.b"), (2, "2.b"))),
        (((0, "0.a"), (1, "1.a")), ((2, "2.a"), (3, "3.a"))),
    ],
}


@st.composite
def cases(draw: st.DrawFn, *, internal: bool) -> Case:
    count = draw(st.sampled_from([2, 2, 3, 3, 4]))
    dtype, values = draw(st.sampled_from(list(KEYS.values())))
    inputs, streams = [], []
    for number in range(count):
        pattern = draw(st.sampled_from(list(PATTERNS)))
        hidden = internal and draw(st.booleans())
        schema = {f"{number}.a": dtype, f"{number}.b": dtype, f"{number}.v": pl.Int64()}
        inputs.append(JoinInput(schema, hidden, draw(st.sampled_from(PATTERNS[pattern]))))
        payload = st.tuples(values, values, st.integers(0, 1))
        streams.append(tuple(draw(rows(pattern, payload, 10 if count == 2 else 6 if count == 3 else 4))))
    join = Join(
        tuple(inputs),
        draw(st.sampled_from(SHAPES[count])),
        draw(st.sampled_from([None, None, pl.col("0.v") <= pl.col("1.v")])),
        tuple(draw(st.permutations(range(count)))),
        draw(st.sampled_from(["eager", "eager", "lazy"])),
        3,
    )
    return Case(join, tuple(streams))


CUTS = st.lists(st.integers(-1, END), max_size=8)
RANDOM = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(autouse=True)
def tiny_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows so few would otherwise never be filed, split into blocks or left to wait for expiry."""
    monkeypatch.setattr(structure.Calendar, "empty", lambda layout: calendar.Calendar(layout, calendar.Runs(layout), smallest=2, days=3))
    monkeypatch.setattr(index, "_BLOCK", 3)


@RANDOM
@given(cases(internal=False), CUTS)
def test_contents_equal_the_relational_join_of_the_contents(case: Case, cuts: list[int]) -> None:
    output = run(case, cuts)
    for instant in range(2 * END):
        assert contents_of_output(output, instant) == contents_of_join(case, instant), f"at {instant}"


@RANDOM
@given(cases(internal=True), CUTS)
def test_internal_inputs_decide_births_and_not_deaths(case: Case, cuts: list[int]) -> None:
    output = run(case, cuts)
    for instant in range(2 * END):
        assert contents_of_output(output, instant) == contents_with_internal(case, instant), f"at {instant}"


@RANDOM
@given(cases(internal=True), CUTS, CUTS)
def test_the_cut_into_steps_does_not_show_in_the_output(case: Case, one: list[int], other: list[int]) -> None:
    assert sorted_rows(run(case, one)) == sorted_rows(run(case, other))


@RANDOM
@given(cases(internal=True), CUTS)
def test_a_restored_state_continues_exactly(case: Case, cuts: list[int]) -> None:
    assert sorted_rows(run(case, cuts, restore=True)) == sorted_rows(run(case, cuts))
