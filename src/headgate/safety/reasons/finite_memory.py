"""Finite memory: joins of unwindowed streams whose answer needs finitely many rows of each, whatever comes.

The Memory document judges the block; this says which plan operators that makes bounded and how they are run:

| above the join | what is remembered of each stream |
|---|---|
| nothing | per bucket one row and a count; each new row meets them |
| DISTINCT | per bucket the row that can meet most |
| MIN, MAX, COUNT DISTINCT | the same, or the row with the extreme |
| COUNT, SUM, AVG | per bucket a row, a count and sums: aggregated before the join |
| others, over finitely many values | as for nothing |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from sqlglot import exp

from headgate.model import types
from headgate.model.aggregates import Accumulator
from headgate.model.scalar import Scalar
from headgate.plan.nodes import Aggregate, Distinct, Join, Node, Project
from headgate.safety.block import Block, flatten
from headgate.safety.reasons.memory_query import NotAComparisonError, Translated, translate
from headgate.safety.reasons.widening import holds_all
from headgate.safety.theory.memory import aggregates
from headgate.safety.theory.memory.buckets import StreamSynopsis, synopses
from headgate.safety.theory.memory.closure import close
from headgate.safety.theory.memory.polynomial import polynomial_failure
from headgate.safety.theory.memory.query import Attribute, Comparison, SpjQuery
from headgate.safety.theory.memory.verdict import judge

Form = Literal["counted", "representatives", "summed"]

_BUCKETS_LOOKED_AT = 1_000
"""Up to so many buckets are asked one by one how many rows stand for them."""

_ADDED_UP = (Accumulator.COUNT, Accumulator.SUM, Accumulator.MEAN)


@dataclass(frozen=True)
class Extreme:
    """An unbounded attribute whose greatest or least value is asked for."""

    attribute: Attribute
    greatest: bool


@dataclass(frozen=True)
class Summed:
    """An aggregate's argument, the input that it comes from, and the argument over that input's columns."""

    argument: str
    member: int
    scalar: Scalar


@dataclass(frozen=True)
class FiniteMemoryPlan:
    """How a join of the block is run within its bound: what is kept of each member, in order of the members."""

    form: Form
    translated: Translated
    synopses: tuple[StreamSynopsis, ...]
    expressions: Mapping[Attribute, Scalar]
    """Attributes over the columns of the join's inputs."""
    extremes: tuple[Extreme, ...] = ()
    summed: tuple[Summed, ...] = ()
    """What is added up before the join."""

    def size(self, member: int) -> int:
        """How many rows can be kept of one input."""
        synopsis = self.synopses[member]
        size = synopsis.size if self.form != "representatives" else self._representatives(synopsis)
        for cut, cells in zip(synopsis.cuts, synopsis.cells, strict=True):
            if cut.attribute not in self.translated.compared:
                size = size // len(cells) * (len(cells) + 1)
        return size

    def _representatives(self, synopsis: StreamSynopsis) -> int:
        """How many rows stand for all buckets: one for each, more where a bucket is sought from several sides."""
        extremes = sum(each.attribute.stream == synopsis.occurrence for each in self.extremes)
        if synopsis.ordered or synopsis.size > _BUCKETS_LOOKED_AT:
            return synopsis.size * max(2, extremes)
        return sum(
            bool(keep.greatest) + bool(keep.least) or max(1, extremes)
            for keep in map(synopsis.keep, product(*synopsis.cells))
        )


@dataclass(frozen=True)
class FiniteMemoryVerdict:
    """The method, or why there is none."""

    method: FiniteMemoryPlan | None
    reason: str


def judge_join(join: Join, consumer: Node | None, core: Node) -> FiniteMemoryVerdict:
    """Whether the values of a join's block bound it; `core` is the block's top, `consumer` the node above it."""
    distinct = isinstance(consumer, Distinct)
    block = flatten(core, windows=False, distinct=distinct)
    if block is None and flatten(core, windows=True, distinct=True) is not None:
        return FiniteMemoryVerdict(
            None,
            "beside a window, few values bound a stream only under DISTINCT and if all of its columns that matter "
            "have few: otherwise every copy of a row counts, and each of its results has to be ended",
        )
    if block is None:
        return FiniteMemoryVerdict(
            None,
            "that columns have few values helps only where a join reads its streams directly and without windows",
        )
    found = FiniteMemoryVerdict(None, "")
    for checks in (False, True) if any(scan.stream.checks for scan in block.scans) else (False,):
        try:
            found = _Judged(join, consumer, block, checks).verdict()
        except NotAComparisonError as problem:
            return FiniteMemoryVerdict(
                None, f"{problem} is not a comparison of two columns, so nothing is known of it"
            )
        if found.method is not None:
            return found
    return found


@dataclass(frozen=True)
class _Judged:
    join: Join
    consumer: Node | None
    block: Block
    checks: bool

    def verdict(self) -> FiniteMemoryVerdict:
        match self.consumer:
            case Distinct():
                return self._distinct()
            case Aggregate():
                return self._aggregate(self.consumer)
        return self._plain(tuple(self.block.outputs.values()))

    def _plain(self, outputs: tuple[Scalar, ...]) -> FiniteMemoryVerdict:
        """Every row of the result counts."""
        translated = translate(self.block, outputs, checks=self.checks)
        projection = translated.projection(outputs)
        query = translated.query.projecting(projection, distinct=False)
        found = judge(query)
        if found.failure is not None:
            return FiniteMemoryVerdict(None, str(found.failure))
        return self._method("counted", translated, query)

    def _distinct(self) -> FiniteMemoryVerdict:
        outputs = tuple(self.block.outputs.values())
        translated = translate(self.block, outputs, checks=self.checks)
        query = translated.query.projecting(translated.projection(outputs), distinct=True)
        # Occurrences of one stream are taken as streams of their own: those that others cover have been left out.
        failure = polynomial_failure(query)
        if failure is not None:
            return FiniteMemoryVerdict(None, str(failure))
        return self._method("representatives", translated, query)

    def _aggregate(self, node: Aggregate) -> FiniteMemoryVerdict:
        keys = tuple(self.block.outputs[key] for key in node.keys)
        arguments = tuple(self.block.outputs[name] for call in node.calls for name in call.arguments)
        translated = translate(self.block, (*keys, *arguments), checks=self.checks)
        grouping = translated.projection(keys)
        asked: list[aggregates.Aggregate] = []
        for call in node.calls:
            read = [translated.attributes_of(self.block.outputs[name]) for name in call.arguments]
            if any(len(attributes) > 1 for attributes in read):
                return FiniteMemoryVerdict(
                    None,
                    f"{call.show()} needs columns of several streams, so no stream can be summed up by itself",
                )
            need = aggregates.need_of(call.function, distinct=call.distinct)
            found_attributes = dict.fromkeys(each for attributes in read for each in attributes)
            # A constant has no attribute; counting it is counting rows.
            asked += [aggregates.Aggregate(need, each) for each in found_attributes] or [
                aggregates.Aggregate(aggregates.Need.SUMS)
            ]
        source = translated.query.projecting(grouping, distinct=False)
        if source.has_self_join and any(each.need.ignores_duplicates for each in asked):
            return FiniteMemoryVerdict(
                None, "MIN, MAX and COUNT DISTINCT over a self join are not judged by values yet"
            )
        found = aggregates.judge_aggregate(aggregates.AggregateQuery(source, tuple(asked)))
        if found.failure is not None:
            return FiniteMemoryVerdict(None, str(found.failure))
        if all(each.need.ignores_duplicates for each in asked):
            return self._extremes(translated, source, asked)
        if all(call.function.traits.accumulator in _ADDED_UP and not call.distinct for call in node.calls):
            summed = self._summed(node)
            if summed is None:
                return FiniteMemoryVerdict(
                    None,
                    "only sums of whole numbers, each over columns of one stream, are added up before a join",
                )
            return self._method("summed", translated, source, summed=summed)
        return self._plain((*keys, *arguments))

    def _extremes(
        self, translated: Translated, source: SpjQuery, asked: list[aggregates.Aggregate]
    ) -> FiniteMemoryVerdict:
        closure = close(source)
        arguments = tuple(dict.fromkeys(a.attribute for a in asked if a.attribute is not None))
        query = source.projecting((*source.projection, *arguments), distinct=True)
        extremes = tuple(
            Extreme(each.attribute, each.need is aggregates.Need.GREATEST)
            for each in asked
            if each.attribute is not None and closure is not None and not closure.is_bounded(each.attribute)
        )
        return self._method("representatives", translated, query, extremes=extremes)

    def _summed(self, node: Aggregate) -> tuple[Summed, ...] | None:
        """What to add up before the join; None if it cannot be."""
        below = node.input.input if isinstance(node.input, Project) else node.input
        if below is not self.join:
            return None
        found: dict[str, Summed] = {}
        for call in node.calls:
            if call.argument is None:
                continue
            scalar = self.block.outputs[call.argument]
            counts = call.function.traits.accumulator is Accumulator.COUNT
            if not counts and not types.is_integer(scalar.type):
                return None
            for number, member in enumerate(self.join.members):
                inner = flatten(member, windows=False, distinct=False)
                edge = None if inner is None else _over_edge(scalar, inner)
                if edge is not None and scalar.columns:
                    found[call.argument] = Summed(call.argument, number, edge)
            if call.argument not in found:
                return None
        return tuple(found.values())

    def _method(
        self,
        form: Form,
        translated: Translated,
        query: SpjQuery,
        *,
        extremes: tuple[Extreme, ...] = (),
        summed: tuple[Summed, ...] = (),
    ) -> FiniteMemoryVerdict:
        kept = {synopsis.occurrence: synopsis for synopsis in synopses(query)}
        expressions: dict[Attribute, Scalar] = {}
        ordered = []
        for member in self.join.members:
            below = flatten(member, windows=False, distinct=isinstance(self.consumer, Distinct))
            if below is None or len(below.scans) != 1:
                return FiniteMemoryVerdict(None, "a sub-query with a join of its own is not taken apart yet")
            occurrence = below.scans[0].name
            if occurrence not in kept:
                return FiniteMemoryVerdict(None, "no row that keeps its CHECKs can satisfy the conditions")
            ordered.append(kept[occurrence])
            for attribute, scalar in translated.scalars.items():
                if attribute.stream == occurrence:
                    edge = _over_edge(scalar, below)
                    if edge is not None:
                        expressions[attribute] = edge
        ordered = [_without_constants(synopsis, expressions) for synopsis in ordered]
        for synopsis in ordered:
            expressions |= _by_equals(synopsis, expressions, translated)
        method = FiniteMemoryPlan(form, translated, tuple(ordered), expressions, extremes, summed)
        missing = [a for synopsis in ordered for a in synopsis.attributes if a not in expressions]
        if missing:
            return FiniteMemoryVerdict(None, f"{missing[0]} is not among the columns that the join has")
        dense = [s for s in ordered if s.ordered and any(_uncoded(translated, a) for a in s.attributes)]
        if dense:
            return FiniteMemoryVerdict(
                None, "fractions and text cannot be put in order with other columns yet [dense]"
            )
        return FiniteMemoryVerdict(method, "")


def _without_constants(synopsis: StreamSynopsis, expressions: Mapping[Attribute, Scalar]) -> StreamSynopsis:
    """The synopsis without attributes that are not at hand and have one value: rows have passed the filter for it."""
    if synopsis.ordered:
        return synopsis
    cuts = [
        cut
        for cut, cells in zip(synopsis.cuts, synopsis.cells, strict=True)
        if cut.attribute in expressions or len(cells) > 1
    ]
    return replace(synopsis, cuts=tuple(cuts))


def _by_equals(
    synopsis: StreamSynopsis, expressions: Mapping[Attribute, Scalar], translated: Translated
) -> dict[Attribute, Scalar]:
    """Attributes that are not at hand by others of the row that equal them, as it has passed the filter for that."""
    found: dict[Attribute, Scalar] = {}
    mine = [a for a in synopsis.closure.attributes if a.stream == synopsis.occurrence]
    for attribute in mine:
        equals = (
            other
            for other in mine
            if other in expressions
            and translated.kinds.get(other) == translated.kinds.get(attribute)
            and synopsis.closure.implies(Comparison(attribute, "=", other))
        )
        equal = None if attribute in expressions else next(equals, None)
        if equal is not None:
            found[attribute] = expressions[equal]
    return found


def _uncoded(translated: Translated, attribute: Attribute) -> bool:
    return translated.kinds[attribute] in ("text", "dense")


def _over_edge(scalar: Scalar, below: Block) -> Scalar | None:
    """A scalar over a scan as one over the edge above it."""
    for name, output in below.outputs.items():
        held = output.expression
        # A whole number that was widened for a comparison is the same number.
        if (
            isinstance(held, exp.Cast)
            and types.is_integer(output.type)
            and holds_all(output.type, scalar.type)
        ):
            held = held.this
        if scalar.expression in (output.expression, held):
            return Scalar.column(name, output.type)
    plain = {o.expression.name: name for name, o in below.outputs.items() if o.is_column}
    return scalar.rename(plain) if scalar.columns <= plain.keys() else None
