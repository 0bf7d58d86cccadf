"""Random signed lifetimes of each update pattern, their contents at an instant, and a kernel run in steps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from hypothesis import strategies as st

from headgate.kernels.kernel import Kernel, State
from headgate.model.batch import LIFETIME_SCHEMA, Batch
from headgate.model.time import BEGINNING, NEVER, Clock

LAST = 24
"""All births and finite deaths of the random streams lie before it."""

Payload = tuple[Any, ...]
Row = tuple[Payload, int, int, int]
"""Payload, birth, death, sign."""
Contents = Counter[Payload]

ENDLESS = ("MON", "WKS", "WK")
PATTERNS = (*ENDLESS, "STR")


def canonical(payload: Payload) -> Payload:
    """Values that count as equal made equal for Python."""
    floats = [value for value in payload if isinstance(value, float)]
    if not floats:
        return payload
    return tuple(
        "NaN" if isinstance(value, float) and math.isnan(value) else 0.0 if value == 0.0 else value
        for value in payload
    )


def contents(rows: Sequence[Row], instant: int) -> Contents:
    """The payloads that the rows hold at the instant, with how often they do."""
    counts: Contents = Counter()
    for payload, born, dies, sign in rows:
        if born <= instant < dies:
            counts[canonical(payload)] += sign
    assert all(count >= 0 for count in counts.values()), f"a negative multiplicity at {instant}: {counts}"
    return Counter({payload: count for payload, count in counts.items() if count})


def batch(schema: Mapping[str, pl.DataType], rows: Sequence[Row]) -> Batch:
    flat = [(*payload, born, dies, sign) for payload, born, dies, sign in rows]
    return Batch(pl.DataFrame(flat, schema={**schema, **LIFETIME_SCHEMA}, orient="row"))


def unbatched(result: Batch) -> list[Row]:
    return [(row[:-3], *row[-3:]) for row in result.frame.rows()]


@st.composite
def stream(draw: st.DrawFn, pattern: str, payloads: st.SearchStrategy[Payload], most: int = 12) -> list[Row]:
    """Rows of one update pattern, in order of birth."""
    width = draw(st.integers(1, 8))
    rows: list[Row] = []
    for _ in range(draw(st.integers(0, most))):
        payload, born = draw(payloads), draw(st.integers(1, 14))
        match pattern:
            case "MON":
                dies = NEVER
            case "WKS":
                dies = born + width
            case _:
                dies = draw(st.one_of(st.just(NEVER), st.integers(born + 1, born + 8)))
        rows.append((payload, born, dies, 1))
        if pattern == "STR" and draw(st.booleans()):
            ended = draw(st.integers(born, min(dies, born + 8) - (dies != NEVER)))
            rows.append((payload, ended, dies, -1))
    # Of equal instants a birth may come before or after an ending of something else, but not of itself.
    return sorted(rows, key=lambda row: row[1])


cuts = st.lists(st.integers(1, LAST - 1), max_size=6, unique=True).map(sorted) | st.sampled_from(
    [[*range(1, LAST)], [*range(2, LAST, 2)]]
)
"""Where the clock stops between steps: anywhere, or at every instant or every second one."""


@dataclass(frozen=True)
class Step:
    """What a kernel knew and said after one clock step."""

    clock: Clock
    state: State
    said: list[Row]


def steps(
    kernel: Kernel[Any],
    schemas: Sequence[Mapping[str, pl.DataType]],
    inputs: Sequence[Sequence[Row]],
    stops: Sequence[int],
    *,
    restored: bool = False,
) -> Iterator[Step]:
    """Runs the kernel over the rows, cut into steps; with `restored`, each step starts from chunks."""
    births = [row[1] for rows in inputs for row in rows]
    start = min(births) if births else None
    state, after = kernel.initial(), BEGINNING
    seen: dict[str, pl.DataFrame] = {}
    for upto in (*stops, LAST):
        clock = Clock(after, upto, start)
        arrived = [
            batch(schema, [row for row in rows if after < row[1] <= upto])
            for schema, rows in zip(schemas, inputs, strict=True)
        ]
        if restored:
            state = kernel.restore(state.chunks())
        before = dict(state.chunks())
        following, result = kernel.advance(state, arrived, clock)
        result.check(clock)
        # The old state is a value: nothing that it holds has moved.
        assert all(state.chunks()[name].equals(frame) for name, frame in before.items())
        for name, frame in following.chunks().items():
            assert seen.setdefault(name, frame).equals(frame), f"chunk name {name} has come back"
        assert following.rows >= sum(frame.height > 0 for frame in following.chunks().values())
        state, after = following, upto
        yield Step(clock, state, unbatched(result))


def assert_exact(
    kernel: Kernel[Any],
    schemas: Sequence[Mapping[str, pl.DataType]],
    inputs: Sequence[Sequence[Row]],
    stops: Sequence[int],
    answer: Callable[..., Contents],
    *,
    restored: bool = False,
) -> list[Step]:
    """The steps of a run whose output is, at every instant, the answer over the inputs' contents there."""
    done = list(steps(kernel, schemas, inputs, stops, restored=restored))
    said = [row for step in done for row in step.said]
    for instant in (*range(LAST + 1), NEVER - 1):
        expected = answer(*(contents(rows, instant) for rows in inputs))
        assert contents(said, instant) == expected, f"at {instant}"
    return done
