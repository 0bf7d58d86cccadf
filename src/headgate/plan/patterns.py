"""Update patterns: what is known, at a row's birth, of its death (Windows document, 3.2 and 3.5.1).

Labels are computed bottom-up and kept in a table beside the plan. Where the document's rules are looser than
its definitions, the definitions win, because state structures rely on them:

* a join with one external window and otherwise internal windows or unbounded streams is WK, not WKS: a row that
  arrives late in its partner's life yields a result with a short life, so lives are not of equal length;
* a union of time windows of different lengths is WK, not WKS; so is a RANGE that is no multiple of its SLIDE.

In one place the rules are stricter than need be: where the rows of a group all live for the same pane, so does what
DISTINCT or an aggregate says of them, which is WKS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import singledispatch
from weakref import WeakKeyDictionary

from headgate.plan.catalog import TableDef
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
    WindowKind,
)
from headgate.plan.panes import grouped_in_panes


class Pattern(IntEnum):
    """From simplest to hardest; an edge is never simpler than what the state structures assume."""

    MON = 0
    """Rows never die."""
    WKS = 1
    """Rows die in the order of their births, all after the same time."""
    WK = 2
    """A row's death is known at its birth."""
    STR = 3
    """A row may die at any time; an ending says so."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Edge:
    """The output edge of a node.

    `lifetime` is the common length of life under WKS. `internal` says that the rows come from internal windows
    only, so that results built on them never die; `expiry` is then how the rows themselves leave the state below.
    """

    pattern: Pattern
    lifetime: int | None = None
    internal: bool = False
    expiry: Pattern = Pattern.MON
    has_internal: bool = False


Edges = dict[Node, Edge]


_KNOWN: WeakKeyDictionary[Node, Edge] = WeakKeyDictionary()
"""An edge depends on its node and those below alone, and plans share most of their nodes with each other."""


def label(plan: Node) -> Edges:
    """The edge of every node of a plan; each node is looked at once, in whatever plans it stands."""
    edges: Edges = {}

    def visit(node: Node) -> None:
        if node in edges:
            return
        for each in node.inputs:
            visit(each)
        known = _KNOWN.get(node)
        if known is None:
            inputs = [edges[each] for each in node.inputs]
            known = _edge(node, inputs)
            if not isinstance(node, (Window, Emit)):
                known = replace(known, has_internal=any(each.has_internal for each in inputs))
            _KNOWN[node] = known
        edges[node] = known

    visit(plan)
    return edges


def hardest(edges: Sequence[Edge]) -> Pattern:
    return max((edge.pattern for edge in edges), default=Pattern.MON)


def has_replaced_rows(node: Node, edges: Edges) -> bool:
    """Whether rows may give way to others, so that births do not tell which of them a reader has met.

    That is so above an aggregate even where every row lives for its pane: a group whose values stay the same is
    one row of the answer, whatever the number of panes.
    """
    pattern = edges[node].pattern
    return pattern == Pattern.STR or (pattern != Pattern.MON and _is_grouped(node))


def _is_grouped(node: Node) -> bool:
    if isinstance(node, Emit):
        return False
    return isinstance(node, Aggregate) or any(map(_is_grouped, node.inputs))


@singledispatch
def _edge(node: Node, inputs: Sequence[Edge]) -> Edge:
    raise TypeError(f"no update pattern is known for {type(node).__name__}")


@_edge.register
def _(node: StreamScan, inputs: Sequence[Edge]) -> Edge:
    return Edge(Pattern.MON)


@_edge.register
def _(node: TableScan, inputs: Sequence[Edge]) -> Edge:
    pattern = Pattern.STR if node.table.rewrites else Pattern.MON
    return Edge(pattern, expiry=pattern)


@_edge.register
def _(node: Window, inputs: Sequence[Edge]) -> Edge:
    edge = window_edge(node.window)
    if node.window.internal:
        return Edge(Pattern.MON, None, internal=True, expiry=edge.pattern, has_internal=True)
    return edge


def window_edge(window: WindowKind) -> Edge:
    """The edge of an external window: WKS if time-based, STR if count-based."""
    match window.kind:
        case "UNBOUNDED":
            return Edge(Pattern.MON)
        case "NOW":
            return Edge(Pattern.WKS, 1, expiry=Pattern.WKS)
        case "ROWS":
            return Edge(Pattern.STR, expiry=Pattern.STR)
    assert window.length is not None
    if window.slide is not None and window.length % window.slide:
        return Edge(Pattern.WK, expiry=Pattern.WK)
    return Edge(Pattern.WKS, window.length, expiry=Pattern.WKS)


@_edge.register
def _(node: Filter | Project, inputs: Sequence[Edge]) -> Edge:
    return inputs[0]  # rule 1


@_edge.register
def _(node: Join, inputs: Sequence[Edge]) -> Edge:
    return _weak(inputs)


def _weak(inputs: Sequence[Edge]) -> Edge:
    """Rule 3, and section 3.3.2 for internal windows."""
    expiry = max((edge.expiry for edge in inputs), default=Pattern.MON)
    worst = hardest(inputs)
    if worst == Pattern.MON:
        internal = any(edge.internal for edge in inputs)
        return Edge(Pattern.MON, internal=internal, expiry=expiry)
    pattern = Pattern.STR if worst == Pattern.STR else Pattern.WK
    return Edge(pattern, expiry=max(pattern, expiry))


@_edge.register
def _(node: TableJoin, inputs: Sequence[Edge]) -> Edge:
    if node.table.rewrites:
        return Edge(Pattern.STR, expiry=Pattern.STR)  # rule 4
    return inputs[0]  # rule 1


@_edge.register
def _(node: SemiJoin, inputs: Sequence[Edge]) -> Edge:
    if asks_once(node):
        return inputs[0]
    return _weak(inputs)


@_edge.register
def _(node: Negation, inputs: Sequence[Edge]) -> Edge:
    if asks_once(node):
        return inputs[0]
    return Edge(Pattern.STR, expiry=Pattern.STR)  # rule 4


@_edge.register
def _(node: Difference, inputs: Sequence[Edge]) -> Edge:
    return Edge(Pattern.STR, expiry=Pattern.STR)  # rule 4


@_edge.register
def _(node: Distinct, inputs: Sequence[Edge]) -> Edge:
    if grouped_in_panes(node, inputs[0].lifetime):
        return inputs[0]
    return _weak(inputs)  # rule 3; the strict form is used over STR inputs


@_edge.register
def _(node: Aggregate, inputs: Sequence[Edge]) -> Edge:
    if inputs[0].internal:
        return Edge(Pattern.MON)
    if grouped_in_panes(node, inputs[0].lifetime):
        return inputs[0]
    return Edge(Pattern.STR, expiry=Pattern.STR)  # rule 4


@_edge.register
def _(node: Union, inputs: Sequence[Edge]) -> Edge:
    worst = hardest(inputs)
    expiry = max(edge.expiry for edge in inputs)
    if worst == Pattern.MON:
        return Edge(Pattern.MON, internal=any(edge.internal for edge in inputs), expiry=expiry)
    lifetimes = {edge.lifetime if edge.pattern == Pattern.WKS else None for edge in inputs}
    if worst == Pattern.WKS and len(lifetimes) == 1:
        return Edge(Pattern.WKS, lifetimes.pop(), expiry=expiry)  # rule 2
    pattern = Pattern.STR if worst == Pattern.STR else Pattern.WK
    return Edge(pattern, expiry=max(pattern, expiry))


@_edge.register
def _(node: Emit, inputs: Sequence[Edge]) -> Edge:
    match node.kind:
        case "RELATION":
            return inputs[0]
        case "WSTREAM":
            assert node.window is not None
            return window_edge(node.window)
    return Edge(Pattern.MON)


def asks_once(node: TableJoin | SemiJoin | Negation) -> bool:
    """Whether a row on the left learns at its birth what it meets on the right, and need not be kept for later.

    So it is with tables that do not change, and with those whose changes do not change what was answered before.
    """
    if isinstance(node, TableJoin):
        return not node.table.rewrites
    below = list(node.right.walk())
    leaves = [each for each in below if isinstance(each, (TableScan, StreamScan))]
    if not all(isinstance(each, TableScan) and not each.table.rewrites for each in leaves):
        return False
    # What is said at ticks, or of a group, comes and goes although the table does not.
    timeless = not any(isinstance(each, (Emit, Window, Aggregate)) for each in below)
    return timeless or all(isinstance(each, TableScan) and not each.table.retroactive for each in leaves)


def table_asked_at_birth(node: TableJoin | SemiJoin | Negation) -> TableDef | None:
    """The changing table that a row on the left asks at its birth only, so that its ending cannot ask again."""
    if not asks_once(node):
        return None
    scans = [each for each in node.right.walk() if isinstance(each, TableScan)]
    return next((scan.table for scan in scans if scan.table.is_asked_at_birth), None)


def is_static(node: Node) -> bool:
    """Whether the rows of an edge have been there since before all time and stay: all comes from static tables."""
    match node:
        case TableScan():
            return not node.table.changes
        case StreamScan() | Window() | Emit() | Aggregate():
            return False
    return all(map(is_static, node.inputs))


def answer_edge(plan: Emit, edges: Edges) -> Edge:
    """The edge that carries a query's answer: below ISTREAM, DSTREAM and RSTREAM, at a WSTREAM's window."""
    return edges[plan] if plan.kind == "WSTREAM" else edges[plan.input]
