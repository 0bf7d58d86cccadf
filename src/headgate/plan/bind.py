"""Binding: a query's syntax and the catalog to a logical plan, names resolved and types checked.

The plan that leaves here is plain: one join of all FROM items, one filter with all of WHERE. `normalize`
gives it its shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from headgate.language import nodes as syntax
from headgate.language.parse import Statement
from headgate.model import types
from headgate.model.errors import (
    DeclarationError,
    MeaninglessError,
    NameResolutionError,
    TypeMismatchError,
    UnsupportedError,
)
from headgate.model.scalar import Scalar, conjunction
from headgate.model.suggest import did_you_mean
from headgate.plan import conditions
from headgate.plan.catalog import Catalog, QueryDef, StreamDef, TableDef
from headgate.plan.desugar import nested_wstream
from headgate.plan.expressions import ExpressionBinder, comparison, convert
from headgate.plan.grouping import aggregate_name, bind_grouping
from headgate.plan.nodes import (
    Difference,
    Distinct,
    Emit,
    Filter,
    Join,
    Negation,
    Node,
    Output,
    Project,
    SemiJoin,
    StreamScan,
    TableScan,
    Union,
    Window,
    WindowKind,
)
from headgate.plan.scope import Scope, Visible

_RESERVED_OUTPUTS = ("_time", "_op", "_born", "_dies", "_sign")


@dataclass(frozen=True)
class BoundQuery:
    """A named query as a logical plan; the root says how its answer becomes a stream."""

    name: str
    plan: Emit
    statement: Statement


@dataclass(frozen=True)
class Relation:
    """A bound query block: its node and, in the order of the node's columns, the names users know."""

    node: Node
    labels: tuple[str, ...]
    also: tuple[str | None, ...] = ()


def bind(catalog: Catalog, query: QueryDef) -> BoundQuery:
    """The logical plan of one query of the catalog."""
    binder = _Binder(catalog, query.statement, reading=(query.name.casefold(),))
    relation = binder.query(query.tree, None)
    node = relation.node
    if not isinstance(node, Emit):
        node = Emit(node, "RELATION", slide=_slide_of(node, query.statement))
    return BoundQuery(query.name, node, query.statement)


@dataclass
class _Binder:
    catalog: Catalog
    statement: Statement
    reading: tuple[str, ...]
    names: set[str] = field(default_factory=set)
    internal: bool = False

    # -- query blocks -----------------------------------------------------------------------------

    def query(self, tree: exp.Expr, outer: Scope | None, ctes: Mapping[str, exp.Expr] = {}) -> Relation:
        """Binds a SELECT, a set operation or either in parentheses."""
        with_ = tree.args.get("with_")
        if with_:
            if with_.args.get("recursive"):
                raise UnsupportedError("WITH RECURSIVE is not supported", place=self.statement.place(with_))
            ctes = {**ctes, **{cte.alias.casefold(): cte.this for cte in with_.expressions}}
        for clause, name in (("order", "ORDER BY"), ("limit", "LIMIT"), ("offset", "OFFSET")):
            if tree.args.get(clause):
                raise UnsupportedError(
                    f"{name} has no meaning for an answer that changes over time",
                    remedy="use TOP(value, k) for the most frequent, or MAX/MIN",
                    place=self.statement.place(tree.args[clause]),
                )
        match tree:
            case exp.Subquery():
                return self.query(tree.this, outer, ctes)
            case exp.Select():
                return self.select(nested_wstream(tree, self.statement), outer, ctes)
            case exp.SetOperation():
                return self.set_operation(tree, outer, ctes)
        raise UnsupportedError("expected a SELECT", place=self.statement.place(tree))

    def select(self, tree: exp.Select, outer: Scope | None, ctes: Mapping[str, exp.Expr]) -> Relation:
        self._refuse_clauses(tree)
        emit = next((item for item in tree.expressions if isinstance(item, syntax.Emit)), None)
        items = list(emit.expressions if emit is not None else tree.expressions)
        was_internal = self.internal
        if emit is not None:
            self._check_emit(emit)
            self.internal = emit.args["kind"] == "WSTREAM"
        node, scope = self.from_where(tree, outer, ctes)
        binder = ExpressionBinder(scope, self.statement)
        items = list(self._expand_stars(items, scope))
        grouped = bind_grouping(tree, items, node, binder)
        if grouped is not None:
            node, binder = grouped.node, grouped.binder
        relation = self._project(node, items, binder)
        if tree.args.get("distinct") or (emit is not None and emit.args.get("distinct")):
            relation = replace(relation, node=Distinct(relation.node))
        self.internal = was_internal
        if emit is None:
            return relation
        return replace(relation, node=self._emit(relation.node, emit))

    def _refuse_clauses(self, tree: exp.Select) -> None:
        for clause in ("laterals", "pivots", "windows", "qualify", "cluster", "sort", "distribute", "hint"):
            if tree.args.get(clause):
                value = tree.args[clause]
                node = value[0] if isinstance(value, list) else value
                raise UnsupportedError(
                    f"{clause.upper().rstrip('S')} is not supported", place=self.statement.place(node)
                )
        distinct = tree.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise UnsupportedError("DISTINCT ON is not supported", place=self.statement.place(distinct))
        if not tree.args.get("from_"):
            raise UnsupportedError(
                "a query reads at least one stream: FROM is missing", place=self.statement.place(tree)
            )

    def _check_emit(self, emit: exp.Expr) -> None:
        kind, window = emit.args["kind"], emit.args.get("window")
        if kind == "WSTREAM" and emit.args.get("restore"):
            raise MeaninglessError(
                "WSTREAM cannot RESTORE: when one tick brings more results than the output window holds, "
                "nothing says which of them stay (Windows document, 3.4)",
                remedy="use ISTREAM RESTORE",
                place=self.statement.place(emit),
            )
        if kind == "DSTREAM" and emit.args.get("restore"):
            raise MeaninglessError(
                "DSTREAM does not RESTORE: only ISTREAM and RSTREAM do", place=self.statement.place(emit)
            )
        if kind == "WSTREAM" and (window is None or window.args["kind"] not in ("ROWS", "RANGE")):
            raise MeaninglessError(
                "WSTREAM needs an output window: WSTREAM(…)[ROWS n] or [RANGE d]",
                place=self.statement.place(emit),
            )
        if window is not None:
            if kind != "WSTREAM":
                raise MeaninglessError(
                    f"only WSTREAM takes an output window, not {kind}", place=self.statement.place(window)
                )
            if any(window.args.get(each) for each in ("slide", "partition", "internal")):
                raise MeaninglessError(
                    "an output window is plain [ROWS n] or [RANGE d]", place=self.statement.place(window)
                )

    def _emit(self, node: Node, emit: exp.Expr) -> Emit:
        kind, restore = emit.args["kind"], bool(emit.args.get("restore"))
        slide = _slide_of(node, self.statement)
        if restore:
            if slide is None:
                raise MeaninglessError(
                    f"{kind} RESTORE needs windows with SLIDE: without ticks no result is ever missed",
                    remedy=f"write {kind} alone, or add SLIDE to the windows",
                    place=self.statement.place(emit),
                )
            node = _without_slide(node)
        window = emit.args.get("window")
        output = None if window is None else self._window_kind(window, Scope())
        return Emit(node, kind, restore, output, slide)

    def _expand_stars(self, items: list[exp.Expr], scope: Scope) -> Iterator[exp.Expr]:
        for item in items:
            if isinstance(item, exp.Star):
                chosen = scope.visible
            elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
                chosen = [v for v in scope.visible if v.source.casefold() == item.table.casefold()]
                if not chosen:
                    raise NameResolutionError(
                        f"there is no input named {item.table} in this query",
                        remedy=did_you_mean(item.table, scope.sources),
                        place=self.statement.place(item.args["table"]),
                    )
            else:
                yield item
                continue
            if isinstance(item, exp.Star) and any(item.args.get(k) for k in ("except_", "replace", "rename")):
                raise UnsupportedError("* EXCEPT is not supported", place=self.statement.place(item))
            for each in chosen:
                table = exp.to_identifier(each.source, quoted=True)
                yield exp.Column(this=exp.to_identifier(each.bare, quoted=True), table=table)

    def _project(self, node: Node, items: list[exp.Expr], binder: ExpressionBinder) -> Relation:
        labels: list[str] = []
        also = tuple(_also(item) for item in items)
        outputs: list[Output] = []
        for item in items:
            scalar = binder.bind(item.unalias())
            if scalar.type == types.NULL:
                raise TypeMismatchError(
                    "NULL alone has no type", remedy="write CAST(NULL AS …)", place=self.statement.place(item)
                )
            label = _label(item)
            if label.casefold() in _RESERVED_OUTPUTS:
                raise DeclarationError(
                    f"{label} is a name that Headgate keeps for its own columns",
                    remedy="choose another alias",
                    place=self.statement.place(item),
                )
            if isinstance(item, exp.Alias) and label.casefold() in {each.casefold() for each in labels}:
                raise DeclarationError(f"two outputs are named {label}", place=self.statement.place(item))
            label = _unused(label, labels)
            labels.append(label)
            outputs.append(Output(label, scalar))
        return Relation(Project(node, tuple(outputs)), tuple(labels), also)

    # -- FROM and WHERE ---------------------------------------------------------------------------

    def from_where(
        self, tree: exp.Select, outer: Scope | None, ctes: Mapping[str, exp.Expr]
    ) -> tuple[Node, Scope]:
        """The filtered join of a select's inputs, and the scope in which the rest of it is bound."""
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
        if local:
            node = Filter(node, conjunction(local))
        correlated = [each for each in plain if not each.columns <= node.names]
        if correlated and outer is None:
            raise AssertionError("a condition reads columns of no input")
        for part in parts:
            found = conditions.subquery_of(part)
            if found is not None:
                node = self._exists(node, scope, found, ctes)
        self._correlated = correlated
        return node, scope

    _correlated: list[Scalar] = field(default_factory=list)

    def _exists(
        self, left: Node, scope: Scope, found: conditions.Existence, ctes: Mapping[str, exp.Expr]
    ) -> Node:
        """Left rows that have, or lack, a match in a sub-query."""
        tree = found.query
        was_internal, self.internal = self.internal, False
        while isinstance(tree, exp.Subquery):
            tree = tree.this
        if not isinstance(tree, exp.Select) or tree.args.get("group") or tree.args.get("having"):
            right = self.query(tree, None, ctes)
            correlated: list[Scalar] = []
            node, labels = self._renamed(right, self._unique("sub"))
        else:
            tree = tree.copy()
            conditions.drop_rstream(tree)
            self._refuse_clauses(tree)
            node, inner_scope = self.from_where(tree, scope, ctes)
            correlated = self._correlated
            labels = []
            if found.value is not None:
                items = list(self._expand_stars(list(tree.expressions), inner_scope))
                binder = ExpressionBinder(inner_scope, self.statement)
                if len(items) == 1:
                    value = binder.bind(items[0].unalias())
                    name = self._unique("sub") + ".value"
                    outputs = [Output(c.name, Scalar.column(c.name, c.type)) for c in node.schema]
                    node = Project(node, (*outputs, Output(name, value)))
                    labels = [name]
        self.internal = was_internal
        residual = list(correlated)
        if found.value is not None:
            if len(labels) != 1:
                raise UnsupportedError(
                    "IN (SELECT …) takes a sub-query with one column", place=self.statement.place(found.query)
                )
            outer_value = ExpressionBinder(scope, self.statement).bind(found.value)
            inner_value = Scalar.column(labels[0], node.type_of(labels[0]))
            binder = ExpressionBinder(scope, self.statement)
            a, b = binder.meet([outer_value, inner_value], found.value)
            residual.append(comparison(exp.EQ, a, b))
        for part in residual:
            if not part.columns <= left.names | node.names:
                raise UnsupportedError(
                    "a sub-query may only refer to the query directly around it",
                    place=self.statement.place(found.query),
                )
        kind = Negation if found.negated else SemiJoin
        return kind(left, node, (), tuple(residual))

    def source(self, item: exp.Expr, ctes: Mapping[str, exp.Expr]) -> tuple[str, Node, dict[str, str]]:
        """One FROM item as a node whose columns are all named `name.column`, and second names of columns."""
        window: exp.Expr | None = None
        if isinstance(item, syntax.Windowed):
            item, window = item.this, item.args["window"]
        if isinstance(item, exp.Subquery):
            name = self._unique(item.alias or "sub")
            relation = self.query(item.this, None, ctes)
            return self._derived(name, relation, window)
        if not isinstance(item, exp.Table) or not isinstance(item.this, exp.Identifier):
            raise UnsupportedError(
                "FROM takes streams, tables, queries and sub-queries", place=self.statement.place(item)
            )
        for clause in ("joins", "pivots", "sample", "version", "when", "hints", "laterals", "partition"):
            if item.args.get(clause):
                raise UnsupportedError(f"{clause} is not supported", place=self.statement.place(item))
        if item.args.get("db"):
            raise NameResolutionError(
                f"{item.sql(dialect='spark')}: names of streams have one part",
                place=self.statement.place(item),
            )
        return self._named_source(item, window, ctes)

    def _named_source(
        self, item: exp.Table, window: exp.Expr | None, ctes: Mapping[str, exp.Expr]
    ) -> tuple[str, Node, dict[str, str]]:
        name = self._unique(item.alias or item.name)
        if item.name.casefold() in ctes:
            inner = {key: tree for key, tree in ctes.items() if key != item.name.casefold()}
            return self._derived(name, self.query(ctes[item.name.casefold()], None, inner), window)
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
                binder = _Binder(
                    self.catalog,
                    query.statement,
                    (*self.reading, query.name.casefold()),
                    self.names,
                    self.internal,
                )
                return self._derived(name, binder.query(query.tree, None), window)
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
        node, names = self._renamed(relation, name)
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

    def _renamed(self, relation: Relation, name: str) -> tuple[Node, list[str]]:
        """The relation with its columns called `name.label`."""
        names = [f"{name}.{label}" for label in relation.labels]
        outputs = tuple(
            Output(new, Scalar.column(column.name, column.type))
            for new, column in zip(names, relation.node.schema, strict=True)
        )
        return Project(relation.node, outputs), names

    def _unique(self, name: str) -> str:
        chosen = _unused(name, self.names, start=2)
        self.names.add(chosen)
        return chosen

    def _shown_name(self, item: exp.Expr, name: str) -> str:
        if isinstance(item, syntax.Windowed):
            item = item.this
        return item.alias or (item.name if isinstance(item, exp.Table) else name)

    # -- set operations ---------------------------------------------------------------------------

    def set_operation(
        self, tree: exp.SetOperation, outer: Scope | None, ctes: Mapping[str, exp.Expr]
    ) -> Relation:
        left, right = self.query(tree.this, outer, ctes), self.query(tree.expression, outer, ctes)
        if len(left.labels) != len(right.labels):
            raise TypeMismatchError(
                f"both sides of {tree.key.upper()} need the same number of columns, "
                f"not {len(left.labels)} and {len(right.labels)}",
                place=self.statement.place(tree.expression),
            )
        streams = isinstance(left.node, Emit) and isinstance(right.node, Emit)
        first, second = self._aligned(left, right, tree)
        distinct = tree.args.get("distinct") is not False
        pairs = tuple((a.name, b.name) for a, b in zip(first.schema, second.schema, strict=True))
        node: Node
        match tree:
            case exp.Union():
                node = Union((first, second))
                node = Distinct(node) if distinct else node
            case exp.Except():
                if distinct:
                    node = Negation(Distinct(first), second, pairs, null_equal=True)
                else:
                    node = Difference(first, second)
            case exp.Intersect() if distinct:
                node = SemiJoin(Distinct(first), second, pairs, null_equal=True)
            case _:
                raise UnsupportedError(
                    f"{tree.key.upper()} ALL is not supported", place=self.statement.place(tree)
                )
        outputs = tuple(
            Output(label, Scalar.column(column.name, column.type))
            for label, column in zip(left.labels, node.schema, strict=True)
        )
        node = Project(node, outputs)
        if streams and isinstance(tree, exp.Union) and not distinct:
            node = Emit(node, "ISTREAM")
        return Relation(node, left.labels)

    def _aligned(self, left: Relation, right: Relation, tree: exp.SetOperation) -> tuple[Node, Node]:
        """Both sides with the same types, column by column, under disjoint names."""
        sides: list[list[Output]] = [[], []]
        first, second = self._unique("left"), self._unique("right")
        for label, a, b in zip(left.labels, left.node.schema, right.node.schema, strict=True):
            common = types.common_type(a.type, b.type)
            if common is None:
                raise TypeMismatchError(
                    f"column {label} is {types.spark_name(a.type)} on the left of {tree.key.upper()} "
                    f"and {types.spark_name(b.type)} on the right",
                    remedy="convert one of them with CAST",
                    place=self.statement.place(tree.expression),
                )
            for side, name, column in ((0, first, a), (1, second, b)):
                scalar = convert(Scalar.column(column.name, column.type), common)
                sides[side].append(Output(f"{name}.{label}", scalar))
        return Project(left.node, tuple(sides[0])), Project(right.node, tuple(sides[1]))


def _label(item: exp.Expr) -> str:
    if isinstance(item, exp.Alias):
        return str(item.alias)
    if isinstance(item, (exp.Column, exp.Dot)):
        return item.name
    bare = item.copy().transform(
        lambda node: exp.Column(this=node.this) if isinstance(node, exp.Column) and node.table else node
    )
    return bare.sql(dialect="spark", normalize_functions="lower").replace("`", "")


def _also(item: exp.Expr) -> str | None:
    """The column behind an aggregate without an alias."""
    if aggregate_name(item) and isinstance(item.this, exp.Column):
        return str(item.this.name)
    return None


def _unused(name: str, taken: set[str] | list[str], *, start: int = 1) -> str:
    """The name, with a number behind it if it is taken."""
    folded = {each.casefold() for each in taken}
    if name.casefold() not in folded:
        return name
    number = start
    while f"{name}_{number}".casefold() in folded:
        number += 1
    return f"{name}_{number}"


def _windows_below(node: Node) -> Iterator[Window]:
    """The windows whose ticks an answer follows: those not behind an inner Emit."""
    if isinstance(node, Emit):
        return
    if isinstance(node, Window):
        yield node
    for each in node.inputs:
        yield from _windows_below(each)


def _slide_of(node: Node, statement: Statement) -> int | None:
    """The SLIDE that all windows of a query share."""
    slides = sorted({each.window.slide for each in _windows_below(node) if each.window.slide is not None})
    if len(slides) > 1:
        raise MeaninglessError(
            "the windows of one query slide together: all SLIDEs must be the same",
            remedy="give them the same SLIDE, or split the query",
            place=statement.place(),
        )
    return slides[0] if slides else None


def _without_slide(node: Node) -> Node:
    """The same plan evaluated continuously: RESTORE brings back what falls between ticks."""
    if isinstance(node, Emit):
        return node
    new = node.with_inputs([_without_slide(each) for each in node.inputs])
    if isinstance(new, Window) and new.window.slide is not None:
        return replace(new, window=replace(new.window, slide=None))
    return new
