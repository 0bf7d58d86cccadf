"""A SELECT taken apart: its inputs as leaves, its list without stars and without relation-to-stream operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp
from tests.oracle.duck import LEAF
from tests.oracle.relation import Relation

from headgate.language import nodes
from headgate.model.aggregates import function_named


@dataclass(frozen=True)
class Input:
    """One FROM item: the name it has in the query, what it holds, whether its window is INTERNAL."""

    alias: str
    relation: Relation
    internal: bool


Source = Callable[[exp.Expr], tuple[Relation, bool]]
"""Gives what a FROM item holds and whether it is an INTERNAL window."""


@dataclass(frozen=True)
class Block:
    """A SELECT over leaves: `query` reads tables that are named in `leaves`; `names` are its columns."""

    query: exp.Select
    leaves: dict[str, Relation]
    names: tuple[str, ...]
    inputs: tuple[Input, ...]

    def asking_also(self, extras: list[exp.Expr]) -> exp.Select:
        """The query with more columns at its end."""
        query = self.query.copy()
        query.set("expressions", [*query.expressions, *(extra.copy() for extra in extras)])
        return query


def emit_of(select: exp.Select) -> nodes.Emit | None:
    """The relation-to-stream operator around the whole list, if there is one."""
    first = select.expressions[0] if select.expressions else None
    return first if isinstance(first, nodes.Emit) else None


def inner_emit_of(select: exp.Select) -> nodes.Emit | None:
    """The WSTREAM inside an expression of the list, if there is one: `SUM(WSTREAM(SUM(a))[ROWS 10])`."""
    if emit_of(select):
        return None
    return next((each for item in select.expressions for each in item.find_all(nodes.Emit)), None)


def without_emit(select: exp.Select) -> exp.Select:
    """The SELECT beneath its relation-to-stream operator: the list bare, DISTINCT where it belongs."""
    emit = emit_of(select)
    bare = select.copy()
    if emit is not None:
        bare.set("expressions", [each.copy() for each in emit.expressions])
        if emit.args.get("distinct"):
            bare.set("distinct", exp.Distinct())
    return bare


def from_items(select: exp.Select) -> list[exp.Expr]:
    """What stands in FROM and JOIN, windows and aliases included."""
    source = select.args.get("from_")
    return [source.this, *(join.this for join in select.args.get("joins") or ())] if source else []


def nested_queries(select: exp.Select) -> Iterator[exp.Select]:
    """SELECTs inside the list, ON, WHERE and HAVING, outermost first; not those of FROM."""
    parts = [*select.expressions, select.args.get("where"), select.args.get("having")]
    parts += [join.args.get("on") for join in select.args.get("joins") or ()]
    stack = [part for part in parts if part is not None]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Select):
            yield node
        else:
            stack.extend(node.iter_expressions())


def is_aggregate(select: exp.Select) -> bool:
    """Whether there is a GROUP BY, or an aggregate function outside nested queries."""
    if select.args.get("group"):
        return True
    stack = [part for part in (*select.expressions, select.args.get("having")) if part is not None]
    while stack:
        node = stack.pop()
        if isinstance(node, (exp.AggFunc, exp.Any)):
            return True
        if isinstance(node, exp.Anonymous) and function_named(node.name) is not None:
            return True
        if not isinstance(node, exp.Query):
            stack.extend(node.iter_expressions())
    return False


def take_apart(select: exp.Select, source: Source) -> Block:
    """Replaces every FROM item, also of nested queries, by a leaf that `source` gives for it."""
    query = without_emit(select)
    leaves: dict[str, Relation] = {}
    inputs = _replace_inputs(query, source, leaves)
    items, names = _without_stars(query, inputs)
    query.set("expressions", items)
    _order_by_time(query, inputs)
    instants = _choose_versions(query, inputs, ())
    _replace_nested(query, source, leaves, instants)
    return Block(query, leaves, names, inputs)


_BY_TIME: dict[type[exp.Expr], str] = {
    exp.First: "first_by",
    exp.FirstValue: "first_by",
    exp.Last: "last_by",
    exp.LastValue: "last_by",
    exp.ArrayAgg: "collected",
}
"""Aggregates that go by the event time of rows, and the macros that do."""


def _order_by_time(query: exp.Select, inputs: tuple[Input, ...]) -> None:
    """Gives aggregates that go by event time that of the row: the latest of the streams' that it comes from."""
    times = [exp.column("ts", table=each.alias) for each in inputs if each.relation.times is not None]
    parts = [*query.expressions, query.args.get("having")]
    for node in [found for part in parts if part is not None for found in part.find_all(*_BY_TIME)]:
        time = exp.Greatest(this=times[0].copy(), expressions=[each.copy() for each in times[1:]])
        called = exp.Anonymous(this=_BY_TIME[type(node)], expressions=[node.this.copy(), time])
        within = node.parent if isinstance(node.parent, exp.IgnoreNulls) else None
        if within is not None:
            given = exp.Not(this=exp.Is(this=node.this.copy(), expression=exp.Null()))
            called.set("expressions", [node.this.copy(), exp.Case(ifs=[exp.If(this=given, true=time)])])
        (within or node).replace(called)


def _replace_inputs(select: exp.Select, source: Source, leaves: dict[str, Relation]) -> tuple[Input, ...]:
    inputs = []
    for item in from_items(select):
        named = item.this if isinstance(item, nodes.Windowed) else item
        leaf = f"{LEAF}{len(leaves)}"
        relation, internal = source(item)
        alias = named.alias_or_name or leaf
        leaves[leaf] = relation
        inputs.append(Input(alias, relation, internal))
        item.replace(exp.alias_(exp.to_table(leaf), alias, table=True))
    return tuple(inputs)


def _replace_nested(
    query: exp.Select, source: Source, leaves: dict[str, Relation], around: tuple[exp.Expr, ...]
) -> None:
    for nested in nested_queries(query):
        emit = emit_of(nested)
        if emit is not None:
            if emit.args["kind"] != "RSTREAM" or emit.args.get("restore"):
                raise ValueError(f"{emit.args['kind']} inside a condition means nothing")
            nested.set("expressions", [exp.Literal.number(1)])
        inputs = _replace_inputs(nested, source, leaves)
        instants = _choose_versions(nested, inputs, around)
        _replace_nested(nested, source, leaves, instants)


def _without_stars(select: exp.Select, inputs: tuple[Input, ...]) -> tuple[list[exp.Expr], tuple[str, ...]]:
    """The list with `*` and `x.*` written out, and a name of its own for each column."""
    items: list[exp.Expr] = []
    names: list[str] = []
    for item in select.expressions:
        if item.is_star and not isinstance(item, exp.Count):
            only = item.args.get("table")
            for alias, name in _starred(select, inputs):
                if only is None:
                    items.append(exp.column(name, table=alias, quoted=True))
                    names.append(name)
            for each in inputs:
                if only is not None and only.name.lower() == each.alias.lower():
                    for name in each.relation.rows.column_names:
                        items.append(exp.column(name, table=each.alias, quoted=True))
                        names.append(name)
        else:
            items.append(item)
            names.append(item.alias_or_name)
    unique: list[str] = []
    for position, name in enumerate(names):
        taken = {other.lower() for other in unique}
        unique.append(f"_c{position}" if not name or name.lower() in taken else name)
    return items, tuple(unique)


def _starred(select: exp.Select, inputs: tuple[Input, ...]) -> list[tuple[str, str]]:
    """What `*` stands for, as (input, column): all columns in order, but those of a USING once, before the others."""
    columns = [[(each.alias, name) for name in each.relation.rows.column_names] for each in inputs]
    commas: list[tuple[str, str]] = []
    found = columns[0]
    for join, right in zip(select.args.get("joins") or (), columns[1:], strict=True):
        if not any(join.args.get(key) for key in ("on", "using", "kind")):
            commas, found = commas + found, right
            continue
        using = [each.name.lower() for each in join.args.get("using") or ()]
        shared = [next(pair for pair in found if pair[1].lower() == name) for name in using]
        left = [pair for pair in found if pair not in shared]
        found = shared + left + [pair for pair in right if pair[1].lower() not in using]
    return commas + found


def _choose_versions(
    select: exp.Select, inputs: tuple[Input, ...], around: tuple[exp.Expr, ...]
) -> tuple[exp.Expr, ...]:
    """Lets a NON RETROACTIVE table show the version that it had when the result came to be (Windows, definition 3.1).

    That is when the youngest of its stream rows came; if it has none, of those of the query `around`. Returns the
    instants that say when.
    """
    instants = tuple(
        exp.column("_ts", table=each.alias) for each in inputs if each.relation.times is not None
    )
    instants = instants or around
    for each in inputs:
        if each.relation.versions is None:
            continue
        if not instants or not all(other.relation.stable for other in inputs):
            raise ValueError("a NON RETROACTIVE table has to meet rows of streams")
        when = exp.Greatest(this=instants[0].copy(), expressions=[other.copy() for other in instants[1:]])
        born, dies = (exp.column(name, table=each.alias) for name in ("_born", "_dies"))
        select.where(
            exp.LTE(this=born, expression=when), exp.LT(this=when.copy(), expression=dies), copy=False
        )
    return instants
