"""Run a kernel over its whole input in clock steps, and look at the contents at any instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import polars as pl
from hypothesis import strategies as st

from headgate.kernels.kernel import Kernel, State
from headgate.model.batch import BORN, DIES, SIGN, Batch
from headgate.model.time import BEGINNING, NEVER, Clock

LAST = 60
"""Generated rows are born before this instant."""
INSTANTS = range(-5, LAST + 45)
"""Where contents are looked at."""


def rows(payload: dict[str, pl.DataType], data: Iterable[Sequence[Any]]) -> pl.DataFrame:
    """A frame of signed lifetimes from tuples (payload..., born, dies, sign)."""
    schema = {**payload, BORN: pl.Int64(), DIES: pl.Int64(), SIGN: pl.Int8()}
    return pl.DataFrame([tuple(row) for row in data], schema=schema, orient="row")


def stream(payload: dict[str, pl.DataType], data: Iterable[Sequence[Any]]) -> pl.DataFrame:
    """A frame of stream rows from tuples (payload..., time), in order of time."""
    return rows(payload, ((*row, NEVER, 1) for row in data)).sort(BORN, maintain_order=True)


def start_of(inputs: Sequence[pl.DataFrame]) -> int | None:
    """The first instant at which a row is born, table rows from the beginning of time aside."""
    births = pl.concat([frame[BORN] for frame in inputs]).filter(
        pl.concat([f[BORN] for f in inputs]) > BEGINNING + 1
    )
    return None if births.is_empty() else int(births.min())  # type: ignore[arg-type]


def clocked(inputs: Sequence[pl.DataFrame], cuts: Iterable[int]) -> Iterator[tuple[Clock, list[Batch]]]:
    """The input in steps that end at the cuts and, last, long after everything."""
    start = start_of(inputs)
    for after, upto in pairwise([BEGINNING, *sorted({cut for cut in cuts if cut > BEGINNING}), 4 * LAST]):
        clock = Clock(after, upto, None if start is None or start > upto else start)
        inside = (pl.col(BORN) > after) & (pl.col(BORN) <= upto)
        yield clock, [Batch(frame.filter(inside)) for frame in inputs]


@dataclass
class Checkpoints:
    """Watches the chunks of a run: no name may stand for two contents."""

    known: dict[str, pl.DataFrame] = field(default_factory=dict)

    def of(self, state: State) -> dict[str, pl.DataFrame]:
        """Copies of the chunks of a state."""
        chunks = {name: frame.clone() for name, frame in state.chunks().items()}
        for name, frame in chunks.items():
            assert self.known.setdefault(name, frame).equals(frame), (
                f"chunk {name} has other contents than before"
            )
        assert sum(frame.height for frame in chunks.values()) >= state.rows >= 0
        assert state.nbytes >= 0
        return chunks


def run(
    kernel: Kernel[Any], inputs: Sequence[pl.DataFrame], cuts: Iterable[int], *, restore: bool = False
) -> tuple[Any, pl.DataFrame]:
    """The final state and all output; with `restore`, the state is put together from its chunks at every step."""
    state, outputs, checkpoints = kernel.initial(), [], Checkpoints()
    for clock, batches in clocked(inputs, cuts):
        state, output = kernel.advance(state, batches, clock)
        output.check(clock)
        outputs.append(output.frame)
        chunks = checkpoints.of(state)
        state = kernel.restore(chunks) if restore else state
    return state, pl.concat(outputs)


def timeline(frame: pl.DataFrame) -> list[Counter[tuple[Any, ...]]]:
    """The multiplicity of each payload at each of the INSTANTS; none may be negative."""
    moments: list[Counter[tuple[Any, ...]]] = [Counter() for _ in INSTANTS]
    for *payload, born, dies, sign in frame.iter_rows():
        for instant in range(max(born, INSTANTS.start), min(dies, INSTANTS.stop)):
            moments[instant - INSTANTS.start][tuple(payload)] += sign
    for instant, counts in zip(INSTANTS, moments, strict=True):
        assert all(count >= 0 for count in counts.values()), f"negative multiplicity at {instant}: {counts}"
    return [+counts for counts in moments]


CUTS = st.lists(st.integers(-5, LAST + 20), max_size=8)


def lifetimes(
    values: st.SearchStrategy[Any], *, endings: bool
) -> st.SearchStrategy[list[tuple[Any, int, int, int]]]:
    """Signed lifetimes (value, born, dies, sign) of one edge: rows, some taken back before they die."""

    @st.composite
    def edge(draw: st.DrawFn) -> list[tuple[Any, int, int, int]]:
        data = []
        for _ in range(draw(st.integers(0, 14))):
            value, born = draw(values), draw(st.integers(0, LAST - 20))
            dies = draw(st.one_of(st.just(NEVER), st.integers(born + 1, born + 15)))
            data.append((value, born, dies, 1))
            if endings and draw(st.booleans()):
                until = min(dies, born + 20)
                if until > born + 1:
                    data.append((value, draw(st.integers(born + 1, until - 1)), dies, -1))
        return sorted(data, key=lambda row: row[1])

    return edge()
