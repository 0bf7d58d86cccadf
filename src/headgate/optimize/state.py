"""State: what each operator keeps of each input, in which structure, and how large it is expected to be.

The structure follows the update pattern (Windows document, 3.5.2): FIFO for WKS; a calendar of partitions by
death time for WK; for STR a hash with endings, or still a calendar when so few rows end early that scanning the
partitions for them is cheaper than announcing every death.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from headgate.optimize.estimate import Estimate, Estimates, input_name
from headgate.plan.nodes import (
    Aggregate,
    Difference,
    Distinct,
    Emit,
    Join,
    Negation,
    Node,
    SemiJoin,
    StreamScan,
    TableJoin,
    Window,
)
from headgate.plan.panes import grouped_in_panes
from headgate.plan.patterns import Edge, Edges, Pattern, asks_once

RARE_ENDINGS = 0.05
"""Up to this share of early deaths, a calendar beats a hash with endings."""

_LEAST_PARTITIONS, _MOST_PARTITIONS = 10, 64
_ROW_OVERHEAD = 24
"""Bytes of birth, death and key hash that go with a stored row."""


@dataclass(frozen=True)
class StoredInput:
    """One input as an operator keeps it; `rows` is None when nothing bounds it."""

    input: str
    structure: str
    rows: float | None
    bytes: float | None
    partitions: int | None = None
    forgets: str = ""
    """What lets its rows go, if it is not a window."""
    formula: str = ""
    """How the number of rows was found, if it is not a rate times a time."""
    at_most: bool = False
    """Whether there can never be more rows, rather than about so many."""

    def show(self) -> str:
        name = f"{self.structure}({self.partitions})" if self.partitions else self.structure
        amount = _amount(self.rows)
        if self.at_most and self.rows is not None:
            amount = f"≤{self.rows:,.0f} {'row' if self.rows == 1 else 'rows'}"
        return f"{name} {amount}{f' {self.forgets}' if self.forgets else ''}"


@dataclass(frozen=True)
class StateChoice:
    """All that one operator keeps."""

    stored: tuple[StoredInput, ...]

    @property
    def rows(self) -> float | None:
        return _total([each.rows for each in self.stored])

    @property
    def bytes(self) -> float | None:
        return _total([each.bytes for each in self.stored])

    @property
    def structure(self) -> str:
        return "+".join(dict.fromkeys(each.structure for each in self.stored))

    def show(self) -> str:
        return ", ".join(
            f"{each.input}: {each.show()}" if len(self.stored) > 1 else each.show() for each in self.stored
        )


def _amount(rows: float | None) -> str:
    if rows is None:
        return "unbounded"
    return f"~{rows:,.0f} rows" if rows >= 1 else "<1 row"


def _total(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def choose_state(plan: Node, edges: Edges, estimates: Estimates) -> Mapping[Node, StateChoice]:
    """The state of every stateful operator of a plan."""
    found: dict[Node, StateChoice] = {}
    for node in plan.walk():
        stored = _stored(node, edges, estimates)
        if stored:
            found[node] = StateChoice(stored)
    return found


def _stored(node: Node, edges: Edges, estimates: Estimates) -> tuple[StoredInput, ...]:
    match node:
        case SemiJoin() | Negation() if asks_once(node):
            return (_table(node.right, estimates.edges[node.right]),)
        case Join() | SemiJoin() | Negation() | Difference():
            return tuple(_multimap(each, edges[each], estimates.edges[each]) for each in node.inputs)
        case TableJoin():
            if not asks_once(node):
                return tuple(_multimap(each, edges[each], estimates.edges[each]) for each in node.inputs)
            return (_table(node.right, estimates.edges[node.right]),)
        case Distinct() | Aggregate() if grouped_in_panes(node, edges[node.input].lifetime):
            return ()
        case Distinct():
            return (_values(node, edges[node.input], estimates.edges[node]),)
        case Aggregate():
            return _groups(node, edges[node.input], estimates)
        case Window() if node.window.kind == "ROWS":
            edge = estimates.edges[node]
            return (_sized(node, "fifo", edge, rows=edge.rows if edge.bounded else None),)
        case Window() if node.window.slide is not None:
            edge = estimates.edges[node.input]
            return (_sized(node, "fifo", edge, rows=edge.rate * node.window.slide / 1e6),)
        case Emit():
            return _answer(node, edges[node.input], estimates.edges[node.input])
    return ()


def structure_for(edge: Edge, estimate: Estimate) -> tuple[str, int | None]:
    """The structure for rows of an edge, and how many partitions if it is a calendar."""
    pattern = max(edge.pattern, edge.expiry)
    match pattern:
        case Pattern.MON:
            return "runs", None
        case Pattern.WKS:
            return "fifo", None
        case Pattern.WK:
            return "calendar", partitions(estimate.rows)
    if estimate.premature <= RARE_ENDINGS:
        return "calendar", partitions(estimate.rows)
    return "hash", None


def partitions(rows: float) -> int:
    """Calendar partitions: a quarter of the square root of the rows, so that none is long and none is empty."""
    return int(min(_MOST_PARTITIONS, max(_LEAST_PARTITIONS, math.sqrt(max(rows, 0.0)) // 4)))


def row_bytes(node: Node) -> float:
    """Expected width of a row."""
    return _ROW_OVERHEAD + sum(_width(column.type) for column in node.schema)


def _width(dtype: pa.DataType) -> float:
    if pa.types.is_nested(dtype):
        return 64.0
    try:
        return max(1.0, float(dtype.bit_width) / 8)
    except ValueError:
        return 16.0


def _sized(
    node: Node, structure: str, edge: Estimate, *, rows: float | None, parts: int | None = None
) -> StoredInput:
    size = None if rows is None else rows * row_bytes(node)
    return StoredInput(input_name(node), structure, rows, size, parts)


def _multimap(node: Node, edge: Edge, estimate: Estimate) -> StoredInput:
    if not any(isinstance(each, StreamScan) for each in node.walk()):
        return _table(node, estimate)
    structure, parts = structure_for(edge, estimate)
    return _sized(node, structure, estimate, rows=estimate.rows if estimate.bounded else None, parts=parts)


def _table(node: Node, estimate: Estimate) -> StoredInput:
    return _sized(node, "table", estimate, rows=estimate.rows)


def _values(node: Distinct, edge: Edge, estimate: Estimate) -> StoredInput:
    """δ* keeps at most twice its output; over endings, a count per value."""
    rows = estimate.rows if estimate.bounded else None
    if max(edge.pattern, edge.expiry) == Pattern.STR:
        return _sized(node, "hash", estimate, rows=rows)
    if edge.pattern == Pattern.MON:
        return _sized(node, "values", estimate, rows=rows)
    doubled = None if rows is None else 2 * rows
    return _sized(node, "calendar", estimate, rows=doubled, parts=partitions(estimate.rows))


def _groups(node: Aggregate, edge: Edge, estimates: Estimates) -> tuple[StoredInput, ...]:
    """One accumulator per group and, where rows die, what has to be taken back at their deaths."""
    result = estimates.edges[node]
    groups = _sized(node, "groups", result, rows=result.rows if result.bounded else None)
    below = estimates.edges[node.input]
    if max(edge.pattern, edge.expiry) == Pattern.MON and not any(call.needs_values for call in node.calls):
        return (groups,)
    structure, parts = structure_for(edge, below)
    rows = below.rows if below.bounded else None
    return (groups, _sized(node.input, structure, below, rows=rows, parts=parts))


def _answer(node: Emit, edge: Edge, estimate: Estimate) -> tuple[StoredInput, ...]:
    """The answer's pending deaths, which may cancel births at the same instant; all of it for RSTREAM."""
    if node.kind == "WSTREAM":
        assert node.window is not None
        rows = float(node.window.rows or estimate.rate * (node.window.length or 0) / 1e6)
        return (_sized(node, "fifo", estimate, rows=rows),)
    if edge.pattern == Pattern.MON and node.kind != "RSTREAM":
        return ()
    structure, parts = structure_for(edge, estimate)
    rows_kept = estimate.rows if estimate.bounded else None
    return (_sized(node, structure, estimate, rows=rows_kept, parts=parts),)
