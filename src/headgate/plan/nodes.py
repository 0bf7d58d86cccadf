"""Logical plan nodes: immutable, typed, compared by identity.

A node derives its schema from its inputs and checks itself when it is made. Facts about a node (its update
pattern, its cost, the state it will keep) live in side tables keyed by the node, never on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import pyarrow as pa

from headgate.model import types
from headgate.model.aggregates import Function, Kind, Second
from headgate.model.scalar import Scalar
from headgate.model.schema import Column
from headgate.plan.catalog import StreamDef, TableDef


@dataclass(frozen=True, eq=False)
class Node:
    """A relational operator; `inputs` are its children, left to right."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @property
    def schema(self) -> tuple[Column, ...]:
        raise NotImplementedError

    def with_inputs(self, inputs: Sequence[Node]) -> Self:
        """The same operator over other inputs; itself if they are the same."""
        if all(new is old for new, old in zip(inputs, self.inputs, strict=True)):
            return self
        return self._over(tuple(inputs))

    def _over(self, inputs: tuple[Node, ...]) -> Self:
        raise NotImplementedError

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(column.name for column in self.schema)

    def type_of(self, name: str) -> pa.DataType:
        return next(column.type for column in self.schema if column.name == name)

    def walk(self) -> Iterator[Node]:
        """This node and all below it, parents first."""
        yield self
        for each in self.inputs:
            yield from each.walk()


@dataclass(frozen=True, eq=False)
class _Unary(Node):
    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def schema(self) -> tuple[Column, ...]:
        return self.input.schema

    def _over(self, inputs: tuple[Node, ...]) -> Self:
        return replace(self, input=inputs[0])


@dataclass(frozen=True, eq=False)
class StreamScan(Node):
    """A stream under the name it has in the query; columns are `name.column`."""

    stream: StreamDef
    name: str

    @cached_property
    def schema(self) -> tuple[Column, ...]:
        return tuple(Column(f"{self.name}.{c.name}", c.type) for c in self.stream.columns)


@dataclass(frozen=True, eq=False)
class TableScan(Node):
    """A table under the name it has in the query."""

    table: TableDef
    name: str

    @cached_property
    def schema(self) -> tuple[Column, ...]:
        return tuple(Column(f"{self.name}.{c.name}", c.type) for c in self.table.columns)


@dataclass(frozen=True)
class WindowKind:
    """What a window holds: RANGE (length, slide), ROWS (rows, partition), NOW or UNBOUNDED."""

    kind: str
    length: int | None = None
    slide: int | None = None
    rows: int | None = None
    partition: tuple[str, ...] = ()
    internal: bool = False

    @property
    def is_time_based(self) -> bool:
        return self.kind != "ROWS"

    @property
    def is_bounded(self) -> bool:
        """Whether its size is bounded by time or by a fixed number of rows."""
        return self.kind != "UNBOUNDED" and not self.partition


@dataclass(frozen=True, eq=False)
class Window(_Unary):
    """Gives the rows of a stream their lifetimes."""

    window: WindowKind


@dataclass(frozen=True, eq=False)
class Filter(_Unary):
    """Keeps the rows for which the predicate is true."""

    predicate: Scalar

    def __post_init__(self) -> None:
        _require(self.predicate, self.input)
        if self.predicate.type != types.BOOLEAN:
            raise ValueError("a filter's predicate is BOOLEAN")


@dataclass(frozen=True)
class Output:
    """A computed column of a projection."""

    name: str
    scalar: Scalar


@dataclass(frozen=True, eq=False)
class Project(_Unary):
    """Computes new columns; duplicates stay."""

    outputs: tuple[Output, ...]

    def __post_init__(self) -> None:
        for output in self.outputs:
            _require(output.scalar, self.input)
        _distinct([output.name for output in self.outputs])

    @cached_property
    def schema(self) -> tuple[Column, ...]:
        return tuple(Column(output.name, output.scalar.type) for output in self.outputs)


@dataclass(frozen=True, eq=False)
class Join(Node):
    """Joins any number of inputs at once: columns of a class are equal, and the residual holds.

    A class lists columns of at least two inputs, or several of one. An order of probing is not part of the
    node: the optimizer keeps it in its own table.
    """

    members: tuple[Node, ...]
    equalities: tuple[tuple[str, ...], ...] = ()
    residual: tuple[Scalar, ...] = ()

    def __post_init__(self) -> None:
        _distinct([column.name for column in self.schema])
        for group in self.equalities:
            if len({self.type_of(name) for name in group}) != 1:
                raise ValueError(f"columns of different types cannot be equal: {group}")

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.members

    @cached_property
    def schema(self) -> tuple[Column, ...]:
        return tuple(column for member in self.members for column in member.schema)

    def _over(self, inputs: tuple[Node, ...]) -> Self:
        return replace(self, members=inputs)


@dataclass(frozen=True, eq=False)
class _Pair(Node):
    left: Node
    right: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def _over(self, inputs: tuple[Node, ...]) -> Self:
        return replace(self, left=inputs[0], right=inputs[1])


@dataclass(frozen=True, eq=False)
class _Matching(_Pair):
    """Two inputs matched by equal keys (left column, right column) and a residual over both."""

    keys: tuple[tuple[str, str], ...] = ()
    residual: tuple[Scalar, ...] = ()

    def __post_init__(self) -> None:
        for left, right in self.keys:
            if self.left.type_of(left) != self.right.type_of(right):
                raise ValueError(f"{left} and {right} have different types")
        for part in self.residual:
            missing = part.columns - self.left.names - self.right.names
            if missing:
                raise ValueError(f"a residual reads unknown columns {sorted(missing)}")


@dataclass(frozen=True, eq=False)
class TableJoin(_Matching):
    """Joins rows (left) with a table (right); see `TableDef.retroactive` for what an update does."""

    @property
    def table(self) -> TableDef:
        scan = next(node for node in self.right.walk() if isinstance(node, TableScan))
        return scan.table

    @cached_property
    def schema(self) -> tuple[Column, ...]:
        return self.left.schema + self.right.schema


@dataclass(frozen=True, eq=False)
class SemiJoin(_Matching):
    """EXISTS: left rows that have a match on the right."""

    null_equal: bool = False

    @property
    def schema(self) -> tuple[Column, ...]:
        return self.left.schema


@dataclass(frozen=True, eq=False)
class Negation(_Matching):
    """NOT EXISTS: left rows that have no match on the right."""

    null_equal: bool = False

    @property
    def schema(self) -> tuple[Column, ...]:
        return self.left.schema


@dataclass(frozen=True, eq=False)
class Difference(_Pair):
    """EXCEPT ALL: of each value as many copies as the left has more than the right."""

    @property
    def schema(self) -> tuple[Column, ...]:
        return self.left.schema


@dataclass(frozen=True, eq=False)
class Distinct(_Unary):
    """Every value once."""


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate over an input column (None for COUNT(*)), and over a second one if the function reads two.

    `parameter` is QUANTILE's share or TOP's size.
    """

    function: Function
    argument: str | None
    output: Column
    distinct: bool = False
    parameter: float | int | None = None
    second: str | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        """The input columns that it reads."""
        return tuple(name for name in (self.argument, self.second) if name is not None)

    @property
    def needs_values(self) -> bool:
        """Whether the single values of a group have to be known."""
        match self.function.traits.kind:
            case Kind.LINEAR | Kind.EXTREME:
                return self.distinct
            case Kind.HOLISTIC:
                return True
            case Kind.SKETCH:
                return False

    def show(self) -> str:
        inner = self.argument or "*"
        if self.second is not None and self.function.traits.second is not Second.TIME:
            inner += f", {self.second}"
        if self.distinct:
            inner = "DISTINCT " + inner
        if self.parameter is not None:
            inner += f", {self.parameter}"
        return f"{self.function}({inner})"


@dataclass(frozen=True, eq=False)
class Aggregate(_Unary):
    """One row per group, changing whenever the group's contents change."""

    keys: tuple[str, ...]
    calls: tuple[AggregateCall, ...]

    def __post_init__(self) -> None:
        for name in (*self.keys, *(name for call in self.calls for name in call.arguments)):
            if name not in self.input.names:
                raise ValueError(f"an aggregate reads unknown column {name}")

    @cached_property
    def schema(self) -> tuple[Column, ...]:
        keys = tuple(Column(name, self.input.type_of(name)) for name in self.keys)
        return keys + tuple(call.output for call in self.calls)


@dataclass(frozen=True, eq=False)
class Union(Node):
    """All rows of all members; columns are matched by position and take the first member's names."""

    members: tuple[Node, ...]

    def __post_init__(self) -> None:
        shapes = {tuple(column.type for column in member.schema) for member in self.members}
        if len(shapes) != 1:
            raise ValueError("members of a union have the same types")

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.members

    @property
    def schema(self) -> tuple[Column, ...]:
        return self.members[0].schema

    def _over(self, inputs: tuple[Node, ...]) -> Self:
        return replace(self, members=inputs)


@dataclass(frozen=True, eq=False)
class Emit(_Unary):
    """Turns a relation into a stream: ISTREAM, DSTREAM, RSTREAM, WSTREAM, or RELATION for none of them."""

    kind: str
    restore: bool = False
    window: WindowKind | None = None
    slide: int | None = None


def _require(scalar: Scalar, node: Node) -> None:
    missing = scalar.columns - node.names
    if missing:
        raise ValueError(f"{scalar.show()} reads unknown columns {sorted(missing)}")


def _distinct(names: list[str]) -> None:
    if len(set(names)) != len(names):
        raise ValueError(f"column names must differ: {names}")
