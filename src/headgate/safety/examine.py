"""Examine: the verdict on every state of a plan, and the state plan by which operators stay within it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

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
    Window,
)
from headgate.plan.patterns import Edges, Pattern, asks_once, label
from headgate.safety.advice.rstream_repeats import rstream_repeats
from headgate.safety.assumption import FEW, Assumption, all_streams_go_on, few_values_come
from headgate.safety.boundedness import EdgeBounds, Retained, measure
from headgate.safety.cause import Cause
from headgate.safety.edge_state import edge_state, stream_of
from headgate.safety.reasons.deaths import announces_deaths, is_aggregate
from headgate.safety.reasons.early_purge import EarlyChain, analyze_early_purge
from headgate.safety.reasons.existence_closing import ExistencePurge, close_existence
from headgate.safety.reasons.finite_memory import FiniteMemoryPlan, judge_join
from headgate.safety.reasons.group_closing import close_copies
from headgate.safety.reasons.group_states import GroupStates
from headgate.safety.reasons.purge_analysis import JoinPurge, analyze_purge
from headgate.safety.reasons.time.retention import Retention, retentions
from headgate.safety.reasons.value_limit import value_limit
from headgate.safety.state_plan import StatePlan
from headgate.safety.verdict import StateVerdict, Verdict


@dataclass(frozen=True)
class Judgement:
    """The verdict on a plan, and how its states are kept within it."""

    plan: Emit
    verdict: Verdict
    state_plan: StatePlan


def examine(query: str, plan: Emit, edges: Edges | None = None) -> Judgement:
    """The verdict on every state of a normalized plan, and the state plan that it counts on."""
    edges = label(plan) if edges is None else edges
    nodes = list(plan.walk())
    purges = {node: analyze_purge(node, edges) for node in nodes if isinstance(node, Join)}
    matching = {
        node: close_existence(node, edges) for node in nodes if isinstance(node, (SemiJoin, Negation))
    }
    retained: Retained = {node: retentions(node, edges) for node in (*purges, *matching)}
    edge_bounds = measure(plan, edges, purges, matching, retained)
    judge_ = _Judge(edges, edge_bounds, purges, matching, retained, dict(_consumers(plan)))
    states = [state for node in plan.walk() for state in judge_.states(node)]
    verdict = Verdict(query, tuple(states), shape_of(plan), _waits(plan), warnings=rstream_repeats(plan))
    return Judgement(plan, verdict, judge_.state_plan)


@dataclass(frozen=True)
class _Judge:
    edges: Edges
    edge_bounds: EdgeBounds
    purges: Mapping[Join, JoinPurge]
    matching: Mapping[SemiJoin | Negation, ExistencePurge]
    retained: Retained
    consumers: Mapping[Join, tuple[Node | None, Node]]
    state_plan: StatePlan = field(default_factory=StatePlan)

    @cached_property
    def _groups(self) -> GroupStates:
        return GroupStates(self.edges, self.edge_bounds, self.state_plan)

    def states(self, node: Node) -> Iterator[StateVerdict]:
        """The verdict on each state of one operator."""
        match node:
            case Join():
                yield from self._join(node)
            case TableJoin():
                if not asks_once(node):
                    yield edge_state(self.edge_bounds, self.state_plan, "join", node.left)
                yield edge_state(self.edge_bounds, self.state_plan, "join", node.right)
            case SemiJoin() | Negation() if asks_once(node):
                yield edge_state(
                    self.edge_bounds,
                    self.state_plan,
                    "semijoin" if isinstance(node, SemiJoin) else "negation",
                    node.right,
                )
            case SemiJoin() | Negation():
                yield from self._existence(node)
            case Difference():
                yield from self._difference(node)
            case Distinct():
                yield self._groups.distinct(node)
            case Aggregate():
                yield from self._groups.aggregate(node)
            case Window() if node.window.kind == "ROWS":
                yield edge_state(self.edge_bounds, self.state_plan, "window", node)
            case Emit(kind="RSTREAM") if self.edges[node.input].internal:
                reason = "rows of INTERNAL windows stay in the answer, and RSTREAM lists all of it again"
                yield StateVerdict("rstream", stream_of(node), Cause.NONE, reason)
            case Emit() if self._keeps_answer(node):
                yield edge_state(self.edge_bounds, self.state_plan, node.kind.lower(), node.input)

    def _join(self, node: Join) -> Iterator[StateVerdict]:
        purge, retained = self.purges[node], self._retained(node)
        open_members = [
            n
            for n, each in enumerate(node.members)
            if n not in retained and not self.edge_bounds[each].bounded
        ]
        failure = ""
        if any(number not in purge.chains for number in open_members):
            found = judge_join(node, *self.consumers[node])
            if found.method is not None:
                self.state_plan.values[node] = found.method
                self.state_plan.checks.update(found.method.translated.checks)
                yield from self._synopses(node, found.method)
                return
            failure = found.reason
        if retained:
            self.state_plan.retained[node] = retained
            if self._ends_rows(node):
                yield edge_state(self.edge_bounds, self.state_plan, "results", node)
        early = None if retained else analyze_early_purge(node, self.edges)
        sooner = {} if early is None else {chain.member: chain for chain in early.chains}
        if early is not None:
            self.state_plan.early[node] = early
        for number, member in enumerate(node.members):
            chain = purge.chains.get(number)
            if self.edge_bounds[member].bounded:
                state = edge_state(self.edge_bounds, self.state_plan, "join", member)
                yield _dropped_sooner(state, sooner[number]) if number in sooner else state
            elif number in retained:
                yield self._timed("join", member, retained[number])
            elif chain is not None:
                yield StateVerdict("join", stream_of(member), chain.cause, chain.reason, chain.assumes)
            else:
                reasons = [self.edge_bounds[member].reason, purge.stuck.get(number, ""), failure]
                said = "; ".join(reason for reason in reasons if reason)
                yield StateVerdict("join", stream_of(member), Cause.NONE, said)
        if any(number in purge.chains for number in open_members):
            self.state_plan.joins[node] = purge.only(open_members)
            yield from _closed_values(node.members, purge)

    def _existence(self, node: SemiJoin | Negation) -> Iterator[StateVerdict]:
        name = "semijoin" if isinstance(node, SemiJoin) else "negation"
        found = self.matching[node]
        chains, stuck, retained = found.purge.chains, found.purge.stuck, self._retained(node)
        open_sides = [
            number
            for number, each in enumerate(node.inputs)
            if number not in retained and not self.edge_bounds[each].bounded
        ]
        if retained:
            self.state_plan.retained[node] = retained
        for number, side in enumerate(node.inputs):
            if number in retained:
                yield self._timed(name, side, retained[number])
            elif number not in open_sides:
                yield edge_state(self.edge_bounds, self.state_plan, name, side)
            elif number in chains:
                chain = chains[number]
                yield StateVerdict(name, stream_of(side), chain.cause, chain.reason, chain.assumes)
            else:
                said = "; ".join(
                    part for part in (self.edge_bounds[side].reason, stuck.get(number, "")) if part
                )
                yield StateVerdict(name, stream_of(side), Cause.NONE, said)
        if any(number in chains for number in open_sides):
            self.state_plan.existence[node] = replace(found, purge=found.purge.only(open_sides))
            yield from _closed_values(node.inputs, found.purge)

    def _timed(self, operator: str, node: Node, retention: Retention) -> StateVerdict:
        self.state_plan.checks.update(retention.checks)
        return StateVerdict(operator, stream_of(node), Cause.TIME, retention.reason)

    def _retained(self, node: Join | SemiJoin | Negation) -> Mapping[int, Retention]:
        """The inputs without a bound that time lets go.

        None of them where another input can end rows, unless it is a join whose results have a bound: it remembers
        them then, to be ended.
        """
        ends = self._ends_rows(node) and not (isinstance(node, Join) and self.edge_bounds[node].bounded)
        found = self.retained[node]
        return {
            n: each for n, each in found.items() if not ends and not self.edge_bounds[node.inputs[n]].bounded
        }

    def _ends_rows(self, node: Node) -> bool:
        """Whether rows of an input can end before their time."""
        edges = [self.edges[each] for each in node.inputs]
        return any(max(edge.pattern, edge.expiry) == Pattern.STR for edge in edges)

    def _synopses(self, node: Join, method: FiniteMemoryPlan) -> Iterator[StateVerdict]:
        how = {
            "counted": "of rows that are equal for every result, one and their number are kept",
            "summed": "of rows that are equal for every result, one, their number and their sums are kept",
            "representatives": "of rows that are alike for every result, the one that meets most is kept",
        }[method.form]
        for number, member in enumerate(node.members):
            name, size = stream_of(member), self._kept_rows(member, number, method)
            rows = "one row stands" if size == 1 else f"at most {size:,} rows stand"
            reason = f"{rows} for all of {name}: {how}"
            columns = tuple(str(cut.attribute) for cut in method.synopses[number].cuts)
            assumes = () if size <= FEW else (few_values_come(columns, size),)
            yield StateVerdict("join", name, Cause.VALUES, reason, assumes)

    def _kept_rows(self, member: Node, number: int, method: FiniteMemoryPlan) -> int:
        """How many rows stand for a member: as many as there are buckets, or fewer if few values come to it."""
        size = method.size(number)
        scalars = [method.expressions[each] for each in method.synopses[number].attributes]
        columns = tuple(each.expression.name for each in scalars if each.is_column)
        if size <= FEW or len(columns) < len(scalars):
            return size
        found = value_limit(member, columns)
        if found is None or found.tables or found.checks:
            return size
        return min(
            size, found.count * (1 if method.form != "representatives" else max(2, len(method.extremes)))
        )

    def _difference(self, node: Difference) -> Iterator[StateVerdict]:
        open_ = any(not self.edge_bounds[each].bounded for each in node.inputs)
        closing = close_copies(node, self.edges) if open_ else None
        if closing is not None:
            self.state_plan.groups[node] = closing
        for each in node.inputs:
            if closing is None:
                yield edge_state(self.edge_bounds, self.state_plan, "negation", each)
            else:
                reason, assumes = closing.reason, closing.assumes
                yield StateVerdict("negation", stream_of(each), closing.cause, reason, assumes)

    def _keeps_answer(self, node: Emit) -> bool:
        """Whether the rows of an answer are remembered: all of them, or those whose death was announced."""
        if node.kind == "WSTREAM":
            return False
        if node.kind == "RSTREAM":
            return True
        if self.edges[node.input].pattern == Pattern.MON or is_aggregate(node.input):
            return False
        return announces_deaths(node.input, self.edges)


def _dropped_sooner(state: StateVerdict, chain: EarlyChain) -> StateVerdict:
    """The verdict on a state of a window's rows that are dropped before they die."""
    assumes = tuple(dict.fromkeys((*state.assumes, *chain.observed)))
    return replace(state, reason=f"{state.reason}; {chain.reason}", assumes=assumes)


def _waits(plan: Emit) -> tuple[Assumption, ...]:
    """What must stay true for rows not to wait for ever before the first operator.

    Rows wait until every stream has come to their time, for the answer at an instant needs the rows of all.
    """
    scans = [node for node in plan.walk() if isinstance(node, StreamScan)]
    names = tuple(dict.fromkeys(scan.stream.name for scan in scans))
    return (all_streams_go_on(names),) if len(names) > 1 else ()


def _consumers(plan: Emit) -> Iterator[tuple[Join, tuple[Node | None, Node]]]:
    """For each join, what reads its block and the top of the block: filters and projections above the join."""
    parents = {child: node for node in plan.walk() for child in node.inputs}
    for node in plan.walk():
        if isinstance(node, Join):
            top: Node = node
            while isinstance(parents[top], (Filter, Project)):
                top = parents[top]
            yield node, (parents[top], top)


def _closed_values(inputs: Sequence[Node], purge: JoinPurge) -> Iterator[StateVerdict]:
    """The verdicts on the closed values that an operator remembers."""
    for rule in purge.punctuation_purges:
        closing = purge.closings[rule.closing]
        name = stream_of(inputs[closing.member])
        yield StateVerdict("punctuations", name, closing.promise.cause, rule.reason, rule.assumes)


def shape_of(plan: Emit) -> str:
    """How the plan joins: `mjoin`, all inputs of a join at once; `tree`, joins over joins; `single`, not at all."""
    joins = [node for node in plan.walk() if isinstance(node, (Join, TableJoin))]
    if not joins:
        return "single"
    return "mjoin" if len(joins) == 1 else "tree"
