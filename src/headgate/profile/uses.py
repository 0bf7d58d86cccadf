"""Uses: which columns of which streams a query joins, groups by and compares, since only a constraint on those can
let it forget.

A join is bounded by what closes the columns that it sets equal, a group by what closes its keys, a value of DISTINCT
by what closes its columns. So these are the sets of columns on which constraints are looked for; a pair of sets that
a join sets equal may be a FOREIGN KEY.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from headgate.plan.catalog import StreamDef
from headgate.plan.nodes import (
    Aggregate,
    Difference,
    Distinct,
    Filter,
    Join,
    Negation,
    Node,
    Project,
    SemiJoin,
    StreamScan,
    TableJoin,
    Union,
)
from headgate.runtime.io.registry import FILE_FORMATS
from headgate.safety.lineage import lineage
from headgate.safety.verdict import Verdict

MOST_COLUMNS = 6
"""Constraints on more columns than these together are not looked for."""


@dataclass(frozen=True)
class Link:
    """Columns of a stream that a query sets equal to columns of another, or of itself."""

    stream: str
    columns: tuple[str, ...]
    other: str
    keys: tuple[str, ...]

    @property
    def reversed(self) -> Link:
        return Link(self.other, self.keys, self.stream, self.columns)


@dataclass
class Uses:
    """What queries use, each once, in order of first use."""

    sets: dict[str, dict[tuple[str, ...], None]] = field(default_factory=dict)
    """By stream: columns that are used alone or together."""
    links: dict[Link, None] = field(default_factory=dict)

    def add(self, plan: Node) -> None:
        """Adds what a plan uses."""
        for node in plan.walk():
            match node:
                case Join():
                    self._join(node.members, node.equalities)
                case SemiJoin() | Negation():
                    self._join((node.left, node.right), node.keys)
                case Aggregate():
                    values = [n for call in node.calls if call.needs_values for n in call.arguments]
                    self._grouped(node.input, node.keys)
                    self._grouped(node.input, [*node.keys, *values])
                case Distinct():
                    self._grouped(node.input, [each.name for each in node.schema])
                case Difference():
                    for side in (node.left, node.right):
                        self._grouped(side, [each.name for each in side.schema])
                case _:
                    pass

    def _join(self, members: Sequence[Node], equalities: Iterable[Sequence[str]]) -> None:
        joined: dict[StreamScan, dict[str, None]] = {}
        pairs: dict[tuple[StreamScan, StreamScan], dict[tuple[str, str], None]] = {}
        for group in equalities:
            sides = [
                (number, origin)
                for number, member in enumerate(members)
                for name in group
                if name in member.names
                for origin in _origins(member, name)
            ]
            for number, (scan, column) in sides:
                joined.setdefault(scan, {})[column] = None
                for other, (partner, key) in sides:
                    if other != number:
                        pairs.setdefault((scan, partner), {})[column, key] = None
        for scan, columns in joined.items():
            self._put(scan.stream, columns)
        for (scan, partner), found in pairs.items():
            whole = [found] if len(dict(found)) == len(found) else []
            for each in (*({pair: None} for pair in found), *whole):
                own, keys = zip(*each, strict=True)
                if len(own) <= MOST_COLUMNS:
                    self.links[Link(scan.stream.name, own, partner.stream.name, keys)] = None

    def _grouped(self, node: Node, names: Sequence[str]) -> None:
        found: dict[StreamScan, dict[str, None]] = {}
        for name in names:
            for scan, column in _origins(node, name):
                found.setdefault(scan, {})[column] = None
        for scan, columns in found.items():
            self._put(scan.stream, columns)

    def _put(self, stream: StreamDef, columns: Iterable[str]) -> None:
        types = {column.name: column.type for column in stream.columns}
        usable = [name for name in columns if can_be_promised(types[name])]
        sets = self.sets.setdefault(stream.name, {})
        for each in (*((name,) for name in usable), tuple(usable)):
            if 0 < len(each) <= MOST_COLUMNS:
                sets[each] = None


HELPED = frozenset({"join", "semijoin", "negation", "difference", "distinct", "aggregate"})
"""The operators whose states a constraint can bound."""


def can_be_helped(plan: Node, verdict: Verdict) -> bool:
    """Whether a query is refused for a state that constraints on the columns of its streams could bound.

    And whether its streams are in files, which is where constraints are looked for.
    """
    if verdict.admitted or HELPED.isdisjoint(state.operator for state in verdict.unbounded):
        return False
    scans = [node for node in plan.walk() if isinstance(node, StreamScan)]
    if not all(
        each.stream.source is not None and each.stream.source.format in FILE_FORMATS for each in scans
    ):
        return False
    uses = Uses()
    uses.add(plan)
    return any(uses.sets.values())


def can_be_promised(dtype: pa.DataType) -> bool:
    """Whether values of a type are equal without doubt, so that a promise can rest on them."""
    return not (pa.types.is_floating(dtype) or pa.types.is_nested(dtype) or pa.types.is_boolean(dtype))


def has_order(dtype: pa.DataType) -> bool:
    """Whether values of a type are likely to come in order: numbers that count up, days, instants."""
    return bool(pa.types.is_integer(dtype) or pa.types.is_date(dtype) or pa.types.is_timestamp(dtype))


def _origins(node: Node, name: str) -> Iterator[tuple[StreamScan, str]]:
    """The columns of streams behind a column: through everything that only passes it on, and what joins set equal."""
    behind = lineage(node)
    if behind is not None:
        if name in behind.columns:
            yield behind.scan, behind.columns[name]
        return
    match node:
        case Project():
            output = next(each for each in node.outputs if each.name == name)
            if output.scalar.is_column:
                yield from _origins(node.input, output.scalar.expression.name)
        case Filter() | Distinct():
            yield from _origins(node.input, name)
        case Aggregate() if name in node.keys:
            yield from _origins(node.input, name)
        case Join():
            for each in next((group for group in node.equalities if name in group), (name,)):
                yield from _origins(next(member for member in node.members if each in member.names), each)
        case SemiJoin() | Negation() | TableJoin() if name in node.left.names:
            yield from _origins(node.left, name)
        case Union() | Difference():
            place = next(at for at, column in enumerate(node.schema) if column.name == name)
            for member in node.inputs:
                yield from _origins(member, member.schema[place].name)
        case _:
            pass
