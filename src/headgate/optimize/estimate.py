"""Estimates: how many rows each edge brings per second, how many live at once, how many die early."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch

from sqlglot import exp

from headgate.model.scalar import Scalar
from headgate.model.time import SECOND
from headgate.optimize.join_order import LARGEST, JoinInput, OrderChoice, choose_order, join_size
from headgate.optimize.statistics import DEFAULT_DISTINCT, HORIZON, Statistics
from headgate.plan.nodes import (
    Aggregate,
    Difference,
    Distinct,
    Emit,
    Filter,
    Join,
    Negation,
    Node,
    Project,
    SemiJoin,
    StreamScan,
    TableJoin,
    TableScan,
    Union,
    Window,
)
from headgate.plan.patterns import Pattern, label

_RANGE_SELECTIVITY = 1 / 3


@dataclass(frozen=True)
class Estimate:
    """An edge in numbers: births per second, rows alive, endings per second, distinct values per column.

    `rows` of an edge without bounds is what HORIZON seconds bring; `bounded` is then false.
    """

    rate: float
    rows: float
    endings: float
    distinct: Mapping[str, float]
    bounded: bool = True
    premature: float = 0.0
    """Share of rows that an ending takes away before their announced death."""

    def distinct_of(self, column: str) -> float:
        return max(1.0, min(self.distinct.get(column, DEFAULT_DISTINCT), max(self.rows, 1.0)))


@dataclass(frozen=True)
class Estimates:
    """Estimates of every edge of a plan, and the order chosen for every join."""

    edges: Mapping[Node, Estimate]
    orders: Mapping[Join, OrderChoice]
    measured: bool = False
    """Whether rates were given rather than assumed."""


def estimate(
    plan: Node,
    statistics: Statistics,
    held: Mapping[Node, tuple[float | None, bool]] | None = None,
    chosen: Mapping[Join, OrderChoice] | None = None,
) -> Estimates:
    """Estimates for a whole plan, bottom-up.

    `held` says of some edges how many rows of them are kept (None: as estimated) and whether that is bounded, because
    something else than a window says so; `chosen` are the orders of joins, if they have been chosen before.
    """
    edges: dict[Node, Estimate] = {}
    orders: dict[Join, OrderChoice] = {}
    for node in reversed(list(plan.walk())):
        inputs = [edges[each] for each in node.inputs]
        if isinstance(node, Join):
            orders[node] = chosen[node] if chosen is not None else choose_order(join_inputs(node, inputs))
        edges[node] = _within_reason(_estimate(node, inputs, statistics))
        if held is not None and node in held:
            rows, bounded = held[node]
            kept = edges[node].rows if rows is None else min(rows, LARGEST)
            edges[node] = replace(edges[node], rows=kept, bounded=bounded)
    return Estimates(edges, orders, statistics.given)


def _within_reason(edge: Estimate) -> Estimate:
    """The estimate with numbers that can be multiplied with one another."""
    rate, rows, endings = (min(value, LARGEST) for value in (edge.rate, edge.rows, edge.endings))
    return replace(edge, rate=rate, rows=rows, endings=endings)


def input_name(node: Node) -> str:
    """What a join calls one of its inputs: the name it has in FROM."""
    for each in node.walk():
        if isinstance(each, (StreamScan, TableScan)):
            return each.name
        if isinstance(each, Project) and each.outputs and "." in each.outputs[0].name:
            names = {output.name.split(".")[0] for output in each.outputs}
            if len(names) == 1:
                return names.pop()
    return "input"


def join_inputs(node: Join, inputs: Sequence[Estimate]) -> tuple[JoinInput, ...]:
    """The join's inputs as the cost model sees them."""
    found = []
    for member, edge in zip(node.members, inputs, strict=True):
        distinct = []
        for group in node.equalities:
            mine = [name for name in group if name in member.names]
            distinct.append(max(edge.distinct_of(name) for name in mine) if mine else None)
        found.append(JoinInput(input_name(member), edge.rate + edge.endings, edge.rows, tuple(distinct)))
    return tuple(found)


def selectivity(predicate: Scalar, edge: Estimate) -> float:
    """Share of rows that a predicate lets through."""
    return _selectivity(predicate.expression, edge)


def _selectivity(node: exp.Expr, edge: Estimate) -> float:
    match node:
        case exp.And():
            return _selectivity(node.this, edge) * _selectivity(node.expression, edge)
        case exp.Or():
            a, b = _selectivity(node.this, edge), _selectivity(node.expression, edge)
            return a + b - a * b
        case exp.Not():
            return 1 - _selectivity(node.this, edge)
        case exp.EQ() | exp.NullSafeEQ():
            return 1 / max(_distinct_in(node, edge), 1.0)
        case exp.NEQ():
            return 1 - 1 / max(_distinct_in(node, edge), 1.0)
        case exp.In():
            return min(1.0, len(node.expressions) / max(_distinct_in(node, edge), 1.0))
        case exp.Boolean():
            return 1.0 if node.this else 0.0
        case exp.Is():
            return 0.1
        case exp.Column():
            return 0.5
    return _RANGE_SELECTIVITY


def _distinct_in(node: exp.Expr, edge: Estimate) -> float:
    columns = [column.name for column in node.find_all(exp.Column)]
    return max((edge.distinct_of(name) for name in columns), default=1.0)


def _scaled(edge: Estimate, share: float) -> Estimate:
    return replace(edge, rate=edge.rate * share, rows=edge.rows * share, endings=edge.endings * share)


@singledispatch
def _estimate(node: Node, inputs: Sequence[Estimate], statistics: Statistics) -> Estimate:
    raise TypeError(f"nothing estimates {type(node).__name__}")


@_estimate.register
def _(node: StreamScan, inputs: Sequence[Estimate], statistics: Statistics) -> Estimate:
    known = statistics.of(node.stream.name)
    distinct = {f"{node.name}.{c.name}": known.distinct_of(c.name) for c in node.stream.columns}
    return Estimate(known.rate, known.rate * HORIZON, 0.0, distinct, bounded=False)


@_estimate.register
def _(node: TableScan, inputs: Sequence[Estimate], statistics: Statistics) -> Estimate:
    known = statistics.of(node.table.name)
    distinct = {f"{node.name}.{c.name}": known.distinct_of(c.name) for c in node.table.columns}
    return Estimate(0.0, known.rows, 0.0, distinct)


@_estimate.register
def _(node: Window, inputs: Sequence[Estimate], statistics: Statistics) -> Estimate:
    (edge,) = inputs
    window = node.window
    match window.kind:
        case "UNBOUNDED":
            return edge
        case "NOW":
            return replace(edge, rows=min(1.0, edge.rate), bounded=True)
        case "ROWS":
            assert window.rows is not None
            partitions = math.prod(edge.distinct_of(name) for name in window.partition)
            return replace(
                edge,
                rows=window.rows * partitions,
                endings=edge.rate,
                bounded=not window.partition,
                premature=1.0,
            )
    assert window.length is not None
    return replace(edge, rows=edge.rate * window.length / SECOND, bounded=True)


@_estimate.register
def _(node: Filter, inputs: Sequence[Estimate], statistics: Statistics) -> Estimate:
    (edge,) = inputs
    smaller = _scaled(edge, selectivity(node.predicate, edge))
    fixed = {
        side.name: 1.0
        for part in node.predicate.expression.find_all(exp.EQ)
        for side, other in ((part.this, part.expression), (part.expression, part.this))
        if isinstance(side, exp.Column) and not other.find(exp.Column)
    }
    return replace(smaller, distinct={**smaller.distinct, **fixed})


@_estimate.register
def _(node: Project, inputs: Sequence[Estimate], statistics: Statistics) -> Estimate:
    (edge,) = inputs
    distinct = {}
    for output in node.outputs:
        known = [edge.distinct_of(name) for name in output.scalar.columns]
        distinct[output.name] = math.prod(known) if known else 1.0
    return replace(edge, distinct=distinct)


@_estimate.register
def _(node: Join, inputs: Sequence[Estimate], statistics: Statistics) -> Estimate:
    members = join_inputs(node, inputs)
    share = _RANGE_SELECTIVITY ** len(node.residual)
    rows = join_size(members, range(len(members))) * share
    rate = sum(rows / max(edge.rows, 1e-9) * edge.rate for edge in inputs)
    endings = sum(rows / max(edge.rows, 1e-9) * edge.endings for edge in inputs)
    distinct = {name: value for edge in inputs for name, value in edge.distinct.items()}
    for group in node.equalities:
        least = min(distinct.get(name, DEFAULT_DISTINCT) for name in group)
        distinct.update(dict.fromkeys(group, least))
    alive = 1 - math.prod(1 - edge.premature for edge in inputs)
    return Estimate(rate, rows, endings, distinct, all(edge.bounded for edge in inputs), alive)


@_estimate.register
def _(node: TableJoin, inputs: Sequence[Estimate], statistics: Statistics) -> Estimate:
    left, right = inputs
    matches = right.rows
    for a, b in node.keys:
        matches /= max(left.distinct_of(a), right.distinct_of(b))
    matches *= _RANGE_SELECTIVITY ** len(node.residual)
    return replace(_scaled(left, matches), distinct={**left.distinct, **right.distinct})


def _present(left: Estimate, right: Estimate, keys: Sequence[tuple[str, str]]) -> float:
    """Share of left rows whose value is on the right at an instant (values contained, uniform)."""
    if not keys:
        return 1.0 if right.rows >= 1 else right.rows
    values = math.prod(max(left.distinct_of(a), right.distinct_of(b)) for a, b in keys)
    return 1 - math.exp(-right.rows / max(values, 1.0))


@_estimate.register
def _(node: SemiJoin, inputs: Sequence[Estimate], statistics: Statistics) -> Estimate:
    left, right = inputs
    present = max(_present(left, right, node.keys), 1e-6)
    premature = 1 - (1 - left.premature) * (1 - right.premature)
    endings = left.endings + right.endings * left.rows / max(right.rows, 1.0)
    return replace(_scaled(replace(left, endings=endings), present), premature=premature)


@_estimate.register
def _(node: Negation, inputs: Sequence[Estimate], statistics: Statistics) -> Estimate:
    left, right = inputs
    absent = max(1 - _present(left, right, node.keys), 1e-6)
    values = math.prod(max(left.distinct_of(a), right.distinct_of(b)) for a, b in node.keys) or 1.0
    life = left.rows / max(left.rate, 1e-9)
    premature = 1 - math.exp(-right.rate * life / max(values, 1.0))
    rate = left.rate * absent + right.rate * left.rows / max(values, 1.0) * absent
    return Estimate(rate, left.rows * absent, rate * premature, left.distinct, left.bounded, premature)


@_estimate.register
def _(node: Difference, inputs: Sequence[Estimate], statistics: Statistics) -> Estimate:
    left, right = inputs
    share = max(0.1, 1 - right.rows / max(left.rows, 1.0))
    return replace(_scaled(left, share), endings=right.rate, premature=1 - share)


@_estimate.register
def _(node: Distinct, inputs: Sequence[Estimate], statistics: Statistics) -> Estimate:
    (edge,) = inputs
    values = min(edge.rows, math.prod(edge.distinct_of(column.name) for column in node.schema))
    share = values / edge.rows if edge.rows else 1.0
    return replace(_scaled(edge, share), rows=values)


@_estimate.register
def _(node: Aggregate, inputs: Sequence[Estimate], statistics: Statistics) -> Estimate:
    (edge,) = inputs
    groups = min(max(edge.rows, 1.0), math.prod(edge.distinct_of(name) for name in node.keys))
    distinct = {name: edge.distinct_of(name) for name in node.keys}
    distinct.update({call.output.name: max(groups, 1.0) for call in node.calls})
    if label(node)[node].pattern == Pattern.WKS:
        return Estimate(edge.rate * groups / max(edge.rows, 1.0), groups, 0.0, distinct, edge.bounded, 0.0)
    changes = 2 * edge.rate + edge.endings
    return Estimate(changes, groups, changes, distinct, edge.bounded or not node.keys, 1.0)


@_estimate.register
def _(node: Union, inputs: Sequence[Estimate], statistics: Statistics) -> Estimate:
    names = [column.name for column in node.schema]
    distinct = dict.fromkeys(names, 0.0)
    for member, edge in zip(node.members, inputs, strict=True):
        for name, column in zip(names, member.schema, strict=True):
            distinct[name] += edge.distinct_of(column.name)
    total = sum(edge.rate for edge in inputs) or 1.0
    premature = sum(edge.premature * edge.rate for edge in inputs) / total
    return Estimate(
        sum(edge.rate for edge in inputs),
        sum(edge.rows for edge in inputs),
        sum(edge.endings for edge in inputs),
        distinct,
        all(edge.bounded for edge in inputs),
        premature,
    )


@_estimate.register
def _(node: Emit, inputs: Sequence[Estimate], statistics: Statistics) -> Estimate:
    (edge,) = inputs
    if node.kind == "RELATION":
        return edge
    return replace(edge, endings=0.0, rows=edge.rate * HORIZON, bounded=False, premature=0.0)
