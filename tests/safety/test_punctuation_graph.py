"""Which streams can be purged, decided by the generalized graph, by the transformed graph, and by exhaustion."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.safety.punctuation_queries import TRIANGLE, can_join_later, join, random_joins

from headgate.safety.theory.punctuation.graph import (
    Edge,
    generalized_edges,
    is_safe,
    punctuation_graph,
    purge,
    unpurgeable,
)
from headgate.safety.theory.punctuation.query import JoinPredicate, JoinQuery, Scheme, close
from headgate.safety.theory.punctuation.transformed import transform

AUCTION = "item.itemid=bid.itemid"


def test_the_auction_is_safe_if_items_are_unique_and_bids_are_closed() -> None:
    auction = join(AUCTION, "item(itemid), bid(itemid)", streams="item bid")
    assert is_safe(auction)
    assert (
        str(purge(auction, "bid")) == "a row of bid is purged when item is punctuated at itemid = bid.itemid"
    )


def test_punctuating_bidders_does_not_purge_items() -> None:
    auction = join(AUCTION, "item(itemid), bid(bidderid)", streams="item bid")
    assert [stuck.stream for stuck in unpurgeable(auction)] == ["item"]
    assert str(purge(auction, "item")) == "a row of item is never purged: nothing closes bid"


def test_a_purge_is_chained() -> None:
    path = join("S1.B=S2.B, S2.C=S3.C", "S2(B), S3(C)")
    chain = purge(path, "S1")
    assert chain.possible
    assert [step.stream for step in chain.steps] == ["S2", "S3"]
    assert chain.steps[1].values == (("C", ("S2", "C")),)
    assert purge(path, "S3").open == ("S1", "S2")


def test_the_three_way_join_of_the_document_is_safe() -> None:
    triangle = join(TRIANGLE, "S1(B), S2(C), S3(A)")
    assert punctuation_graph(triangle) == {
        "S1": frozenset({"S3"}),
        "S2": frozenset({"S1"}),
        "S3": frozenset({"S2"}),
    }
    assert is_safe(triangle)
    assert transform(triangle).is_single


def test_the_example_of_section_4_2_is_unsafe_as_printed() -> None:
    printed = join(TRIANGLE, "S1(B), S2(B), S3(A C)")
    assert [stuck.stream for stuck in unpurgeable(printed)] == ["S3"]
    assert not transform(printed).is_single


def test_with_one_more_scheme_it_is_what_the_text_says() -> None:
    repaired = join(TRIANGLE, "S1(B), S2(B), S2(C), S3(A C)")
    assert punctuation_graph(repaired) == {
        "S1": frozenset({"S2"}),
        "S2": frozenset({"S1"}),
        "S3": frozenset({"S2"}),
    }
    together = Edge(frozenset({"S1", "S2"}), "S3", Scheme.on("S3", "A", "C"))
    assert together in set(generalized_edges(repaired))
    assert is_safe(repaired)
    assert transform(repaired).is_single
    # Without it the graph has a node of S1 and S2, and S3 beside it.
    plain = repaired.with_schemes(scheme for scheme in repaired.schemes if len(scheme.attributes) == 1)
    assert set(transform(plain).edges) == {frozenset({"S1", "S2"}), frozenset({"S3"})}


def test_two_streams_joined_on_both_attributes_of_a_scheme() -> None:
    pair = join("S1.a=S2.a, S1.b=S2.b", "S1(a b), S2(a b)", streams="S1 S2")
    assert is_safe(pair)
    assert transform(pair).is_single


def test_a_scheme_with_an_attribute_that_is_not_joined_helps_nothing() -> None:
    assert not is_safe(join("S1.a=S2.a", "S1(a x), S2(a)", streams="S1 S2"))


def test_a_table_gets_no_new_rows() -> None:
    lookup = join("S.a=R.a", "R()", streams="S R")
    assert purge(lookup, "S").possible
    assert str(purge(lookup, "S")) == "a row of S is purged when R has ended"
    assert not purge(lookup, "R").possible


def test_a_cross_product_is_unsafe_and_one_stream_is_safe() -> None:
    assert not is_safe(JoinQuery(("S", "T"), (), (Scheme.on("S", "a"), Scheme.on("T", "a"))))
    assert is_safe(JoinQuery(("S",), (), ()))


def test_equality_is_transitive() -> None:
    closed = close((JoinPredicate.of("S1.a", "S2.b"), JoinPredicate.of("S2.b", "S3.c")))
    assert {frozenset((p.left, p.right)) for p in closed} == {
        frozenset({("S1", "a"), ("S2", "b")}),
        frozenset({("S2", "b"), ("S3", "c")}),
        frozenset({("S1", "a"), ("S3", "c")}),
    }


def test_what_is_implied_counts_once_it_is_passed() -> None:
    said = JoinQuery(
        ("S1", "S2", "S3"),
        (JoinPredicate.of("S1.a", "S2.a"), JoinPredicate.of("S2.a", "S3.a")),
        (Scheme.on("S1", "a"), Scheme.on("S3", "a"), Scheme.on("S2", "b")),
    )
    assert purge(said, "S1").open == ("S2", "S3")
    assert purge(said.closed(), "S1").open == ("S2",)


@pytest.mark.parametrize(
    ("predicates", "schemes", "message"),
    [
        ((), (Scheme.on("T", "a"),), "does not read T"),
        ((JoinPredicate.of("S.a", "T.a"),), (), "does not read T"),
    ],
)
def test_a_query_knows_its_streams(
    predicates: tuple[JoinPredicate, ...], schemes: tuple[Scheme, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        JoinQuery(("S",), predicates, schemes)


def reached_by_definition(query: JoinQuery, start: str) -> set[str]:
    """Definition 9 word for word, over the edges with one source and the generalized ones."""
    edges = list(generalized_edges(query))
    reached = {start}
    while True:
        further = {edge.target for edge in edges if edge.sources <= reached} - reached
        if not further:
            return reached
        reached |= further


@settings(max_examples=1000)
@given(query=random_joins())
def test_four_ways_to_decide_agree(query: JoinQuery) -> None:
    for stream in query.streams:
        chain = purge(query, stream)
        assert {stream, *(step.stream for step in chain.steps)} == reached_by_definition(query, stream)
        assert chain.possible != can_join_later(query, stream)
    assert is_safe(query) == transform(query).is_single


@settings(max_examples=100)
@given(query=random_joins(max_streams=3))
def test_a_second_value_changes_nothing(query: JoinQuery) -> None:
    for stream in query.streams:
        assert can_join_later(query, stream, (1, 2)) == can_join_later(query, stream)


def test_a_large_query_is_judged_the_same_both_ways() -> None:
    chance = Random(7)
    streams = tuple(f"S{n}" for n in range(12))
    for schemes in (30, 60, 90):
        predicates = {
            JoinPredicate((left, chance.choice("abcd")), (right, chance.choice("abcd")))
            for left, right in (chance.sample(streams, 2) for _ in range(40))
        }
        chosen = {
            Scheme.on(chance.choice(streams), *chance.sample("abcd", chance.choice((1, 1, 2, 3))))
            for _ in range(schemes)
        }
        query = JoinQuery(streams, tuple(predicates), tuple(chosen))
        assert is_safe(query) == transform(query).is_single
        assert is_safe(query.closed()) == transform(query.closed()).is_single


@settings(max_examples=200)
@given(query=random_joins())
def test_merged_nodes_close_each_other(query: JoinQuery) -> None:
    nodes = transform(query).edges
    assert sorted(stream for node in nodes for stream in node) == sorted(query.streams)
    for node in nodes:
        assert is_safe(query.among(node))


Pattern = tuple[str, tuple[tuple[str, int], ...]]


class PunctuatedJoin:
    """A join of punctuated streams over values 0 and 1 that purges exactly as the purge chains say."""

    def __init__(self, query: JoinQuery) -> None:
        self.query = query
        self.stored: dict[str, list[dict[str, int]]] = defaultdict(list)
        self.punctuations: set[Pattern] = set()
        self.results: list[tuple[int, ...]] = []

    def forbids(self, stream: str, row: dict[str, int]) -> bool:
        return any(s == stream and all(row[n] == v for n, v in values) for s, values in self.punctuations)

    def add(self, number: int, stream: str, row: dict[str, int]) -> None:
        own = {**row, "#": number}
        pools = [[own] if name == stream else self.stored[name] for name in self.query.streams]
        for rows in product(*pools):
            by_name = dict(zip(self.query.streams, rows, strict=True))
            if all(
                by_name[p.left[0]][p.left[1]] == by_name[p.right[0]][p.right[1]]
                for p in self.query.predicates
            ):
                self.results.append(tuple(found["#"] for found in rows))
        self.stored[stream].append(own)

    def purge(self) -> None:
        for stream in self.query.streams:
            chain = purge(self.query, stream)
            if chain.possible:
                self.stored[stream] = [row for row in self.stored[stream] if not self._is_done(stream, row)]

    def _is_done(self, stream: str, row: dict[str, int]) -> bool:
        met = {stream: [row]}
        for step in purge(self.query, stream).steps:
            choices = [sorted({found[other] for found in met[source]}) for _, (source, other) in step.values]
            names = [name for name, _ in step.values]
            for values in product(*choices):
                if (step.stream, tuple(zip(names, values, strict=True))) not in self.punctuations:
                    return False
            met[step.stream] = [
                candidate
                for candidate in self.stored[step.stream]
                if all(candidate[n] in c for n, c in zip(names, choices, strict=True))
            ]
        return True


@settings(max_examples=150)
@given(query=random_joins(max_streams=3), data=st.data())
def test_purging_along_the_chains_loses_no_result(query: JoinQuery, data: st.DataObject) -> None:
    purging, keeping = PunctuatedJoin(query), PunctuatedJoin(query)
    for number in range(data.draw(st.integers(0, 14))):
        punctuates: bool = data.draw(st.booleans())
        if query.schemes and punctuates:
            scheme = data.draw(st.sampled_from(query.schemes))
            values = tuple((name, data.draw(st.integers(0, 1))) for name in sorted(scheme.attributes))
            purging.punctuations.add((scheme.stream, values))
            purging.purge()
            continue
        stream = data.draw(st.sampled_from(query.streams))
        row = {name: data.draw(st.integers(0, 1)) for name in "abc"}
        if not purging.forbids(stream, row):
            purging.add(number, stream, row)
            keeping.add(number, stream, row)
    assert sorted(purging.results) == sorted(keeping.results)


@given(query=random_joins())
def test_a_safe_join_is_empty_once_everything_is_punctuated(query: JoinQuery) -> None:
    operator = PunctuatedJoin(query)
    for stream in query.streams:
        for values in product((0, 1), repeat=3):
            operator.stored[stream].append(dict(zip("abc", values, strict=True)))
    for scheme in query.schemes:
        for values in product((0, 1), repeat=len(scheme.attributes)):
            pattern = tuple(zip(sorted(scheme.attributes), values, strict=True))
            operator.punctuations.add((scheme.stream, pattern))
    operator.purge()
    for stream in query.streams:
        assert bool(operator.stored[stream]) != purge(query, stream).possible
