"""Lowering: an admitted plan to an operator graph, with a kernel and state structures for every operator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from headgate.kernels import aggregate, settled, sum_results
from headgate.kernels import filter as filtering
from headgate.kernels import project as projecting
from headgate.kernels import union as uniting
from headgate.kernels.append import Append
from headgate.kernels.distinct import closing_difference, closing_distinct, difference, distinct
from headgate.kernels.expressions import compile_scalar, polars_type
from headgate.kernels.expressions.dtypes import arrow_type
from headgate.kernels.join import (
    bucket_join,
    early_purge,
    existence_purge,
    join,
    negation,
    semi_join,
    table_join,
)
from headgate.kernels.join import purge as join_purge
from headgate.kernels.kernel import Kernel
from headgate.kernels.punctuation.watermark import WatermarkPunctuator
from headgate.kernels.state.structure import Structure
from headgate.kernels.window import time_window as windowing
from headgate.kernels.window.retain import Retain
from headgate.model import monitoring
from headgate.model.aggregates import Function
from headgate.model.monitoring import Monitoring
from headgate.model.scalar import Scalar, conjunction
from headgate.model.types import is_integer
from headgate.optimize.optimize import OptimizedPlan
from headgate.physical.early_lowering import early_purge_of
from headgate.physical.edges import Edges, Strategy
from headgate.physical.emission import emit_kernel, schema_of, window_spec
from headgate.physical.graph import KernelStep, OperatorGraph, SourceStep, Step
from headgate.physical.purge_lowering import NO_PURGE, closing_kernels, purge_of
from headgate.physical.synopsis import InputSynopsis
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
from headgate.plan.panes import common_slide, grouped_in_panes
from headgate.plan.patterns import Pattern, asks_once, is_static
from headgate.safety.gate import AdmittedPlan
from headgate.safety.promise import Promise, checks_of
from headgate.safety.reasons.finite_memory import FiniteMemoryPlan
from headgate.safety.reasons.group_closing import GroupClosing
from headgate.safety.reasons.purge_analysis import Closing
from headgate.safety.reasons.time.closing import ClockClosing
from headgate.safety.state_plan import StatePlan

_TOTAL = arrow_type(bucket_join.TOTAL)


def lower(
    admitted: AdmittedPlan,
    facts: OptimizedPlan,
    strategy: Strategy = "UPA",
    monitors: Monitoring | None = None,
) -> OperatorGraph:
    """The operator graph of an admitted plan; `facts` are the optimizer's, about the same plan."""
    if facts.plan is not admitted.plan:
        raise ValueError("the facts are about another plan")
    lowering = _Lowering(
        facts,
        admitted.state_plan,
        Edges(facts, strategy, admitted.state_plan),
        monitors or monitoring.DEFAULT,
    )
    root = facts.plan
    below = lowering.relation(root.input)
    for scan in lowering.scans:
        if scan.stream.name in admitted.state_plan.checks:
            lowering.promises += checks_of(scan.stream)
    steps = list(lowering.steps)
    assert below == len(steps) - 1
    return OperatorGraph(
        query=admitted.name,
        output=root.kind,
        steps=tuple(steps),
        emit=emit_kernel(root),
        columns=tuple(root.input.schema),
        allowed_unbounded=admitted.allowed_unbounded,
        verdict=admitted.verdict.kind,
        assumes=admitted.verdict.assumes,
        settles=_settles(root, admitted.state_plan),
        promises=tuple(dict.fromkeys((*lowering.promises, *lowering.sooner))),
        sooner=frozenset(lowering.sooner) - frozenset(lowering.promises),
        places=dict(lowering.places),
    )


def _settles(root: Node, state_plan: StatePlan) -> int:
    """After how long what leaves by time has its full size."""
    windows = [node.window.length or 0 for node in root.walk() if isinstance(node, Window)]
    retained = [each.length for found in state_plan.retained.values() for each in found.values()]
    return max((*windows, *retained, *(each.wait for each in state_plan.clocks.values())), default=0)


def _residual(parts: tuple[Scalar, ...]) -> pl.Expr | None:
    return compile_scalar(conjunction(parts)) if parts else None


@dataclass
class _Lowering:
    facts: OptimizedPlan
    state_plan: StatePlan
    edges: Edges
    monitors: Monitoring
    steps: list[Step] = field(default_factory=list)
    scans: dict[StreamScan, int] = field(default_factory=dict)
    promises: list[Promise] = field(default_factory=list)
    """What streams have promised and operators rely on."""
    sooner: list[Promise] = field(default_factory=list)
    """What joins of windows rely on to drop rows before they die."""
    places: dict[Node, int] = field(default_factory=dict)
    """The steps of nodes whose batches have just the node's columns."""
    external: bool = False
    """Below an appending aggregate: its values are those of external windows, only its output never dies."""

    def relation(self, node: Node) -> int:
        """Lowers a node whose reader takes its rows at their word; returns the index of its step.

        Rows of internal windows die in the state below, but what is built on them does not: where such an edge
        leaves the joins and aggregates, its deaths are taken off.
        """
        was, self.external = self.external, False
        at = self.lower(node)
        self.external = was
        if self.edges.of(node).internal:
            return self._add("internal", Append(schema_of(node)), at)
        return at

    def lower(self, node: Node) -> int:
        """Lowers a node; returns the index of its step."""
        at = self._lowered(node)
        if self._method_below(node) is None:
            self.places[node] = at
        return at

    def _lowered(self, node: Node) -> int:
        match node:
            case StreamScan():
                self.scans[node] = self._source(node, node.stream.name, is_table=False, begins=True)
                return self.scans[node]
            case TableScan():
                return self._source(node, node.table.name, is_table=True, begins=node.table.rewrites)
            case Window():
                kernel = windowing.Window(
                    window_spec(node.window), schema_of(node), self.edges.announce(node)
                )
                return self._add("window", kernel, self.relation(node.input))
            case Filter() | Project():
                return self._rowwise(node, self.lower(node.input))
            case Join():
                return self._join(node)
            case TableJoin():
                return self._table_join(node)
            case SemiJoin() | Negation():
                return self._matching(node)
            case Difference():
                return self._difference(node)
            case Distinct():
                return self._distinct(node)
            case Aggregate():
                return self._aggregate(node)
            case Union():
                members = [self._aligned(member, node, self.lower(member)) for member in node.members]
                return self._add("union", uniting.Union(schema_of(node), len(members)), *members)
            case Emit():
                return self._add(node.kind.lower(), emit_kernel(node), self.relation(node.input))
        raise TypeError(f"nothing lowers {type(node).__name__}")

    # -- pieces -----------------------------------------------------------------------------------

    def _add(self, operator: str, kernel: Kernel[Any], *inputs: int) -> int:
        self.steps.append(KernelStep(operator, kernel, inputs))
        return len(self.steps) - 1

    def _source(self, node: StreamScan | TableScan, relation: str, *, is_table: bool, begins: bool) -> int:
        schema = schema_of(node)
        columns = tuple((full[len(node.name) + 1 :], full) for full in schema)
        self.steps.append(SourceStep(relation, node.name, is_table, columns, schema, begins))
        return len(self.steps) - 1

    def _internal(self, node: Node) -> bool:
        return self.edges.of(node).internal and not self.external

    def _aligned(self, node: Node, like: Node, at: int) -> int:
        """The same rows under another node's column names, by position."""
        pairs = list(zip(node.schema, like.schema, strict=True))
        if all(mine.name == theirs.name for mine, theirs in pairs):
            return at
        outputs = tuple((theirs.name, Scalar.column(mine.name, mine.type)) for mine, theirs in pairs)
        return self._add("project", projecting.Project(outputs), at)

    def _join(self, node: Join) -> int:
        method = self.state_plan.values.get(node)
        if method is not None and method.form != "representatives":
            return self._counted_join(node, method)
        if method is not None:
            self.edges.replace_rows_on(node.members)
        inputs = tuple(self.lower(member) for member in node.members)
        if method is not None:
            inputs = tuple(
                self._add(
                    "representatives",
                    InputSynopsis(method, number).representatives(schema_of(member)),
                    inputs[number],
                )
                for number, member in enumerate(node.members)
            )
        retained = self.state_plan.retained.get(node, {})
        inputs = tuple(
            self._add("retain", Retain(retained[number].length), at) if number in retained else at
            for number, at in enumerate(inputs)
        )
        early, further = self._early(node)
        members = tuple(
            join.JoinInput(schema_of(member), True, Structure.RUNS)
            if number in retained
            else join.JoinInput(
                schema_of(member),
                self._internal(member),
                self.edges.structure(member) if early is None else Structure.RUNS,
            )
            for number, member in enumerate(node.members)
        )
        owner = {name: index for index, member in enumerate(node.members) for name in member.names}
        equalities = tuple(tuple((owner[name], name) for name in group) for group in node.equalities)
        order = self.facts.estimates.orders[node].best.order
        purge = self._purge(node)
        residual = tuple(compile_scalar(part) for part in node.residual)
        kernel = join.Join(members, equalities, residual, order, purge=purge, early=early)
        closed = [self._closed(each) for each in self.state_plan.joins[node].closings] if purge else []
        return self._add("join", kernel, *inputs, *closed, *further)

    def _early(self, node: Join) -> tuple[early_purge.EarlyPurge | None, list[int]]:
        """How a join drops rows before they die, and the steps that bring what it asks for."""
        found = self.state_plan.early.get(node)
        if found is None or any(self.edges.pattern(member) == Pattern.STR for member in node.members):
            return None, []
        self.sooner += found.promises
        purge, sources = early_purge_of(node, found, self.monitors)
        further: list[int] = []
        for source in sources:
            inputs = tuple(self.scans[scan] for scan in source.scans)
            for kernel in source.kernels:
                inputs = (self._add("punctuations", kernel, *inputs),)
            further += inputs
        return purge, further

    def _counted_join(self, node: Join, method: FiniteMemoryPlan) -> int:
        """A join of buckets and counts; with sums, if the aggregate above takes them."""
        inputs = [self.lower(member) for member in node.members]
        summed: list[dict[str, pl.Expr]] = [{} for _ in node.members]
        for each in method.summed:
            value = compile_scalar(each.scalar)
            if not is_integer(each.scalar.type):
                # Values of other types are only counted.
                value = pl.when(value.is_not_null()).then(pl.lit(0))
            summed[each.member][each.argument] = value
        members = tuple(
            InputSynopsis(method, number).counted(schema_of(member), summed[number])
            for number, member in enumerate(node.members)
        )
        owner = {name: index for index, member in enumerate(node.members) for name in member.names}
        equalities = tuple(tuple((owner[name], name) for name in group) for group in node.equalities)
        order = self.facts.estimates.orders[node].best.order
        kernel = bucket_join.BucketJoin(
            members, equalities, _residual(node.residual), order, summing=method.form == "summed"
        )
        return self._add("join", kernel, *inputs)

    def _summed_aggregate(self, node: Aggregate, method: FiniteMemoryPlan) -> int:
        """Counts and sums that were taken before the join, added up by group."""
        project = node.input if isinstance(node.input, Project) else None
        at = self.lower(node.input if project is None else project.input)
        keys = {
            key: Scalar.column(key, node.type_of(key))
            if project is None
            else next(output.scalar for output in project.outputs if output.name == key)
            for key in node.keys
        }
        measures = [
            bucket_join.COUNT,
            *(
                name
                for each in method.summed
                for name in (
                    bucket_join.sum_column(each.argument),
                    bucket_join.filled_column(each.argument),
                )
            ),
        ]
        outputs = [*keys.items(), *((name, Scalar.column(name, _TOTAL)) for name in measures)]
        at = self._add("project", projecting.Project(tuple(outputs)), at)
        schema = {key: polars_type(node.type_of(key)) for key in node.keys}
        adding = aggregate.Aggregate(
            {**schema, **dict.fromkeys(measures, bucket_join.TOTAL)},
            node.keys,
            tuple(aggregate.AggregateCall(Function.SUM, name, name, False, None) for name in measures),
            slide=common_slide(node),
            endings=False,
        )
        at = self._add("aggregate", adding, at)
        calls = tuple(
            sum_results.SumCall(
                call.function.traits.accumulator,
                call.show(),
                call.output.name,
                polars_type(call.output.type),
                bucket_join.COUNT if call.argument is None else bucket_join.sum_column(call.argument),
                bucket_join.COUNT if call.argument is None else bucket_join.filled_column(call.argument),
            )
            for call in node.calls
        )
        return self._add("project", sum_results.SumResults(node.keys, calls), at)

    def _method_below(self, node: Node) -> FiniteMemoryPlan | None:
        """How the values of a join right below filters and projections are kept, if they are."""
        while isinstance(node, (Filter, Project)):
            node = node.input
        return self.state_plan.values.get(node) if isinstance(node, Join) else None

    def _mark_replaced(self, node: Node) -> None:
        """Notes that representatives take each other's place on all edges down to the join."""
        method = self._method_below(node)
        if method is not None and method.form == "representatives":
            nodes = [node]
            while not isinstance(node, Join):
                (node,) = node.inputs
                nodes.append(node)
            self.edges.replace_rows_on(nodes)

    def _purge(self, node: Join) -> join_purge.Purge | None:
        """How a join forgets rows by punctuation; never where another input's rows end early."""
        found = self.state_plan.joins.get(node)
        if found is None or any(self.edges.pattern(member) == Pattern.STR for member in node.members):
            return None
        return purge_of(node.members, found)

    def _closed(self, closing: Closing) -> int:
        """The step that brings the values that a stream closes, under the names that the reader knows."""
        self.promises.append(closing.promise)
        at = self.scans[closing.scan]
        for kernel in closing_kernels(closing):
            at = self._add("punctuations", kernel, at)
        return at

    def _closed_groups(self, closing: GroupClosing) -> list[int]:
        """The steps that bring the values at which groups are final."""
        self.promises += closing.filled
        return [self._closed(each) for each in closing.closings]

    def _passed(self, node: Aggregate | Distinct, clock: ClockClosing, at: int) -> int:
        """The step that says which values of a column of time have passed; it only looks at the clock."""
        dtype = polars_type(node.input.type_of(clock.key))
        return self._add("clock", WatermarkPunctuator(clock.key, dtype, clock.unit.scale, clock.lag), at)

    def _table_join(self, node: TableJoin) -> int:
        left, right = self.lower(node.left), self.lower(node.right)
        if not asks_once(node):
            members = (
                join.JoinInput(
                    schema_of(node.left), self._internal(node.left), self.edges.structure(node.left)
                ),
                join.JoinInput(schema_of(node.right), False, Structure.ENDINGS),
            )
            equalities = tuple(((0, a), (1, b)) for a, b in node.keys)
            residual = tuple(compile_scalar(part) for part in node.residual)
            return self._add("join", join.Join(members, equalities, residual, (0, 1)), left, right)
        kernel = table_join.TableJoin(
            schema_of(node.left),
            schema_of(node.right),
            node.keys,
            _residual(node.residual),
            static=is_static(node.right),
        )
        return self._add("join", kernel, left, right)

    def _matching(self, node: SemiJoin | Negation) -> int:
        left, right = self.relation(node.left), self.relation(node.right)
        sides = (schema_of(node.left), schema_of(node.right))
        residual = _residual(node.residual)
        if asks_once(node):
            kind: table_join.Kind = "semi" if isinstance(node, SemiJoin) else "anti"
            table = table_join.TableJoin(
                *sides,
                node.keys,
                residual,
                kind=kind,
                static=is_static(node.right),
                null_equal=node.null_equal,
            )
            return self._add("join", table, left, right)
        name, kernel = (
            ("semijoin", semi_join.SemiJoin)
            if isinstance(node, SemiJoin)
            else ("negation", negation.Negation)
        )
        ends = self.edges.pattern(node.right) == Pattern.STR
        found = self.state_plan.existence.get(node)
        retained = self.state_plan.retained.get(node, {})
        side_purge, closed = None, []
        if found is not None or retained:
            purge = NO_PURGE if found is None else purge_of(node.inputs, found.purge)
            left_length, right_length = (retained[n].length if n in retained else None for n in (0, 1))
            side_purge = existence_purge.SidePurge(purge, (left_length, right_length))
            if right_length is not None and residual is None:
                # Only with a residual the right rows are kept, and with them their ages.
                residual = pl.lit(True)
        if found is not None:
            self.promises += found.filled
            closed = [self._closed(each) for each in found.purge.closings]
        exists = kernel(
            *sides, node.keys, residual, null_equal=node.null_equal, right_endings=ends, side_purge=side_purge
        )
        return self._add(name, exists, left, right, *closed)

    def _difference(self, node: Difference) -> int:
        left, right = self.relation(node.left), self.relation(node.right)
        aligned = self._aligned(node.right, node.left, right)
        kernel = difference.Difference(schema_of(node))
        closing = self.state_plan.groups.get(node)
        if closing is None:
            return self._add("negation", kernel, left, aligned)
        closed = self._closed_groups(closing)
        lesser = tuple(each.below for each in closing.closings)
        punctuation_purges = closing_difference.ClosingDifference(kernel, closing.keys, lesser)
        return self._add("negation", punctuation_purges, left, aligned, *closed)

    def _distinct(self, node: Distinct) -> int:
        self._mark_replaced(node.input)
        form: distinct.Form = "strict" if self.edges.pattern(node.input) == Pattern.STR else "star"
        if self.edges.strategy == "DIRECT" and form == "star":
            form = "naive"
        kernel = distinct.Distinct(schema_of(node), form)
        below = self.relation(node.input)
        clock = self.state_plan.clocks.get(node)
        if clock is not None:
            timed = closing_distinct.ClosingDistinct(kernel, (clock.key,), (True,))
            return self._add("distinct", timed, below, self._passed(node, clock, below))
        closing = self.state_plan.groups.get(node)
        if closing is None:
            groups = aggregate.Aggregate(schema_of(node), tuple(schema_of(node)), ())
            return self._add("distinct", self._by_panes(node, groups) or kernel, below)
        closed = self._closed_groups(closing)
        lesser = tuple(each.below for each in closing.closings)
        punctuation_purges = closing_distinct.ClosingDistinct(kernel, closing.keys, lesser)
        return self._add("distinct", punctuation_purges, below, *closed)

    def _aggregate(self, node: Aggregate) -> int:
        method = self._method_below(node.input)
        if method is not None and method.form == "summed":
            return self._summed_aggregate(node, method)
        self._mark_replaced(node.input)
        calls = tuple(
            aggregate.AggregateCall(
                call.function,
                call.argument,
                call.output.name,
                call.distinct,
                call.parameter,
                call.second,
            )
            for call in node.calls
        )
        kernel = aggregate.Aggregate(
            schema_of(node.input),
            node.keys,
            calls,
            slide=common_slide(node),
            append=self.edges.of(node.input).internal,
            endings=self.edges.pattern(node.input) == Pattern.STR,
        )
        was, self.external = self.external, kernel.append
        below = self.lower(node.input)
        self.external = was
        clock = self.state_plan.clocks.get(node)
        if clock is not None:
            timed = aggregate.ClosingAggregate(kernel, (clock.key,), (True,))
            return self._add("aggregate", timed, below, self._passed(node, clock, below))
        closed_below = self.state_plan.settled.get(node)
        if closed_below is not None:
            final = self._final_rows(node, *closed_below)
            return self._add("aggregate", aggregate.SettlingAggregate(kernel), below, final)
        counted = self.state_plan.counted.get(node)
        if counted is not None:
            return self._counted(kernel, counted, below)
        closing = self.state_plan.groups.get(node)
        if closing is None:
            return self._add("aggregate", self._by_panes(node, kernel) or kernel, below)
        closed = self._closed_groups(closing)
        lesser = tuple(each.below for each in closing.closings)
        punctuation_purges = aggregate.ClosingAggregate(kernel, closing.keys, lesser)
        return self._add("aggregate", punctuation_purges, below, *closed)

    def _counted(self, kernel: aggregate.Aggregate, counted: dict[str, GroupClosing], below: int) -> int:
        """An aggregate that forgets the values that it has counted once they are closed."""
        closed = [at for closing in counted.values() for at in self._closed_groups(closing)]
        arguments = tuple(
            aggregate.ClosedArgument(name, closing.keys, tuple(each.below for each in closing.closings))
            for name, closing in counted.items()
        )
        return self._add("aggregate", aggregate.ClosingValues(kernel, arguments), below, *closed)

    def _final_rows(self, node: Aggregate, below: Aggregate, closing: GroupClosing) -> int:
        """The rows that an aggregate reads of another one's closed groups."""
        between: list[Filter | Project] = []
        top = node.input
        while isinstance(top, (Filter, Project)):
            between.append(top)
            top = top.input
        closed = self._closed_groups(closing)
        lesser = tuple(each.below for each in closing.closings)
        kernel = settled.Settled(schema_of(below), below.keys, closing.keys, lesser)
        at = self._add("aggregate", kernel, self.places[below], *closed)
        for each in reversed(between):
            at = self._rowwise(each, at)
        return at

    def _rowwise(self, node: Filter | Project, at: int) -> int:
        if isinstance(node, Filter):
            return self._add("filter", filtering.Filter(node.predicate), at)
        outputs = tuple((output.name, output.scalar) for output in node.outputs)
        return self._add("project", projecting.Project(outputs), at)

    def _by_panes(
        self, node: Aggregate | Distinct, groups: aggregate.Aggregate
    ) -> aggregate.PaneAggregate | None:
        """The kernel that remembers nothing, where lifetimes are panes."""
        if self.edges.pattern(node.input) != Pattern.WKS:
            return None
        if not grouped_in_panes(node, self.edges.of(node.input).lifetime):
            return None
        found = aggregate.by_panes(groups)
        assert found is not None, "the plan's label says that rows live and die with their pane"
        return found
