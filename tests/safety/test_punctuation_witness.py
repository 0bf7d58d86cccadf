"""An unpurgeable stream has rows that each still find a new result, whatever has been punctuated."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from tests.safety.punctuation_queries import TRIANGLE, join, random_joins

from headgate.safety.theory.punctuation.graph import purge
from headgate.safety.theory.punctuation.query import JoinQuery
from headgate.safety.theory.punctuation.witness import Row, Witness, find_witness


def new_results(query: JoinQuery, witness: Witness, place: int) -> list[dict[str, Row]]:
    """The results that the continuation `place` adds, over stored and new rows."""
    stored = list(witness.rows)
    added = list(witness.continuations[place])
    pools = [[row for name, row in (*stored, *added) if name == stream] for stream in query.streams]
    new = [id(row) for _, row in added]
    found = []
    for rows in product(*pools):
        chosen = dict(zip(query.streams, rows, strict=True))
        joined = all(chosen[p.left[0]][p.left[1]] == chosen[p.right[0]][p.right[1]] for p in query.predicates)
        if joined and any(id(row) in new for row in rows):
            found.append(chosen)
    return found


def check(query: JoinQuery, witness: Witness, count: int) -> None:
    own = [row for name, row in witness.rows if name == witness.stream]
    assert len(own) == count
    for place, row in enumerate(own):
        for stream, new in witness.continuations[place]:
            assert not any(p.forbids(stream, new) for p in witness.punctuations)
        assert any(result[witness.stream] is row for result in new_results(query, witness, place))


def test_items_are_kept_if_only_bidders_are_punctuated() -> None:
    auction = join("item.id=bid.item", "item(id), bid(bidder)", streams="item bid")
    witness = find_witness(auction, "item", 3)
    assert witness is not None
    assert [row["id"] for name, row in witness.rows if name == "item"] == [1, 2, 3]
    assert {p.stream for p in witness.punctuations} == {"item", "bid"}
    check(auction, witness, 3)


def test_the_printed_example_keeps_the_third_stream() -> None:
    printed = join(TRIANGLE, "S1(B), S2(B), S3(A C)")
    witness = find_witness(printed, "S3", 4)
    assert witness is not None
    check(printed, witness, 4)


def test_a_purgeable_stream_has_no_witness() -> None:
    assert find_witness(join("S1.a=S2.a", "S2(a)", streams="S1 S2"), "S1", 3) is None


@settings(max_examples=300)
@given(query=random_joins())
def test_exactly_the_unpurgeable_streams_have_one(query: JoinQuery) -> None:
    for stream in query.streams:
        witness = find_witness(query, stream, 2)
        assert (witness is None) == purge(query, stream).possible
        if witness is not None:
            check(query, witness, 2)
