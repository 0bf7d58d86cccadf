"""Which schemes are needed, which are not, which are missing, and which punctuations can be forgotten."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from tests.safety.punctuation_queries import TRIANGLE, join, random_joins, scheme_list

from headgate.safety.theory.punctuation.graph import is_safe
from headgate.safety.theory.punctuation.punctuations import counter_punctuations, lasting_punctuations
from headgate.safety.theory.punctuation.query import JoinQuery, Scheme
from headgate.safety.theory.punctuation.schemes import minimal_schemes, missing_schemes, useless_schemes


def named(sets: object) -> set[frozenset[str]]:
    assert isinstance(sets, tuple)
    return {frozenset(map(str, chosen)) for chosen in sets}


def test_the_smallest_sets_of_a_triangle_punctuated_everywhere() -> None:
    everywhere = join(TRIANGLE, "S1(A), S1(B), S2(B), S2(C), S3(A), S3(C)")
    found = minimal_schemes(everywhere)
    assert found.complete
    assert {"S1(B)", "S2(C)", "S3(A)"} in named(found.sets)  # round one way
    assert {"S1(A)", "S2(B)", "S3(C)"} in named(found.sets)  # and the other
    assert min(len(chosen) for chosen in found.sets) == 3
    assert useless_schemes(everywhere) == frozenset()


def test_a_scheme_on_a_column_that_is_not_joined_is_useless() -> None:
    auction = join(
        "item.id=bid.item", "item(id), bid(item), bid(bidder), bid(item bidder)", streams="item bid"
    )
    assert set(map(str, useless_schemes(auction))) == {"bid(bidder)", "bid(bidder, item)"}


def test_what_is_missing_is_named() -> None:
    printed = join(TRIANGLE, "S1(B), S2(B), S3(A C)")
    assert named(missing_schemes(printed).sets) == {frozenset({"S2(C)"}), frozenset({"S1(A)"})}
    offered = scheme_list("S2(B C), S1(A B)")
    assert named(missing_schemes(printed, offered).sets) == set()


def test_nothing_is_missing_from_a_safe_query() -> None:
    assert missing_schemes(join("S1.a=S2.a", "S1(a), S2(a)", streams="S1 S2")).sets == (frozenset(),)


def test_an_unsafe_query_has_no_sufficient_set() -> None:
    found = minimal_schemes(join("S1.a=S2.a", "S1(a)", streams="S1 S2"))
    assert found.sets == ()
    assert found.complete


def test_a_limit_is_kept_and_admitted() -> None:
    everywhere = join(TRIANGLE, "S1(A), S1(B), S2(B), S2(C), S3(A), S3(C)")
    found = minimal_schemes(everywhere, limit=2)
    assert len(found.sets) == 2
    assert not found.complete


@settings(max_examples=150)
@given(query=random_joins())
def test_the_smallest_sets_are_all_found(query: JoinQuery) -> None:
    safe = [
        frozenset(chosen)
        for size in range(len(query.schemes) + 1)
        for chosen in combinations(query.schemes, size)
        if is_safe(query.with_schemes(chosen))
    ]
    smallest = {chosen for chosen in safe if not any(other < chosen for other in safe)}
    found = minimal_schemes(query)
    assert found.complete
    assert set(found.sets) == smallest
    if smallest:
        assert useless_schemes(query) == frozenset(query.schemes).difference(*smallest)


def test_a_punctuation_is_forgotten_at_its_counter_punctuation() -> None:
    path = join("S1.B=S2.B, S2.C=S3.C", "S1(B), S2(B), S2(C), S3(C)")
    counter = counter_punctuations(path, Scheme.on("S2", "B"))
    assert counter.possible
    assert counter.by == (Scheme.on("S1", "B"),)
    assert lasting_punctuations(path) == ()


def test_a_row_has_more_ways_to_go_than_a_punctuation() -> None:
    # As in the document: rows of S1 may go by way of S3, its punctuations on B only by those of S2 on B.
    triangle = join(TRIANGLE, "S1(B), S2(C), S3(A)")
    counter = counter_punctuations(triangle, Scheme.on("S1", "B"))
    assert not counter.possible
    assert counter.open == ("S2",)
    assert {str(lasting.scheme) for lasting in lasting_punctuations(triangle)} == {"S1(B)", "S2(C)", "S3(A)"}
    whole = join(TRIANGLE, "S1(B), S2(B), S2(C), S3(A)")
    assert counter_punctuations(whole, Scheme.on("S1", "B")).by == (Scheme.on("S2", "B"),)


def test_every_stream_that_could_bring_the_value_must_be_closed() -> None:
    three = join("S1.a=S2.a, S2.a=S3.a", "S1(a), S2(a), S3(b)")
    assert counter_punctuations(three, Scheme.on("S1", "a")).open == ("S3",)


def test_a_counter_punctuation_knows_no_more_than_the_punctuation() -> None:
    wide = join("S1.a=S2.a, S1.b=S2.b", "S1(a), S2(a b)", streams="S1 S2")
    assert not counter_punctuations(wide, Scheme.on("S1", "a")).possible
    assert counter_punctuations(wide, Scheme.on("S2", "a", "b")).by == (Scheme.on("S1", "a"),)


def test_one_closed_value_of_a_punctuation_is_enough() -> None:
    pair = join(TRIANGLE, "S1(A), S3(A C)")
    counter = counter_punctuations(pair, Scheme.on("S3", "A", "C"))
    assert counter.possible
    assert (counter.attribute, counter.by) == ("A", (Scheme.on("S1", "A"),))
