"""Programs: queries that the gate has admitted, as operators; all that a runtime needs to know of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from headgate.model.errors import RefusedError
from headgate.optimize.optimize import OptimizedPlan
from headgate.physical.graph import OperatorGraph
from headgate.plan.catalog import StreamDef, TableDef
from headgate.plan.nodes import Emit, StreamScan, TableScan
from headgate.safety.gate import AdmittedPlan
from headgate.safety.verdict import Verdict


@dataclass(frozen=True)
class CompiledQuery:
    """An admitted plan, what the optimizer knows of it, and the operators that carry it out."""

    admitted: AdmittedPlan
    facts: OptimizedPlan
    graph: OperatorGraph

    def __post_init__(self) -> None:
        if self.facts.plan is not self.admitted.plan:
            raise ValueError("the facts are about another plan")

    @property
    def name(self) -> str:
        return self.admitted.name

    @property
    def plan(self) -> Emit:
        return self.admitted.plan

    @property
    def verdict(self) -> Verdict:
        return self.admitted.verdict

    @cached_property
    def streams(self) -> tuple[StreamDef, ...]:
        """The streams that it reads, each once, in order of first use."""
        scans = [node for node in self.plan.walk() if isinstance(node, StreamScan)]
        return tuple({scan.stream.name: scan.stream for scan in scans}.values())

    @cached_property
    def tables(self) -> tuple[TableDef, ...]:
        """The tables that it reads, each once, in order of first use."""
        scans = [node for node in self.plan.walk() if isinstance(node, TableScan)]
        return tuple({scan.table.name: scan.table for scan in scans}.values())


@dataclass(frozen=True)
class Program:
    """Queries that run together; nothing but the gate can admit the plans that it is made of."""

    queries: tuple[CompiledQuery, ...]

    def __iter__(self) -> Iterator[CompiledQuery]:
        return iter(self.queries)

    @cached_property
    def streams(self) -> tuple[StreamDef, ...]:
        """The streams that its queries read, each once, in order of first use."""
        return tuple({each.name: each for query in self.queries for each in query.streams}.values())

    @cached_property
    def tables(self) -> tuple[TableDef, ...]:
        """The tables that its queries read, each once, in order of first use."""
        return tuple({each.name: each for query in self.queries for each in query.tables}.values())


@dataclass(frozen=True)
class Refusal:
    """Why there is no program: the first query that the gate does not admit, and its verdict."""

    error: RefusedError
    verdict: Verdict
