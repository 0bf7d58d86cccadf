"""Column values: what conditions, joins and tables say of the values of an edge's columns.

```
Filter c = 'x' OR c = 'y'        c is 'x' or 'y'
Join s.k = t.k, t static         s.k is one of the values of t.k: no more than t has rows
Project k % 10 AS m              m is from -9 to 9
```

Sound because each thing that is noted is true of every row on the edge, whenever it comes: windows, DISTINCT and
negation take rows away and change none. Of a table that changes nothing is known, because any value may come.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce

from sqlglot import exp

from headgate.model import types
from headgate.model.aggregates import Accumulator
from headgate.model.scalar import Scalar, column
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
from headgate.plan.normalize import split_conjunction
from headgate.safety.block import REMEMBERED
from headgate.safety.reasons.finite_values import ONLY_NULL, Values
from headgate.safety.reasons.known_values import ColumnValues


@lru_cache(maxsize=REMEMBERED)
def column_values(node: Node, *, checks: bool = False) -> ColumnValues:
    """What is known of the columns of an edge; with `checks`, what streams' CHECKs say is believed.

    Remembered, since the rules and the gate ask it of the same edges, one below the other.
    """
    match node:
        case StreamScan():
            return _scanned(node, checks=checks)
        case TableScan():
            found = _unknown(node)
            if not node.table.changes:
                row = Values(1, tables=frozenset([node]))
                for each in node.schema:
                    found = found.narrowed(column(each.name), row)
            return found
        case Filter():
            below = column_values(node.input, checks=checks)
            return below.where(part.expression for part in split_conjunction(node.predicate))
        case Project():
            return _projected(node, column_values(node.input, checks=checks))
        case Join():
            return _joined(node, [column_values(each, checks=checks) for each in node.members])
        case TableJoin() | SemiJoin():
            return _matched(node, *(column_values(each, checks=checks) for each in node.inputs))
        case Union():
            return _united(node, [column_values(each, checks=checks) for each in node.members])
        case Aggregate():
            return _grouped(node, column_values(node.input, checks=checks))
        case Window() | Distinct() | Negation() | Difference() | Emit():
            return column_values(node.inputs[0], checks=checks)
    return _unknown(node)


def _unknown(node: Node) -> ColumnValues:
    return ColumnValues({each.name: each.type for each in node.schema}, {})


def _scanned(node: StreamScan, *, checks: bool) -> ColumnValues:
    if not checks:
        return _unknown(node)
    names = {each.name: f"{node.name}.{each.name}" for each in node.stream.columns}
    parts = [part for check in node.stream.checks for part in split_conjunction(check.rename(names))]
    # A CHECK is kept by a row for which it is NULL, too: with two columns, one may be NULL and the other anything.
    found = _unknown(node).where(part.expression for part in parts if len(part.columns) == 1)
    known = {each: _or_null(values) for each, values in found.known.items()}
    return ColumnValues(found.types, known, empty=False)


def _or_null(values: Values) -> Values:
    return values.joined(ONLY_NULL)


def _projected(node: Project, below: ColumnValues) -> ColumnValues:
    """Computed columns, and what was known of expressions whose columns are still there."""
    plain = {o.scalar.expression.name: o.name for o in node.outputs if o.scalar.is_column}
    known: dict[exp.Expr, Values] = {}
    for expression, values in below.known.items():
        if _columns(expression) <= plain.keys():
            known[Scalar(expression, types.NULL).rename(plain).expression] = values
    for output in node.outputs:
        known[column(output.name)] = below.of(output.scalar.expression)
    return ColumnValues({each.name: each.type for each in node.schema}, known, below.empty)


def _merged(sides: Sequence[ColumnValues]) -> ColumnValues:
    known = {expression: values for side in sides for expression, values in side.known.items()}
    named = {name: dtype for side in sides for name, dtype in side.types.items()}
    return ColumnValues(named, known, any(side.empty for side in sides))


def _joined(node: Join, members: Sequence[ColumnValues]) -> ColumnValues:
    equal = [_equal(group[0], other) for group in node.equalities for other in group[1:]]
    # Each class twice, so that what the last says reaches the first.
    return _merged(members).where([*equal, *(each.expression for each in node.residual), *equal])


def _matched(node: TableJoin | SemiJoin, left: ColumnValues, right: ColumnValues) -> ColumnValues:
    """A row that has a partner has the partner's values where they are equal."""
    if left.types.keys() & right.types.keys():
        return left
    merged = _merged((left, right))
    if isinstance(node, SemiJoin) and node.null_equal:
        equal: list[exp.Expr] = [exp.NullSafeEQ(this=column(a), expression=column(b)) for a, b in node.keys]
    else:
        equal = [_equal(a, b) for a, b in node.keys]
    found = merged.where([*equal, *(each.expression for each in node.residual)])
    kept = {each: values for each, values in found.known.items() if _columns(each) <= node.names}
    return ColumnValues({each.name: each.type for each in node.schema}, kept, found.empty)


def _columns(node: exp.Expr) -> frozenset[str]:
    return Scalar(node, types.NULL).columns


def _equal(left: str, right: str) -> exp.Expr:
    return exp.EQ(this=column(left), expression=column(right))


def _united(node: Union, members: Sequence[ColumnValues]) -> ColumnValues:
    found = _unknown(node)
    coming = [(member, each) for member, each in zip(node.members, members, strict=True) if not each.empty]
    for place, named in enumerate(node.schema if coming else ()):
        values = [each.column(member.schema[place].name) for member, each in coming]
        found = found.narrowed(column(named.name), reduce(Values.joined, values))
    return ColumnValues(found.types, found.known, empty=not coming)


def _grouped(node: Aggregate, below: ColumnValues) -> ColumnValues:
    """The keys as they are below; the least and the greatest of few values are few, and so is a count of them."""
    keys = frozenset(node.keys)
    known = {each: values for each, values in below.known.items() if _columns(each) <= keys}
    for call in node.calls:
        if call.argument is None:
            continue
        argument = below.column(call.argument)
        if call.function.is_extreme:
            known[column(call.output.name)] = _or_null(argument)
        elif (
            call.function.traits.accumulator is Accumulator.COUNT
            and call.distinct
            and argument.count is not None
            and not argument.tables
        ):
            known[column(call.output.name)] = Values.between(0, argument.count, nullable=False)
    empty = below.empty and bool(node.keys)
    return ColumnValues({each.name: each.type for each in node.schema}, known, empty)
