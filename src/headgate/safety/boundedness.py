"""Boundedness: why the rows that live on an edge are bounded in number, or that nothing bounds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch

from headgate.model.time import format_duration
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
from headgate.plan.patterns import Edge, Edges, Pattern
from headgate.safety.assumption import Assumption, few_values_come, table_stays_small
from headgate.safety.cause import Cause
from headgate.safety.lineage import shown_name
from headgate.safety.reasons.existence_closing import ExistencePurge
from headgate.safety.reasons.purge_analysis import JoinPurge
from headgate.safety.reasons.time.retention import Retention, meet_in_time
from headgate.safety.reasons.value_limit import ValueLimit, value_limit


@dataclass(frozen=True)
class Boundedness:
    """The cause that bounds an edge's live rows (`none` if nothing does), in words."""

    by: Cause
    reason: str
    checks: frozenset[str] = frozenset()
    """Streams whose CHECKs are part of the reason."""
    assumes: tuple[Assumption, ...] = ()
    """What must stay true for it."""

    @property
    def bounded(self) -> bool:
        return self.by is not Cause.NONE


EdgeBounds = Mapping[Node, Boundedness]


Retained = Mapping[Node, Mapping[int, Retention]]
"""By join, the inputs that time lets go, and how long they are kept."""


def measure(
    plan: Node,
    edges: Edges,
    purges: Mapping[Join, JoinPurge],
    matching: Mapping[SemiJoin | Negation, ExistencePurge],
    retained: Retained,
) -> EdgeBounds:
    """The boundedness of every edge of a plan.

    Sound because live rows are counted per operator: a bounded number of live input rows gives a bounded number
    of live output rows for every operator here. A join needs less: see `_of_forgetting_join`. Where rows never die,
    no window bounds them, whatever bounds the rows below: see `_never_dying`.
    """
    found: dict[Node, Boundedness] = {}
    for node in reversed(list(plan.walk())):
        inputs = [found[each] for each in node.inputs]
        boundedness = _boundedness(node, inputs)
        if isinstance(node, Join):
            boundedness = (
                _of_forgetting_join(node, inputs, edges, purges[node], retained[node]) or boundedness
            )
        if isinstance(node, SemiJoin):
            boundedness = (
                _of_forgetting_existence(node, inputs, edges, matching[node].purge, retained[node])
                or boundedness
            )
        found[node] = _never_dying(node, edges, boundedness)
    return found


def _never_dying(node: Node, edges: Edges, boundedness: Boundedness) -> Boundedness:
    """The boundedness of an edge as its update pattern allows it: rows that never die are bounded by no window.

    So it is above an aggregate over INTERNAL windows: its groups leave with their rows, or there are few of them, but
    each value that it has said stays.
    """
    if _dies(edges[node]):
        return boundedness
    # Above a window that keeps all rows, what few values or a table limit below is how many live there at a time.
    all_stay = isinstance(node, Window) and _dies(edges[node.input]) and not _is_empty(node)
    if boundedness.by is not Cause.WINDOW and not isinstance(node, Aggregate) and not all_stay:
        return boundedness
    return Boundedness(
        Cause.NONE,
        "what has been answered over INTERNAL windows is never taken back, so every row of it stays",
    )


def _dies(edge: Edge) -> bool:
    """Whether rows of an edge leave what is kept of it."""
    return max(edge.pattern, edge.expiry) != Pattern.MON


def _is_empty(node: Node) -> bool:
    return any(isinstance(each, Filter) and each.predicate.is_false for each in node.walk())


def groups_of(node: Aggregate, below: Boundedness) -> Boundedness:
    """Why the groups of an aggregate are bounded in number, given the boundedness of its input."""
    return _boundedness(node, [below])


def _of_forgetting_join(
    node: Join,
    inputs: Sequence[Boundedness],
    edges: Edges,
    purge: JoinPurge,
    retained: Mapping[int, Retention],
) -> Boundedness | None:
    """The boundedness of a join of windowed inputs with unwindowed ones that it forgets; None if it is not one.

    A live result has a live row of the windowed input, and rows of the others that were stored at its birth or came
    while it lived. All of these are bounded in number if it lives for a limited time. A row of a row window lives
    until others come, however long that takes: then time must limit what it meets.
    """
    open_inputs = [number for number, boundedness in enumerate(inputs) if not boundedness.bounded]
    if not open_inputs or any(
        number not in purge.chains and number not in retained for number in open_inputs
    ):
        return None
    for number, boundedness in enumerate(inputs):
        pattern = edges[node.members[number]].pattern
        if boundedness.by is not Cause.WINDOW or pattern == Pattern.MON:
            continue
        if pattern != Pattern.STR or number in meet_in_time(node, edges):
            name = shown_name(node.members[number], number)
            return Boundedness(Cause.WINDOW, f"a result leaves with its row of {name}: {boundedness.reason}")
    return None


def _of_forgetting_existence(
    node: SemiJoin,
    inputs: Sequence[Boundedness],
    edges: Edges,
    purge: JoinPurge,
    retained: Mapping[int, Retention],
) -> Boundedness | None:
    """The boundedness of EXISTS of an unwindowed side that it forgets against a windowed one; None if it is not that.

    A row of the answer has a match in the window, and a left row that has one is not dropped: so there are no more
    rows in the answer than left rows that are kept.
    """
    left, right = inputs
    if left.bounded or right.by is not Cause.WINDOW or (0 not in purge.chains and 0 not in retained):
        return None
    if edges[node.right].pattern not in (Pattern.WKS, Pattern.WK):
        return None
    reason = f"a result leaves with its last match of {shown_name(node.right, 1)}: {right.reason}"
    assumes = () if 0 in retained else purge.chains[0].assumes
    return Boundedness(Cause.WINDOW, reason, right.checks, (*right.assumes, *assumes))


def by_values(node: Node, columns: tuple[str, ...], things: str) -> Boundedness | None:
    """The boundedness of the different rows of an edge in some columns; None if values do not limit it."""
    found = value_limit(node, columns)
    if found is None:
        grouped = _below_groups(node, columns)
        found = None if grouped is None else value_limit(*grouped)
    if found is None:
        return None
    names = ", ".join(columns)
    said = found.said(things)
    if columns and found.few:
        said += f": {names} {'has' if len(columns) == 1 else 'have'} few values"
    return _limited(found, columns, said)


def _limited(found: ValueLimit, columns: tuple[str, ...], said: str) -> Boundedness:
    """The boundedness of as many rows as values; that very many values do not come is an assumption."""
    cause = Cause.FINITE if found.tables else Cause.VALUES
    return Boundedness(
        cause, said, found.checks, () if found.few else (few_values_come(columns, found.count),)
    )


def _below_groups(node: Node, columns: tuple[str, ...]) -> tuple[Node, tuple[str, ...]] | None:
    """What the aggregate below an edge reads, if the columns are keys of it: they have no other values there."""
    match node:
        case Filter():
            return _below_groups(node.input, columns)
        case Project():
            plain = {o.name: o.scalar.expression.name for o in node.outputs if o.scalar.is_column}
            if all(name in plain for name in columns):
                return _below_groups(node.input, tuple(plain[name] for name in columns))
        case Aggregate() if all(name in node.keys for name in columns):
            return node.input, columns
    return None


def _weakest(inputs: Sequence[Boundedness]) -> Boundedness:
    """What an operator over several inputs inherits: the first cause of trouble, else the first cause.

    Its bound rests on what each of theirs rests on.
    """
    first = next((each for each in inputs if not each.bounded), inputs[0])
    checks = frozenset().union(*(each.checks for each in inputs))
    assumes = tuple(dict.fromkeys(assumption for each in inputs for assumption in each.assumes))
    return Boundedness(first.by, first.reason, checks, assumes) if first.bounded else first


@singledispatch
def _boundedness(node: Node, inputs: Sequence[Boundedness]) -> Boundedness:
    raise TypeError(f"nothing measures {type(node).__name__}")


@_boundedness.register
def _(node: StreamScan, inputs: Sequence[Boundedness]) -> Boundedness:
    return Boundedness(Cause.NONE, f"{node.name} has no window, so every row of it stays")


@_boundedness.register
def _(node: TableScan, inputs: Sequence[Boundedness]) -> Boundedness:
    if node.table.changes:
        return Boundedness(Cause.FINITE, f"{node.name} is a table", assumes=(table_stays_small(node.name),))
    return Boundedness(Cause.FINITE, f"{node.name} is a table that does not change")


@_boundedness.register
def _(node: Window, inputs: Sequence[Boundedness]) -> Boundedness:
    window = node.window
    match window.kind:
        case "RANGE":
            assert window.length is not None
            return Boundedness(Cause.WINDOW, f"rows leave after {format_duration(window.length)}")
        case "NOW":
            return Boundedness(Cause.WINDOW, "rows leave after their own instant")
        case "ROWS" if not window.partition:
            return Boundedness(Cause.WINDOW, f"at most {window.rows} rows stay")
        case "ROWS":
            names = ", ".join(window.partition)
            found = value_limit(node.input, window.partition)
            if found is not None:
                said = (
                    f"at most {window.rows} rows stay for each value of {names}, and {found.said('of these')}"
                )
                return _limited(found, window.partition, said)
            return Boundedness(
                Cause.NONE,
                f"the newest rows of every {names} stay ({window.rows} each), and new values never stop coming",
            )
    return inputs[0]


@_boundedness.register
def _(node: Filter, inputs: Sequence[Boundedness]) -> Boundedness:
    if node.predicate.is_false:
        return Boundedness(Cause.VALUES, "no row can satisfy the conditions")
    return inputs[0]


@_boundedness.register
def _(node: Project, inputs: Sequence[Boundedness]) -> Boundedness:
    return inputs[0]


@_boundedness.register
def _(node: Join | TableJoin | Union, inputs: Sequence[Boundedness]) -> Boundedness:
    return _weakest(inputs)


@_boundedness.register
def _(node: SemiJoin | Negation | Difference, inputs: Sequence[Boundedness]) -> Boundedness:
    return inputs[0]


@_boundedness.register
def _(node: Distinct, inputs: Sequence[Boundedness]) -> Boundedness:
    if inputs[0].bounded:
        return inputs[0]
    return by_values(node.input, tuple(column.name for column in node.schema), "values") or inputs[0]


@_boundedness.register
def _(node: Aggregate, inputs: Sequence[Boundedness]) -> Boundedness:
    if not node.keys:
        return Boundedness(Cause.VALUES, "there is one group")
    if inputs[0].bounded:
        below = inputs[0]
        reason = f"a group lives while its rows do; {below.reason}"
        return Boundedness(below.by, reason, below.checks, below.assumes)
    few = by_values(node.input, node.keys, "groups")
    if few is not None:
        return few
    return Boundedness(
        Cause.NONE, f"a group stays for every value of {', '.join(node.keys)}; {inputs[0].reason}"
    )


@_boundedness.register
def _(node: Emit, inputs: Sequence[Boundedness]) -> Boundedness:
    if node.kind == "RELATION":
        return inputs[0]
    if node.kind == "WSTREAM":
        return Boundedness(Cause.WINDOW, "the output window holds it")
    return Boundedness(Cause.NONE, "it is a stream: every row of it stays unless a window is put on it")
