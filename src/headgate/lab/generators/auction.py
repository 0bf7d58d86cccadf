"""Auction: items that are opened, bid for, and closed, while thousands of others are open.

```
items   open 1      open 2                 open 3
bids         1   1      1  2  1!     2          3  2  2  3!  2!        ! is the closing row
```

The closing row of an item is the last to arrive and has no increase: it is a punctuation on itemid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from headgate.lab.generators.dataset import START, Dataset, GeneratedStream
from headgate.lab.generators.draw import Choice, Floats, Ints, arrivals, blocks, generator, words, zipf
from headgate.lab.generators.merge import Columns, in_order, things_per_block
from headgate.model import types
from headgate.model.time import MINUTE, SECOND

ITEMS = pa.schema(
    [
        ("ts", types.TIMESTAMP),
        ("itemid", types.BIGINT),
        ("sellerid", types.BIGINT),
        ("name", types.STRING),
        ("category", types.STRING),
        ("initialprice", types.DOUBLE),
    ]
)
BIDS = pa.schema(
    [
        ("ts", types.TIMESTAMP),
        ("bidid", types.BIGINT),
        ("itemid", types.BIGINT),
        ("bidder", types.BIGINT),
        ("increase", types.DOUBLE),
        ("closing", types.BOOLEAN),
    ]
)
HOUSE = 0
"""The bidder of closing rows: the auction house, which never bids."""

_NOUNS = {
    "books": ("atlas", "novel", "dictionary", "cookbook"),
    "toys": ("kite", "puzzle", "train set", "doll"),
    "music": ("violin", "accordion", "record", "drum"),
    "garden": ("bench", "lantern", "barrow", "fountain"),
    "kitchen": ("kettle", "teapot", "mortar", "scale"),
    "clocks": ("wristwatch", "alarm clock", "sundial", "hourglass"),
    "art": ("etching", "portrait", "vase", "mosaic"),
    "tools": ("plane", "vice", "anvil", "spirit level"),
    "maps": ("globe", "sea chart", "town plan", "road map"),
    "sport": ("bicycle", "skates", "rowing boat", "chess set"),
}
_ADJECTIVES = ("old", "small", "brass", "blue", "rare", "painted", "restored", "signed", "wooden", "plain")
_CATEGORIES = tuple(_NOUNS)
_NAMES = pa.array(
    [f"{a} {noun}" for nouns in _NOUNS.values() for noun in nouns for a in _ADJECTIVES], pa.string()
)
_NAMES_PER_CATEGORY = len(_NAMES) // len(_CATEGORIES)

# Of the logarithm of an item's popularity. The hundredth most popular of a thousand items then gets about
# three times the mean, the most popular some twenty times.
_POPULARITY_SPREAD = 1.25


@dataclass(frozen=True)
class Auction(Dataset):
    """Streams `items` and `bids`; times are microseconds.

    Bids are in time order unless `disorder` lets a row arrive by up to so much later than its time. Even then
    no row is more than `disorder` behind the latest time seen, the closing row is the last of its item, and
    `bidid` numbers the bids in the order of their times.
    """

    items: int = 10_000
    mean_bids: float = 10.0
    mean_duration: int = 10 * MINUTE
    items_per_second: float = 5.0
    disorder: int = 0
    bidders: int = 20_000
    sellers: int = 2_000
    skew: float = 0.8
    seed: int = 0
    start: int = START

    def __post_init__(self) -> None:
        if self.items < 0 or self.disorder < 0 or self.mean_bids < 0:
            raise ValueError("items, mean_bids and disorder are not negative")
        if self.mean_duration < SECOND:
            raise ValueError("the mean auction lasts at least a second")
        if not self.items_per_second > 0 or self.bidders < 1 or self.sellers < 1:
            raise ValueError("items_per_second, bidders and sellers are positive")

    @property
    def streams(self) -> Mapping[str, GeneratedStream]:
        return {
            "items": GeneratedStream("items", ITEMS, self._item_tables, lambda: self.items),
            "bids": GeneratedStream("bids", BIDS, self._bid_tables, self._count_bids),
        }

    @cached_property
    def _sellers(self) -> Choice:
        return Choice(zipf(self.sellers, self.skew))

    @cached_property
    def _bidders(self) -> Choice:
        return Choice(zipf(self.bidders, self.skew))

    def _schedules(self) -> Iterator[_Schedule]:
        """What items and bids must agree on, block by block."""
        alive = self.items_per_second * self.mean_duration / SECOND
        for block, first, count in blocks(self.items, things_per_block(1 + self.mean_bids, alive)):
            rng = generator(self.seed, "auction.schedule", block)
            begin, end = (self._opening(first), self._opening(first + count))
            popularity = rng.lognormal(-(_POPULARITY_SPREAD**2) / 2, _POPULARITY_SPREAD, count)
            opens = arrivals(rng, count, begin, end)
            duration = rng.standard_gamma(2.0, count) * (self.mean_duration / 2)
            yield _Schedule(
                block=block,
                first=first,
                end=end,
                opens=opens,
                # Room for a bid strictly between opening and closing.
                closes=opens + 2 + duration.astype(np.int64),
                price=_cents(rng.lognormal(3.0, 1.0, count)),
                bids=rng.poisson(self.mean_bids * popularity),
            )

    def _opening(self, item: int) -> int:
        """The instant at which `item` would open if items came like clockwork."""
        return self.start + int(item * SECOND / self.items_per_second)

    def _count_bids(self) -> int:
        return sum(int(schedule.bids.sum()) + schedule.bids.size for schedule in self._schedules())

    def _item_tables(self) -> Iterator[pa.Table]:
        categories, names = Choice(zipf(len(_CATEGORIES), 0.5)), pa.array(_CATEGORIES, pa.string())
        for schedule in self._schedules():
            count = schedule.opens.size
            rng = generator(self.seed, "auction.items", schedule.block)
            category = categories.draw(rng, count)
            name = category * _NAMES_PER_CATEGORY + rng.integers(_NAMES_PER_CATEGORY, size=count)
            yield pa.table(
                [
                    schedule.opens.view("datetime64[us]"),
                    np.arange(schedule.first + 1, schedule.first + 1 + count),
                    1 + self._sellers.draw(rng, count),
                    words(_NAMES, name),
                    words(names, category),
                    schedule.price,
                ],
                schema=ITEMS,
            )

    def _bid_tables(self) -> Iterator[pa.Table]:
        bids = self._numbered(in_order(map(self._bids, self._schedules()), by="ts"))
        if self.disorder:
            bids = in_order(bids, by="arrival")
        for rows, _ in bids:
            yield pa.table([_arrow(rows, name) for name in BIDS.names], schema=BIDS)

    def _bids(self, schedule: _Schedule) -> tuple[Columns, int]:
        """The bids of a block's items, item by item with the closing row last."""
        rng = generator(self.seed, "auction.bids", schedule.block)
        rows = schedule.bids + 1
        ends = np.cumsum(rows)
        last, total = ends - 1, int(ends[-1])
        item = np.repeat(np.arange(rows.size), rows)
        lasts = schedule.closes - schedule.opens - 1
        ts = schedule.opens[item] + 1 + (rng.random(total) * lasts[item]).astype(np.int64)
        ts[last] = schedule.closes
        increase = _cents(schedule.price[item] * rng.uniform(0.01, 0.1, total))
        increase[last] = 0.0
        closing = np.zeros(total, np.bool_)
        closing[last] = True
        columns: Columns = {
            "ts": ts,
            "itemid": schedule.first + 1 + item,
            "increase": increase,
            "closing": closing,
        }
        if self.disorder:
            arrival = ts + rng.integers(self.disorder + 1, size=total)
            # Closing comes last: wait for the item's slowest bid, which is not later than close + disorder.
            arrival[last] = np.maximum.reduceat(arrival, ends - rows)
            columns["arrival"] = arrival
        return columns, schedule.end

    def _numbered(self, bids: Iterator[tuple[Columns, int]]) -> Iterator[tuple[Columns, int]]:
        """The bids in time order with bidid and bidder."""
        number = 1
        for block, (rows, floor) in enumerate(bids):
            count = rows["ts"].size
            bidder = 1 + self._bidders.draw(generator(self.seed, "auction.bidders", block), count)
            bidder[rows["closing"]] = HOUSE
            yield {**rows, "bidid": np.arange(number, number + count), "bidder": bidder}, floor
            number += count


@dataclass(frozen=True, eq=False)
class _Schedule:
    """When the items of a block open and close, what they start at and how many bids they get."""

    block: int
    first: int
    end: int
    opens: Ints
    closes: Ints
    price: Floats
    bids: Ints


def _cents(amount: Floats) -> Floats:
    """Amounts of money in whole cents, at least one."""
    return np.asarray(np.maximum(np.rint(amount * 100), 1) / 100)


def _arrow(rows: Columns, name: str) -> pa.Array:
    column = rows[name]
    return pa.array(column.view("datetime64[us]") if name == "ts" else column, BIDS.field(name).type)
