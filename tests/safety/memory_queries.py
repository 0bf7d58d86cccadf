"""Queries for the tests of bounded memory by values: written as text, and at random."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from hypothesis import strategies as st

from headgate.safety.theory.memory.domain import Domain
from headgate.safety.theory.memory.query import (
    Attribute,
    Comparison,
    Constant,
    Element,
    Operator,
    SpjQuery,
    StreamSchema,
)

STRICT: tuple[Operator, ...] = ("<", "=", ">")
ALL: tuple[Operator, ...] = ("<", "<=", "=", ">=", ">")

EXAMPLE_STREAMS = {"S": "A B C", "T": "D E"}


def schemas(streams: Mapping[str, str]) -> tuple[StreamSchema, ...]:
    """Streams from text: `{"S": "A B"}`, or `{"S as x": "A B"}` for an occurrence."""
    found = []
    for name, attributes in streams.items():
        stream, _, alias = name.partition(" as ")
        found.append(StreamSchema(stream, tuple(attributes.split()), alias))
    return tuple(found)


def query(
    projection: str,
    predicates: str,
    *,
    distinct: bool,
    streams: Mapping[str, str] = EXAMPLE_STREAMS,
    domains: Mapping[str, Domain] | None = None,
) -> SpjQuery:
    """A query from text: `query("A", "B<D, A>10", distinct=True)`; names are bare where only one stream has them."""
    parts = schemas(streams)
    if domains:
        parts = tuple(
            replace(s, domains=tuple((a, domains[a]) for a in s.attributes if a in domains)) for s in parts
        )

    def element(text: str) -> Element:
        if re.fullmatch(r"-?\d+", text):
            return Constant(int(text))
        if "." in text:
            stream, _, name = text.partition(".")
            return Attribute(stream, name)
        (owner,) = [s.occurrence for s in parts if text in s.attributes]
        return Attribute(owner, text)

    def comparison(text: str) -> Comparison:
        match = re.fullmatch(r"\s*(\S+?)\s*(<=|>=|<|=|>)\s*(\S+)\s*", text)
        assert match, text
        left, op, right = match.groups()
        return Comparison(element(left), next(o for o in ALL if o == op), element(right))

    attributes = tuple(element(name) for name in projection.split())
    return SpjQuery(
        parts,
        tuple(comparison(text) for text in predicates.split(",") if text.strip()),
        tuple(a for a in attributes if isinstance(a, Attribute)),
        distinct,
    )


@st.composite
def random_queries(
    draw: st.DrawFn,
    *,
    ops: Iterable[Operator] = STRICT,
    dense: bool | None = False,
    distinct: bool | None = None,
    max_attributes: int = 5,
    joins_only: bool = False,
    across: bool = True,
) -> SpjQuery:
    """Two or three streams, up to `max_attributes` attributes in all, up to two constants; dense=None mixes kinds.

    Without `across`, kinds are mixed within a stream and never compared.
    """
    count = draw(st.sampled_from([2, 2, 3]))
    owners = list(range(count)) + draw(st.lists(st.integers(0, count - 1), max_size=max_attributes - count))
    parts = []
    for stream in range(count):
        names = tuple("ABCDE"[place] for place, owner in enumerate(owners) if owner == stream)
        kinds = [draw(st.booleans()) if dense is None else dense for _ in names]
        domains = tuple(
            (n, Domain.continuous()) for n, is_dense in zip(names, kinds, strict=True) if is_dense
        )
        parts.append(StreamSchema("STU"[stream], names, domains=domains))
    attributes = [attribute for part in parts for attribute in part.elements]
    constants = draw(st.lists(st.sampled_from([0, 1, 2, 5]), max_size=2))
    sides: list[Element] = [*attributes, *map(Constant, constants)]
    pairs = st.tuples(st.sampled_from(attributes), st.sampled_from(list(ops)), st.sampled_from(sides))
    chosen = draw(st.lists(pairs, min_size=1, max_size=7))
    predicates = [Comparison(left, op, right) for left, op, right in chosen if left != right]
    if joins_only:
        # All inequalities between attributes follow one order, so that few queries contradict themselves.
        rank = {attribute: place for place, attribute in enumerate(draw(st.permutations(attributes)))}
        predicates = [_along(predicate, rank) for predicate in predicates]
    if not across:
        without_gaps = {Attribute(part.stream, name) for part in parts for name, _ in part.domains}
        predicates = [p for p in predicates if len({a in without_gaps for a in p.attributes}) == 1]
    projected = () if joins_only or draw(st.integers(0, 3)) else (draw(st.sampled_from(attributes)),)
    removes = draw(st.booleans()) if distinct is None else distinct
    return SpjQuery(tuple(parts), tuple(predicates), projected, removes)


def _along(predicate: Comparison, rank: Mapping[Attribute, int]) -> Comparison:
    """The inequality, turned round if it goes against the ranks of its sides."""
    low = predicate.ascending
    if (
        isinstance(low.left, Attribute)
        and isinstance(low.right, Attribute)
        and rank[low.left] > rank[low.right]
    ):
        return Comparison(low.right, low.op, low.left)
    return low
