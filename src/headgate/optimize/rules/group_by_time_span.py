"""Groups by a span of time instead of by the text that names it.

Before: `Aggregate(GROUP BY k, Project(k = date_format(ts, 'yyyy-MM-dd HH')))`
After:  `Project(k = date_format(u, …), Aggregate(GROUP BY u, Project(u = date_trunc('HOUR', ts))))`

Likewise for Distinct. A pattern with the year and every field down to its finest one names each span by another
text, so groups stay the same, NULL included; but event time can go beyond a span, and a text says nothing of time.
Text is made once per group instead of once per row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from sqlglot import exp

from headgate.model import types
from headgate.model.scalar import Scalar, column
from headgate.optimize.rules.prune_columns import merged
from headgate.plan.nodes import Aggregate, Distinct, Node, Output, Project

_UNITS = {"%Y": "YEAR", "%m": "MONTH", "%d": "DAY", "%H": "HOUR", "%M": "MINUTE", "%S": "SECOND"}
"""Fields from the coarsest to the finest. All but the year have two digits, so texts need no separators to differ."""

# As sqlglot writes Spark's yyyy, MM, dd, HH, mm, ss. It marks two digits by "strict"; "%-m" has one or two.
_FIELD = re.compile(r"%Y|(%[mdHMS])strict")
_SEPARATORS = re.compile(r"[-/.,:;_ ]*")


def group_by_time_span(node: Node) -> Node:
    """The plan with groups and values of DISTINCT by time, where they are by its text."""
    node = node.with_inputs([group_by_time_span(each) for each in node.inputs])
    if not isinstance(node, (Aggregate, Distinct)) or not isinstance(node.input, Project):
        return node
    below = node.input
    while isinstance(below.input, Project):
        below = merged(below)
    keys = node.keys if isinstance(node, Aggregate) else tuple(output.name for output in below.outputs)
    spans = _spans(below, keys)
    if not spans:
        return node
    read = {call.argument for call in node.calls} if isinstance(node, Aggregate) else set()
    outputs = {each.name: each for each in below.outputs if each.name not in spans or each.name in read}
    outputs |= {span.output.name: span.output for span in spans.values()}
    below = replace(below, outputs=tuple(outputs.values()))
    grouped: Node
    if isinstance(node, Aggregate):
        by = dict.fromkeys(spans[key].output.name if key in spans else key for key in keys)
        grouped = replace(node, input=below, keys=tuple(by))
    else:
        grouped = Distinct(below)
    return Project(
        grouped,
        tuple(
            Output(
                each.name,
                spans[each.name].text if each.name in spans else Scalar.column(each.name, each.type),
            )
            for each in node.schema
        ),
    )


@dataclass(frozen=True)
class _Span:
    """A column of spans, and the text of one."""

    output: Output
    text: Scalar


def _spans(project: Project, keys: tuple[str, ...]) -> dict[str, _Span]:
    """The spans to group by, by the name of the key that is their text."""
    spans: dict[str, _Span] = {}
    by_name = {output.name: output.scalar for output in project.outputs}
    for output in project.outputs:
        call = output.scalar.expression
        unit = _unit(call) if isinstance(call, exp.TimeToStr) else None
        if output.name not in keys or unit is None or not _of_timestamps(call.this, project.input):
            continue
        span = Scalar(
            exp.TimestampTrunc(this=_plain(call.this).copy(), unit=exp.Literal.string(unit)), types.TIMESTAMP
        )
        name = span.show()
        if by_name.get(name, span).expression != span.expression:
            continue
        text = call.copy()
        text.set("this", column(name))
        spans[output.name] = _Span(Output(name, span), Scalar(text, output.scalar.type))
    return spans


def _unit(call: exp.TimeToStr) -> str | None:
    """The unit of the spans that a pattern tells apart; None if it leaves out a field, or has others."""
    form = call.args.get("format")
    if not isinstance(form, exp.Literal) or _SEPARATORS.fullmatch(_FIELD.sub("", form.name)) is None:
        return None
    found = {match[1] or match[0] for match in _FIELD.finditer(form.name)}
    units = list(_UNITS)[: len(found)]
    return _UNITS[units[-1]] if found and found == set(units) else None


def _of_timestamps(value: exp.Expr, input: Node) -> bool:
    """Whether it is computed from timestamps alone: dates, texts and local times would have to be converted."""
    read = Scalar(value, types.TIMESTAMP).columns
    return (
        bool(read)
        and all(input.type_of(name) == types.TIMESTAMP for name in read)
        and value.find(exp.Cast) is None
    )


def _plain(value: exp.Expr) -> exp.Expr:
    """Without the node in which sqlglot wraps what may be text."""
    return value.this if isinstance(value, exp.TimeStrToTime) else value
