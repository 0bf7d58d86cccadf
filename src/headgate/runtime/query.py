"""A running query: one call per clock step, batch by batch through its operator graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import polars as pl

from headgate.kernels.emit.lazy_rows import LazyRows
from headgate.kernels.kernel import State
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
            self.metrics, seconds=dict(self.metrics.seconds), operators=dict(self.metrics.operators)
        )
        return twin

    def advance(self, rows: Mapping[str, pl.DataFrame], upto: int) -> pl.DataFrame:
        """Runs one clock step over the new rows of each relation (with `_born`); returns the output rows."""
        return self.answer(rows, upto).whole()

    def answer(self, rows: Mapping[str, pl.DataFrame], upto: int) -> LazyRows:
        """The same; the output rows in pieces that are made when they are asked for."""
        outputs, clock = self._run(rows, upto)
        begun = perf_counter()
        self.emit_state, emitted = self.graph.emit.emit(self.emit_state, outputs[-1], clock)
        self._spent(f"{len(self.graph.steps)}:{self.graph.output.lower()}", begun)
        self._measure(emitted.height)
        return emitted

    def export(self, rows: Mapping[str, pl.DataFrame], upto: int, steps: Sequence[int]) -> list[Batch]:
        """Runs one clock step without the end of the query; returns the batches of some steps."""
        outputs, _ = self._run(rows, upto)
        self._measure(0)
        return [outputs[at] for at in steps]

    def _run(self, rows: Mapping[str, pl.DataFrame], upto: int) -> tuple[list[Batch], Clock]:
        """One clock step of all operators: their batches, and the step."""
        if self.start is None:
            # Rows come in order of time, so each relation's first is its earliest.
            births = [
                int(frame[BORN][0])
                for name, frame in rows.items()
                if name in self.graph.beginning and not frame.is_empty()
            ]
            self.start = min(births, default=None)
        clock = Clock(self.clock, upto, self.start)
        outputs: list[Batch] = []
        for index, step in enumerate(self.graph.steps):
            if isinstance(step, SourceStep):
                outputs.append(_read(step, rows.get(step.relation)))
                self.metrics.rows_in += outputs[-1].height
                continue
            begun = perf_counter()
            inputs = [outputs[at] for at in step.inputs]
            self.states[index], output = step.kernel.advance(self.states[index], inputs, clock)
            outputs.append(output)
            self._spent(f"{index}:{step.operator}", begun)
        self.clock = upto
        return outputs, clock

    def _spent(self, name: str, begun: float) -> None:
        self.metrics.seconds[name] = self.metrics.seconds.get(name, 0.0) + perf_counter() - begun

    def _measure(self, emitted: int) -> None:
        metrics, graph = self.metrics, self.graph
        states = {
            f"{index}:{step.operator}": self.states[index]
            for index, step in enumerate(graph.steps)
            if isinstance(step, KernelStep)
        }
        states[f"{len(graph.steps)}:{graph.output.lower()}"] = self.emit_state
        metrics.steps += 1
        metrics.rows_out += emitted
        metrics.operators = {
            name: {"state_rows": state.rows, "state_bytes": state.nbytes}
            for name, state in states.items()
            if not isinstance(state, EmptyState)
        }
        metrics.state_rows = sum(each["state_rows"] for each in metrics.operators.values())
        metrics.state_bytes = sum(each["state_bytes"] for each in metrics.operators.values())
        metrics.peak_state_rows = max(metrics.peak_state_rows, metrics.state_rows)
        metrics.peak_state_bytes = max(metrics.peak_state_bytes, metrics.state_bytes)


def _read(step: SourceStep, rows: pl.DataFrame | None) -> Batch:
    """A relation's new rows as a batch with the columns that the plan uses."""
    if rows is None or rows.is_empty():
        return Batch.empty(step.schema)
    columns = [pl.col(mine).alias(full) for mine, full in step.columns]
    if isinstance(step, ExchangeStep):
        return Batch(rows.select(*columns, *LIFETIME_COLUMNS))
    if SIGN not in rows.columns:
        return Batch.of(rows.select(*columns, BORN), born=pl.col(BORN))
    # A table's change: an insertion lives on, a deletion takes back the rest of the row's life.
    never = pl.lit(NEVER, dtype=pl.Int64).alias(DIES)
    return Batch(rows.select(*columns, BORN, never, pl.col(SIGN).cast(pl.Int8)))
