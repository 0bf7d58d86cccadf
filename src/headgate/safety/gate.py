"""The gate: only an AdmittedPlan runs, and only this module makes one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headgate.model.errors import Place, RefusedError
from headgate.plan.bind import BoundQuery
from headgate.plan.nodes import (
    Aggregate,
    AggregateCall,
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
    Window,
)
from headgate.plan.patterns import Edges, Pattern, asks_once, label
from headgate.safety.assumption import FEW, Assumption, all_streams_go_on, few_values_come
from headgate.safety.bounded_values import ValuesMethod, judge_join
from headgate.safety.event_time.closing import ClockClosing, close_by_clock
from headgate.safety.event_time.retention import Retention, retentions
from headgate.safety.existence_closing import ExistencePurge, close_existence
from headgate.safety.extent import Extent, Extents, Retained, by_values, groups_of, measure
from headgate.safety.group_closing import GroupClosing, close_copies, close_counted, close_groups
from headgate.safety.purging import JoinPurge, study
from headgate.safety.value_limit import value_limit
from headgate.safety.verdict import Cause, StateVerdict, Verdict

_SEAL = object()


@dataclass(frozen=True)
class Methods:
    """How operators keep what the verdict promises: purges of joins, closings of groups, synopses of values."""

    joins: dict[Join, JoinPurge] = field(default_factory=dict)
    retained: dict[Node, Mapping[int, Retention]] = field(default_factory=dict)
    """Inputs of joins that time lets go, by their number."""
    existence: dict[Node, ExistencePurge] = field(default_factory=dict)
    groups: dict[Node, GroupClosing] = field(default_factory=dict)
    clocks: dict[Node, ClockClosing] = field(default_factory=dict)
    """Groups and values of DISTINCT that time closes."""
    counted: dict[Node, dict[str, GroupClosing]] = field(default_factory=dict)
    """By aggregate and argument: what closes the values that COUNT(DISTINCT argument) has counted."""
    settled: dict[Node, tuple[Aggregate, GroupClosing]] = field(default_factory=dict)
    """By aggregate: the one below whose groups become final, and what closes them."""
    values: dict[Join, ValuesMethod] = field(default_factory=dict)
    checks: set[str] = field(default_factory=set)
    """Streams whose CHECKs are relied on."""


@dataclass(frozen=True)
class AdmittedPlan:
    """A plan that may run, with the verdict that admitted it.

    `allowed_unbounded` says that the user asked for it although some state is not bounded.
    """

    name: str
    plan: Emit
    verdict: Verdict
    methods: Methods
    allowed_unbounded: bool
    seal: object

    def __post_init__(self) -> None:
        if self.seal is not _SEAL:
            raise TypeError("only the gate admits plans")


@dataclass(frozen=True)
class Judgement:
    """The verdict on a plan, and how its states are kept within it."""

    verdict: Verdict
    methods: Methods


def examine(query: str, plan: Emit) -> Judgement:
    """The verdict on every state of a normalized plan, and the methods that it counts on."""
    edges = label(plan)
    nodes = list(plan.walk())
    purges = {node: study(node, edges) for node in nodes if isinstance(node, Join)}
    matching = {
        node: close_existence(node, edges) for node in nodes if isinstance(node, (SemiJoin, Negation))
    }
    retained: Retained = {node: retentions(node, edges) for node in (*purges, *matching)}
    extents = measure(plan, edges, purges, matching, retained)
    judge_ = _Judge(edges, extents, purges, matching, retained, dict(_consumers(plan)))
    states = [state for node in plan.walk() for state in judge_.states(node)]
    return Judgement(Verdict(query, tuple(states), shape_of(plan), _waits(plan)), judge_.methods)


def judge(query: str, plan: Emit) -> Verdict:
    """The verdict on every state of a normalized plan."""
    return examine(query, plan).verdict


def admit(query: BoundQuery, plan: Emit, *, allow_unbounded: bool = False) -> AdmittedPlan:
    """The admitted plan, or RefusedError naming the operator, the reason and what to do."""
    judgement = examine(query.name, plan)
    verdict = judgement.verdict
    if not verdict.admitted and not allow_unbounded:
        first = verdict.unbounded[0]
        raise RefusedError(
            f"query {query.name} is refused: the state of {first.operator} over {first.stream} is not bounded: "
            f"{first.reason}",
            query=query.name,
            remedy="put a window on the stream, for example [RANGE 10 MINUTES]; "
            "or run it with --allow-unbounded",
            place=Place(query.statement.source, query.statement.span),
        )
    unbounded = allow_unbounded and not verdict.admitted
    return AdmittedPlan(query.name, plan, verdict, judgement.methods, unbounded, _SEAL)


def replan(admitted: AdmittedPlan, plan: Emit) -> AdmittedPlan:
    """An admitted plan after optimization; judged anew, because a plan's states are the plan's own."""
    judgement = examine(admitted.name, plan)
    verdict = judgement.verdict
    if not verdict.admitted and admitted.verdict.admitted:
        raise AssertionError(f"optimization made the state of {admitted.name} unbounded")
    unbounded = admitted.allowed_unbounded
    return AdmittedPlan(admitted.name, plan, verdict, judgement.methods, unbounded, _SEAL)


@dataclass(frozen=True)
class _Judge:
    edges: Edges
    extents: Extents
    purges: Mapping[Join, JoinPurge]
    matching: Mapping[SemiJoin | Negation, ExistencePurge]
    retained: Retained
    consumers: Mapping[Join, tuple[Node | None, Node]]
    methods: Methods = field(default_factory=Methods)

    def states(self, node: Node) -> Iterator[StateVerdict]:
        """The verdict on each state of one operator."""
        match node:
            case Join():
                yield from self._join(node)
            case TableJoin():
                if not asks_once(node):
                    yield self._kept("join", node.left)
                yield self._kept("join", node.right)
            case SemiJoin() | Negation() if asks_once(node):
                yield self._kept("semijoin" if isinstance(node, SemiJoin) else "negation", node.right)
            case SemiJoin() | Negation():
                yield from self._existence(node)
            case Difference():
                yield from self._difference(node)
            case Distinct():
                yield self._distinct(node)
            case Aggregate():
                yield from self._aggregate(node)
            case Window() if node.window.kind == "ROWS":
                yield self._kept("window", node)
            case Emit(kind="RSTREAM") if self.edges[node.input].internal:
                reason = "rows of INTERNAL windows stay in the answer, and RSTREAM lists all of it again"
                yield StateVerdict("rstream", stream_of(node), Cause.NONE, reason)
            case Emit() if self._keeps_answer(node):
                yield self._kept(node.kind.lower(), node.input)

    def _join(self, node: Join) -> Iterator[StateVerdict]:
        purge, retained = self.purges[node], self._retained(node)
        open_members = [
            n for n, each in enumerate(node.members) if n not in retained and not self.extents[each].bounded
        ]
        failure = ""
        if any(number not in purge.chains for number in open_members):
            found = judge_join(node, *self.consumers[node])
            if found.method is not None:
                self.methods.values[node] = found.method
                self.methods.checks.update(found.method.translated.checks)
                yield from self._synopses(node, found.method)
                return
            failure = found.reason
        if retained:
            self.methods.retained[node] = retained
        for number, member in enumerate(node.members):
            chain = purge.chains.get(number)
            if self.extents[member].bounded:
                yield self._kept("join", member)
            elif number in retained:
                yield self._timed("join", member, retained[number])
            elif chain is not None:
                cause = Cause(chain.cause)
                yield StateVerdict("join", stream_of(member), cause, chain.reason, chain.assumes)
            else:
                reasons = [self.extents[member].reason, purge.stuck.get(number, ""), failure]
                said = "; ".join(reason for reason in reasons if reason)
                yield StateVerdict("join", stream_of(member), Cause.NONE, said)
        if any(number in purge.chains for number in open_members):
            self.methods.joins[node] = purge.only(open_members)
            yield from _closed_values(node.members, purge)

    def _existence(self, node: SemiJoin | Negation) -> Iterator[StateVerdict]:
        name = "semijoin" if isinstance(node, SemiJoin) else "negation"
        found = self.matching[node]
        chains, stuck, retained = found.purge.chains, found.purge.stuck, self._retained(node)
        open_sides = [
            number
            for number, each in enumerate(node.inputs)
            if number not in retained and not self.extents[each].bounded
        ]
        if retained:
            self.methods.retained[node] = retained
        for number, side in enumerate(node.inputs):
            if number in retained:
                yield self._timed(name, side, retained[number])
            elif number not in open_sides:
                yield self._kept(name, side)
            elif number in chains:
                chain = chains[number]
                yield StateVerdict(name, stream_of(side), Cause(chain.cause), chain.reason, chain.assumes)
            else:
                said = "; ".join(part for part in (self.extents[side].reason, stuck.get(number, "")) if part)
                yield StateVerdict(name, stream_of(side), Cause.NONE, said)
        if any(number in chains for number in open_sides):
            self.methods.existence[node] = replace(found, purge=found.purge.only(open_sides))
            yield from _closed_values(node.inputs, found.purge)

    def _timed(self, operator: str, node: Node, retention: Retention) -> StateVerdict:
        self.methods.checks.update(retention.checks)
        return StateVerdict(operator, stream_of(node), Cause.TIME, retention.reason)

    def _retained(self, node: Join | SemiJoin | Negation) -> Mapping[int, Retention]:
        """The inputs without a bound that time lets go.

        None of them where another input can end rows, unless it is a join's and has a bound: a join remembers its
        results then, to be ended, and without a bound nothing would end them all.
        """
        ends = any(
            max(self.edges[each].pattern, self.edges[each].expiry) == Pattern.STR
            and not (isinstance(node, Join) and self.extents[each].bounded)
            for each in node.inputs
        )
        found = self.retained[node]
        return {n: each for n, each in found.items() if not ends and not self.extents[node.inputs[n]].bounded}

    def _synopses(self, node: Join, method: ValuesMethod) -> Iterator[StateVerdict]:
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

    def _kept_rows(self, member: Node, number: int, method: ValuesMethod) -> int:
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
        open_ = any(not self.extents[each].bounded for each in node.inputs)
        closing = close_copies(node, self.edges) if open_ else None
        if closing is not None:
            self.methods.groups[node] = closing
        for each in node.inputs:
            if closing is None:
                yield self._kept("negation", each)
            else:
                cause = Cause(closing.cause)
                yield StateVerdict("negation", stream_of(each), cause, closing.reason, closing.assumes)

    def _distinct(self, node: Distinct) -> StateVerdict:
        if self.extents[node].bounded:
            return self._kept("distinct", node)
        clock = self._clock("distinct", node)
        if clock is not None:
            return clock
        closing = close_groups(node, self.edges)
        if closing is None:
            return self._kept("distinct", node)
        self.methods.groups[node] = closing
        return StateVerdict(
            "distinct", stream_of(node), Cause(closing.cause), closing.reason, closing.assumes
        )

    def _aggregate(self, node: Aggregate) -> Iterator[StateVerdict]:
        groups = groups_of(node, self.extents[node.input])
        rows = self._keeps_rows(node)
        if groups.bounded and (not rows or self.extents[node.input].bounded):
            yield self._state("aggregate", node, groups)
            if rows:
                yield self._kept("aggregate", node.input)
            return
        clock = self._clock("aggregate", node)
        if clock is not None:
            yield clock
            return
        closing = close_groups(node, self.edges)
        if closing is not None:
            self.methods.groups[node] = closing
            yield StateVerdict(
                "aggregate", stream_of(node), Cause(closing.cause), closing.reason, closing.assumes
            )
            return
        yield self._state("aggregate", node, groups)
        if rows:
            found = self._rows_by_values(node) or self._counted(node) or self._settled(node)
            yield found or self._kept("aggregate", node.input)

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
        needed = [c.argument for c in node.calls if c.argument and c.needs_values]
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
            counts = call.distinct and call.function in ("COUNT", "SUM", "AVG")
            closing = close_counted(node, argument, self.edges) if counts else None
            if closing is None:
                return None
            found[argument] = closing
        if not found:
            return None
        self.methods.counted[node] = found
        causes = {closing.cause for closing in found.values()}
        cause = causes.pop() if len(causes) == 1 else "punctuation"
        reason = ", ".join(dict.fromkeys(closing.reason for closing in found.values()))
        assumes = tuple(dict.fromkeys(each for closing in found.values() for each in closing.assumes))
        return StateVerdict("aggregate", stream_of(node.input), Cause(cause), reason, assumes)

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
        return StateVerdict("aggregate", stream_of(below), Cause(closing.cause), reason, closing.assumes)

    def _keeps_rows(self, node: Aggregate) -> bool:
        """Whether an aggregate needs more than one accumulator per group."""
        edge = self.edges[node.input]
        if max(edge.pattern, edge.expiry) != Pattern.MON and not self._only_ends(node.input):
            return True
        return any(self._needs_values(node, call) for call in node.calls)

    def _needs_values(self, node: Aggregate, call: AggregateCall) -> bool:
        """Whether a call needs the single values; MIN and MAX do where a value may end before its time."""
        if self.edges[node.input].pattern == Pattern.STR:
            return call.needs_values or call.function in ("MIN", "MAX")
        return call.needs_values and call.function not in ("MIN", "MAX")

    def _only_ends(self, node: Node) -> bool:
        """Whether rows of an edge that nothing bounds live until an ending comes: no death of them is remembered."""
        if self.extents[node].bounded or self.edges[node].pattern != Pattern.STR:
            return False
        return not announces_deaths(node, self.edges)

    def _keeps_answer(self, node: Emit) -> bool:
        """Whether the rows of an answer are remembered: all of them, or those whose death was announced."""
        if node.kind == "WSTREAM":
            return False
        if node.kind == "RSTREAM":
            return True
        if self.edges[node.input].pattern == Pattern.MON or is_aggregate(node.input):
            return False
        return announces_deaths(node.input, self.edges)

    def _kept(self, operator: str, node: Node) -> StateVerdict:
        return self._state(operator, node, self.extents[node])

    def _state(self, operator: str, node: Node, extent: Extent) -> StateVerdict:
        self.methods.checks.update(extent.checks)
        return StateVerdict(operator, stream_of(node), extent.by, extent.reason, extent.assumes)


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
    for forgetting in purge.forgetting:
        closing = purge.closings[forgetting.closing]
        name = stream_of(inputs[closing.member])
        cause = Cause.CONSTRAINT if closing.below else Cause(closing.promise.cause)
        yield StateVerdict("punctuations", name, cause, forgetting.reason, forgetting.assumes)


def is_aggregate(node: Node) -> bool:
    """Whether rows are values of an aggregate: each ends when the next one comes, and then both are at hand."""
    while isinstance(node, (Filter, Project)):
        node = node.input
    return isinstance(node, Aggregate)


def announces_deaths(node: Node, edges: Edges) -> bool:
    """Whether rows may be announced with a death, which who reads them has to remember until it comes.

    A value of an aggregate ends when the next one comes, a copy of EXCEPT ALL when its match does. NOT EXISTS
    announces a row up to the death of the left row.
    """
    match node:
        case Filter() | Project():
            return announces_deaths(node.input, edges)
        case Negation():
            return announces_deaths(node.left, edges)
        case Aggregate():
            return edges[node].pattern in (Pattern.WKS, Pattern.WK)
        case Difference():
            return False
        case Distinct() if edges[node.input].pattern == Pattern.STR:
            return False
    return edges[node].pattern != Pattern.MON


def stream_of(node: Node) -> str:
    """The streams and tables below an edge, as the query calls them."""
    names = [each.name for each in node.walk() if isinstance(each, (StreamScan, TableScan))]
    return ", ".join(dict.fromkeys(names))


def shape_of(plan: Emit) -> str:
    """How the plan joins: `mjoin`, all inputs of a join at once; `tree`, joins over joins; `single`, not at all."""
    joins = [node for node in plan.walk() if isinstance(node, (Join, TableJoin))]
    if not joins:
        return "single"
    return "mjoin" if len(joins) == 1 else "tree"
