"""How rows die on each edge of a plan under a strategy, and the structure that keeps them in the state."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Literal

from headgate.kernels.state.structure import Structure
from headgate.kernels.window.time_window import Announce
from headgate.optimize.optimize import OptimizedPlan
from headgate.plan.nodes import Negation, Node, SemiJoin, TableJoin, Window
from headgate.plan.patterns import Edge, Pattern, table_asked_at_birth
from headgate.safety.state_plan import StatePlan

Strategy = Literal["UPA", "NT", "DIRECT"]
"""UPA follows update patterns; NT sends every death as an ending; DIRECT scans its state for deaths."""

STRUCTURES = {
    Pattern.MON: Structure.RUNS,
    Pattern.WKS: Structure.RUNS,
    Pattern.WK: Structure.CALENDAR,
    Pattern.STR: Structure.ENDINGS,
}


class Edges:
    """The optimizer's update patterns, with what a strategy and the gate's state plan change about them."""

    def __init__(self, facts: OptimizedPlan, strategy: Strategy, state_plan: StatePlan) -> None:
        self.facts = facts
        self.strategy = strategy
        self.state_plan = state_plan
        self._replaced: set[Node] = set()

    def of(self, node: Node) -> Edge:
        """What the optimizer found about a node's output."""
        return self.facts.edges[node]

    def replace_rows_on(self, nodes: Iterable[Node]) -> None:
        """Notes that representatives take each other's place on these edges, so that rows may end at any time."""
        self._replaced.update(nodes)

    def pattern(self, node: Node) -> Pattern:
        """How the rows of a node die, as its reader sees it."""
        if node in self._replaced:
            return Pattern.STR
        edge = self.of(node)
        pattern = max(edge.pattern, edge.expiry)
        if self._sends_endings(node) and pattern != Pattern.MON:
            return Pattern.STR
        return pattern

    def announce(self, node: Window) -> Announce:
        """How a window tells of deaths: at the birth, or when they come."""
        return "endings" if self._sends_endings(node) and node.window.kind != "UNBOUNDED" else "deaths"

    def structure(self, node: Node) -> Structure:
        """What keeps a node's rows in the state of its reader."""
        pattern = self.pattern(node)
        if self.strategy == "DIRECT" and pattern in (Pattern.WKS, Pattern.WK):
            return Structure.SCAN
        return STRUCTURES[pattern]

    @cached_property
    def _announced(self) -> frozenset[Node]:
        """Where NT announces deaths after all.

        An ending cannot be followed through a non-retroactive table that changes, nor find rows that were forgotten.
        """
        forgetful = {
            *self.state_plan.joins,
            *self.state_plan.early,
            *self.state_plan.existence,
            *self.state_plan.retained,
        }
        found = [
            each
            for each in self.facts.plan.walk()
            if each in forgetful
            or (isinstance(each, (TableJoin, SemiJoin, Negation)) and table_asked_at_birth(each) is not None)
        ]
        return frozenset(node for each in found for node in each.walk())

    def _sends_endings(self, node: Node) -> bool:
        return self.strategy == "NT" and node not in self._announced
