"""The auction of the Punctuation document, section 1: what the join and the groups keep after each row.

A bid waits for its item, which comes once: with it, all bids of the item can go. The item waits for its bids: when
no more are accepted it goes, and its group, whose last answer stands.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import pytest

from headgate.kernels.aggregate.state import AggregateState
from headgate.kernels.join.join import JoinState
from headgate.kernels.state.closings import Closings, ClosingState
from headgate.model.batch import BORN
from headgate.physical.compile import compile_query
from headgate.runtime.query import QueryState
from headgate.session import Session

TEXT = """
CREATE STREAM item (ts TIMESTAMP, sellerid BIGINT, itemid BIGINT, name STRING, initialprice BIGINT)
  TIMESTAMP BY ts KEY (itemid);
CREATE STREAM bid (ts TIMESTAMP, bidderid BIGINT, itemid BIGINT, increase BIGINT, closing BOOLEAN)
  TIMESTAMP BY ts PUNCTUATED BY (itemid) WHEN closing;
CREATE QUERY difference AS
SELECT ISTREAM(i.itemid, SUM(b.increase) AS difference)
FROM item i, bid b WHERE i.itemid = b.itemid AND NOT b.closing GROUP BY i.itemid;
"""

ITEM = {
    BORN: pl.Int64(),
    "ts": pl.Datetime("us", "UTC"),
    "sellerid": pl.Int64(),
    "itemid": pl.Int64(),
    "name": pl.String(),
    "initialprice": pl.Int64(),
}
BID = {
    BORN: pl.Int64(),
    "ts": pl.Datetime("us", "UTC"),
    "bidderid": pl.Int64(),
    "itemid": pl.Int64(),
    "increase": pl.Int64(),
    "closing": pl.Boolean(),
}


@dataclass(frozen=True)
class Kept:
    """What is kept: items, bids (item, increase), sums by item, and which items each stream has closed."""

    items: tuple[int, ...] = ()
    bids: tuple[tuple[int, int], ...] = ()
    sums: tuple[tuple[int, int], ...] = ()
    came: tuple[int, ...] = ()
    """Items that have come, and come once: bids for them need not wait."""
    closed: tuple[int, ...] = ()
    """Items that nobody bids for any more."""


class Auction:
    """The query, one row at a time; what can go goes with the row that lets it go."""

    def __init__(self) -> None:
        session = Session()
        session.sql(TEXT)
        compiled = compile_query(session.query("difference").planned)
        self.query, self.clock = QueryState(compiled.graph), 0

    def item(self, number: int) -> list[tuple[int, int]]:
        """An item is put up; what is said then, (item, difference)."""
        return self._advance("item", ITEM, (1, number, "kettle", 20))

    def bid(self, number: int, increase: int) -> list[tuple[int, int]]:
        return self._advance("bid", BID, (2, number, increase, False))

    def close(self, number: int) -> list[tuple[int, int]]:
        """The punctuation (*, item, *) on bids."""
        return self._advance("bid", BID, (None, number, None, True))

    def _advance(
        self, stream: str, schema: dict[str, pl.DataType], row: tuple[object, ...]
    ) -> list[tuple[int, int]]:
        self.clock += 1
        frame = pl.DataFrame([(self.clock, None, *row)], schema=schema, orient="row")
        said = self.query.advance({stream: frame}, self.clock)
        return said.select("itemid", "difference").rows()

    @property
    def kept(self) -> Kept:
        """All that the operators remember."""
        (join,) = (each for each in self.query.states.values() if isinstance(each, JoinState))
        (groups,) = (each for each in self.query.states.values() if isinstance(each, ClosingState))
        assert join.closings is not None
        assert isinstance(groups.values, AggregateState)
        items, bids = (store.live(self.clock) for store in join.stores)
        closed, came = (each.frame for each in join.closings.closed_values)
        sums = groups.values.groups.records.live_rows()
        return Kept(
            items=tuple(items["i.itemid"]),
            bids=tuple(bids.select("b.itemid", "b.increase").rows()),
            sums=tuple(sums.select("key0", "result0").rows()),
            came=tuple(came["i.itemid"]),
            closed=tuple(closed["b.itemid"]),
        )


@pytest.fixture
def auction(monkeypatch: pytest.MonkeyPatch) -> Auction:
    # Not when enough has come, but at once.
    monkeypatch.setattr(Closings, "due", property(lambda closings: closings.since > 0))
    return Auction()


def test_bids_go_when_their_item_comes_and_the_item_and_its_group_when_it_is_closed(auction: Auction) -> None:
    assert auction.bid(1, 5) == []
    assert auction.kept == Kept(bids=((1, 5),))

    assert auction.item(1) == [(1, 5)]
    assert auction.kept == Kept(items=(1,), sums=((1, 5),), came=(1,))

    assert auction.bid(1, 7) == [(1, 12)]
    assert auction.kept == Kept(items=(1,), sums=((1, 12),), came=(1,))

    assert auction.item(2) == []
    assert auction.kept == Kept(items=(1, 2), sums=((1, 12),), came=(1, 2))

    assert auction.bid(2, 4) == [(2, 4)]
    assert auction.kept == Kept(items=(1, 2), sums=((1, 12), (2, 4)), came=(1, 2))

    assert auction.close(1) == []
    assert auction.kept == Kept(items=(2,), sums=((2, 4),), came=(2,))

    assert auction.close(2) == []
    assert auction.kept == Kept()


def test_the_groups_last_answer_stands_when_it_is_closed(auction: Auction) -> None:
    said = [auction.item(1), auction.bid(1, 5), auction.bid(1, 2), auction.close(1)]
    assert said == [[], [(1, 5)], [(1, 7)], []]


def test_an_item_that_was_closed_before_it_came_waits_for_nothing(auction: Auction) -> None:
    auction.bid(3, 1)
    auction.close(3)
    assert auction.kept == Kept(bids=((3, 1),), closed=(3,))

    assert auction.item(3) == [(3, 1)]
    assert auction.kept == Kept()


def test_a_bid_for_an_item_that_never_comes_stays(auction: Auction) -> None:
    auction.bid(9, 1)
    auction.item(1)
    auction.close(1)
    assert auction.kept == Kept(bids=((9, 1),))
