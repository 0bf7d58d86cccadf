"""Promise edits: a stream's declaration says what will not come again, or what values there are.

The answer is what it was only if the data keeps the promise, so each comes with queries that find what breaks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pyarrow as pa
from sqlglot import exp

from headgate.language import nodes
from headgate.language.render import render
from headgate.plan.catalog import StreamDef
from headgate.plan.nodes import Aggregate, Distinct, Filter, Join, Node, Project, StreamScan, Window
from headgate.safety.advice.data_checks import disordered, failing, missing, reopened, repeated
from headgate.safety.advice.edit import Burden, Edit, Trees
from headgate.safety.advice.few_values import few_values

COLUMN = "closing"
"""What a column is called that a stream lacks to say which of its rows close something."""

NEARLY = 1000
"""By how many rows a proposed order may be violated."""

MOST_CHECKS = 6
"""More columns to bound than these are no help to anybody."""

Wanted = dict[str, dict[tuple[str, ...], bool]]
"""For each stream, sets of columns that should be closed; true for those it is joined on."""


def promise_edits(plan: Node, trees: Trees) -> Iterator[Edit]:
    """Keys and punctuation schemes over the columns that a plan joins and groups by."""
    scans = {scan.stream.name: scan.stream for scan in plan.walk() if isinstance(scan, StreamScan)}
    for name, sets in _wanted(plan).items():
        stream = scans[name]
        if name.casefold() not in trees:
            # A stream that was given its rows in Python has no declaration to edit.
            continue
        for columns, joined in sets.items():
            types = {column.name: column.type for column in stream.columns}
            if not any(pa.types.is_floating(types[each]) for each in columns):
                yield from _promises(stream, columns, joined=joined)


def _promises(stream: StreamDef, columns: tuple[str, ...], *, joined: bool) -> Iterator[Edit]:
    same = frozenset(columns)
    flags = [
        column.name
        for column in stream.columns
        if pa.types.is_boolean(column.type) and says_closing(column.name) and column.name not in columns
    ]
    if same not in {frozenset(scheme.columns) for scheme in stream.punctuations}:
        for flag in flags[:2]:
            yield _punctuation(stream, columns, flag, new=False, joined=joined)
        if not flags:
            yield _punctuation(stream, columns, _unused(COLUMN, stream), new=True, joined=joined)
    if joined and same not in {frozenset(key) for key in stream.keys}:
        clause = nodes.Key(expressions=_identifiers(columns))
        yield Edit(
            "key",
            stream.name.casefold(),
            lambda tree: _add(tree, clause),
            f"CREATE STREAM {stream.name} … {render(clause)}",
            f"right only if no two rows of {{}} have the same {' and '.join(columns)}",
            stream.name,
            Burden.KEY,
            changes_answer=False,
            columns=columns,
            checks=(repeated(stream, columns),),
        )


def says_closing(name: str) -> bool:
    """Whether a column's name says that its row is the last of something: any other BOOLEAN closes nothing."""
    words = re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())
    return not _CLOSING.isdisjoint(words)


_CLOSING = frozenset(
    {
        "bye",
        "close",
        "closed",
        "closes",
        "closing",
        "complete",
        "completed",
        "done",
        "end",
        "ended",
        "ending",
        "ends",
        "eof",
        "eos",
        "expired",
        "final",
        "finished",
        "last",
        "over",
        "sold",
        "stop",
        "stopped",
        "terminal",
        "terminated",
    }
)


def _punctuation(stream: StreamDef, columns: tuple[str, ...], flag: str, *, new: bool, joined: bool) -> Edit:
    when = exp.Column(this=exp.to_identifier(flag))
    clause = nodes.PunctuatedBy(expressions=_identifiers(columns), when=when)

    def change(tree: exp.Expr) -> None:
        if new and flag not in [
            each.name for each in tree.args["columns"] if isinstance(each, exp.ColumnDef)
        ]:
            kind = exp.DataType.build("BOOLEAN")
            tree.append("columns", exp.ColumnDef(this=exp.to_identifier(flag), kind=kind))
        _add(tree, clause)

    names = " and ".join(columns)
    effect = f"right only if no row of {{}} follows with the same {names} once {flag} was true"
    shown = f"CREATE STREAM {stream.name} … {render(clause)}"
    if new:
        effect = f"right only if the data of {{}} gets a column {flag} that is true in the last row of each {names}"
        shown = f"CREATE STREAM {stream.name} (…, {flag} BOOLEAN) … {render(clause)}"
    return Edit(
        "punctuation",
        stream.name.casefold(),
        change,
        shown,
        effect + _filled(columns, joined=joined),
        stream.name,
        Burden.NEW_COLUMN if new else Burden.PUNCTUATION,
        changes_answer=False,
        columns=columns,
        checks=(*reopened(stream, columns, flag), *_unfilled(stream, columns, joined=joined)),
    )


def order_edits(plan: Node, trees: Trees) -> Iterator[Edit]:
    """An order on each column that a plan joins or groups by, where the stream declares none."""
    scans = {scan.stream.name: scan.stream for scan in plan.walk() if isinstance(scan, StreamScan)}
    for name, sets in _wanted(plan).items():
        stream = scans[name]
        types = {column.name: column.type for column in stream.columns}
        known = {each.columns[0] for each in stream.ordered}
        for columns, joined in sets.items() if name.casefold() in trees else ():
            if len(columns) == 1 and columns[0] not in known and _has_order(types[columns[0]]):
                yield _order(stream, columns[0], joined=joined)


def _has_order(dtype: pa.DataType) -> bool:
    """Whether values of a type are likely to come in order: numbers that count up, days, instants."""
    return bool(pa.types.is_integer(dtype) or pa.types.is_date(dtype) or pa.types.is_timestamp(dtype))


def _order(stream: StreamDef, column: str, *, joined: bool) -> Edit:
    clause = nodes.OrderedBy(expressions=_identifiers((column,)), within=nodes.Adherence(rows=NEARLY))
    return Edit(
        "constraint",
        stream.name.casefold(),
        lambda tree: _add(tree, clause),
        f"CREATE STREAM {stream.name} … {render(clause)}",
        f"right only if rows of {{}} come in order of {column}, up to {NEARLY} rows (a placeholder)"
        + _filled((column,), joined=joined),
        stream.name,
        Burden.ORDER,
        changes_answer=False,
        columns=(column,),
        checks=(*disordered(stream, column, NEARLY), *_unfilled(stream, (column,), joined=joined)),
    )


def check_edits(plan: Node, trees: Trees) -> Iterator[Edit]:
    """A CHECK that bounds the values of each column that a plan joins, groups by, or keeps the last rows of."""
    scans = {scan.stream.name: scan.stream for scan in plan.walk() if isinstance(scan, StreamScan)}
    wanted = {(name, column) for name, sets in _wanted(plan).items() for each in sets for column in each}
    for node in plan.walk():
        if isinstance(node, Window) and node.window.partition:
            origins = [_origin(node.input, column) for column in node.window.partition]
            wanted |= {(each[0].stream.name, each[1]) for each in origins if each is not None}
    for name, column in sorted(wanted) if len(wanted) <= MOST_CHECKS else ():
        dtype = next(each.type for each in scans[name].columns if each.name == column)
        bound = few_values(exp.Column(this=exp.to_identifier(column)), dtype)
        if bound is not None and name.casefold() in trees:
            yield _check(scans[name], column, *bound)


def _check(stream: StreamDef, column: str, bound: exp.Expr, said: str) -> Edit:
    clause = exp.CheckColumnConstraint(this=bound)
    return Edit(
        "check",
        stream.name.casefold(),
        lambda tree: tree.append("columns", clause.copy()),
        f"CREATE STREAM {stream.name} (…, {render(clause)})",
        f"right only if every row of {{}} has {column} {said}",
        stream.name,
        Burden.CHECK,
        changes_answer=False,
        checks=(failing(stream, bound),),
    )


def _filled(columns: Sequence[str], *, joined: bool) -> str:
    """What else must be true of columns that are grouped by; a join leaves rows with NULL out by itself."""
    return "" if joined else f", with no NULL in {' and '.join(columns)}"


def _unfilled(stream: StreamDef, columns: Sequence[str], *, joined: bool) -> tuple[str, ...]:
    return () if joined else (missing(stream, columns),)


def _add(tree: exp.Expr, clause: exp.Expr) -> None:
    """Puts a clause before USING, where the promises stand."""
    clauses = list(tree.args.get("clauses") or [])
    place = next((n for n, each in enumerate(clauses) if isinstance(each, nodes.Using)), len(clauses))
    tree.set("clauses", [*clauses[:place], clause.copy(), *clauses[place:]])


def _identifiers(columns: Sequence[str]) -> list[exp.Expr]:
    return [exp.to_identifier(name) for name in columns]


def _unused(name: str, stream: StreamDef) -> str:
    taken = {column.name.casefold() for column in stream.columns}
    return next(each for each in (name, *(f"{name}_{n}" for n in range(2, 99))) if each not in taken)


def _wanted(plan: Node) -> Wanted:
    """The sets of columns by which rows could be dropped: each joined column, all of them, all grouping columns."""
    found: Wanted = {}
    joined: dict[tuple[str, str], dict[str, None]] = {}
    for node in plan.walk():
        if isinstance(node, Join):
            for name in (each for group in node.equalities for each in group):
                origin = _origin(node, name)
                if origin is not None:
                    scan, column = origin
                    joined.setdefault((scan.stream.name, scan.name), {})[column] = None
        if isinstance(node, (Aggregate, Distinct)):
            grouped: dict[str, dict[str, None]] = {}
            for key in node.keys if isinstance(node, Aggregate) else [each.name for each in node.schema]:
                for scan, column in _origins(node.input, key):
                    grouped.setdefault(scan.stream.name, {})[column] = None
            for stream, columns in grouped.items():
                for column in columns:
                    found.setdefault(stream, {}).setdefault((column,), False)
                found.setdefault(stream, {}).setdefault(tuple(columns), False)
    for (stream, _), columns in joined.items():
        for column in columns:
            found.setdefault(stream, {})[column,] = True
        found.setdefault(stream, {})[tuple(columns)] = True
    return found


def _origins(node: Node, name: str) -> Iterator[tuple[StreamScan, str]]:
    """The columns of streams that a column is, or that a join sets equal to it."""
    below = _core(node, name)
    if below is None:
        return
    core, name = below
    classes = core.equalities if isinstance(core, Join) else ()
    for each in next((group for group in classes if name in group), (name,)):
        origin = _origin(core, each)
        if origin is not None:
            yield origin


def _core(node: Node, name: str) -> tuple[Node, str] | None:
    while isinstance(node, (Filter, Project)):
        if isinstance(node, Project):
            output = next(each for each in node.outputs if each.name == name)
            if not output.scalar.is_column:
                return None
            name = output.scalar.expression.name
        node = node.input
    return node, name


def _origin(node: Node, name: str) -> tuple[StreamScan, str] | None:
    """The stream's column behind a column, through everything that only passes it on."""
    while not isinstance(node, StreamScan):
        match node:
            case Project():
                output = next(each for each in node.outputs if each.name == name)
                if not output.scalar.is_column:
                    return None
                name, node = output.scalar.expression.name, node.input
            case Filter() | Window():
                node = node.input
            case Join():
                node = next(member for member in node.members if name in member.names)
            case _:
                return None
    return node, name[len(node.name) + 1 :]
