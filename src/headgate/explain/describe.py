"""Descriptions: a plan with its facts as plain data, ready to be printed or drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from headgate.model.time import format_duration
from headgate.model.types import spark_name
from headgate.optimize.estimate import input_name
from headgate.optimize.join_order import CostedOrder
from headgate.optimize.optimize import OptimizedPlan
from headgate.optimize.state import StateChoice
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
    WindowKind,
)
from headgate.plan.patterns import answer_edge

_LONGEST_PHRASE = 40
"""Characters of a title's first phrase if others follow, so that the order that was chosen is not cut off."""

_ALL_ORDERS_UP_TO = 4
"""Inputs of a join; with more of them only the orders that were looked at are listed."""


@dataclass(frozen=True)
class Description:
    """One operator: what it is, its update pattern, its state, and what it reads."""

    op: str
    phrases: tuple[str, ...]
    """What it does, whole."""
    pattern: str
    state: StateChoice | None
    detail: Mapping[str, Any]
    inputs: tuple[Description, ...]

    @property
    def title(self) -> str:
        """What it does on one line: the first of several phrases is shortened."""
        first, *others = self.phrases
        return "  ".join([cut(first, _LONGEST_PHRASE), *others]) if others else first

    def as_dict(self) -> dict[str, Any]:
        """The node of `explain --format json`."""
        return {
            "op": self.op,
            "pattern": self.pattern,
            "state": state_as_dict(self.state),
            "detail": dict(self.detail),
            "inputs": [each.as_dict() for each in self.inputs],
        }


@dataclass(frozen=True)
class QueryDescription:
    """A query: how its answer becomes a stream, the answer's pattern, its cost and its plan."""

    name: str
    output: str
    restore: bool
    window: str | None
    pattern: str
    cost: float
    assumed: bool
    state: StateChoice | None
    plan: Description

    def as_dict(self) -> dict[str, Any]:
        """The query of `explain --format json`."""
        found: dict[str, Any] = {
            "name": self.name,
            "output": self.output,
            "pattern": self.pattern,
            "cost": round(self.cost, 3),
            "statistics": "assumed" if self.assumed else "given",
            "state": state_as_dict(self.state),
            "plan": self.plan.as_dict(),
        }
        if self.restore:
            found["restore"] = True
        if self.window:
            found["window"] = self.window
        return found


def state_as_dict(state: StateChoice | None) -> dict[str, Any] | None:
    if state is None:
        return None
    return {
        "structure": state.structure,
        "rows": _rounded(state.rows),
        "bytes": _rounded(state.bytes),
        "inputs": [
            {
                "input": stored.input,
                "structure": stored.structure,
                "partitions": stored.partitions,
                "rows": _rounded(stored.rows),
                "bytes": _rounded(stored.bytes),
                "forgets": stored.forgets,
            }
            for stored in state.stored
        ],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def visible(text: str) -> str:
    """The text on one line, with control characters replaced: neither a terminal nor XML takes them."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def cut(text: str, longest: int) -> str:
    """The text, shortened to a number of characters if it is longer."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def describe_query(name: str, optimized: OptimizedPlan, *, assumed: bool) -> QueryDescription:
    """A query and its plan, described."""
    emit = optimized.plan
    return QueryDescription(
        name=name,
        output=emit.kind,
        restore=emit.restore,
        window=show_window(emit.window) if emit.window else None,
        pattern=str(answer_edge(emit, optimized.edges).pattern),
        cost=optimized.cost.total,
        assumed=assumed,
        state=optimized.states.get(emit),
        plan=describe(emit.input, optimized),
    )


def describe(node: Node, optimized: OptimizedPlan) -> Description:
    """One operator and all below it, described."""
    op, said, detail = _about(node, optimized)
    estimate = optimized.estimates.edges[node]
    rows = round(estimate.rows, 3) if estimate.bounded else None
    numbers = {"rate": round(estimate.rate, 6), "rows": rows}
    return Description(
        op=op,
        phrases=tuple(visible(each) for each in ((said,) if isinstance(said, str) else said)),
        pattern=str(optimized.edges[node].pattern),
        state=optimized.states.get(node),
        detail={**detail, "estimate": numbers},
        inputs=tuple(describe(each, optimized) for each in node.inputs),
    )


def show_window(window: WindowKind) -> str:
    """A window as it is written."""
    text = window.kind
    if window.length is not None:
        text += " " + format_duration(window.length)
    if window.slide is not None:
        text += " SLIDE " + format_duration(window.slide)
    if window.rows is not None:
        text += f" {window.rows}"
    if window.partition:
        text = f"PARTITION BY {', '.join(_bare(name) for name in window.partition)} {text}"
    return f"[{text}{' INTERNAL' if window.internal else ''}]"


def _bare(name: str) -> str:
    return name.rsplit(".", 1)[-1]


About = tuple[str, str | tuple[str, ...], dict[str, Any]]
"""The operator's name, what it does in one phrase or several, and details."""


@singledispatch
def _about(node: Node, optimized: OptimizedPlan) -> About:
    raise TypeError(f"nothing describes {type(node).__name__}")


@_about.register
def _(node: StreamScan, optimized: OptimizedPlan) -> About:
    columns = [{"name": c.name, "type": spark_name(c.type)} for c in node.stream.columns]
    title = node.stream.name if node.name == node.stream.name else f"{node.stream.name} as {node.name}"
    return "stream", title, {"stream": node.stream.name, "name": node.name, "columns": columns}


@_about.register
def _(node: TableScan, optimized: OptimizedPlan) -> About:
    title = node.table.name if node.name == node.table.name else f"{node.table.name} as {node.name}"
    detail = {"table": node.table.name, "name": node.name, "retroactive": node.table.retroactive}
    return "table", title, detail


@_about.register
def _(node: Window, optimized: OptimizedPlan) -> About:
    window = node.window
    detail: dict[str, Any] = {"kind": window.kind, "internal": window.internal}
    if window.length is not None:
        detail["length"] = format_duration(window.length)
    if window.slide is not None:
        detail["slide"] = format_duration(window.slide)
    if window.rows is not None:
        detail["rows"] = window.rows
    if window.partition:
        detail["partition"] = list(window.partition)
    return "window", show_window(window), detail


@_about.register
def _(node: Filter, optimized: OptimizedPlan) -> About:
    text = node.predicate.show()
    return "filter", text, {"predicate": text}


@_about.register
def _(node: Project, optimized: OptimizedPlan) -> About:
    columns = [{"name": output.name, "expression": output.scalar.show()} for output in node.outputs]
    shown = [
        each["name"] if each["name"] == each["expression"] else f"{each['expression']} as {each['name']}"
        for each in columns
    ]
    return "project", ", ".join(shown) or "nothing", {"columns": columns}


@_about.register
def _(node: Join, optimized: OptimizedPlan) -> About:
    names = [input_name(member) for member in node.members]
    choice = optimized.estimates.orders[node]
    order = [names[index] for index in choice.best.order]
    conditions = [" = ".join(group) for group in node.equalities] + [part.show() for part in node.residual]
    listed = choice.all if choice.all and len(names) <= _ALL_ORDERS_UP_TO else choice.considered
    detail: dict[str, Any] = {
        "equalities": [list(group) for group in node.equalities],
        "residual": [part.show() for part in node.residual],
        "order": order,
        "cost": _exact(choice.best.cost),
        "orders": [_costed(each, names) for each in sorted(listed, key=lambda each: each.cost)],
        "considered": [_costed(each, names) for each in choice.considered],
        "exhaustive": bool(choice.all),
    }
    if choice.worst is not None and choice.average is not None:
        detail |= {"worst": _exact(choice.worst), "average": _exact(choice.average)}
    said = " and ".join(conditions) or "every pair"
    return "join", (said, f"order {' '.join(order)}", f"cost {choice.best.cost:,.0f}/s"), detail


def _costed(each: CostedOrder, names: list[str]) -> dict[str, Any]:
    return {"order": [names[index] for index in each.order], "cost": _exact(each.cost)}


def _exact(cost: float) -> float:
    return round(cost, 6)


def _matching(node: TableJoin | SemiJoin | Negation) -> tuple[str, dict[str, Any]]:
    conditions = [f"{a} = {b}" for a, b in node.keys] + [part.show() for part in node.residual]
    detail = {"keys": [list(pair) for pair in node.keys], "residual": [part.show() for part in node.residual]}
    return " and ".join(conditions) or "any row", detail


@_about.register
def _(node: TableJoin, optimized: OptimizedPlan) -> About:
    title, detail = _matching(node)
    kind = "retroactive" if node.table.retroactive else "non-retroactive"
    detail |= {"table": node.table.name, "retroactive": node.table.retroactive}
    return "join", (title, f"with {kind} table {node.table.name}"), detail


@_about.register
def _(node: SemiJoin, optimized: OptimizedPlan) -> About:
    title, detail = _matching(node)
    return "semijoin", title, detail


@_about.register
def _(node: Negation, optimized: OptimizedPlan) -> About:
    title, detail = _matching(node)
    premature = optimized.estimates.edges[node].premature
    return "negation", title, detail | {"premature": round(premature, 4)}


@_about.register
def _(node: Difference, optimized: OptimizedPlan) -> About:
    return "negation", "as many copies as the left has more", {"multiplicities": True}


@_about.register
def _(node: Distinct, optimized: OptimizedPlan) -> About:
    columns = [column.name for column in node.schema]
    return "distinct", ", ".join(columns), {"columns": columns}


@_about.register
def _(node: Aggregate, optimized: OptimizedPlan) -> About:
    calls = [call.show() for call in node.calls]
    title = ", ".join(calls) or "groups"
    if node.keys:
        title += " by " + ", ".join(node.keys)
    return "aggregate", title, {"keys": list(node.keys), "aggregates": calls}


@_about.register
def _(node: Union, optimized: OptimizedPlan) -> About:
    return "union", f"{len(node.members)} inputs", {"members": len(node.members)}


@_about.register
def _(node: Emit, optimized: OptimizedPlan) -> About:
    restore = " RESTORE" if node.restore else ""
    window = f" {show_window(node.window)}" if node.window else ""
    return node.kind.lower(), f"{restore}{window}".strip(), {"restore": node.restore}
