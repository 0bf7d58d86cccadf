"""The optimizer: rules in one visible order, then alternatives compared by cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from headgate.optimize.cost import Cost, plan_cost
from headgate.optimize.estimate import Estimates, estimate
from headgate.optimize.rules.drop_contradictions import drop_contradictions
from headgate.optimize.rules.drop_covered import drop_covered
from headgate.optimize.rules.drop_distinct import drop_distinct
from headgate.optimize.rules.group_by_time_span import group_by_time_span
from headgate.optimize.rules.move_negation import move_negation
from headgate.optimize.rules.prune_columns import prune_columns
from headgate.optimize.rules.push_distinct import push_distinct
from headgate.optimize.rules.push_filters import push_filters
from headgate.optimize.rules.reduce_by_table import reduce_by_table
from headgate.optimize.rules.remember_values import remember_values
from headgate.optimize.state import StateChoice, choose_state
from headgate.optimize.statistics import Statistics
from headgate.plan.nodes import Emit, Node
from headgate.plan.patterns import Edges, label
from headgate.safety.examine import Judgement, examine

RULES: tuple[Callable[[Node], Node], ...] = (
    drop_covered,
    push_filters,
    drop_contradictions,
    drop_distinct,
    group_by_time_span,
    prune_columns,
)
"""Applied once each, in this order; none of them ever makes a plan worse."""

ALTERNATIVES: tuple[Callable[[Node], Iterator[Node]], ...] = (
    move_negation,
    push_distinct,
    remember_values,
    reduce_by_table,
)
"""Each yields plans that answer the same and may be cheaper or dearer: cost decides."""

MOST_ALTERNATIVES = 32


@dataclass(frozen=True)
class OptimizedPlan:
    """A plan with all that is known about it: edges, estimates, states and cost."""

    plan: Emit
    edges: Edges
    estimates: Estimates
    states: Mapping[Node, StateChoice]
    cost: Cost


@dataclass(frozen=True)
class Optimized:
    """The plan to run, the gate's judgement on it, and every plan that was compared: it first, then the cheapest."""

    best: OptimizedPlan
    compared: tuple[OptimizedPlan, ...]
    judgement: Judgement


def optimize(plan: Emit, statistics: Statistics, name: str = "") -> Optimized:
    """The cheapest plan that answers the same, with the alternatives it was compared with.

    Plans whose state is bounded come before those whose state is not, whatever they cost.
    """
    candidates = [evaluate(each, statistics) for each in alternatives(plan)]
    ranked = sorted(candidates, key=lambda each: each.cost.total)
    best, judgement = ranked[0], examine(name, ranked[0].plan, ranked[0].edges)
    for each in ranked[1:] if not judgement.verdict.admitted else ():
        found = examine(name, each.plan, each.edges)
        if found.verdict.admitted:
            best, judgement = each, found
            break
    return Optimized(best, (best, *(each for each in ranked if each is not best)), judgement)


def is_bounded(plan: Emit) -> bool:
    """Whether the optimized plan is admitted: some alternative is. No cost is needed to say that."""
    return any(examine("", each).verdict.admitted for each in alternatives(plan))


def apply_rules(plan: Emit) -> Emit:
    """The plan after all rules."""
    node: Node = plan.input
    for rule in RULES:
        node = rule(node)
    return replace(plan, input=node)


def alternatives(plan: Emit) -> list[Emit]:
    """The plan itself and what the alternatives make of it, after all rules, up to a limit, without repeats.

    Alternatives start from the normal form: rules put projections between the operators that they look at.
    """
    reached = [plan]
    ruled = [apply_rules(plan)]
    seen = {_shape(ruled[0])}
    for each in reached:
        for alternative in ALTERNATIVES:
            for changed in alternative(each.input):
                candidate = replace(each, input=changed)
                after = apply_rules(candidate)
                shape = _shape(after)
                if shape not in seen and len(ruled) < MOST_ALTERNATIVES:
                    seen.add(shape)
                    reached.append(candidate)
                    ruled.append(after)
    return ruled


def evaluate(plan: Emit, statistics: Statistics) -> OptimizedPlan:
    """All facts about one plan."""
    edges = label(plan)
    estimates = estimate(plan, statistics)
    states = choose_state(plan, edges, estimates)
    return OptimizedPlan(plan, edges, estimates, states, plan_cost(plan, estimates, states))


def _shape(node: Node) -> str:
    """A plan's structure as text, to recognize plans that were reached twice."""
    parts = ",".join(_shape(each) for each in node.inputs)
    return f"{type(node).__name__}[{','.join(sorted(node.names))}]({parts})"
