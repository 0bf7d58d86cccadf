"""Facts: for every edge, how far its columns of time can be from the instant at which a row appears there.

```
a                        born = a.ts
[RANGE 1 HOUR SLIDE 5 MINUTES]   born from a.ts to a.ts + 5 minutes
a ⋈ b, b.ts ≤ a.ts + 1 hour      born from a.ts to a.ts + 1 hour
date_trunc('hour', a.ts) AS h    born from h to h + 2 hours
```

They follow from conditions, windows and, if asked for, from CHECKs, and hold for every row whatever comes.
Where rows appear for another reason than that a row of a stream comes (a row comes back when what hid it has died),
nothing is known of births.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil

import pyarrow as pa
from sqlglot import exp

from headgate.model import types
from headgate.model.scalar import Scalar
from headgate.plan.nodes import (
    Aggregate,
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
    Union,
    Window,
)
from headgate.plan.patterns import Edges, Pattern, asks_once
from headgate.safety.reasons.time.differences import Bound, Differences, Name, close
from headgate.safety.reasons.time.linear import (
    DATES,
    INSTANTS,
    Linear,
    Unit,
    beside,
    linear,
)

BORN = ("born",)
"""The birth of a row, beside its columns."""


@dataclass(frozen=True)
class TimeFacts:
    """What is known of an edge's instants: differences of births and columns, and the units of these."""

    differences: Differences
    units: Mapping[str, Unit] = field(default_factory=dict)
    """Of columns that are computed from time; plain timestamps and dates have their own."""
    filled: frozenset[str] = frozenset()
    """Columns of time that are never NULL."""
    checks: frozenset[str] = frozenset()
    """Streams whose CHECKs it relies on."""

    def lag(self, column: str) -> int | None:
        """How long after the instant in a column a row can still appear; None if that has no limit."""
        return self.differences.bound(BORN, column)


NOTHING = TimeFacts(Differences({}))


@dataclass
class EventTimes:
    """The facts of every edge of a plan, found when asked for."""

    edges: Edges
    checks: bool = False
    """Whether CHECKs are believed."""
    found: dict[Node, TimeFacts] = field(default_factory=dict)

    def of(self, node: Node) -> TimeFacts:
        """What is known of the instants on an edge."""
        if node not in self.found:
            self.found[node] = self._facts(node)
        return self.found[node]

    def joined(self, node: Join | SemiJoin | Negation) -> tuple[Differences, frozenset[str]]:
        """The differences in rows that have met, births as `birth(n)`; and the streams whose CHECKs say so."""
        units = self._units(node.inputs)
        bounds: list[Bound] = []
        for number, member in enumerate(node.inputs):
            own: dict[Name, Name] = {BORN: birth(number)}
            bounds += [(own.get(a, a), own.get(b, b), m) for a, b, m in self.of(member).differences.bounds]
            lifetime = self.edges[member].lifetime
            if lifetime is not None:
                # All rows of a result are alive when it is born.
                others = (n for n in range(len(node.inputs)) if n != number)
                bounds += [(birth(other), birth(number), lifetime - 1) for other in others]
        if isinstance(node, Join):
            pairs = [pair for group in node.equalities for pair in pairwise(group)]
        else:
            # Two NULLs may be equal here, and are no instants; what equals a value is one.
            pairs = [pair for pair in node.keys if not node.null_equal or self._filled(node, *pair)]
        for a, b in pairs:
            if units(a) is not None and units(a) == units(b):
                bounds += [(a, b, 0), (b, a, 0)]
        filled = frozenset().union(*(self.of(each).filled for each in node.inputs))
        for part in node.residual:
            bounds += comparisons(part, units, filled)
        return close(bounds), frozenset().union(*(self.of(each).checks for each in node.inputs))

    def _filled(self, node: SemiJoin | Negation, left: str, right: str) -> bool:
        return left in self.of(node.left).filled or right in self.of(node.right).filled

    def _units(self, inputs: Sequence[Node]) -> _UnitsOf:
        return _UnitsOf(
            {name: unit for each in inputs for name, unit in self.of(each).units.items()},
            {column.name: column.type for each in inputs for column in each.schema},
        )

    def _facts(self, node: Node) -> TimeFacts:
        match node:
            case StreamScan():
                return self._stream(node)
            case Window():
                return self._window(node)
            case Filter():
                return self._filter(node)
            case Project():
                return self._project(node)
            case TableJoin() | SemiJoin() | Negation() if asks_once(node):
                return self.of(node.left)
            case Join() | SemiJoin():
                return self._met(node)
            case Negation() if self._only_grows(node.right):
                return self.of(node.left)
            case Distinct():
                # Where rows die, a value is said again when it passes from one row to the next.
                facts = self.of(node.input)
                return facts if self._only_grows(node.input) else _born_any_time(facts)
            case Aggregate() if self._only_grows(node.input):
                return _only(self.of(node.input), node.keys)
            case Emit(kind="RELATION" | "ISTREAM", restore=False):
                return self.of(node.input)
            case Union():
                return self._union(node)
        return NOTHING

    def _only_grows(self, node: Node) -> bool:
        edge = self.edges[node]
        return max(edge.pattern, edge.expiry) == Pattern.MON

    def _stream(self, node: StreamScan) -> TimeFacts:
        time = node.stream.time
        if time is None:
            return NOTHING
        name = f"{node.name}.{time}"
        bounds: list[Bound] = [(BORN, name, 0), (name, BORN, 0)]
        checks: frozenset[str] = frozenset()
        if self.checks:
            said = list(_checked(node, name))
            bounds += said
            checks = frozenset({node.stream.name}) if said else checks
        return TimeFacts(close(bounds), {}, frozenset({name}), checks)

    def _window(self, node: Window) -> TimeFacts:
        facts, slide = self.of(node.input), node.window.slide
        if slide is None:
            return facts
        # A row appears at the next tick.
        moved = [(a, b, most + (slide - 1 if a == BORN else 0)) for a, b, most in facts.differences.bounds]
        return TimeFacts(close(moved), facts.units, facts.filled, facts.checks)

    def _filter(self, node: Filter) -> TimeFacts:
        facts, units = self.of(node.input), self._units(node.inputs)
        said = list(comparisons(node.predicate, units, facts.filled))
        if not said:
            return facts
        differences = close([*facts.differences.bounds, *said])
        return TimeFacts(differences, facts.units, facts.filled, facts.checks)

    def _project(self, node: Project) -> TimeFacts:
        facts, of = self.of(node.input), self._units(node.inputs)
        bounds = [(_below(a), _below(b), most) for a, b, most in facts.differences.bounds]
        bounds += [(BORN, _below(BORN), 0), (_below(BORN), BORN, 0)]
        units: dict[str, Unit] = {}
        filled = set()
        for output in node.outputs:
            form = linear(output.scalar.expression, of)
            if form is None or list(form.terms.values()) != [1]:
                continue
            (source,) = form.terms
            units[output.name] = Unit(form.kind, form.scale, form.whole)
            bounds.append((output.name, _below(source), ceil(form.high)))
            bounds.append((_below(source), output.name, ceil(-form.low)))
            if source in facts.filled:
                filled.add(output.name)
        differences = close(bounds).among({BORN, *units})
        return TimeFacts(differences, units, frozenset(filled), facts.checks)

    def _met(self, node: Join | SemiJoin) -> TimeFacts:
        """A result is born with its youngest row."""
        met, checks = self.joined(node)
        inputs = node.inputs if isinstance(node, Join) else node.inputs[:1]
        columns = frozenset().union(*(each.names for each in inputs))
        names = {name for pair in met.most for name in pair if name in columns}
        bounds = list(met.among(names).bounds)
        births = [birth(number) for number in range(len(node.inputs))]
        for name in names:
            after = [met.bound(each, name) for each in births]
            known = [each for each in after if each is not None]
            if len(known) == len(births):
                bounds.append((BORN, name, max(known)))
            before = [most for each in births if (most := met.bound(name, each)) is not None]
            if before:
                bounds.append((name, BORN, min(before)))
        units = {name: unit for each in inputs for name, unit in self.of(each).units.items()}
        filled = frozenset().union(*(self.of(each).filled for each in inputs))
        facts = TimeFacts(Differences({(a, b): m for a, b, m in bounds}), units, filled, checks)
        if isinstance(node, SemiJoin) and not self._only_grows(node.right):
            # What exists is said again when one match dies and another one is there.
            return _born_any_time(facts)
        return facts

    def _union(self, node: Union) -> TimeFacts:
        """What all members have in common, column by column."""
        members = [self.of(each) for each in node.members]
        bounds: list[Bound] = []
        units: dict[str, Unit] = {}
        filled = set()
        for place, column in enumerate(node.schema):
            names = [each.schema[place].name for each in node.members]
            known = [self._units((each,))(name) for each, name in zip(node.members, names, strict=True)]
            if known[0] is None or any(unit != known[0] for unit in known):
                continue
            pairs = list(zip(members, names, strict=True))
            after = [facts.differences.bound(BORN, name) for facts, name in pairs]
            before = [facts.differences.bound(name, BORN) for facts, name in pairs]
            late = [most for most in after if most is not None]
            soon = [most for most in before if most is not None]
            units[column.name] = known[0]
            if len(late) == len(members):
                bounds.append((BORN, column.name, max(late)))
            if len(soon) == len(members):
                bounds.append((column.name, BORN, max(soon)))
            if all(name in facts.filled for facts, name in pairs):
                filled.add(column.name)
        checks = frozenset().union(*(each.checks for each in members))
        return TimeFacts(close(bounds), units, frozenset(filled), checks)


def _checked(node: StreamScan, time: str) -> Iterator[Bound]:
    """What CHECKs say of how far columns are from the event time.

    A CHECK that is neither true nor false, for a NULL in it, is passed. So it is believed only between the event
    time, which is never NULL, and a column: whoever compares that column has no NULL in it. What contradicts itself
    lets NULL alone through, and is left out.
    """
    names = {column.name: f"{node.name}.{column.name}" for column in node.stream.columns}
    units = _UnitsOf({}, {column.name: column.type for column in node.schema})
    said = [bound for check in node.stream.checks for bound in comparisons(check.rename(names), units)]
    for column in dict.fromkeys(name for bound in said for name in bound[:2] if name != time):
        direct = [bound for bound in said if {*bound[:2]} == {time, column}]
        after = min((most for later, _, most in direct if later == column), default=None)
        before = min((most for later, _, most in direct if later == time), default=None)
        if after is None or before is None or after + before >= 0:
            yield from direct


def _born_any_time(facts: TimeFacts) -> TimeFacts:
    """The facts without a limit on how long after an instant a row can appear."""
    kept = {(a, b): most for (a, b), most in facts.differences.most.items() if a != BORN}
    return replace(facts, differences=Differences(kept))


def birth(number: int) -> Name:
    """The birth of an input's row, beside the columns of a join."""
    return (*BORN, str(number))


def _below(name: Name) -> Name:
    """A name of the input, beside those of the output."""
    return ("input", *((name,) if isinstance(name, str) else name))


@dataclass(frozen=True)
class _UnitsOf:
    """The units of columns: what is known of computed ones, and what types say of the others."""

    known: Mapping[str, Unit]
    dtypes: Mapping[str, pa.DataType]

    def __call__(self, name: str) -> Unit | None:
        dtype = self.dtypes.get(name)
        if name in self.known or dtype is None:
            return self.known.get(name)
        if types.is_timestamp(dtype):
            return INSTANTS
        return DATES if dtype == types.DATE else None


def _only(facts: TimeFacts, names: Iterable[str]) -> TimeFacts:
    """The facts of some columns."""
    kept = frozenset(names)
    units = {name: unit for name, unit in facts.units.items() if name in kept}
    differences = facts.differences.among({BORN, *kept})
    return TimeFacts(differences, units, facts.filled & kept, facts.checks)


# -- conditions -----------------------------------------------------------------------------------

_ORDER: Mapping[type[exp.Expr], tuple[bool, bool]] = {
    exp.LT: (True, True),
    exp.LTE: (True, False),
    exp.GT: (False, True),
    exp.GTE: (False, False),
}
"""Whether the left side is the lesser, and whether it is strictly."""


def comparisons(condition: Scalar, units: _UnitsOf, filled: Collection[str] = ()) -> Iterator[Bound]:
    """The differences of two columns that hold in every row for which a condition is true.

    Columns that are `filled` are never NULL.
    """
    return _said(condition.expression, _Reading(units, filled), negated=False)


@dataclass(frozen=True)
class _Reading:
    """What is known of columns where a condition is read."""

    units: _UnitsOf
    filled: Collection[str]

    def forms(self, left: exp.Expr, right: exp.Expr) -> tuple[Linear, Linear] | None:
        """Both sides of a comparison in linear form."""
        a, b = linear(left, self.units), linear(right, self.units)
        a = a or beside(b, left)
        b = b or beside(a, right)
        return None if a is None or b is None else (a, b)


def _said(node: exp.Expr, reading: _Reading, *, negated: bool) -> Iterator[Bound]:
    """What a condition says where it is true, or false."""
    match node:
        case exp.Paren():
            yield from _said(node.this, reading, negated=negated)
        case exp.Not():
            yield from _said(node.this, reading, negated=not negated)
        case exp.And() | exp.Or():
            parts = [list(_said(part, reading, negated=negated)) for part in node.flatten()]
            holds = isinstance(node, exp.And) is not negated
            yield from (bound for part in parts for bound in part) if holds else _alternatives(parts)
        case exp.In() if node.expressions and not negated:
            yield from _alternatives([list(_equal(node.this, each, reading)) for each in node.expressions])
        case exp.EQ() if not negated:
            yield from _equal(node.this, node.expression, reading)
        case exp.NEQ() if negated:
            yield from _equal(node.this, node.expression, reading)
        case exp.NullSafeEQ() if not negated:
            # A value that equals one that is not NULL is not NULL either.
            sides = (set(Scalar(side, types.BOOLEAN).columns) for side in (node.this, node.expression))
            if any(side and side <= set(reading.filled) for side in sides):
                yield from _equal(node.this, node.expression, reading)
        case exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            lesser, strict = _ORDER[type(node)]
            low, high = (
                (node.this, node.expression) if lesser is not negated else (node.expression, node.this)
            )
            yield from _ordered(low, high, reading, strict=strict is not negated)


def _alternatives(parts: Iterable[list[Bound]]) -> Iterator[Bound]:
    """What holds whichever of several conditions is true.

    Only what each says by itself: sums of bounds hold where nothing between is NULL, which a CHECK does not promise.
    """
    told = [
        {(a, b): min(most for c, d, most in part if (c, d) == (a, b)) for a, b, _ in part} for part in parts
    ]
    for a, b in told[0]:
        if all((a, b) in each for each in told):
            yield a, b, max(each[a, b] for each in told)


def _equal(left: exp.Expr, right: exp.Expr, reading: _Reading) -> Iterator[Bound]:
    yield from _ordered(left, right, reading, strict=False)
    yield from _ordered(right, left, reading, strict=False)


def _ordered(low: exp.Expr, high: exp.Expr, reading: _Reading, *, strict: bool) -> Iterator[Bound]:
    """What `low` ≤ `high` (or <) says. That |x| is small says it of x and of -x."""
    while isinstance(low, exp.Paren):
        low = low.this
    forms = reading.forms(low.this if isinstance(low, exp.Abs) else low, high)
    if forms is None:
        return
    yield from _bound(*forms, reading.units, strict=strict)
    if isinstance(low, exp.Abs):
        yield from _bound(forms[0].negated(), forms[1], reading.units, strict=strict)


def _bound(low: Linear, high: Linear, units: _UnitsOf, *, strict: bool) -> Iterator[Bound]:
    """What `low` ≤ `high` (or <) says, if it is about two columns."""
    difference = low.plus(high, -1)
    if difference is None or sorted(difference.terms.values()) != [-1, 1]:
        return
    later, earlier = sorted(difference.terms, key=lambda name: -difference.terms[name])
    most = ceil(-difference.low)
    # Between instants, which are whole, less is less by one.
    whole = most == -difference.low and units(later) == units(earlier) == INSTANTS
    yield later, earlier, most - (strict and whole)
