"""Witness: for a refused query, rows of its own streams that every correct algorithm has to remember.

The lemmas of the Memory document's appendix give the rows (`values.witness`); this says for which part of a plan they
speak, and turns their codes back into values of columns. They hold for streams that promise nothing: where a
stream has a key or punctuations, the proof is that of the Punctuation document (`stuck_rows`). Negations, and joins
with windows, ask for rows that came before in a simpler way (`asked_rows`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from headgate.plan.nodes import (
    Aggregate,
    Difference,
    Distinct,
    Emit,
    Filter,
    Negation,
    Node,
    Project,
    SemiJoin,
    StreamScan,
    Window,
)
from headgate.safety.adversary import Adversary, Values
from headgate.safety.asked_rows import find_asked_rows
from headgate.safety.block import Block, flatten
from headgate.safety.stuck_rows import find_stuck_rows
from headgate.safety.translation import NotAComparisonError, Translated, translate
from headgate.safety.values.answers import Row
from headgate.safety.values.closure import close
from headgate.safety.values.domain import Code
from headgate.safety.values.failure import Condition, Failure
from headgate.safety.values.query import Attribute, SpjQuery
from headgate.safety.values.verdict import judge
from headgate.safety.values.witness import build_witness

_EPOCH = date(1970, 1, 1)


def find_adversary(plan: Emit, count: int) -> Adversary | None:
    """An adversary with `count` rows against a refused plan; None if none is known."""
    return _by_values(plan, count) or find_stuck_rows(plan, count) or find_asked_rows(plan, count)


def why_none(plan: Emit) -> str:
    """Why no rows are known that prove a refusal, as far as the query's shape says so."""
    scans = [node for node in plan.walk() if isinstance(node, StreamScan)]
    names = [scan.stream.name for scan in scans]
    promised = sorted({s.stream.name for s in scans if s.stream.keys or s.stream.punctuations})
    if promised and len(set(names)) < len(names):
        return f"{', '.join(promised)} makes promises and is read twice: a row of it speaks for the other reading too"
    if promised and any(
        isinstance(node, (Negation, SemiJoin, Difference, Aggregate)) for node in plan.walk()
    ):
        return f"{', '.join(promised)} makes promises, and the proof with promises is one for joins alone"
    if any(isinstance(node, Aggregate) for node in plan.walk()):
        return "the proof is one for groups and counts of values, and other answers need not change by a row"
    if any(isinstance(node, Window) and node.window.partition for node in plan.walk()):
        return "the last rows of each value replace one another, which no proof here speaks of"
    if any(isinstance(node, Filter) for node in plan.walk()):
        return "rows would have to pass conditions that are not comparisons of columns and constants"
    return "the query's shape is none that the proofs speak of"


def _by_values(plan: Emit, count: int) -> Adversary | None:
    core, outputs, distinct, grouped = _asked(plan.input)
    block = flatten(core, windows=False, distinct=distinct)
    if block is None or any(scan.stream.keys or scan.stream.punctuations for scan in block.scans):
        return None
    scalars = tuple(block.outputs[name] for name in outputs if name in block.outputs)
    try:
        translated = translate(block, scalars, checks=True)
    except NotAComparisonError:
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
            known = next((a for a in self.translated.scalars if self._same(a, attribute)), None)
            if known is None:
                continue
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
