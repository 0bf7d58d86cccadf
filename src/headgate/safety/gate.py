"""The gate: only an AdmittedPlan runs, and only this module makes one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.model.errors import Place, RefusedError
from headgate.plan.bind import BoundQuery
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
from headgate.plan.patterns import Edges, Pattern, label
from headgate.safety.extent import Extents, measure
from headgate.safety.verdict import StateVerdict, Verdict

_SEAL = object()
_HOLISTIC = ("MEDIAN", "QUANTILE", "TOP")


@dataclass(frozen=True)
class AdmittedPlan:
    """A plan that may run, with the verdict that admitted it.

    `allowed_unbounded` says that the user asked for it although some state is not bounded.
    """

    name: str
    plan: Emit
    verdict: Verdict
    allowed_unbounded: bool
    seal: object

    def __post_init__(self) -> None:
        if self.seal is not _SEAL:
            raise TypeError("only the gate admits plans")


def judge(query: str, plan: Emit) -> Verdict:
    """The verdict on every state of a normalized plan."""
    edges, extents = label(plan), measure(plan)
    states = [state for node in plan.walk() for state in _states(node, edges, extents)]
    return Verdict(query, tuple(states))


def admit(query: BoundQuery, plan: Emit, *, allow_unbounded: bool = False) -> AdmittedPlan:
    """The admitted plan, or RefusedError naming the operator, the reason and what to do."""
    verdict = judge(query.name, plan)
    if not verdict.bounded and not allow_unbounded:
        first = verdict.unbounded[0]
        raise RefusedError(
            f"query {query.name} is refused: the state of {first.operator} over {first.stream} is not bounded: "
            f"{first.reason}",
            remedy="put a window on the stream, for example [RANGE 10 MINUTES]; "
            "or run it with --allow-unbounded",
            place=Place(query.statement.source, query.statement.span),
        )
    return AdmittedPlan(query.name, plan, verdict, allow_unbounded and not verdict.bounded, _SEAL)


def replan(admitted: AdmittedPlan, plan: Emit) -> AdmittedPlan:
    """An admitted plan after optimization; judged anew, because a plan's states are the plan's own."""
    verdict = judge(admitted.name, plan)
    if not verdict.bounded and admitted.verdict.bounded:
        raise AssertionError(f"optimization made the state of {admitted.name} unbounded")
    return AdmittedPlan(admitted.name, plan, verdict, admitted.allowed_unbounded, _SEAL)


def _states(node: Node, edges: Edges, extents: Extents) -> Iterator[StateVerdict]:
    match node:
        case Join():
            for each in node.inputs:
                yield _kept("join", each, extents)
        case TableJoin():
            if node.table.retroactive:
                yield _kept("join", node.left, extents)
            yield _kept("join", node.right, extents)
        case SemiJoin() | Negation() | Difference():
            name = "semijoin" if isinstance(node, SemiJoin) else "negation"
            for each in node.inputs:
                yield _kept(name, each, extents)
        case Distinct():
            yield _kept("distinct", node, extents)
        case Aggregate():
            yield _kept("aggregate", node, extents)
            if _keeps_rows(node, edges):
                yield _kept("aggregate", node.input, extents)
        case Window() if node.window.kind == "ROWS":
            yield _kept("window", node, extents)
        case Emit() if _keeps_answer(node, edges):
            yield _kept(node.kind.lower(), node.input, extents)


def _keeps_rows(node: Aggregate, edges: Edges) -> bool:
    """Whether an aggregate needs more than one accumulator per group."""
    if max(edges[node.input].pattern, edges[node.input].expiry) != Pattern.MON:
        return True
    return any(call.distinct or call.function in _HOLISTIC for call in node.calls)


def _keeps_answer(node: Emit, edges: Edges) -> bool:
    if node.kind == "WSTREAM":
        return False
    return node.kind == "RSTREAM" or edges[node.input].pattern != Pattern.MON


def _kept(operator: str, node: Node, extents: Extents) -> StateVerdict:
    extent = extents[node]
    return StateVerdict(operator, _stream_of(node), extent.by, extent.reason)


def _stream_of(node: Node) -> str:
    names = [each.name for each in node.walk() if isinstance(each, (StreamScan, TableScan))]
    return ", ".join(dict.fromkeys(names))
