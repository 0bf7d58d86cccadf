"""A running query: one call per clock step, batch by batch through its operator graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from time import perf_counter
from typing import Any

import polars as pl

from headgate.kernels.emit.emit import Emit, spans
from headgate.kernels.emit.lazy_rows import LazyRows
from headgate.kernels.kernel import State
from headgate.kernels.punctuation.monitor import Monitor, MonitorState
from headgate.kernels.stateless import EmptyState
from headgate.model.batch import BORN, DIES, LIFETIME_COLUMNS, SIGN, Batch
from headgate.model.time import BEGINNING, NEVER, Clock
from headgate.physical.graph import ExchangeStep, KernelStep, OperatorGraph, SourceStep
from headgate.runtime.lateness import Arrivals


@dataclass
class Metrics:
    """What a run has done so far; `seconds` and, for those that remember rows, `operators` by operator."""

    rows_in: int = 0
    rows_out: int = 0
    steps: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    peak_state_rows: int = 0
    peak_state_bytes: int = 0
    late_rows: int = 0
    future_rows: int = 0
    streams: Arrivals = field(default_factory=Arrivals)
    seconds: dict[str, float] = field(default_factory=dict)
    operators: dict[str, dict[str, int]] = field(default_factory=dict)
    constraints: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What monitors know of the constraints that they watch, by operator."""

    def __post_init__(self) -> None:
        self.streams = Arrivals.together([self.streams])

    def as_dict(self) -> dict[str, Any]:
        return {
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "steps": self.steps,
            "state_rows": self.state_rows,
            "state_bytes": self.state_bytes,
            "peak_state_rows": self.peak_state_rows,
            "peak_state_bytes": self.peak_state_bytes,
            "late_rows": self.late_rows,
            "future_rows": self.future_rows,
            "streams": Arrivals.together([self.streams]),
            "operators": {name: dict(sizes) for name, sizes in self.operators.items()},
            "constraints": {name: dict(known) for name, known in self.constraints.items()},
            "seconds": {name: round(spent, 6) for name, spent in self.seconds.items()},
        }


class QueryState:
    """The states of all operators of a query, its clock, and its metrics."""

    def __init__(self, graph: OperatorGraph) -> None:
        self.graph = graph
        self.states: dict[int, State] = {
            index: step.kernel.initial()
            for index, step in enumerate(graph.steps)
            if isinstance(step, KernelStep)
        }
        self.emit_state: State = graph.emit.initial()
        self.clock = BEGINNING
        self.start: int | None = None
        self.metrics = Metrics()

    def fork(self) -> QueryState:
        """A query at the same point that goes its own way; what is remembered is shared, for it never changes."""
        twin = QueryState.__new__(QueryState)
        twin.graph, twin.clock, twin.start = self.graph, self.clock, self.start
        twin.states, twin.emit_state = dict(self.states), self.emit_state
        twin.metrics = replace(
            self.metrics,
            seconds=dict(self.metrics.seconds),
            operators=dict(self.metrics.operators),
            constraints=dict(self.metrics.constraints),
        )
        return twin

    def advance(self, rows: Mapping[str, pl.DataFrame], upto: int) -> pl.DataFrame:
        """Runs one clock step over the new rows of each relation (with `_born`); returns the output rows."""
        return self.answer(rows, upto).whole()

    def answer(self, rows: Mapping[str, pl.DataFrame], upto: int) -> LazyRows:
        """The same; the output rows in pieces that are made when they are asked for."""
        parts = list(self.parts(rows, upto))
        height = sum(part.height for part in parts)
        return LazyRows(height, chain.from_iterable(part.frames for part in parts))

    def parts(self, rows: Mapping[str, pl.DataFrame], upto: int) -> Iterator[LazyRows]:
        """The same, part by part of the clock step: the step is done when all parts were taken.

        A step has several parts where a stream inside the plan says so much that it comes in pieces.
        """
        last = len(self.graph.steps) - 1
        for outputs, clock in self._run(rows, upto, {last}):
            begun = perf_counter()
            self.emit_state, emitted = self.graph.emit.emit(self.emit_state, outputs[last], clock)
            self._spent(f"{last + 1}:{self.graph.output.lower()}", begun)
            self._measure(emitted.height)
            yield emitted

    def export(self, rows: Mapping[str, pl.DataFrame], upto: int, steps: Sequence[int]) -> list[list[Batch]]:
        """Runs one clock step without the end of the query; returns the batches of some steps, by part of it."""
        exported = []
        for outputs, _ in self._run(rows, upto, set(steps)):
            self._measure(0)
            exported.append([outputs[at] for at in steps])
        return exported

    def _run(
        self, rows: Mapping[str, pl.DataFrame], upto: int, asked: Set[int]
    ) -> Iterator[tuple[dict[int, Batch], Clock]]:
        """One clock step of all operators, part by part: the batches that are asked for, by step, and the part."""
        if self.start is None:
            # Rows come in order of time, so each relation's first is its earliest.
            births = [
                int(frame[BORN][0])
                for name, frame in rows.items()
                if name in self.graph.beginning and not frame.is_empty()
            ]
            self.start = min(births, default=None)
        self.metrics.steps += 1
        read: dict[int, Batch] = {}
        for index, step in enumerate(self.graph.steps):
            if isinstance(step, SourceStep):
                read[index] = _read(step, rows.get(step.relation))
                self.metrics.rows_in += read[index].height
        return self._run_from(0, read, Clock(self.clock, upto, self.start), asked)

    def _run_from(
        self, first: int, outputs: dict[int, Batch], clock: Clock, asked: Set[int]
    ) -> Iterator[tuple[dict[int, Batch], Clock]]:
        """The operators from one on, over a span of time of which the batches of all others are there."""
        for index in range(first, len(self.graph.steps)):
            step = self.graph.steps[index]
            if isinstance(step, SourceStep):
                continue
            begun = perf_counter()
            inputs = [outputs[at] for at in step.inputs]
            if isinstance(step.kernel, Emit):
                self.states[index], pieces = step.kernel.stream(self.states[index], inputs, clock)
                self._spent(f"{index}:{step.operator}", begun)
                later = self._read_after(index) | asked
                kept = {at: batch for at, batch in outputs.items() if at in later}
                for span, batch in spans(pieces, clock):
                    now, kept = _split(kept, span)
                    yield from self._run_from(index + 1, {**now, index: batch}, span, asked)
                return
            self.states[index], outputs[index] = step.kernel.advance(self.states[index], inputs, clock)
            self._spent(f"{index}:{step.operator}", begun)
        self.clock = clock.upto
        yield outputs, clock

    def _read_after(self, index: int) -> set[int]:
        """The steps whose batches are read by steps after one."""
        following = self.graph.steps[index + 1 :]
        return {at for step in following if isinstance(step, KernelStep) for at in step.inputs}

    def _spent(self, name: str, begun: float) -> None:
        self.metrics.seconds[name] = self.metrics.seconds.get(name, 0.0) + perf_counter() - begun

    def _constraints(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What monitors know of the constraints that they watch, by operator."""
        for index, step in enumerate(self.graph.steps):
            if isinstance(step, KernelStep) and isinstance(step.kernel, Monitor):
                state = self.states[index]
                assert isinstance(state, MonitorState)
                yield f"{index}:{step.operator}", step.kernel.report(state)

    def _measure(self, emitted: int) -> None:
        metrics, graph = self.metrics, self.graph
        states = {
            f"{index}:{step.operator}": self.states[index]
            for index, step in enumerate(graph.steps)
            if isinstance(step, KernelStep)
        }
        states[f"{len(graph.steps)}:{graph.output.lower()}"] = self.emit_state
        metrics.rows_out += emitted
        metrics.operators = {
            name: {"state_rows": state.rows, "state_bytes": state.nbytes}
            for name, state in states.items()
            if not isinstance(state, EmptyState)
        }
        metrics.constraints = dict(self._constraints())
        metrics.state_rows = sum(each["state_rows"] for each in metrics.operators.values())
        metrics.state_bytes = sum(each["state_bytes"] for each in metrics.operators.values())
        metrics.peak_state_rows = max(metrics.peak_state_rows, metrics.state_rows)
        metrics.peak_state_bytes = max(metrics.peak_state_bytes, metrics.state_bytes)


def _split(batches: Mapping[int, Batch], span: Clock) -> tuple[dict[int, Batch], dict[int, Batch]]:
    """Batches up to the end of a span, and the rest of them; a birth is when a kernel has to hear of a row."""
    upto = pl.col(BORN) <= span.upto
    now = {at: Batch(batch.frame.filter(upto)) for at, batch in batches.items()}
    return now, {at: Batch(batch.frame.filter(~upto)) for at, batch in batches.items()}


def _read(step: SourceStep, rows: pl.DataFrame | None) -> Batch:
    """A relation's new rows as a batch with the columns that the plan uses."""
    if rows is None or rows.is_empty():
        return Batch.empty(step.schema)
    columns = [pl.col(mine).alias(full) for mine, full in step.columns]
    if isinstance(step, ExchangeStep):
        return Batch(rows.select(*columns, *LIFETIME_COLUMNS))
    # A table's change: an insertion lives on, a deletion takes back the rest of the row's life.
    sign = pl.col(SIGN).cast(pl.Int8) if SIGN in rows.columns else pl.lit(1, dtype=pl.Int8).alias(SIGN)
    return Batch(rows.select(*columns, BORN, pl.lit(NEVER, dtype=pl.Int64).alias(DIES), sign))
