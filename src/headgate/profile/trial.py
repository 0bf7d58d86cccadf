"""Trial: a query judged and run over the samples, with some constraints declared that are not in its file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import perf_counter

import numpy as np
import polars as pl
from sqlglot import exp

from headgate.language import nodes
from headgate.language.render import render
from headgate.model.errors import HeadgateError
from headgate.optimize.planned import PlannedQuery
from headgate.physical.compile import compile_query
from headgate.physical.program import CompiledQuery, Program
from headgate.plan.nodes import StreamScan
from headgate.profile.constraint import Constraint
from headgate.profile.constraint import Kind as ConstraintKind
from headgate.profile.sample import Sample
from headgate.runtime.build_stages import whole_stage
from headgate.runtime.io import RejectPolicy
from headgate.runtime.io.tables import read_table
from headgate.runtime.local.start import prepare
from headgate.safety.verdict import Kind
from headgate.session import Session

STEPS = 100
"""About so many steps a run takes: what it keeps is measured after each."""
LEAST_STEP = 20

MOST_ANSWERS = 20_000_000
LONGEST = 120.0
"""A run that answers more rows, or takes more seconds, is given up."""

Constraints = frozenset[Constraint]

ORDER = {kind: place for place, kind in enumerate(ConstraintKind)}
"""In which order the clauses of a stream are written."""


@dataclass(frozen=True)
class Judged:
    """What the gate says of a query, and how it would run."""

    verdict: Kind
    operators: tuple[str, ...]
    """The query as a stage, in words: two sets of constraints that are alike in this are alike in a run."""

    @property
    def admitted(self) -> bool:
        return self.verdict != "refused"


@dataclass(frozen=True)
class Run:
    """What a run kept at most, after which of its steps whatsoever, and its answer as a number and a sum."""

    state_rows: int
    answers: int
    digest: int


class TooMuchError(Exception):
    """A run has answered too much, or has taken too long."""


@dataclass
class Trials:
    """The trials of one query; each set of constraints is judged and run once."""

    session: Session
    name: str
    samples: Mapping[str, Sample]
    tables: Mapping[str, pl.DataFrame]
    judged: dict[Constraints, Judged | None] = field(default_factory=dict)
    runs: dict[Constraints, Run | None] = field(default_factory=dict)

    def judge(self, constraints: Constraints) -> Judged | None:
        """The gate's verdict; None if the declarations, or a query that reads them, would mean nothing."""
        if constraints not in self.judged:
            try:
                compiled = self._compiled(constraints)
            except HeadgateError:
                self.judged[constraints] = None
            else:
                lines = whole_stage(compiled, self.tables).description()
                self.judged[constraints] = Judged(compiled.verdict.kind, tuple(lines))
        return self.judged[constraints]

    def run(self, constraints: Constraints) -> Run | None:
        """A run over the samples; None if it was given up."""
        if constraints not in self.runs:
            self.runs[constraints] = self._run(self._compiled(constraints))
        return self.runs[constraints]

    def about(self, constraints: Iterable[Constraint]) -> Constraints:
        """Those of the constraints that are about streams of this query."""
        read = {scan.stream.name for scan in self._scans}
        return frozenset(each for each in constraints if each.stream in read)

    @cached_property
    def _scans(self) -> list[StreamScan]:
        return [node for node in self.session.query(self.name).plan.walk() if isinstance(node, StreamScan)]

    def answers_alike(self, constraints: Constraints) -> bool:
        """Whether the answer is the one without constraints, as far as both have been found."""
        one, other = self.runs.get(frozenset()), self.runs.get(constraints)
        return one is None or other is None or (one.answers, one.digest) == (other.answers, other.digest)

    def _compiled(self, constraints: Constraints) -> CompiledQuery:
        texts = {name: render(tree) for name, tree in declared_with(self.session.trees, constraints).items()}
        query = self.session.edited(texts)[self.name] if texts else self.session.query(self.name)
        return compile_query(query.planned, allow_unbounded=True)

    def _run(self, compiled: CompiledQuery) -> Run | None:
        given = {name: each.columns for name, each in self.samples.items()} | dict(self.tables)
        rows = sum(self.samples[each.name].height for each in compiled.streams)
        run, _ = prepare(
            Program((compiled,)),
            self.session.catalog,
            base=Path(),
            batch_rows=max(LEAST_STEP, rows // STEPS) * max(1, len(compiled.streams)),
            policy=RejectPolicy.stop(),
            given=given,
        )
        answers, digest, begun = 0, 0, perf_counter()

        def on_output(query: str, frame: pl.DataFrame) -> None:
            nonlocal answers, digest
            answers += frame.height
            if answers > MOST_ANSWERS or perf_counter() - begun > LONGEST:
                raise TooMuchError
            if frame.height:
                digest = (digest + int(frame.hash_rows().to_numpy().sum(dtype=np.uint64))) % 2**64

        try:
            run.run(on_output, lambda query, stream, late: None)
        except TooMuchError:
            return None
        return Run(run.states[self.name].metrics.peak_state_rows, answers, digest)


def read_tables(session: Session, plans: Iterable[PlannedQuery]) -> dict[str, pl.DataFrame]:
    """The rows of the tables that queries read, so that they are read once."""
    found: dict[str, pl.DataFrame] = {}
    for planned in plans:
        for table in compile_query(planned, allow_unbounded=True).tables:
            given = session.local.rows.get(table.name)
            if given is not None:
                found[table.name] = given
            elif table.name not in found:
                rows, _ = read_table(
                    table, session.base, rows_per_chunk=100_000, on_bad_row=RejectPolicy.stop()
                )
                found[table.name] = rows
    return found


def declared_with(trees: Mapping[str, exp.Expr], constraints: Iterable[Constraint]) -> dict[str, exp.Expr]:
    """The declarations that constraints change, by case-folded name: their clauses stand before USING."""
    changed: dict[str, exp.Expr] = {}
    for each in in_order(constraints):
        name = each.stream.casefold()
        tree = changed.setdefault(name, trees[name].copy())
        clauses = list(tree.args.get("clauses") or [])
        place = next((n for n, c in enumerate(clauses) if isinstance(c, nodes.Using)), len(clauses))
        tree.set("clauses", [*clauses[:place], each.tree, *clauses[place:]])
    return changed


def in_order(constraints: Iterable[Constraint]) -> list[Constraint]:
    """Constraints in one order, however they were gathered."""
    return sorted(constraints, key=lambda each: (each.stream, ORDER[each.kind], each.in_time, each.clause))
