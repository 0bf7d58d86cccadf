"""Stages: where a plan is cut so that operators that want their rows together by different columns all have shards.

```
SELECT b, COUNT(*) FROM s [RANGE …], r [RANGE …] WHERE s.a = r.a GROUP BY b

stage 1   s ┐                      rows by a
          r ┴ join ─┐
────────────────────┼─────────     exchange: the join's rows, with their lifetimes, by b
stage 2             └ aggregate    rows by b
```

All streams enter the first stage, which alone knows of late rows, promises and clocks; a stream that only a later
stage needs passes through. So stages form a chain, and the shards of one answer those of the next.

An exchange costs a shuffle and a trip through Python for every micro-batch, one shard costs the work of all others.
The cheapest way by estimates is taken; without statistics streams are taken to be fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, pairwise

from headgate.model.time import SECOND
from headgate.optimize.optimize import OptimizedPlan
from headgate.physical.fragments import fragment
from headgate.physical.graph import OperatorGraph
from headgate.physical.partial_aggregation import condensed, merger
from headgate.physical.partition import Routes, Volume, leaves_of, route
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
    TableScan,
    Window,
)
from headgate.plan.panes import common_slide

_MOST_CUTS = 3
_MOST_CANDIDATES = 12
_EXCHANGE = 0.3
"""Seconds that an exchange adds to a micro-batch."""
_SENT, _RECEIVED = 0.8e-6, 0.6e-6
"""Seconds that a row costs the shard that sends it and the one that receives it."""
_CONDENSED = 0.5e-6
"""Seconds to add a row up with others before it is sent."""
_FAST = 200_000.0
"""Rows per second of a stream of which nothing is known, relative to what estimates assume."""
_WORK = {
    Join: 1.0e-6,
    SemiJoin: 1.5e-6,
    Negation: 1.5e-6,
    Difference: 1.5e-6,
    Distinct: 1.0e-6,
    Aggregate: 1.0e-6,
    TableJoin: 0.3e-6,
    Window: 0.1e-6,
    Emit: 0.5e-6,
}
"""Seconds of work for each row that comes or goes."""
_HEAVY = (Join, SemiJoin, Negation, Difference)
_WIDTH = 8.0


@dataclass(frozen=True)
class StagePlan:
    """A stage: the nodes whose rows leave it, those whose rows enter it from the stage before, and its routes."""

    roots: tuple[Node, ...]
    entering: tuple[Node, ...]
    routes: Routes

    @property
    def leaves(self) -> list[Node]:
        return leaves_of(self.roots, self.entering)


@dataclass(frozen=True)
class StagedPlan:
    """A plan in stages: the graph that they share, the stages, and the nodes whose rows are condensed on the way."""

    graph: OperatorGraph
    stages: tuple[StagePlan, ...]
    condensed: frozenset[Node] = frozenset()


def cut(graph: OperatorGraph, facts: OptimizedPlan, shards: int) -> StagedPlan:
    """The cheapest stages of a lowered plan for up to so many shards."""
    found = ways(graph, facts, shards)
    uncut = next(found)
    routes = uncut.stages[0].routes
    if len(routes.shares) == 1 and routes.shards == shards:
        return uncut
    sensible = (each for each in found if _is_sensible(each.stages))
    return min((uncut, *sensible), key=lambda each: (_cost(each, facts), len(each.stages)))


def _is_sensible(stages: Sequence[StagePlan]) -> bool:
    """Whether every exchange makes many shards of one only for heavy work, and never one of one."""
    for before, after in pairwise(stages):
        heavy = any(isinstance(node, _HEAVY) for node in _inside(after))
        if before.routes.shards == 1 and (after.routes.shards == 1 or not heavy):
            return False
    return True


def ways(graph: OperatorGraph, facts: OptimizedPlan, shards: int) -> Iterator[StagedPlan]:
    """All stages that some cuts give, uncut first; every one of them answers the same."""
    for cuts in ((), *_subsets(_candidates(facts.plan, graph))):
        stages = _stages(graph, facts, cuts, shards)
        if stages is None:
            continue
        mergeable = [
            node
            for before, after in pairwise(stages)
            for node in before.roots
            if node not in after.roots and merger(graph, node) is not None
        ]
        if mergeable:
            yield StagedPlan(condensed(graph, mergeable), stages, frozenset(mergeable))
        yield StagedPlan(graph, stages)


def _subsets(nodes: Sequence[Node]) -> Iterator[tuple[Node, ...]]:
    sizes = range(1, min(_MOST_CUTS, len(nodes)) + 1)
    return chain.from_iterable(combinations(nodes, size) for size in sizes)


def _candidates(plan: Emit, graph: OperatorGraph) -> list[Node]:
    """Nodes below an operator that wants its rows together."""
    nodes = list(plan.walk())
    if len(set(nodes)) < len(nodes):
        return []
    demanding = (Join, SemiJoin, Negation, Difference, Distinct, Aggregate, Emit, Window)
    found = [
        below
        for node in nodes
        if isinstance(node, demanding)
        for below in node.inputs
        if below in graph.places and _moves(below) and not isinstance(below, StreamScan)
    ]
    return found[:_MOST_CANDIDATES]


def _moves(node: Node) -> bool:
    return any(isinstance(each, StreamScan) for each in node.walk())


# -- levels ----------------------------------------------------------------------------------------


def _stages(
    graph: OperatorGraph, facts: OptimizedPlan, cuts: Sequence[Node], shards: int
) -> tuple[StagePlan, ...] | None:
    """The stages that some cuts make; None if an operator would read what does not reach it."""
    plan = facts.plan
    levels = _levels(plan, frozenset(cuts))
    last = levels[plan]
    leaving: list[set[Node]] = [set() for _ in range(last)]
    for node in plan.walk():
        for below in node.inputs:
            for level in range(levels[below], levels[node]):
                leaving[level - 1].add(below)
    leaving[-1] = {plan}
    if any(node not in graph.places for nodes in leaving[:-1] for node in nodes):
        return None
    stages: list[StagePlan] = []
    volumes = _volumes(facts)
    entering: tuple[Node, ...] = ()
    for nodes in leaving:
        roots = tuple(sorted(nodes, key=lambda node: graph.places.get(node, len(graph.steps))))
        promises = () if stages else graph.promises
        routes = route(roots, facts.edges, shards, volumes, promises, entering, sooner=graph.sooner)
        stages.append(StagePlan(roots, entering, routes))
        entering = roots
    for number, stage in enumerate(stages):
        if fragment(graph, stage.roots, stage.entering, first=number == 0) is None:
            return None
    return tuple(stages) if _keeps_order(stages) else None


def _levels(plan: Emit, cuts: frozenset[Node]) -> dict[Node, int]:
    """The number of the stage of every node; rows of tables are wherever they are read."""
    levels: dict[Node, int] = {}

    def rise(node: Node) -> int:
        below = [rise(each) + (each in cuts) for each in node.inputs if _moves(each)]
        levels[node] = max(below, default=1)
        return levels[node]

    def settle(node: Node, level: int) -> None:
        """Puts a table beside its reader."""
        levels[node] = level
        for each in node.inputs:
            settle(each, level)

    def place(node: Node) -> None:
        for each in node.inputs:
            if _moves(each):
                place(each)
            else:
                settle(each, levels[node])

    rise(plan)
    place(plan)
    return levels


def _keeps_order(stages: Sequence[StagePlan]) -> bool:
    """Whether rows that are counted as they come have not passed through several shards before."""
    for number, stage in enumerate(stages):
        counting = any(_counts_rows(node) for node in _inside(stage))
        if counting and any(before.routes.shards > 1 for before in stages[:number]):
            return False
    return True


def _counts_rows(node: Node) -> bool:
    window = node.window if isinstance(node, (Window, Emit)) else None
    return window is not None and window.kind == "ROWS"


# -- cost ------------------------------------------------------------------------------------------


def _volumes(facts: OptimizedPlan) -> dict[Node, Volume]:
    """Bytes per second and distinct values of every edge."""
    return {
        node: Volume(max(edge.rate + edge.endings, 1e-9) * _WIDTH * len(node.schema), edge.distinct)
        for node, edge in facts.estimates.edges.items()
    }


def _cost(plan: StagedPlan, facts: OptimizedPlan) -> float:
    """Seconds of work for a second of the streams, if every stage's shards work at once."""
    edges = facts.estimates.edges
    scale = 1.0 if facts.estimates.measured else _FAST

    def rows(node: Node) -> float:
        found = scale * (edges[node].rate + edges[node].endings)
        return min(found, 2 * _ticks(node, facts)) if isinstance(node, Aggregate) else found

    def sent(node: Node) -> float:
        return min(rows(node), _panes(node, facts)) if node in plan.condensed else rows(node)

    cost = _EXCHANGE * (len(plan.stages) - 1)
    for stage in plan.stages:
        work = sum(_CONDENSED * rows(root) for root in stage.roots if root in plan.condensed)
        for node in _inside(stage):
            below = sum(sent(each) if each in stage.entering else rows(each) for each in node.inputs)
            work += _WORK.get(type(node), 0.05e-6) * (rows(node) + below)
        work += sum(
            _RECEIVED * (sent(leaf) if leaf in stage.entering else rows(leaf)) * _copies(stage.routes, number)
            for number, leaf in enumerate(stage.leaves)
            if not isinstance(leaf, TableScan)
        )
        work += sum(_SENT * sent(root) for root in stage.roots if root is not facts.plan)
        cost += work / stage.routes.shards
    return cost


def _panes(node: Node, facts: OptimizedPlan) -> float:
    """Rows per second that are left of a node's when those of a group that live and die together are one."""
    [reader] = [each for each in facts.plan.walk() if node in each.inputs]
    return _ticks(reader, facts)


def _ticks(aggregate: Node, facts: OptimizedPlan) -> float:
    """How often per second groups can change if windows slide."""
    slide = common_slide(aggregate)
    return float("inf") if slide is None else facts.estimates.edges[aggregate].rows * SECOND / slide


def _copies(routes: Routes, leaf: int) -> int:
    found = 1
    for share, columns in zip(routes.shares, routes.columns[leaf], strict=True):
        found *= 1 if columns else share
    return found


def _inside(stage: StagePlan) -> Iterator[Node]:
    """The nodes that a stage computes."""
    pending = list(stage.roots)
    while pending:
        node = pending.pop()
        if node not in stage.entering and not isinstance(node, (StreamScan, TableScan)):
            yield node
            pending += node.inputs
