"""Planned queries: a query on its way from syntax to the gate's verdict, each pass run once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from headgate.optimize.optimize import Optimized, is_bounded, optimize
from headgate.optimize.statistics import Statistics
from headgate.plan.bind import BoundQuery, bind
from headgate.plan.catalog import Catalog, QueryDef
from headgate.plan.meaning import check_meaning
from headgate.plan.nodes import Emit
from headgate.plan.normalize import normalize
from headgate.plan.patterns import label
from headgate.safety.verdict import Verdict


@dataclass(frozen=True, eq=False)
class PlannedQuery:
    """A query over a catalog: bound, normalized, optimized and judged, each when it is first asked for."""

    catalog: Catalog
    definition: QueryDef
    statistics: Statistics

    @property
    def name(self) -> str:
        return self.definition.name

    @cached_property
    def bound(self) -> BoundQuery:
        """Names resolved, types checked."""
        return bind(self.catalog, self.definition)

    @cached_property
    def plan(self) -> Emit:
        """Normalized, and checked to mean something."""
        plan = replace(self.bound.plan, input=normalize(self.bound.plan.input))
        check_meaning(plan, label(plan), self.bound.statement)
        return plan

    def validate(self) -> None:
        """Raises unless the query binds and means something."""
        _ = self.plan

    @cached_property
    def optimized(self) -> Optimized:
        """The cheapest plan and what it was compared with."""
        return optimize(self.plan, self.statistics, self.name)

    @cached_property
    def verdict(self) -> Verdict:
        """The gate's verdict on the plan that would run, without advice."""
        return self.optimized.judgement.verdict

    @cached_property
    def is_bounded(self) -> bool:
        """Whether the gate admits the query; asked of statements with edits, whose costs do not matter."""
        return is_bounded(self.plan)
