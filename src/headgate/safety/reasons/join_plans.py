"""JoinPlans: what the Punctuation document says of a join that forgets by promise.

Which plans are safe (sections 4.1.2 and 5.2), the cheapest of them, which promises are needed and which are of no
use, and when the promises themselves are forgotten (5.1). The engine runs one join of all inputs at once, which is
safe whenever any plan is (Theorems 2 and 4); a tree would also have to keep partial results.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

from headgate.plan.nodes import Emit, Join
from headgate.plan.patterns import Edges, label
from headgate.safety.promise import Promise, promises_of
from headgate.safety.reasons.purge_analysis import JoinPurge, PunctuationPurge, PurgeAnalysis
from headgate.safety.state_plan import StatePlan
from headgate.safety.theory.punctuation import plans
from headgate.safety.theory.punctuation.plans import Cost, every_plan, survey, unsafe_joins
from headgate.safety.theory.punctuation.query import Scheme
from headgate.safety.theory.punctuation.schemes import SchemeSets, smallest_sets

_MOST_LISTED = 4
"""Inputs of a join of which every plan is listed with its verdict."""
_MOST_SURVEYED = 5
"""Inputs of which plans with joins of any width are counted and priced."""
_MOST_FOR_TREES = 7
"""Inputs of which trees of two-way joins are."""
_MOST_FOR_SETS = 6
"""Inputs for which all smallest sets of promises are looked for; for more, one."""
_MOST_SETS = 8
_MOST_SHOWN = 3

JoinCost = Callable[[Join], Cost]
"""For a join, what a join of some of its inputs costs."""


@dataclass(frozen=True)
class PlanVerdict:
    """One plan of a join; `unsafe` says for each of its joins that cannot forget which inputs stay."""

    plan: str
    unsafe: tuple[str, ...]

    @property
    def safe(self) -> bool:
        return not self.unsafe

    def as_dict(self) -> dict[str, Any]:
        return {"plan": self.plan, "safe": self.safe, "unsafe": list(self.unsafe)}


@dataclass(frozen=True)
class Remembered:
    """How long closed values of a promise stay: for good as far as counted, or until the reason holds."""

    promise: str
    lifespan: int | None
    """So many are kept that nothing needs; None if others say when they can go."""
    reason: str

    def as_dict(self) -> dict[str, Any]:
        return {"promise": self.promise, "lifespan": self.lifespan, "reason": self.reason}


@dataclass(frozen=True)
class JoinPlans:
    """One join: its plans, the promises it needs and those it does not, and when they are forgotten."""

    inputs: tuple[str, ...]
    windowed: tuple[str, ...]
    trees: tuple[int, int] | None
    """Trees of two-way joins: how many are safe, and how many there are; None if that was not looked at."""
    plans: tuple[int, int] | None
    """The same of plans whose joins may be of any width."""
    listed: tuple[PlanVerdict, ...]
    cheapest: str | None
    cheapest_cost: float | None
    needed: tuple[tuple[str, ...], ...]
    """Sets of promises, each enough; none can be left out of a set."""
    all_sets: bool
    """Whether these are all such sets."""
    useless: tuple[str, ...]
    remembered: tuple[Remembered, ...]

    def as_dict(self) -> dict[str, Any]:
        counts = {
            name: None if found is None else {"safe": found[0], "of": found[1]}
            for name, found in (("trees", self.trees), ("plans", self.plans))
        }
        cheapest = None
        if self.cheapest is not None and self.cheapest_cost is not None:
            cheapest = {"plan": self.cheapest, "cost": round(self.cheapest_cost, 3)}
        return {
            "inputs": list(self.inputs),
            "windowed": list(self.windowed),
            "runs_as": "mjoin",
            **counts,
            "listed": [each.as_dict() for each in self.listed],
            "cheapest": cheapest,
            "needed": [list(each) for each in self.needed],
            "all_sets": self.all_sets,
            "useless": list(self.useless),
            "punctuations": [each.as_dict() for each in self.remembered],
        }

    @property
    def note(self) -> str:
        """Why the join runs as it does, in a sentence; empty if there is nothing to choose."""
        if len(self.inputs) < 3:
            return ""
        if self.windowed:
            return "all inputs are joined at once; trees are not compared where an input has a window"
        if self.trees is None:
            return f"all inputs are joined at once; of {len(self.inputs)} inputs, trees are not compared"
        safe, total = self.trees
        if not safe:
            return "no tree of two-way joins could forget; this join takes all its inputs at once"
        few = f"{safe:,} of the {total:,} trees of two-way joins could forget too"
        if self.cheapest is None:
            return f"all inputs are joined at once; {few}"
        flat = self.cheapest == f"({' ⋈ '.join(self.inputs)})"
        least = "this is the cheapest" if flat else f"the cheapest by cost would be {self.cheapest}"
        return f"all inputs are joined at once, as joins here always are; {few}, {least}"

    @property
    def needs(self) -> list[str]:
        """The smallest sets of promises, in words, a line each."""
        lines = [", ".join(each) for each in self.needed[:_MOST_SHOWN]]
        if len(self.needed) > 1 or not self.all_sets:
            lines = [f"{'either' if not number else 'or'} {line}" for number, line in enumerate(lines)]
        more = len(self.needed) - len(lines)
        if more or not self.all_sets:
            lines.append(f"or {f'{more} other sets' if more and self.all_sets else 'other sets'}")
        return lines


def join_plans(plan: Emit, state_plan: StatePlan, cost: JoinCost) -> tuple[JoinPlans, ...]:
    """What is to be said of every join of a plan that forgets by promise."""
    edges = label(plan)
    used = {closing.promise for each in state_plan.groups.values() for closing in each.closings}
    return tuple(
        _Survey(node, edges, purge, used, cost(node)).result
        for node, purge in state_plan.joins.items()
        if len(node.members) > 1
    )


@dataclass(frozen=True)
class _Survey:
    join: Join
    edges: Edges
    purge: JoinPurge
    used: Collection[Promise]
    """Promises that something else than the join needs."""
    cost: Cost

    @property
    def result(self) -> JoinPlans:
        analysis = PurgeAnalysis(self.join, self.edges)
        count = len(self.join.members)
        names = [analysis.shown(number) for number in range(count)]
        windowed = [name for number, name in enumerate(names) if str(number) not in analysis.open_inputs]
        sets = self._sets(analysis)
        trees = all_plans = cheapest = None
        listed: tuple[PlanVerdict, ...] = ()
        if count > 2 and not windowed and count <= _MOST_FOR_TREES:
            two = survey(analysis.query, self.cost, max_inputs=2)
            trees = (two.count, prod(range(1, 2 * count - 2, 2)))
            cheapest = two.cheapest
            flat = tuple(frozenset((name,)) for name in analysis.query.streams)
            at_once = plans.PricedPlan(
                plans.Join(tuple(map(plans.Leaf, analysis.query.streams))), self.cost(flat)
            )
            if count <= _MOST_SURVEYED:
                every = survey(analysis.query, self.cost)
                all_plans = (every.count, sum(1 for _ in every_plan(analysis.query.streams)))
                cheapest = every.cheapest
            elif cheapest is None or at_once.cost <= cheapest.cost:
                cheapest = at_once
        if count <= _MOST_LISTED and not windowed:
            listed = tuple(
                self._verdict(analysis, names, each) for each in every_plan(analysis.query.streams)
            )
        needed = tuple(tuple(self._said(analysis, each) for each in _in_order(found)) for found in sets.sets)
        return JoinPlans(
            tuple(names),
            tuple(windowed),
            trees,
            all_plans,
            listed,
            None if cheapest is None else _shown(cheapest.plan, names),
            None if cheapest is None else cheapest.cost,
            needed,
            sets.complete,
            self._useless(analysis, sets),
            tuple(self._remembered(analysis, each) for each in self.purge.punctuation_purges),
        )

    def _verdict(self, analysis: PurgeAnalysis, names: list[str], plan: plans.Plan) -> PlanVerdict:
        unsafe = []
        for each in unsafe_joins(analysis.query, plan):
            behind = dict(zip((_block(child) for child in each.join.inputs), each.join.inputs, strict=True))
            stuck = " and ".join(_shown(behind[found.stream], names) for found in each.stuck)
            unsafe.append(f"{_shown(each.join, names)} keeps the rows of {stuck} for good")
        return PlanVerdict(_shown(plan, names), tuple(unsafe))

    def _sets(self, analysis: PurgeAnalysis) -> SchemeSets:
        schemes = analysis.query.schemes
        if len(self.join.members) <= _MOST_FOR_SETS:
            return smallest_sets(schemes, analysis.suffices, _MOST_SETS)
        kept = list(schemes)
        for scheme in sorted(schemes, key=lambda scheme: -len(scheme.attributes)):
            without = [other for other in kept if other != scheme]
            if analysis.suffices(without):
                kept = without
        return SchemeSets((frozenset(kept),), complete=len(kept) == len(schemes))

    def _useless(self, analysis: PurgeAnalysis, sets: SchemeSets) -> tuple[str, ...]:
        """The declared promises that nothing in the query has a use for."""
        schemes: Iterable[Scheme] = [each for each in analysis.query.schemes if _is_joined(analysis, each)]
        if sets.complete:
            schemes = frozenset[Scheme]().union(*sets.sets)
        wanted = {analysis.promises[each][0] for each in schemes} | set(self.used)
        counters = {each for rule in self.purge.punctuation_purges for each, _ in rule.by}
        wanted |= {self.purge.closings[each].promise for each in counters}
        return tuple(
            dict.fromkeys(
                f"{analysis.shown(number)} {promise}"
                for number, behind in enumerate(analysis.lineages)
                if behind is not None
                for promise in promises_of(behind.scan.stream)
                if promise not in wanted
            )
        )

    def _said(self, analysis: PurgeAnalysis, scheme: Scheme) -> str:
        return f"{analysis.shown(int(scheme.stream))} {analysis.promises[scheme][0]}"

    def _remembered(self, analysis: PurgeAnalysis, rule: PunctuationPurge) -> Remembered:
        closing = self.purge.closings[rule.closing]
        name = f"{analysis.shown(closing.member)} {closing.promise}"
        return Remembered(name, rule.lifespan, rule.reason)


def _in_order(schemes: Iterable[Scheme]) -> list[Scheme]:
    return sorted(schemes, key=lambda scheme: (int(scheme.stream), sorted(scheme.attributes)))


def _is_joined(analysis: PurgeAnalysis, scheme: Scheme) -> bool:
    return all((scheme.stream, name) in analysis.query.partners for name in scheme.attributes)


def _block(plan: plans.Plan) -> str:
    """What `operator_query` calls an input."""
    return "⋈".join(sorted(plan.streams))


def _shown(plan: plans.Plan, names: list[str]) -> str:
    if isinstance(plan, plans.Leaf):
        return names[int(plan.stream)]
    return f"({' ⋈ '.join(_shown(each, names) for each in plan.inputs)})"
