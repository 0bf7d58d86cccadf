"""Witness: for a refused query, rows of its own streams that every correct algorithm has to remember.

The lemmas of the Memory document's appendix give the rows (`values.witness`); this says for which part of a plan they
speak, and turns their codes back into values of columns. They hold where no stream promises anything about the
columns in question; where a join waits for keys or punctuations, the proof is that of the Punctuation document
(`purge`). Negations, and joins with windows, ask for rows that came before in a simpler way (`probe`).
What is found here is a claim. It counts once its rows have been played, because only then it is known that they keep
all promises of their streams and pass all conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
from sqlglot import exp

from headgate.model.scalar import Scalar
from headgate.plan.catalog import StreamDef
from headgate.plan.nodes import (
    Aggregate,
    Distinct,
    Emit,
    Filter,
    Node,
    Project,
    StreamScan,
    TableJoin,
    Window,
)
from headgate.safety.block import Block, flatten
from headgate.safety.promise import closes_within
from headgate.safety.reasons.constants import constant
from headgate.safety.reasons.memory_query import NotAComparisonError, Translated, translate
from headgate.safety.theory.memory.answers import Row
from headgate.safety.theory.memory.closure import close
from headgate.safety.theory.memory.domain import Code
from headgate.safety.theory.memory.failure import Condition, Failure
from headgate.safety.theory.memory.query import Attribute, SpjQuery
from headgate.safety.theory.memory.verdict import judge
from headgate.safety.theory.memory.witness import build_witness
from headgate.safety.witness.model import Adversary, Values
from headgate.safety.witness.probe import find_probe_adversary
from headgate.safety.witness.purge import find_purge_adversary

_EPOCH = date(1970, 1, 1)


def find_adversaries(plan: Emit, count: int) -> Iterator[Adversary]:
    """Adversaries with `count` rows against a refused plan, the most likely one first; each has yet to be played."""
    for find in (_by_values, find_purge_adversary, find_probe_adversary):
        found = find(plan, count)
        if found is not None:
            yield found


def why_none(plan: Emit) -> str:
    """Why no rows are known that prove a refusal, as far as the query's shape says so."""
    nodes = list(plan.walk())
    scans = {node.stream.name: node.stream for node in nodes if isinstance(node, StreamScan)}
    promising = [name for name, stream in scans.items() if closes_within(stream, _names(stream))]
    if promising:
        verb = "makes" if len(promising) == 1 else "make"
        return f"{', '.join(promising)} {verb} promises, and rows that go with all of them have not been worked out"
    if any(isinstance(node, TableJoin) for node in nodes):
        return "which rows matter depends on what is in a table"
    if any(isinstance(node, Window) and node.window.partition for node in nodes):
        return "newer rows replace the older ones of their value"
    if any(isinstance(node, Aggregate) for node in nodes):
        return "what it computes need not change with every row"
    return "it has a form for which no such rows have been worked out"


def _names(stream: StreamDef) -> list[str]:
    return [column.name for column in stream.columns]


def _by_values(plan: Emit, count: int) -> Adversary | None:
    core, outputs, distinct, grouped = _asked(plan.input)
    block = flatten(core, windows=False, distinct=distinct)
    if block is None:
        return None
    # Of an expression the answer tells its column only if different values give different ones. A failure of the
    # query without the others is one of the query with them: more in the answer tells more apart.
    asked = (block.outputs[name] for name in outputs if name in block.outputs)
    scalars = tuple(scalar for scalar in asked if is_one_to_one(scalar))
    try:
        translated = translate(block, scalars, checks=True)
    except NotAComparisonError:
        return None
    if any(closes_within(scan.stream, _mentioned(scan, block, scalars)) for scan in block.scans):
        return None
    query = translated.query.projecting(translated.projection(scalars), distinct=distinct)
    failure = _failure(query, grouped=grouped)
    if failure is None:
        return None
    found = build_witness(query, failure, count)
    if found is None:
        return None
    every = [(found.stream, row) for row in found.rows] + [each for probe in found.probes for each in probe]
    decode = _Decoder(block, translated, _ranks(every))
    rows = [decode.row(found.stream, row) for row in found.rows]
    probes = [[(stream, decode.row(stream, row)) for stream, row in probe] for probe in found.probes]
    if any(row is None for row in rows) or any(row is None for probe in probes for _, row in probe):
        return None
    return Adversary(
        found.stream,
        tuple(row for row in rows if row is not None),
        tuple(tuple((stream, row) for stream, row in probe if row is not None) for probe in probes),
        found.one_size,
        str(failure),
    )


def _mentioned(scan: StreamScan, block: Block, asked: Iterable[Scalar]) -> frozenset[str]:
    """The columns of a stream that conditions and what is asked for speak of."""
    names = {name for scalar in (*block.predicates, *asked) for name in scalar.columns & scan.names}
    return frozenset(name[len(scan.name) + 1 :] for name in names)


def is_one_to_one(scalar: Scalar) -> bool:
    """Whether a scalar has another value for each value of its one column."""
    node = scalar.expression
    while not isinstance(node, exp.Column):
        match node:
            case exp.Paren() | exp.Neg():
                node = node.this
            case exp.Add() | exp.Sub() if constant(node.expression) is not None:
                node = node.this
            case exp.Add() | exp.Sub() if constant(node.this) is not None:
                node = node.expression
            case _:
                return False
    return not pa.types.is_floating(scalar.type)


def _asked(node: Node) -> tuple[Node, tuple[str, ...], bool, bool]:
    """The block's top, what is asked of it, whether duplicates go, and whether groups are asked for."""
    below = node
    while isinstance(below, (Filter, Project)):
        below = below.input
    if isinstance(below, Aggregate):
        return below.input, below.keys, True, True
    if isinstance(below, Distinct):
        return below.input, tuple(column.name for column in below.schema), True, False
    return node, tuple(column.name for column in node.schema), False, False


def _failure(query: SpjQuery, *, grouped: bool) -> Failure | None:
    if grouped:
        # A group is told from the others by its key; what is aggregated does not matter for that.
        closure = close(query)
        open_keys = [key for key in query.projection if closure is not None and not closure.is_bounded(key)]
        if not open_keys:
            return None
        return Failure(Condition.GROUPING, (open_keys[0],))
    found = judge(query)
    return found.failure if found.exact else None


def _ranks(rows: Iterable[tuple[str, Row]]) -> dict[Code, int]:
    """The order of all codes of the rows: text takes any values that are in the same order."""
    codes = {code for _, row in rows for code in row}
    return {code: place for place, code in enumerate(sorted(codes))}


@dataclass(frozen=True)
class _Decoder:
    block: Block
    translated: Translated
    ranks: Mapping[Code, int]
    """Places in order of the codes of text that is compared with no constant."""

    def row(self, stream: str, row: Row) -> Values | None:
        """The columns of a row; None if a code stands for no value that can be written down."""
        schema = next(each for each in self.translated.query.streams if each.stream == stream)
        scan = next(each for each in self.block.scans if each.name == schema.occurrence)
        found: dict[str, Any] = {}
        for attribute, code in zip(schema.elements, row, strict=True):
            known = next(a for a in self.translated.scalars if self._same(a, attribute))
            scalar = self.translated.scalars[known]
            value = self._value(known, code)
            if not scalar.is_column or value is None or attribute.name == scan.stream.time:
                return None
            found[attribute.name] = value
        return found

    def _same(self, one: Attribute, two: Attribute) -> bool:
        streams = {scan.name: scan.stream.name for scan in self.block.scans}
        return one.name == two.name and streams[one.stream] == streams[two.stream]

    def _value(self, attribute: Attribute, code: Code) -> Any:
        match self.translated.kinds[attribute]:
            case "boolean":
                return bool(code)
            case "whole":
                return int(code) if code == int(code) else None
            case "date":
                return _EPOCH + timedelta(days=int(code))
            case "instant":
                return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(code))
            case "text":
                return self._text(self.translated.values[attribute], code)
            case "dense":
                return float(code)

    def _text(self, listed: tuple[str, ...], code: Code) -> str | None:
        if code == int(code) and 0 <= code < len(listed):
            return listed[int(code)]
        # Numbers of one length are in their order as text too.
        return None if listed else f"v{self.ranks[code]:09d}"
