"""Refuses plans whose answer cannot mean anything, with the reason (Windows document, 3.3 and 3.5.3)."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from headgate.language import nodes as syntax
from headgate.language.parse import Statement
from headgate.model.errors import MeaninglessError
from headgate.plan.catalog import TableDef
from headgate.plan.nodes import (
    Aggregate,
    Difference,
    Distinct,
    Emit,
    Join,
    Negation,
    Node,
    SemiJoin,
    TableJoin,
    TableScan,
    Window,
)
from headgate.plan.patterns import Edges, Pattern, has_replaced_rows, table_asked_at_birth


def check_meaning(plan: Node, edges: Edges, statement: Statement) -> None:
    """Raises MeaninglessError for the first node of a normalized plan that cannot mean anything."""
    for node in plan.walk():
        match node:
            case Distinct() | Negation() | Difference() | SemiJoin():
                _no_internal_below(node, edges, statement)
            case Window():
                _window_on_stream(node, edges, statement)
        match node:
            case TableJoin() if node.table.changes:
                _table_below_endings(node, node.table, edges, statement)
            case SemiJoin() | Negation() if (table := table_asked_at_birth(node)) is not None:
                _table_below_endings(node, table, edges, statement)
            case Aggregate() | Join():
                _no_rewriting_below(node, edges, statement)
    _nrr_needs_stream(plan, statement)


def _no_internal_below(node: Node, edges: Edges, statement: Statement) -> None:
    if not any(edges[each].has_internal for each in node.inputs):
        return
    name = {"Distinct": "DISTINCT", "SemiJoin": "EXISTS"}.get(type(node).__name__, "negation")
    emits = _wstreams(statement)
    if emits:
        raise MeaninglessError(
            f"WSTREAM takes its input windows as internal, and {name} cannot stand over internal windows: "
            "results that never die would contradict it",
            remedy="use ISTREAM or RSTREAM",
            place=statement.place(emits[0]),
        )
    raise MeaninglessError(
        f"INTERNAL under {name}: its results would stay when the rows behind them are gone, "
        f"which is what {name} must not allow",
        remedy="drop INTERNAL, and use ISTREAM for an append-only result",
        place=statement.place(_internal_window(statement)),
    )


def _wstreams(statement: Statement) -> list[syntax.Emit]:
    return [each for each in statement.tree.find_all(syntax.Emit) if each.args["kind"] == "WSTREAM"]


def _internal_window(statement: Statement) -> exp.Expr | None:
    return next((w for w in statement.tree.find_all(syntax.WindowSpec) if w.args.get("internal")), None)


def _window_on_stream(node: Window, edges: Edges, statement: Statement) -> None:
    if edges[node.input].pattern == Pattern.MON:
        return
    place = statement.place(_window_on_subquery(statement))
    if any(isinstance(each, Aggregate) for each in _up_to_emit(node.input)):
        raise MeaninglessError(
            "a window over an aggregate's output: an aggregate has one current value, which is replaced, "
            "not a history that a window could hold",
            remedy="add INTERNAL to the inner window, or write the inner query with ISTREAM(…)",
            place=place,
        )
    raise MeaninglessError(
        "a window needs a stream; this sub-query is a relation whose rows come and go",
        remedy="write the inner query with ISTREAM(…), or make its windows INTERNAL",
        place=place,
    )


def _window_on_subquery(statement: Statement) -> exp.Expr | None:
    for item in statement.tree.find_all(syntax.Windowed):
        if not isinstance(item.this, exp.Table):
            window: exp.Expr = item.args["window"]
            return window
    return None


def _up_to_emit(node: Node) -> Iterator[Node]:
    if isinstance(node, Emit):
        return
    yield node
    for each in node.inputs:
        yield from _up_to_emit(each)


def _table_below_endings(
    node: TableJoin | SemiJoin | Negation, table: TableDef, edges: Edges, statement: Statement
) -> None:
    left = edges[node.left]
    # Rows of an INTERNAL window do not end for whoever reads the results, but they do for the join.
    ends = left.has_internal and left.expiry == Pattern.STR and table.is_asked_at_birth
    if not ends and not has_replaced_rows(node.left, edges):
        return
    cause = next((_why_strict(each) for each in _up_to_emit(node.left) if _why_strict(each)), "its input")
    what = "a join with" if isinstance(node, TableJoin) else "EXISTS over"
    raise MeaninglessError(
        f"{what} table {table.name} above {cause}: when a row ends early, the table's rows that it has "
        "met may have changed, so the ending cannot be followed",
        remedy="join the table first, in a sub-query below, or use a RANGE window",
        place=statement.place(_table_named(statement, table.name)),
    )


def _no_rewriting_below(node: Aggregate | Join, edges: Edges, statement: Statement) -> None:
    """What a changing table makes of rows of INTERNAL windows cannot be told from rows of other windows above it."""
    joins = [each for below in node.inputs for each in _up_to_emit(below) if isinstance(each, TableJoin)]
    found = [each.table for each in joins if each.table.rewrites and edges[each.left].has_internal]
    if not found:
        return
    what, name = "a join" if isinstance(node, Join) else "an aggregate", found[0].name
    windows = "WSTREAM, which takes its windows as INTERNAL" if _wstreams(statement) else "INTERNAL windows"
    raise MeaninglessError(
        f"{what} over {windows}, and over table {name}, which changes: "
        "what is permanent, a change of the table would take back",
        remedy=f"drop INTERNAL, or declare {name} NON RETROACTIVE",
        place=statement.place(_table_named(statement, name)),
    )


def _why_strict(node: Node) -> str | None:
    match node:
        case Window() if node.window.kind == "ROWS":
            return "a ROWS window"
        case Negation() | Difference():
            return "a negation"
        case Aggregate():
            return "an aggregate"
        case TableJoin() if node.table.rewrites:
            return f"the retroactive table {node.table.name}"
    return None


def _table_named(statement: Statement, name: str) -> exp.Expr | None:
    for table in statement.tree.find_all(exp.Table):
        if table.name.casefold() == name.casefold():
            name_node: exp.Expr = table.this
            return name_node
    return None


def _nrr_needs_stream(plan: Node, statement: Statement) -> None:
    attached = {
        id(scan)
        for node in plan.walk()
        if isinstance(node, (TableJoin, SemiJoin, Negation))
        for scan in node.right.walk()
        if isinstance(scan, TableScan)
    }
    for node in plan.walk():
        if isinstance(node, TableScan) and not node.table.retroactive and id(node) not in attached:
            raise MeaninglessError(
                f"{node.table.name} is NON RETROACTIVE: it only answers for rows that arrive on a stream",
                remedy="join it with a stream, or declare it without NON RETROACTIVE",
                place=statement.place(_table_named(statement, node.table.name)),
            )
