"""What a text declares, with the rows it is given, and which streams its queries read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp
from tests.oracle.block import from_items, nested_queries
from tests.oracle.contents import UNBOUNDED, Window
from tests.oracle.inputs import Rows, StreamInput, TableInput, TimedRow, read_stream, read_table

from headgate.language import nodes
from headgate.language.parse import parse
from headgate.model.source import SourceText


class Catalog:
    """Streams, tables and queries of a text by lower-case name; a bare SELECT is called after its place, `query1`."""

    def __init__(
        self, text: str, inputs: Mapping[str, Rows], tables: Mapping[str, Rows | Sequence[TimedRow]]
    ) -> None:
        self.streams: dict[str, StreamInput] = {}
        self.tables: dict[str, TableInput] = {}
        self.queries: dict[str, exp.Expr] = {}
        given = {name.lower(): rows for name, rows in {**inputs, **tables}.items()}
        for statement in parse(SourceText("case", text)):
            tree = statement.tree
            name = tree.name.lower()
            match tree:
                case nodes.CreateStream():
                    self.streams[name] = read_stream(tree, given.pop(name, ()))
                case nodes.CreateTable():
                    self.tables[name] = read_table(tree, given.pop(name, ()))
                case nodes.CreateQuery():
                    self.queries[name] = tree.args["query"]
                case _:
                    self.queries[f"query{len(self.queries) + 1}"] = tree
        if given:
            raise ValueError(f"rows for undeclared {sorted(given)}")

    def readings(self, tree: exp.Expr) -> Iterator[tuple[str, Window]]:
        """Declared streams that a query reads, itself or through others, each with the window on it."""
        tree = bare(tree)
        if isinstance(tree, exp.SetOperation):
            yield from self.readings(tree.this)
            yield from self.readings(tree.expression)
            return
        assert isinstance(tree, exp.Select)
        for item in from_items(tree):
            windowed = isinstance(item, nodes.Windowed)
            named = item.this if windowed else item
            name = named.name.lower()
            if isinstance(named, exp.Subquery):
                yield from self.readings(named)
            elif name in self.streams:
                yield name, Window.of(item.args["window"]) if windowed else UNBOUNDED
            elif name in self.queries:
                yield from self.readings(self.queries[name])
        for nested in nested_queries(tree):
            yield from self.readings(nested)

    def first_row(self, tree: exp.Expr) -> int | None:
        """The instant of the first row of any stream that a query reads, or of the first change of a table.

        A NON RETROACTIVE table changes no answer. Where nothing can change, the answer is there since the epoch.
        """
        if self.is_timeless(tree):
            return 0
        times = [set(self.streams[name].stream.times) for name, _ in self.readings(tree)]
        times += [self.tables[name].changes() for name in self.tables_read(tree)]
        return min((ts for each in times for ts in each), default=None)

    def is_timeless(self, tree: exp.Expr) -> bool:
        """Whether a query reads nothing but tables that do not change."""
        return not any(self.readings(tree)) and not any(
            self.tables[name].changing for name in self.tables_read(tree)
        )

    def tables_read(self, tree: exp.Expr) -> Iterator[str]:
        """Retroactive tables that a query reads, itself or through others."""
        for name in self._names(tree):
            if name in self.queries:
                yield from self.tables_read(self.queries[name])
            elif name in self.tables and self.tables[name].retroactive:
                yield name

    def _names(self, tree: exp.Expr) -> Iterator[str]:
        return (table.name.lower() for table in tree.find_all(exp.Table))

    def slide(self, tree: exp.Expr) -> int | None:
        """The slide of a query's windows; there is at most one."""
        slides = {window.slide for _, window in self.readings(tree)} - {None}
        if len(slides) > 1:
            raise ValueError("windows of one query have different slides")
        return slides.pop() if slides else None

    def common_slide(self, tree: exp.Expr) -> int | None:
        """The slide that every window of a query has."""
        slides = {window.slide for _, window in self.readings(tree)}
        return slides.pop() if len(slides) == 1 else None


def bare(tree: exp.Expr) -> exp.Expr:
    """A query without the parentheses around it."""
    while isinstance(tree, (exp.Subquery, exp.Paren)):
        tree = tree.this
    return tree
