"""The oracle: what each query of a CQL text answers over given input, by definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp
from tests.oracle import emit
from tests.oracle.block import (
    Block,
    emit_of,
    inner_emit_of,
    is_aggregate,
    take_apart,
)
from tests.oracle.catalog import Catalog, bare
from tests.oracle.contents import UNBOUNDED, Stream, Window, WindowContents, tick_from
from tests.oracle.duck import Answers, answer
from tests.oracle.inputs import Rows, TimedRow
from tests.oracle.relation import Relation, append_only, stepwise, stream_of, table_relation, window_relation
from tests.oracle.values import Change, Row, change_key

from headgate.language import nodes


@dataclass(frozen=True)
class Scope:
    """What a whole query lends to its parts: the instant of its first row, and how its windows are to be read."""

    start: int | None
    continuous: bool = False
    """RESTORE: windows slide all the time, SLIDE only says when to report."""
    internal: bool = False
    """WSTREAM: all windows count as INTERNAL."""


class Oracle:
    """Judges the queries of a text. Streams and tables get their rows by name, in order of arrival.

    `plain` asks DuckDB for each instant separately; `extra` are instants to look at besides those at which something
    can change. Neither may make a difference: they are there to test the oracle.
    """

    def __init__(
        self,
        text: str,
        inputs: Mapping[str, Rows],
        tables: Mapping[str, Rows | Sequence[TimedRow]] | None = None,
        *,
        plain: bool = False,
        extra: Sequence[int] = (),
    ) -> None:
        self.order_matters = False
        """Whether an answer asked for so far depends on how rows of one instant are ordered, which it should not."""
        self._plain, self._extra = plain, tuple(extra)
        self._catalog = Catalog(text, inputs, tables or {})
        self._meanings: dict[str, Relation | Stream] = {}

    # -- questions --------------------------------------------------------------------------------

    @property
    def queries(self) -> tuple[str, ...]:
        """Names of the queries, in the order of the text; a bare SELECT is called after its place, `query1`."""
        return tuple(self._catalog.queries)

    def answer(self, query: str, instant: int) -> Counter[Row]:
        """The query's answer at an instant: of the relation whose changes ISTREAM and the like report."""
        return emit.bag(self._beneath(query), instant)

    def output(self, query: str) -> list[Change]:
        """All that the query says, in canonical order."""
        meaning = self._meaning(query)
        if isinstance(meaning, Stream):
            rows = meaning.values([name.lower() for name in meaning.rows.column_names])
            changes = [Change(time, None, row) for time, row in zip(meaning.times, rows, strict=True)]
        else:
            changes = [
                Change(instant, op, meaning.keys[position])
                for instant, gained, lost in emit.differences(meaning)
                for op, positions in (("+", gained), ("-", lost))
                for position in positions
            ]
        return sorted(changes, key=change_key)

    def columns(self, query: str) -> tuple[str, ...]:
        """Names of the columns of a query's rows."""
        return tuple(self._meaning(query).rows.column_names)

    def instants(self, query: str) -> tuple[int, ...]:
        """Where to compare answers: every instant at which something can change, and a microsecond to each side."""
        changes = self._beneath(query).changes
        return tuple(sorted({at for change in changes for at in (change - 1, change, change + 1)}))

    def ticking(self, query: str) -> bool:
        """Whether the query speaks at ticks, RSTREAM with SLIDE, even while nothing changes."""
        tree = bare(self._catalog.queries[query.lower()])
        found = emit_of(tree) if isinstance(tree, exp.Select) else None
        return found is not None and found.args["kind"] == "RSTREAM" and self._catalog.slide(tree) is not None

    def late(self, stream: str) -> pa.Table:
        """Rows that came too late, in order of arrival."""
        return self._catalog.streams[stream.lower()].late

    # -- queries ----------------------------------------------------------------------------------

    def _meaning(self, query: str) -> Relation | Stream:
        """A query as its readers see it: a stream if it says ISTREAM, DSTREAM or RSTREAM, else a relation."""
        name = query.lower()
        if name not in self._meanings:
            tree = self._catalog.queries[name]
            self._meanings[name] = self._value(tree, Scope(self._catalog.first_row(tree)))
        return self._meanings[name]

    def _beneath(self, query: str) -> Relation:
        meaning = self._meaning(query)
        if isinstance(meaning, Relation):
            return meaning
        tree = bare(self._catalog.queries[query.lower()])
        assert isinstance(tree, exp.Select)
        found = emit_of(tree)
        assert found is not None
        scope = Scope(self._catalog.first_row(tree), continuous=bool(found.args.get("restore")))
        return self._select(tree, scope)

    def _value(self, tree: exp.Expr, scope: Scope) -> Relation | Stream:
        tree = bare(tree)
        if isinstance(tree, exp.SetOperation):
            return self._set_operation(tree, scope)
        if not isinstance(tree, exp.Select):
            raise ValueError(f"not a query: {type(tree).__name__}")
        found = emit_of(tree)
        if inner_emit_of(tree):
            return self._over_output_window(tree, scope)
        if found is None:
            return self._select(tree, scope)
        kind, restore, slide = found.args["kind"], bool(found.args.get("restore")), self._catalog.slide(tree)
        if kind == "WSTREAM":
            return self._output_window(found, tree, scope)
        if restore and slide is None:
            raise ValueError("RESTORE needs a SLIDE")
        relation = self._select(tree, replace(scope, continuous=True) if restore else scope)
        return stream_of(relation, _events(kind, restore, relation, scope.start, slide))

    def _set_operation(self, tree: exp.SetOperation, scope: Scope) -> Relation:
        left, right = (self._relation(side, scope) for side in (tree.this, tree.expression))
        query = tree.copy()
        leaves = {"_leaf0": left, "_leaf1": right}
        for side, leaf in zip(("this", "expression"), leaves, strict=True):
            columns = [exp.column(name, quoted=True) for name in leaves[leaf].rows.column_names]
            query.set(side, exp.select(*columns).from_(exp.alias_(exp.to_table(leaf), leaf, table=True)))
        names = tuple(left.rows.column_names)
        answers = self._ask(query, leaves, self._instants(leaves.values(), scope.start), names)
        return stepwise(answers.rows, answers.contents)

    def _relation(self, tree: exp.Expr, scope: Scope) -> Relation:
        """A query as a relation: a stream counts as all its rows so far."""
        value = self._value(tree, scope)
        return self._windowed(UNBOUNDED, value) if isinstance(value, Stream) else value

    # -- SELECT -----------------------------------------------------------------------------------

    def _select(self, tree: exp.Select, scope: Scope) -> Relation:
        """The relation beneath a SELECT's relation-to-stream operator."""
        block = take_apart(tree, lambda item: self._source(item, scope))
        start = scope.start
        if start is not None and not scope.continuous and (slide := self._catalog.common_slide(tree)):
            start = tick_from(start, slide)
        instants = self._instants(block.leaves.values(), start)
        if not any(each.internal for each in block.inputs):
            answers = self._ask(block.query, block.leaves, instants, block.names)
            return stepwise(answers.rows, answers.contents)
        if block.query.args.get("distinct"):
            raise ValueError("DISTINCT over an INTERNAL window means nothing")
        if is_aggregate(tree):
            return self._append_groups(block, instants)
        return self._outlive(block, instants)

    def _outlive(self, block: Block, instants: Sequence[int]) -> Relation:
        """Select-project-join with INTERNAL windows: a result lives until a row of another input leaves.

        Which rows a result was made of is told by their positions, which DuckDB is asked to give along.
        """
        if any(block.query.find_all(exp.Exists)):
            raise ValueError("INTERNAL windows beside EXISTS mean nothing")
        if not all(each.relation.stable for each in block.inputs):
            raise ValueError("an INTERNAL window can be joined with windows and tables only")
        origin: list[exp.Expr] = [exp.column("_id", table=each.alias) for each in block.inputs]
        answers = self._ask(block.asking_also(origin), block.leaves, instants, block.names, also=len(origin))
        origins = list(zip(*(c.to_pylist() for c in answers.rows.columns[len(block.names) :]), strict=True))
        alive: dict[tuple[int, ...], int] = {}
        contents = {}
        for instant in instants:
            there = [None if each.internal else set(each.relation.at(instant)) for each in block.inputs]
            alive = {
                origin: position
                for origin, position in alive.items()
                if all(ids is None or each in ids for each, ids in zip(origin, there, strict=True))
            }
            for position in answers.contents[instant]:
                alive.setdefault(origins[position], position)
            contents[instant] = tuple(alive.values())
        return stepwise(answers.rows.select(block.names), contents, stable=True)

    def _append_groups(self, block: Block, instants: Sequence[int]) -> Relation:
        """An aggregate over INTERNAL windows: each new value of a group is added, and nothing is ever taken away."""
        leaving = [each.relation for each in block.inputs if not each.internal]
        if any(each.times is not None or (each.changes and each.stable) for each in leaving):
            raise ValueError("an aggregate over INTERNAL and other windows together means nothing")
        group = block.query.args.get("group")
        by: list[exp.Expr] = list(group.expressions) if group else []
        answers = self._ask(block.asking_also(by), block.leaves, instants, block.names, also=len(by))
        whole = stepwise(answers.rows, answers.contents)
        width, births, before = len(block.names), {}, dict[Row, Row]()
        for instant in instants:
            now = {whole.keys[position][width:]: position for position in whole.at(instant)}
            births[instant] = [p for key, p in now.items() if before.get(key) != whole.keys[p][:width]]
            before = {key: whole.keys[position][:width] for key, position in now.items()}
        return append_only(answers.rows.select(block.names), instants, births)

    def _output_window(self, found: nodes.Emit, tree: exp.Select, scope: Scope) -> Relation:
        """WSTREAM(...)[window]: the births of the query without deaths, through a window."""
        if found.args.get("restore"):
            raise ValueError("WSTREAM RESTORE means nothing")
        relation = self._select(tree, replace(scope, internal=True))
        spec = found.args.get("window")
        return self._windowed(
            Window.of(spec) if spec else UNBOUNDED, stream_of(relation, emit.births(relation))
        )

    def _over_output_window(self, tree: exp.Select, scope: Scope) -> Relation:
        """`SELECT SUM(WSTREAM(SUM(a))[ROWS 10]) FROM …`: FROM and all that follows belongs to the inner query."""
        found = inner_emit_of(tree)
        assert found is not None
        inner = tree.copy()
        inner.set("expressions", [found.copy()])
        window = self._output_window(found, inner, scope)
        outer = exp.Select(expressions=[each.copy() for each in tree.expressions])
        place = inner_emit_of(outer)
        assert place is not None
        place.replace(exp.column(window.rows.column_names[0], table="_w", quoted=True))
        outer.from_(exp.alias_(exp.to_table("_leaf0"), "_w", table=True), copy=False)
        names = tuple(item.alias_or_name or f"_c{n}" for n, item in enumerate(outer.expressions))
        start, slide = scope.start, self._catalog.common_slide(tree)
        if start is not None and slide:
            start = tick_from(start, slide)
        leaves = {"_leaf0": window}
        answers = self._ask(outer, leaves, self._instants(leaves.values(), start), names)
        return stepwise(answers.rows, answers.contents)

    # -- inputs -----------------------------------------------------------------------------------

    def _source(self, item: exp.Expr, scope: Scope) -> tuple[Relation, bool]:
        """What a FROM item holds, and whether that is an INTERNAL window."""
        window, named = UNBOUNDED, item
        if isinstance(item, nodes.Windowed):
            window, named = Window.of(item.args["window"]), item.this
        if scope.continuous:
            window = replace(window, slide=None)
        name = named.name.lower()
        if isinstance(named, exp.Subquery):
            value = self._value(named, replace(scope, internal=False))
        elif name in self._catalog.streams:
            value = self._catalog.streams[name].stream
        elif name in self._catalog.queries:
            tree = self._catalog.queries[name]
            # What never changes is there whenever somebody reads it.
            value = self._value(tree, scope) if self._catalog.is_timeless(tree) else self._meaning(name)
        elif name in self._catalog.tables and named is item:
            return table_relation(self._catalog.tables[name]), False
        else:
            raise ValueError(f"no stream, table or query to read: {item.sql()}")
        if isinstance(value, Relation):
            if not isinstance(item, nodes.Windowed):
                return value, False
            value = stream_of(value, emit.births(value))
        return self._windowed(window, value), window.internal or scope.internal

    def _windowed(self, window: Window, stream: Stream) -> Relation:
        contents = WindowContents(window, stream)
        self.order_matters = self.order_matters or contents.ambiguous()
        return window_relation(contents)

    def _instants(self, leaves: Iterable[Relation], start: int | None) -> list[int]:
        """Every instant from the start at which some leaf can change."""
        if start is None:
            return []
        changes = {change for leaf in leaves for change in leaf.changes}
        return sorted(at for at in {start, *changes, *self._extra} if at >= start)

    def _ask(
        self,
        query: exp.Expr,
        leaves: Mapping[str, Relation],
        instants: Sequence[int],
        names: Sequence[str],
        *,
        also: int = 0,
    ) -> Answers:
        """DuckDB's answers with the columns named, and unnamed ones that were asked for besides."""
        answers = answer(query, leaves, instants, len(names) + also, plain=self._plain)
        named = [*names, *(f"_also{position}" for position in range(also))]
        return Answers(answers.rows.rename_columns(named), answers.contents)


def _events(
    kind: str, restore: bool, relation: Relation, start: int | None, slide: int | None
) -> list[emit.Event]:
    """The events of a relation-to-stream operator."""
    if start is None:
        return []
    match kind:
        case "ISTREAM":
            return emit.restored_births(relation, slide) if restore and slide else emit.births(relation)
        case "DSTREAM":
            return emit.deaths(relation)
        case "RSTREAM":
            at_ticks = emit.restored_answers if restore else emit.answers_at_ticks
            return emit.answers_at_changes(relation) if slide is None else at_ticks(relation, start, slide)
        case _:
            raise ValueError(f"no stream by {kind}")
