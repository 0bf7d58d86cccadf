"""Random examples: declarations, a query, timed rows for its inputs, and how they are cut into batches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from tests.oracle.choices import Choices
from tests.oracle.generate_data import (
    BASES,
    Declared,
    slices,
    write_batches,
    write_changes,
    write_declared,
    write_rows,
)
from tests.oracle.generate_queries import STREAM_KINDS, Author, Core
from tests.oracle.inputs import TimedRow

from headgate.model.time import SECOND

QUERY = "answer"
"""The name of the query that an example is about."""
_OWN_NAMES = re.compile(rf"\b(?:{QUERY}|first)\b")
"""What a query and the one that it reads are called."""


@dataclass(frozen=True)
class Example:
    """A case without its expected answer.

    `inputs` are the streams' rows in order of arrival, `tables` those of tables, or their changes, `batches` says how
    many rows of each stream come together, and `features` which parts of the language the query uses.
    """

    text: str
    inputs: dict[str, pa.Table]
    tables: dict[str, pa.Table | list[TimedRow]]
    batches: tuple[dict[str, int], ...]
    features: frozenset[str]
    query: str = QUERY
    others: tuple[str, ...] = ()
    """Further queries over the same inputs."""

    def arrivals(self) -> Iterator[dict[str, pa.Table]]:
        """For each batch, the rows that it brings to each stream."""
        return slices(self.inputs, self.batches)

    def __repr__(self) -> str:
        lines = [self.text]
        for name, table in {**self.inputs, **self.tables}.items():
            if not isinstance(table, pa.Table):
                lines += [name, *(f"    {at / SECOND} {op} {row}" for at, op, row in table)]
                continue
            lines.append(f"{name} {tuple(table.column_names)}")
            columns = [_readable(column) for column in table.columns]
            lines += [f"    {row}" for row in zip(*columns, strict=True)]
        return "\n".join((*lines, f"batches: {self.batches}"))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # Hypothesis would show the fields one by one, tables in full.
        printer.text("\n" + repr(self))


def _readable(column: pa.ChunkedArray) -> list[Any]:
    """A column's values; instants as seconds since the epoch."""
    if pa.types.is_timestamp(column.type):
        return [instant / SECOND for instant in column.cast(pa.int64()).to_pylist()]
    return list(column.to_pylist())


TAPE = 640
"""Bytes that a whole example takes at most, more or less."""


@st.composite
def examples(draw: st.DrawFn, *, only: frozenset[str] = frozenset(), queries: int = 1) -> Example:
    """Examples over the whole language; `only` restricts them to some of SHAPES."""
    return write_example(draw(st.binary(min_size=TAPE, max_size=TAPE)), only=only, queries=queries)


def write_example(tape: bytes, *, only: frozenset[str] = frozenset(), queries: int = 1) -> Example:
    """The example that a tape of choices stands for, of so many queries over the same inputs."""
    choices = Choices(tape)
    declared = write_declared(choices)
    possible = {shape: weight for shape, weight in SHAPES.items() if not only or shape in only}
    if not any(each.slack is None and not each.non_retroactive for each in declared):
        possible.pop("tables alone", None)
    written = ""
    for number in range(queries):
        shape = choices.weigh(possible)
        choices.features.add(shape)
        one = _WRITERS[shape](choices, declared)
        written += _OWN_NAMES.sub(rf"\g<0>_{number}", one) if number else one
    base = choices.choose(BASES)
    streams = {each.name: write_rows(choices, each, base) for each in declared if each.slack is not None}
    tables = {
        each.name: (write_changes if each.changing else write_rows)(choices, each, base)
        for each in declared
        if each.slack is None
    }
    if any(each.changing and _reads(written, each.name) for each in declared):
        choices.features.add("changing table")
    batches = write_batches(choices, {name: table.num_rows for name, table in streams.items()})
    text = "".join(each.declaration() for each in declared) + written
    others = tuple(f"{QUERY}_{number}" for number in range(1, queries))
    return Example(text, streams, tables, batches, frozenset(choices.features), others=others)


def _reads(queries: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", queries) is not None


def _slide(choices: Choices, percent: int) -> int | None:
    return choices.choose((2, 1, 3, 5)) if choices.chance(percent) else None


def _emitted(choices: Choices, core: Core, kinds: dict[str | None, int]) -> str:
    """The query with one of the relation-to-stream operators around it, or none."""
    kind = choices.weigh(kinds)
    choices.features.add("relation" if kind is None else kind.lower())
    return f"CREATE QUERY {QUERY} AS {core.sql(kind)};\n"


def _kinds(slide: int | None) -> dict[str | None, int]:
    """What may stand around a query over declared streams."""
    kinds: dict[str | None, int] = {"ISTREAM": 6, None: 4, "DSTREAM": 3, "RSTREAM": 3}
    return kinds | ({"ISTREAM RESTORE": 5, "RSTREAM RESTORE": 5} if slide is not None else {})


def _select(choices: Choices, declared: tuple[Declared, ...]) -> str:
    author = Author(choices, declared, _slide(choices, 30))
    core = author.relation()
    if not core.grouped and choices.chance(60 if "using" in choices.features else 8):
        choices.features.add("star")
        core = replace(core, star=True)
    return _emitted(choices, core, _kinds(author.slide))


def _unwindowed(choices: Choices, declared: tuple[Declared, ...]) -> str:
    """A query over streams that mostly have no window, and conditions on time."""
    author = Author(choices, declared, unwindowed=75, timed=75)
    core = author.set_operation() if choices.chance(15) else author.relation()
    return _emitted(choices, core, {"ISTREAM": 6, None: 4, "DSTREAM": 1})


def _tables_alone(choices: Choices, declared: tuple[Declared, ...]) -> str:
    """A query that reads no stream."""
    author = Author(choices, declared)
    items = [item for _ in range(choices.choose((1, 1, 2))) if (item := author.table_item()) is not None]
    conditions = author.conditions(items)
    if choices.chance(25) and (inner := author.table_item()) is not None:
        tied = author.join_condition(inner, choices.choose(items))
        conditions.append(f"{'NOT ' * choices.chance(60)}EXISTS (SELECT * FROM {inner.text} WHERE {tied})")
    core = choices.choose((author.project, author.distinct, author.group))(items, conditions)
    return _emitted(choices, core, _kinds(None))


def _set_operation(choices: Choices, declared: tuple[Declared, ...]) -> str:
    author = Author(choices, declared, _slide(choices, 25))
    return _emitted(choices, author.set_operation(), _kinds(author.slide))


def _internal(choices: Choices, declared: tuple[Declared, ...]) -> str:
    author = Author(choices, declared, _slide(choices, 20))
    core, dies = author.internal(mark=True)
    return _emitted(choices, core, {"ISTREAM": 4, None: 4, "RSTREAM": 1} | ({"DSTREAM": 2} if dies else {}))


def _output_window(choices: Choices, declared: tuple[Declared, ...]) -> str:
    author = Author(choices, declared, _slide(choices, 25))
    core, _ = author.internal(mark=False)
    window = choices.choose(("[ROWS 3]", "[RANGE 3 SECONDS]", "[ROWS 1]", "[RANGE 10 SECONDS]"))
    choices.features.add("wstream")
    return f"CREATE QUERY {QUERY} AS {core.sql('WSTREAM', window)};\n"


def _over_output_window(choices: Choices, declared: tuple[Declared, ...]) -> str:
    author = Author(choices, declared, _slide(choices, 40))
    items = author.inputs(most=2, table=False)
    numeric = [
        column for item in items for column in item.columns if column.type in ("BIGINT", "INT", "DOUBLE")
    ]
    inner = choices.choose(numeric).text
    if choices.chance(70):
        inner = f"{choices.choose(('SUM', 'COUNT', 'MAX'))}({inner})"
    window = choices.choose(("[ROWS 2]", "[ROWS 10]", "[RANGE 4 SECONDS]"))
    outer = choices.choose(("SUM", "MAX", "COUNT", "MIN", "AVG"))
    choices.features |= {"wstream", "global aggregate"}
    tail = author.tail(items, author.conditions(items))
    return f"CREATE QUERY {QUERY} AS SELECT {outer}(WSTREAM({inner}){window}) AS c0 {tail};\n"


def _nested(choices: Choices, declared: tuple[Declared, ...]) -> str:
    return _reading(choices, declared, named=False)


def _query_reads_query(choices: Choices, declared: tuple[Declared, ...]) -> str:
    return _reading(choices, declared, named=True)


def _reading(choices: Choices, declared: tuple[Declared, ...], *, named: bool) -> str:
    """A query over another, which is a relation, a stream, or append-only by INTERNAL windows."""
    author = Author(choices, declared, _slide(choices, 15))
    alone = choices.chance(60)
    inner_kind: str | None = None
    monotone = False
    match choices.weigh({"relation": 4, "stream": 4, "internal": 2}):
        case "relation":
            # An aggregate over everything starts with its query's first row, so it is read alone.
            core = author.set_operation() if choices.chance(25) else author.relation(total=alone)
        case "stream":
            core = author.set_operation() if choices.chance(15) else author.relation(total=False)
            inner_kind = choices.choose(STREAM_KINDS[: 3 if author.slide is None else 2])
            choices.features.add(f"{inner_kind.lower()} inside")
        case _:
            core, dies = author.internal(mark=True, total=alone)
            # What never dies is a stream by itself.
            monotone = not dies and choices.chance(50)
            inner_kind = None if monotone else "ISTREAM"
    text = core.sql(inner_kind)
    first = f"CREATE QUERY first AS {text};\n" if named else ""
    source = "first" if named else f"({text})"
    window = 50 if monotone else 80 if inner_kind else 0
    item = author.derived_item(source, core.columns(), window=window)
    items = [item] if alone else [item, author.stream_item()]
    if monotone:
        conditions = author.conditions(items)
        outer = choices.choose((author.project, author.group))(items, conditions)
    else:
        outer = author.relation(items=items, lonely=alone)
    if "global aggregate" in choices.features:
        choices.features.add("global aggregate around or inside a query")
    kinds: dict[str | None, int] = {"ISTREAM": 5, None: 4, "DSTREAM": 3}
    return first + _emitted(choices, outer, kinds | ({"RSTREAM": 2} if author.slide is None else {}))


SHAPES = {
    "select": 12,
    "unwindowed": 4,
    "tables alone": 2,
    "set operation": 4,
    "internal": 4,
    "output window": 3,
    "over output window": 1,
    "nested": 4,
    "query reads query": 4,
}
"""The kinds of examples, and how often each is made."""

_WRITERS = {
    "select": _select,
    "unwindowed": _unwindowed,
    "tables alone": _tables_alone,
    "set operation": _set_operation,
    "internal": _internal,
    "output window": _output_window,
    "over output window": _over_output_window,
    "nested": _nested,
    "query reads query": _query_reads_query,
}
