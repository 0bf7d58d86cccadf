"""Binding: a query's syntax and the catalog to a logical plan, names resolved and types checked.

The plan that leaves here is plain: one join of all FROM items, one filter with all of WHERE. `normalize`
gives it its shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from headgate.language import nodes as syntax
from headgate.language.parse import Statement
from headgate.model import types
from headgate.model.errors import DeclarationError, MeaninglessError, NameResolutionError, UnsupportedError
from headgate.model.scalar import Scalar, conjunction
from headgate.model.suggest import did_you_mean
from headgate.plan import conditions
from headgate.plan.catalog import Catalog, QueryDef, StreamDef, TableDef
from headgate.plan.clauses import refuse_unknown_clauses
from headgate.plan.desugar import INTERNAL, nested_wstream
from headgate.plan.emission import bind_emit, emit_of, slide_of
from headgate.plan.expressions import ExpressionBinder, comparison
from headgate.plan.grouping import aggregates_in, bind_grouping
from headgate.plan.nodes import (
    Distinct,
    Emit,
    Filter,
    Join,
    Negation,
    Node,
    SemiJoin,
    StreamScan,
    TableScan,
    Window,
    WindowKind,
)
from headgate.plan.patterns import label
from headgate.plan.projection import expand_stars, project
from headgate.plan.relation import Relation, unused
from headgate.plan.scope import Scope, Visible
from headgate.plan.set_operations import combine, operands

MOST_BLOCKS_DEEP = 32
MOST_INPUTS = 256
"""Query blocks inside one another, and inputs of one query with all that it reads: queries that read queries grow
fast, and what is larger was hardly meant."""


@dataclass(frozen=True)
class BoundQuery:
    """A named query as a logical plan; the root says how its answer becomes a stream."""

    name: str
    plan: Emit
    statement: Statement


def bind(catalog: Catalog, query: QueryDef) -> BoundQuery:
    """The logical plan of one query of the catalog."""
    binder = _Binder(catalog, query.statement, reading=(query.name.casefold(),))
    refuse_unknown_clauses(query.tree, query.statement)
    node = binder.query(query.tree, {}).node
    if not isinstance(node, Emit):
        node = Emit(node, "RELATION", slide=slide_of(node, query.statement))
    return BoundQuery(query.name, node, query.statement)


@dataclass
class _Binder:
    catalog: Catalog
    statement: Statement
    reading: tuple[str, ...]
    names: set[str] = field(default_factory=set)
    internal: bool = False
    depth: int = 0

    # -- query blocks -----------------------------------------------------------------------------

    def query(self, tree: exp.Expr, ctes: Mapping[str, exp.Expr]) -> Relation:
        """Binds a SELECT, a set operation or either in parentheses."""
        if self.depth == MOST_BLOCKS_DEEP:
            raise UnsupportedError(
                f"more than {MOST_BLOCKS_DEEP} queries are nested in one another",
                remedy="split the query",
                place=self.statement.place(tree),
            )
        self.depth += 1
        ctes = self._with(tree, ctes)
        match tree:
            case exp.Subquery():
                found = self.query(tree.this, ctes)
            case exp.Select():
                self._require_from(tree)
                found = self.select(nested_wstream(tree, self.statement), ctes)
            case exp.SetOperation():
                parts = [self.query(each, ctes) for each in operands(tree)]
                found = combine(tree, parts, self.statement, self._unique)
            case _:
                raise UnsupportedError("expected a SELECT", place=self.statement.place(tree))
        self.depth -= 1
        return found

    def _with(self, tree: exp.Expr, ctes: Mapping[str, exp.Expr]) -> Mapping[str, exp.Expr]:
        """The named sub-queries that a block can see."""
        with_ = tree.args.get("with_")
        if not with_:
            return ctes
        if with_.args.get("recursive"):
            raise UnsupportedError("WITH RECURSIVE is not supported", place=self.statement.place(with_))
        return {**ctes, **{cte.alias.casefold(): cte.this for cte in with_.expressions}}

    def select(self, tree: exp.Select, ctes: Mapping[str, exp.Expr]) -> Relation:
        emit = emit_of(tree, self.statement)
        items = list(emit.expressions if emit is not None else tree.expressions)
        was_internal = self.internal
        if emit is not None:
            self.internal = emit.args["kind"] == "WSTREAM"
        elif tree.meta.get(INTERNAL):
            self.internal = True
        node, scope, _ = self.from_where(tree, None, ctes)
        binder = ExpressionBinder(scope, self.statement)
        items = list(expand_stars(items, scope, self.statement))
        grouped = bind_grouping(tree, items, node, binder)
        if grouped is not None:
            node, binder = grouped.node, grouped.binder
        relation = project(node, items, binder, self.statement)
        if tree.args.get("distinct") or (emit is not None and emit.args.get("distinct")):
            relation = replace(relation, node=Distinct(relation.node))
        self.internal = was_internal
        if emit is None:
            return relation
        window = emit.args.get("window")
        output = None if window is None else self._window_kind(window, Scope())
        return replace(relation, node=bind_emit(relation.node, emit, output, self.statement))

    def _require_from(self, tree: exp.Select) -> None:
        if not tree.args.get("from_"):
            raise UnsupportedError(
                "a query reads at least one stream: FROM is missing", place=self.statement.place(tree)
            )

    # -- FROM and WHERE ---------------------------------------------------------------------------

    def from_where(
        self, tree: exp.Select, outer: Scope | None, ctes: Mapping[str, exp.Expr]
    ) -> tuple[Node, Scope, list[Scalar]]:
        """The filtered join of a select's inputs, the scope in which the rest of it is bound, and the
        conditions that also read the query around it."""
        scope = Scope(outer=outer)
        items = [tree.args["from_"].this, *(join.this for join in tree.args.get("joins") or [])]
        members: list[Node] = []
        for item in items:
            name, node, also = self.source(item, ctes)
            prefix = len(name) + 1
            shown = self._shown_name(item, name)
            if shown.casefold() in {source.casefold() for source in scope.sources}:
                raise DeclarationError(
                    f"two inputs are named {shown}",
                    remedy=f"give one an alias: {shown} AS other",
                    place=self.statement.place(item),
                )
            members.append(node)
            if not isinstance(node, TableScan):
                scope.times[shown] = _event_time(node)
            scope.visible += [
                Visible(shown, column.name[prefix:], column, also.get(column.name)) for column in node.schema
            ]
        parts = list(conditions.of_joins(tree, scope, self.statement))
        where = tree.args.get("where")
        if where is not None:
            parts += conditions.split(where.this)
        scope.same = conditions.equal_columns(parts, scope)
        node = members[0] if len(members) == 1 else Join(tuple(members))
        binder = ExpressionBinder(scope, self.statement)
        plain = [
            binder.bind(part, expect=types.BOOLEAN) for part in parts if conditions.subquery_of(part) is None
        ]
        local = [each for each in plain if each.columns <= node.names]
        correlated = [each for each in plain if not each.columns <= node.names]
        if local:
            node = Filter(node, conjunction(local))
        for part in parts:
            found = conditions.subquery_of(part)
            if found is not None:
                node = self._exists(node, scope, found, ctes)
        return node, scope, correlated

    def _exists(
        self, left: Node, scope: Scope, found: conditions.Existence, ctes: Mapping[str, exp.Expr]
    ) -> Node:
        """Left rows that have, or lack, a match in a sub-query."""
        was_internal, self.internal = self.internal, False
        self.depth += 1
        tree = found.query
        while isinstance(tree, exp.Subquery):
            tree = tree.this
        ctes = self._with(tree, ctes)
        tree = conditions.without_rstream(tree, self.statement)
        value: Scalar | None
        if isinstance(tree, exp.Select) and not _is_grouped(tree):
            node, value, residual = self._matches(tree, scope, found, ctes)
        else:
            node, names = self.query(tree, ctes).renamed(self._unique("sub"))
            residual = []
            value = Scalar.column(names[0], node.type_of(names[0])) if len(names) == 1 else None
        self.depth -= 1
        self.internal = was_internal
        if found.value is not None:
            if value is None:
                raise UnsupportedError(
                    "IN (SELECT …) takes a sub-query with one column", place=self.statement.place(found.query)
                )
            binder = ExpressionBinder(scope, self.statement)
            a, b = binder.meet([binder.bind(found.value), value], found.value)
            residual.append(comparison(exp.EQ, a, b))
        if any(not part.columns <= left.names | node.names for part in residual):
            raise UnsupportedError(
                "a sub-query may only refer to the query directly around it",
                place=self.statement.place(found.query),
            )
        kind = Negation if found.negated else SemiJoin
        return kind(left, node, (), tuple(residual))

    def _matches(
        self, tree: exp.Select, scope: Scope, found: conditions.Existence, ctes: Mapping[str, exp.Expr]
    ) -> tuple[Node, Scalar | None, list[Scalar]]:
        """The rows of a plain sub-query, its one value if it is compared, and what ties it to `scope`."""
        self._require_from(tree)
        node, inner, correlated = self.from_where(tree, scope, ctes)
        if found.value is None:
            return node, None, correlated
        items = list(expand_stars(tree.expressions, inner, self.statement))
        if len(items) != 1:
            return node, None, correlated
        return node, ExpressionBinder(inner, self.statement).bind(items[0].unalias()), correlated

    def source(self, item: exp.Expr, ctes: Mapping[str, exp.Expr]) -> tuple[str, Node, dict[str, str]]:
        """One FROM item as a node whose columns are all named `name.column`, and second names of columns."""
        window: exp.Expr | None = None
        if isinstance(item, syntax.Windowed):
            item, window = item.this, item.args["window"]
        if isinstance(item, exp.Subquery):
            return self._derived(self._unique(item.alias or "sub"), self.query(item.this, ctes), window)
        if not isinstance(item, exp.Table) or not isinstance(item.this, exp.Identifier):
            raise UnsupportedError(
                "FROM takes streams, tables, queries and sub-queries", place=self.statement.place(item)
            )
        if item.args.get("db"):
            raise NameResolutionError(
                f"{item.sql(dialect='spark')}: names of streams have one part",
                place=self.statement.place(item),
            )
        if len(self.names) == MOST_INPUTS:
            raise UnsupportedError(
                f"the query reads more than {MOST_INPUTS} inputs, counting those of the queries that it reads",
                remedy="split the query",
                place=self.statement.place(item),
            )
        return self._named_source(item, window, ctes)

    def _named_source(
        self, item: exp.Table, window: exp.Expr | None, ctes: Mapping[str, exp.Expr]
    ) -> tuple[str, Node, dict[str, str]]:
        name = self._unique(item.alias or item.name)
        if item.name.casefold() in ctes:
            inner = {key: tree for key, tree in ctes.items() if key != item.name.casefold()}
            return self._derived(name, self.query(ctes[item.name.casefold()], inner), window)
        match self.catalog.find(item.name):
            case StreamDef() as stream:
                return name, self._windowed(StreamScan(stream, name), window, name), {}
            case TableDef() as table:
                if window is not None:
                    raise MeaninglessError(
                        f"{table.name} is a table: its rows have no time for a window to slide over",
                        remedy="drop the window, or declare it as a STREAM",
                        place=self.statement.place(window),
                    )
                return name, TableScan(table, name), {}
            case QueryDef() as query:
                if query.name.casefold() in self.reading:
                    raise MeaninglessError(
                        f"query {query.name} reads itself", place=self.statement.place(item)
                    )
                refuse_unknown_clauses(query.tree, query.statement)
                reading = (*self.reading, query.name.casefold())
                binder = replace(self, statement=query.statement, reading=reading)
                return self._derived(name, binder.query(query.tree, {}), window)
        known = [definition.name for definition in self.catalog.definitions.values()]
        raise NameResolutionError(
            f"there is no stream, table or query named {item.name}",
            remedy=did_you_mean(item.name, known) or "declare it with CREATE STREAM",
            place=self.statement.place(item.this),
        )

    def _derived(
        self, name: str, relation: Relation, window: exp.Expr | None
    ) -> tuple[str, Node, dict[str, str]]:
        """A sub-query or another query as a FROM item."""
        node, names = relation.renamed(name)
        if window is None and not self.internal and label(node)[node].has_internal:
            # What it has answered stays, whatever leaves its windows: so it is a stream to its reader.
            node = Window(node, WindowKind("UNBOUNDED"))
        also = {full: second for full, second in zip(names, relation.also, strict=False) if second}
        return name, self._windowed(node, window, name), also

    def _windowed(self, node: Node, window: exp.Expr | None, name: str) -> Node:
        if window is None:
            if self.internal and not any(isinstance(each, Window) for each in node.walk()):
                return Window(node, WindowKind("UNBOUNDED", internal=True))
            return node
        visible = [Visible(name, column.name[len(name) + 1 :], column) for column in node.schema]
        return Window(node, self._window_kind(window, Scope(visible)))

    def _window_kind(self, spec: exp.Expr, scope: Scope) -> WindowKind:
        partition = tuple(
            scope.column(each, self.statement).name for each in spec.args.get("partition") or []
        )
        return WindowKind(
            kind=spec.args["kind"],
            length=spec.args.get("length"),
            slide=spec.args.get("slide"),
            rows=spec.args.get("rows"),
            partition=partition,
            internal=bool(spec.args.get("internal")) or self.internal,
        )

    def _unique(self, name: str) -> str:
        """A name without dots that no other input of the query has: it stands before a dot itself."""
        chosen = unused(name.replace(".", "_"), self.names, start=2)
        self.names.add(chosen)
        return chosen

    def _shown_name(self, item: exp.Expr, name: str) -> str:
        if isinstance(item, syntax.Windowed):
            item = item.this
        return item.alias or (item.name if isinstance(item, exp.Table) else name)


def _event_time(node: Node) -> str | None:
    """The event time's column of a stream that is read itself, not through another query."""
    while isinstance(node, Window):
        node = node.input
    return node.stream.time if isinstance(node, StreamScan) else None


def _is_grouped(tree: exp.Select) -> bool:
    """Whether a select's rows are groups of its inputs' rows."""
    if tree.args.get("group") or tree.args.get("having"):
        return True
    return any(True for item in tree.expressions for _ in aggregates_in(item))
