"""Group states: the verdict on what DISTINCT and aggregates keep: groups, values of groups, and rows behind them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.plan.nodes import Aggregate, AggregateCall, Distinct, Filter, Node, Project
from headgate.plan.patterns import Edges, Pattern
from headgate.safety.boundedness import EdgeBounds, by_values, groups_of
from headgate.safety.cause import Cause, of_promises
from headgate.safety.edge_state import edge_state, state_of, stream_of
from headgate.safety.reasons.deaths import announces_deaths
from headgate.safety.reasons.group_closing import GroupClosing, close_counted, close_groups
from headgate.safety.reasons.time.closing import close_by_clock
from headgate.safety.state_plan import StatePlan
from headgate.safety.verdict import StateVerdict


@dataclass(frozen=True)
class GroupStates:
    """Judges the states of DISTINCT and aggregates, and notes how they are kept within their bounds."""

    edges: Edges
    extents: EdgeBounds
    methods: StatePlan

    def distinct(self, node: Distinct) -> StateVerdict:
        if self.extents[node].bounded:
            return edge_state(self.extents, self.methods, "distinct", node)
        clock = self._clock("distinct", node)
        if clock is not None:
            return clock
        closing = close_groups(node, self.edges)
        if closing is None:
            return edge_state(self.extents, self.methods, "distinct", node)
        self.methods.groups[node] = closing
        return StateVerdict("distinct", stream_of(node), closing.cause, closing.reason, closing.assumes)

    def aggregate(self, node: Aggregate) -> Iterator[StateVerdict]:
        groups = groups_of(node, self.extents[node.input])
        rows = self._keeps_rows(node)
        if groups.bounded and (not rows or self.extents[node.input].bounded):
            yield state_of(self.methods, "aggregate", node, groups)
            if rows:
                yield edge_state(self.extents, self.methods, "aggregate", node.input)
            return
        clock = self._clock("aggregate", node)
        if clock is not None:
            yield clock
            return
        closing = close_groups(node, self.edges)
        if closing is not None:
            self.methods.groups[node] = closing
            yield StateVerdict("aggregate", stream_of(node), closing.cause, closing.reason, closing.assumes)
            return
        yield state_of(self.methods, "aggregate", node, groups)
        if rows:
            found = self._rows_by_values(node) or self._counted(node) or self._settled(node)
            yield found or edge_state(self.extents, self.methods, "aggregate", node.input)

    def _clock(self, operator: str, node: Aggregate | Distinct) -> StateVerdict | None:
        """The verdict on groups or values that time closes, if it does."""
        found = close_by_clock(node, self.edges)
        if found is None:
            return None
        self.methods.clocks[node] = found
        self.methods.checks.update(found.checks)
        return StateVerdict(operator, stream_of(node), Cause.TIME, found.reason)

    def _rows_by_values(self, node: Aggregate) -> StateVerdict | None:
        """The verdict on the values that calls need, where they are few."""
        if max(self.edges[node.input].pattern, self.edges[node.input].expiry) != Pattern.MON:
            return None
        needed = [name for call in node.calls if call.needs_values for name in call.arguments]
        found = by_values(node.input, tuple(dict.fromkeys((*node.keys, *needed))), "values to count")
        if found is None:
            return None
        self.methods.checks.update(found.checks)
        return StateVerdict("aggregate", stream_of(node.input), found.by, found.reason, found.assumes)

    def _counted(self, node: Aggregate) -> StateVerdict | None:
        """The verdict on the values that calls count once each, where these are closed."""
        found: dict[str, GroupClosing] = {}
        for call in node.calls:
            argument = call.argument
            if argument is None or not self._needs_values(node, call):
                continue
            closing = close_counted(node, argument, self.edges) if call.distinct else None
            if closing is None:
                return None
            found[argument] = closing
        if not found:
            return None
        self.methods.counted[node] = found
        cause = of_promises(closing.cause for closing in found.values())
        reason = ", ".join(dict.fromkeys(closing.reason for closing in found.values()))
        assumes = tuple(dict.fromkeys(each for closing in found.values() for each in closing.assumes))
        return StateVerdict("aggregate", stream_of(node.input), cause, reason, assumes)

    def _settled(self, node: Aggregate) -> StateVerdict | None:
        """The verdict on the values of MIN and MAX over the groups of another aggregate, where these are closed."""
        below = node.input
        while isinstance(below, (Filter, Project)):
            below = below.input
        if not isinstance(below, Aggregate) or any(call.needs_values for call in node.calls):
            return None
        closing = close_groups(below, self.edges)
        if closing is None:
            return None
        self.methods.settled[node] = (below, closing)
        reason = f"of the values of closed groups only the extreme ones are kept; {closing.reason}"
        return StateVerdict("aggregate", stream_of(below), closing.cause, reason, closing.assumes)

    def _keeps_rows(self, node: Aggregate) -> bool:
        """Whether an aggregate needs more than one accumulator per group."""
        edge = self.edges[node.input]
        if max(edge.pattern, edge.expiry) != Pattern.MON and not self._only_ends(node.input):
            return True
        return any(self._needs_values(node, call) for call in node.calls)

    def _needs_values(self, node: Aggregate, call: AggregateCall) -> bool:
        """Whether a call needs the single values; an extreme does where a value may end before its time."""
        ends = self.edges[node.input].pattern == Pattern.STR
        return call.needs_values or (ends and call.function.is_extreme)

    def _only_ends(self, node: Node) -> bool:
        """Whether rows of an edge that nothing bounds live until an ending comes: no death of them is remembered."""
        if self.extents[node].bounded or self.edges[node].pattern != Pattern.STR:
            return False
        return not announces_deaths(node, self.edges)
