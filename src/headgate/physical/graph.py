"""Operator graphs: what an engine runs. Steps in an order in which each comes after what it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from headgate.kernels.emit.emit import Emit
from headgate.kernels.kernel import Kernel
from headgate.model.schema import Column
from headgate.plan.nodes import Node
from headgate.safety.assumption import Assumption
from headgate.safety.promise import Promise


@dataclass(frozen=True)
class SourceStep:
    """Brings the rows of a stream or table, its columns renamed to `name.column`."""

    relation: str
    name: str
    is_table: bool
    columns: tuple[tuple[str, str], ...]
    """(column of the relation, column of the plan)."""
    schema: Mapping[str, pl.DataType]
    begins: bool = False
    """Whether its first row may be the query's: so it is with streams, and with retroactive tables that change."""


@dataclass(frozen=True)
class ExchangeStep(SourceStep):
    """Brings rows that the shards of an earlier stage have answered with, lifetimes and signs included."""


@dataclass(frozen=True)
class KernelStep:
    """Runs a kernel over the outputs of earlier steps."""

    operator: str
    kernel: Kernel[Any]
    inputs: tuple[int, ...]


Step = SourceStep | KernelStep


@dataclass(frozen=True)
class OperatorGraph:
    """A query ready to run: its steps, and the emit kernel that turns the last one's batches into output rows."""

    query: str
    output: str
    steps: tuple[Step, ...]
    emit: Emit
    columns: tuple[Column, ...]
    """The select list, in order."""
    allowed_unbounded: bool = False
    """The user let it run although its state is not proven bounded; shown wherever the query is."""
    verdict: str = "bounded"
    """The kind of the gate's verdict."""
    assumes: tuple[Assumption, ...] = ()
    """What must stay true for the state to stay bounded."""
    settles: int = 0
    """The longest that a row is kept by windows or by time: what leaves by itself has its full size after that."""
    promises: tuple[Promise, ...] = ()
    """What streams have promised and operators rely on: rows that break it are late."""
    sooner: frozenset[Promise] = frozenset()
    """Those of them without which states would still be bounded: windows let go of the same rows later."""
    places: Mapping[Node, int] = field(default_factory=dict, repr=False)
    """The steps that bring the rows of plan nodes; not of those that were fused with others."""

    @property
    def sources(self) -> tuple[SourceStep, ...]:
        return tuple(step for step in self.steps if isinstance(step, SourceStep))

    @property
    def streams(self) -> frozenset[str]:
        """Names of the streams that it reads."""
        return frozenset(step.relation for step in self.sources if not step.is_table)

    @property
    def beginning(self) -> frozenset[str]:
        """Names of the relations with the first row of which there is an answer."""
        return frozenset(step.relation for step in self.sources if step.begins)

    @property
    def is_change_log(self) -> bool:
        return self.output in ("RELATION", "WSTREAM")
