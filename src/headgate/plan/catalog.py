"""The catalog: what streams, tables and queries a text declares, with their types and promises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from sqlglot import exp

from headgate.language import nodes
from headgate.language.parse import Statement, parse
from headgate.model import types
from headgate.model.adherence import Adherence
from headgate.model.errors import DeclarationError, NameResolutionError, UnsupportedError
from headgate.model.scalar import Scalar
from headgate.model.schema import Column
from headgate.model.source import SourceText
from headgate.model.suggest import did_you_mean
from headgate.plan.constraints import adherence, refuse_contradictions, refuse_unkeyed
from headgate.plan.expressions import bind_over_columns
from headgate.plan.sqltypes import arrow_type

_COLUMN_CONSTRAINTS = (
    exp.NotNullColumnConstraint,
    exp.CheckColumnConstraint,
    exp.CommentColumnConstraint,
)

CHANGE_OPTIONS = ("changetime", "changeop")
"""The options, case-folded, with which a table's source holds its changes and not its rows."""


@dataclass(frozen=True)
class Ordered:
    """OA(k): the columns arrive in order, up to what is `within` the adherence."""

    columns: tuple[str, ...]
    within: Adherence


@dataclass(frozen=True)
class Clustered:
    """CA(k): between two consecutive rows with equal columns, so many others at most, or so much time."""

    columns: tuple[str, ...]
    within: Adherence


@dataclass(frozen=True)
class References:
    """RIDS(k): a row's partner in `parent` has come, or comes within so many of its rows, or so much time."""

    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]
    within: Adherence


@dataclass(frozen=True)
class Punctuation:
    """One scheme: rows for which `when` holds promise that no later row has equal `columns`."""

    columns: tuple[str, ...]
    when: Scalar | None


@dataclass(frozen=True)
class Source:
    """Where rows come from: a Spark format and its options."""

    format: str
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class StreamDef:
    """A declared stream."""

    name: str
    columns: tuple[Column, ...]
    time: str | None = None
    slack: int = 0
    keys: tuple[tuple[str, ...], ...] = ()
    ordered: tuple[Ordered, ...] = ()
    clustered: tuple[Clustered, ...] = ()
    references: tuple[References, ...] = ()
    punctuations: tuple[Punctuation, ...] = ()
    checks: tuple[Scalar, ...] = ()
    source: Source | None = None


@dataclass(frozen=True)
class TableDef:
    """A declared table; a non-retroactive one never changes what was answered before."""

    name: str
    columns: tuple[Column, ...]
    retroactive: bool = True
    keys: tuple[tuple[str, ...], ...] = ()
    checks: tuple[Scalar, ...] = ()
    source: Source | None = None
    changes: bool = False
    """Whether its rows come and go while a query runs; without a change stream, a table stays as it is."""

    @property
    def is_asked_at_birth(self) -> bool:
        """Whether what it answers depends on when a result came to be, because it changes and is not retroactive."""
        return self.changes and not self.retroactive

    @property
    def rewrites(self) -> bool:
        """Whether a change of it changes what was answered before."""
        return self.changes and self.retroactive


@dataclass(frozen=True)
class QueryDef:
    """A declared query, still as syntax: it is bound when it is read."""

    name: str
    statement: Statement
    tree: exp.Expr


Definition = StreamDef | TableDef | QueryDef


@dataclass(frozen=True)
class Catalog:
    """All definitions by case-folded name, in the order of declaration."""

    definitions: Mapping[str, Definition] = field(default_factory=lambda: MappingProxyType({}))

    def find(self, name: str) -> Definition | None:
        return self.definitions.get(name.casefold())

    def with_changes(self, name: str) -> Catalog:
        """This catalog, in which a declared table's rows come and go."""
        found = self.definitions[name.casefold()]
        assert isinstance(found, TableDef)
        return Catalog(MappingProxyType({**self.definitions, name.casefold(): replace(found, changes=True)}))

    def with_definition(self, definition: Definition) -> Catalog:
        """This catalog and one more definition; the caller has checked that the name is free."""
        return Catalog(MappingProxyType({**self.definitions, definition.name.casefold(): definition}))

    @property
    def queries(self) -> tuple[QueryDef, ...]:
        return tuple(d for d in self.definitions.values() if isinstance(d, QueryDef))

    @property
    def streams(self) -> tuple[StreamDef, ...]:
        return tuple(d for d in self.definitions.values() if isinstance(d, StreamDef))

    @property
    def tables(self) -> tuple[TableDef, ...]:
        return tuple(d for d in self.definitions.values() if isinstance(d, TableDef))


def build_catalog(statements: Iterable[Statement], catalog: Catalog | None = None) -> Catalog:
    """The catalog that statements declare, added to a given one; a bare SELECT becomes query `query_n`."""
    found = dict(catalog.definitions) if catalog is not None else {}
    queries = sum(isinstance(each, QueryDef) for each in found.values())
    for statement in statements:
        tree = statement.tree
        definition: Definition
        match tree:
            case nodes.CreateStream():
                definition = _stream(statement, tree)
            case nodes.CreateTable():
                definition = _table(statement, tree)
            case nodes.CreateQuery():
                definition = QueryDef(tree.this.name, statement, tree.args["query"])
            case _:
                number = queries + 1
                while f"query_{number}" in found:
                    number += 1
                definition = QueryDef(f"query_{number}", statement, tree)
        if definition.name.casefold() in found:
            raise DeclarationError(
                f"there is already a {_kind(found[definition.name.casefold()])} named {definition.name}",
                remedy="choose another name",
                place=statement.place(tree.this if isinstance(tree.this, exp.Identifier) else None),
            )
        found[definition.name.casefold()] = definition
        queries += isinstance(definition, QueryDef)
    return Catalog(MappingProxyType(found))


def redefine(catalog: Catalog, texts: Mapping[str, str]) -> Catalog:
    """The catalog in which the definitions of these case-folded names are what these texts say."""
    found = dict(catalog.definitions)
    for name, text in texts.items():
        (statement,) = parse(SourceText("<edit>", text))
        if isinstance(found[name], QueryDef):
            tree = statement.tree
            query = tree.args["query"] if isinstance(tree, nodes.CreateQuery) else tree
            found[name] = QueryDef(found[name].name, statement, query)
        else:
            found[name] = build_catalog([statement]).definitions[name]
    return Catalog(MappingProxyType(found))


def check_references(catalog: Catalog, statements: Iterable[Statement]) -> None:
    """Raises unless every FOREIGN KEY names a stream or table and columns that exist, of a stream a key.

    A stream that brings equal values close together is as good as one with a key.
    """
    for statement in statements:
        for clause in statement.tree.args.get("clauses") or []:
            if not isinstance(clause, nodes.ForeignKey):
                continue
            parent = catalog.find(clause.args["parent"].name)
            if not isinstance(parent, (StreamDef, TableDef)):
                known = [d.name for d in catalog.definitions.values() if not isinstance(d, QueryDef)]
                raise NameResolutionError(
                    f"FOREIGN KEY refers to {clause.args['parent'].name}, which is not a stream or a table",
                    remedy=did_you_mean(clause.args["parent"].name, known),
                    place=statement.place(clause.args["parent"]),
                )
            referred = _columns(statement, clause.args["columns"], parent.columns)
            child = catalog.find(statement.tree.this.name)
            assert isinstance(child, StreamDef)
            _same_types(statement, clause, child.columns, parent.columns, referred)
            if isinstance(parent, StreamDef):
                useful = [*parent.keys, *(each.columns for each in parent.clustered)]
                refuse_unkeyed(statement, clause, parent.name, referred, useful)


def _same_types(
    statement: Statement,
    clause: exp.Expr,
    columns: tuple[Column, ...],
    parent: tuple[Column, ...],
    referred: tuple[str, ...],
) -> None:
    own = _columns(statement, clause.expressions, columns)
    types_of, parent_types = ({c.name: c.type for c in side} for side in (columns, parent))
    for node, a, b in zip(clause.expressions, own, referred, strict=True):
        if types.common_type(types_of[a], parent_types[b]) is None:
            raise DeclarationError(
                f"FOREIGN KEY: {a} is {types.spark_name(types_of[a])}, "
                f"but {b} is {types.spark_name(parent_types[b])}",
                place=statement.place(node),
            )


def _kind(definition: Definition) -> str:
    match definition:
        case StreamDef():
            return "stream"
        case TableDef():
            return "table"
        case _:
            return "query"


def _columns(statement: Statement, names: Iterable[exp.Expr], columns: tuple[Column, ...]) -> tuple[str, ...]:
    """Declared spelling of the named columns; raises on one that does not exist or comes twice."""
    by_name = {column.name.casefold(): column.name for column in columns}
    found: list[str] = []
    for name in names:
        declared = by_name.get(name.name.casefold())
        if declared is None:
            raise NameResolutionError(
                f"there is no column {name.name}",
                remedy=did_you_mean(name.name, by_name.values()),
                place=statement.place(name),
            )
        if declared in found:
            raise DeclarationError(f"column {declared} is listed twice", place=statement.place(name))
        found.append(declared)
    return tuple(found)


def _declared_columns(statement: Statement, tree: exp.Expr) -> tuple[Column, ...]:
    columns: list[Column] = []
    seen: set[str] = set()
    for each in tree.args["columns"]:
        if not isinstance(each, exp.ColumnDef):
            continue
        name = each.this.name
        if name.casefold() in seen:
            raise DeclarationError(f"column {name} is declared twice", place=statement.place(each.this))
        if name.startswith("_"):
            raise DeclarationError(
                f"column {name} begins with an underscore, which Headgate keeps for its own columns",
                remedy="rename the column",
                place=statement.place(each.this),
            )
        seen.add(name.casefold())
        _refuse_constraints(statement, each)
        columns.append(Column(name, arrow_type(statement, each.args["kind"], place=each.this)))
    if not columns:
        raise DeclarationError(f"{tree.this.name} has no columns", place=statement.place(tree.this))
    return tuple(columns)


def _refuse_constraints(statement: Statement, column: exp.Expr) -> None:
    """Raises on what a column's declaration promises and nothing here would keep."""
    for constraint in column.args.get("constraints") or []:
        if not isinstance(constraint.args.get("kind"), _COLUMN_CONSTRAINTS):
            words = constraint.sql(dialect="spark")
            raise UnsupportedError(
                f"{words} is not supported on a column",
                remedy=f"write KEY ({column.this.name}) after the columns" if "KEY" in words else None,
                place=statement.place(column.this),
            )


def _checks(statement: Statement, tree: exp.Expr, columns: tuple[Column, ...]) -> tuple[Scalar, ...]:
    return tuple(
        bind_over_columns(check.this, columns, statement, expect=types.BOOLEAN)
        for each in tree.args["columns"]
        for check in each.find_all(exp.CheckColumnConstraint)
    )


def _source(statement: Statement, tree: exp.Expr) -> Source | None:
    for clause in tree.args.get("clauses") or []:
        if isinstance(clause, nodes.Using):
            options = tuple(
                (option.args["this"], _option_text(option.args["value"]))
                for option in clause.args.get("options") or []
            )
            _once(statement, clause, [key for key, _ in options])
            name: str = clause.args["this"]
            return Source(name if "." in name else name.lower(), options)
    return None


def _once(statement: Statement, clause: exp.Expr, keys: list[str]) -> None:
    for index, key in enumerate(keys):
        if key.casefold() in {each.casefold() for each in keys[:index]}:
            raise DeclarationError(f"option {key} is given twice", place=statement.place(clause))


def _option_text(value: exp.Expr) -> str:
    if isinstance(value, exp.Boolean):
        return "true" if value.this else "false"
    return str(value.this)


def _one(statement: Statement, tree: exp.Expr, kind: type[exp.Expr], words: str) -> None:
    found = [c for c in tree.args.get("clauses") or [] if isinstance(c, kind)]
    if len(found) > 1:
        raise DeclarationError(f"{words} is given twice", place=statement.place(found[1]))


def _stream(statement: Statement, tree: exp.Expr) -> StreamDef:
    columns = _declared_columns(statement, tree)
    _one(statement, tree, nodes.TimestampBy, "TIMESTAMP BY")
    _one(statement, tree, nodes.Using, "USING")
    time, slack = None, 0
    keys: list[tuple[str, ...]] = []
    ordered: list[Ordered] = []
    clustered: list[Clustered] = []
    references: list[References] = []
    punctuations: list[Punctuation] = []
    for clause in tree.args.get("clauses") or []:
        match clause:
            case nodes.TimestampBy():
                (time,) = _columns(statement, [clause.this], columns)
                slack = clause.args.get("slack") or 0
                _require_timestamp(statement, clause.this, time, columns)
            case nodes.Key():
                keys.append(_columns(statement, clause.expressions, columns))
            case nodes.OrderedBy():
                names = _columns(statement, clause.expressions, columns)
                ordered.append(Ordered(names, adherence(clause)))
            case nodes.ClusteredBy():
                names = _columns(statement, clause.expressions, columns)
                clustered.append(Clustered(names, adherence(clause)))
            case nodes.ForeignKey():
                names = _columns(statement, clause.expressions, columns)
                parent_columns = tuple(c.name for c in clause.args["columns"])
                if len(names) != len(parent_columns):
                    raise DeclarationError(
                        f"FOREIGN KEY has {len(names)} columns but refers to {len(parent_columns)}",
                        place=statement.place(clause),
                        remedy="name as many columns on both sides: FOREIGN KEY (a, b) REFERENCES t (a, b)",
                    )
                references.append(
                    References(names, clause.args["parent"].name, parent_columns, adherence(clause))
                )
            case nodes.PunctuatedBy():
                names = _columns(statement, clause.expressions, columns)
                when = clause.args.get("when")
                condition = (
                    bind_over_columns(when, columns, statement, expect=types.BOOLEAN) if when else None
                )
                punctuations.append(Punctuation(names, condition))
    refuse_contradictions(statement)
    return StreamDef(
        name=tree.this.name,
        columns=columns,
        time=time,
        slack=slack,
        keys=tuple(keys),
        ordered=tuple(ordered),
        clustered=tuple(clustered),
        references=tuple(references),
        punctuations=tuple(punctuations),
        checks=_checks(statement, tree, columns),
        source=_source(statement, tree),
    )


def _require_timestamp(statement: Statement, node: exp.Expr, time: str, columns: tuple[Column, ...]) -> None:
    dtype = next(c.type for c in columns if c.name == time)
    if not types.is_timestamp(dtype):
        raise DeclarationError(
            f"TIMESTAMP BY needs a TIMESTAMP column; {time} is {types.spark_name(dtype)}",
            remedy=f"declare {time} as TIMESTAMP",
            place=statement.place(node),
        )


def _table(statement: Statement, tree: exp.Expr) -> TableDef:
    columns = _declared_columns(statement, tree)
    _one(statement, tree, nodes.Using, "USING")
    keys = tuple(
        _columns(statement, clause.expressions, columns)
        for clause in tree.args.get("clauses") or []
        if isinstance(clause, nodes.Key)
    )
    source = _source(statement, tree)
    options = () if source is None else source.options
    return TableDef(
        name=tree.this.name,
        columns=columns,
        retroactive=not tree.args.get("non_retroactive"),
        keys=keys,
        checks=_checks(statement, tree, columns),
        source=source,
        changes=any(key.casefold() in CHANGE_OPTIONS for key, _ in options),
    )
