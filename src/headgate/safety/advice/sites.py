"""Sites: the places in a query's text where a stream, another query or a sub-query is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from headgate.language import nodes
from headgate.language.render import render
from headgate.plan.catalog import Catalog, QueryDef, StreamDef, TableDef

_LEAVES = (exp.Column, exp.Literal, exp.Identifier, nodes.WindowSpec)
"""Syntax below which nothing is read."""


@dataclass(frozen=True)
class Site:
    """A FROM item: the `place`-th of the query `target`; `reads` is None for a sub-query."""

    target: str
    place: int
    name: str
    reads: StreamDef | QueryDef | None
    is_stream: bool
    window: nodes.WindowSpec | None
    item: exp.Expr
    """The item in the query's own text, to be shown; an edit looks for it by its place in a copy."""

    @property
    def windowed(self) -> bool:
        """Whether its window holds a bounded number of rows, or those of a bounded time."""
        spec = self.window
        return spec is not None and spec.args["kind"] != "UNBOUNDED" and not spec.args.get("partition")

    @property
    def partitioned(self) -> bool:
        """Whether its window keeps the last rows of each value of some columns."""
        return self.window is not None and bool(self.window.args.get("partition"))


def sites_of(query: QueryDef, catalog: Catalog) -> Iterator[Site]:
    """The sites of a query's own text, sub-queries included."""
    ctes = {cte.alias.casefold() for cte in query.tree.find_all(exp.CTE)}
    for place, item in enumerate(_items(query.statement.tree)):
        parent = item.parent
        window = parent.args["window"] if isinstance(parent, nodes.Windowed) else None
        reads = catalog.find(item.name) if isinstance(item, exp.Table) else None
        if isinstance(item, exp.Table) and item.name.casefold() in ctes:
            reads = None
        if not isinstance(reads, TableDef):
            name = item.alias or item.name or "the sub-query"
            yield Site(query.name.casefold(), place, name, reads, _is_stream(item, reads), window, item)


def _is_stream(item: exp.Expr, reads: StreamDef | QueryDef | None) -> bool:
    """Whether a FROM item is a stream, by declaration or by its ISTREAM, DSTREAM or RSTREAM."""
    if isinstance(reads, StreamDef):
        return True
    tree = reads.tree if reads is not None else item.this
    first = tree.expressions[0] if isinstance(tree, exp.Select) and tree.expressions else None
    return isinstance(first, nodes.Emit)


def put_window(tree: exp.Expr, place: int, spec: nodes.WindowSpec) -> None:
    """Gives the `place`-th named FROM item a window, in place of the one that it has."""
    item = _items(tree)[place]
    if isinstance(item.parent, nodes.Windowed):
        item.parent.set("window", spec)
    else:
        item.replace(nodes.Windowed(this=item.copy(), window=spec))


def shown_with(item: exp.Expr, spec: nodes.WindowSpec) -> str:
    """The FROM item with its new window, as text."""
    if isinstance(item, exp.Subquery):
        shown: exp.Expr = exp.Subquery(this=exp.Var(this="…"))
        if item.args.get("alias") is not None:
            shown.set("alias", item.args["alias"].copy())
    else:
        shown = item.copy()
    return render(nodes.Windowed(this=shown, window=spec))


def _items(tree: exp.Expr) -> list[exp.Expr]:
    """The FROM items from left to right; putting a window on one does not change their order."""
    walk = tree.walk(bfs=False, prune=lambda node: isinstance(node, _LEAVES))
    return [each for each in walk if isinstance(each, (exp.Table, exp.Subquery)) and _is_item(each)]


def _is_item(node: exp.Expr) -> bool:
    holder = node.parent.parent if isinstance(node.parent, nodes.Windowed) else node.parent
    return isinstance(holder, (exp.From, exp.Join))


def names_read(query: QueryDef, catalog: Catalog) -> frozenset[str]:
    """The case-folded names of a query and of all queries and streams behind it."""
    read = queries_read(query, catalog)
    streams = {site.reads.name for each in read for site in sites_of(each, catalog) if site.reads}
    return frozenset(name.casefold() for name in (*streams, *(each.name for each in read)))


def queries_read(query: QueryDef, catalog: Catalog) -> list[QueryDef]:
    """A query and all that it reads, directly or not, itself first."""
    found = {query.name.casefold(): query}
    waiting = [query]
    while waiting:
        for site in sites_of(waiting.pop(0), catalog):
            if isinstance(site.reads, QueryDef) and site.reads.name.casefold() not in found:
                found[site.reads.name.casefold()] = site.reads
                waiting.append(site.reads)
    return list(found.values())
