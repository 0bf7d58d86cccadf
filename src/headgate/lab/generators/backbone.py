"""Backbone: packets on three links of a provider's network, the example that opens the k-Mon document.

```
C  customer   p q r s              most packets of a link go elsewhere and are never seen again
B  backbone     p x   s y z        a tenth goes on to the next link, where it is seen a short time later
O  outgoing         x     s
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pyarrow as pa

from headgate.lab.generators.dataset import START, Dataset, GeneratedStream
from headgate.lab.generators.draw import ROWS_PER_BLOCK, Choice, Ints, arrivals, generator
from headgate.lab.generators.merge import Columns, in_order
from headgate.model import types
from headgate.model.time import SECOND

PACKETS = pa.schema([("ts", types.TIMESTAMP), ("pid", types.BIGINT), ("size", types.BIGINT)])
LINKS = ("C", "B", "O")

_SIZES = np.array([40, 52, 576, 1300, 1500])
_SIZE_CHOICE = Choice(np.array([0.35, 0.15, 0.15, 0.05, 0.30]))


@dataclass(frozen=True)
class Backbone(Dataset):
    """Streams `C`, `B` and `O` of packets that entered within `seconds` seconds, in time order.

    `rates` are packets per second on each link, `forwarded` is the part of C's packets that goes on to B and
    of B's that goes on to O, whatever their way so far, `delays` are the longest times in microseconds from C
    to B and from B to O. A packet's pid is unique, and it keeps its pid and its size on its way.
    """

    seconds: float = 60.0
    rates: tuple[float, float, float] = (1_000.0, 10_000.0, 1_000.0)
    forwarded: tuple[float, float] = (0.1, 0.1)
    delays: tuple[int, int] = (SECOND, SECOND)
    seed: int = 0
    start: int = START

    def __post_init__(self) -> None:
        if self.seconds < 0:
            raise ValueError("seconds is not negative")
        if min(self.delays) < 1:
            raise ValueError("a packet needs at least a microsecond from link to link")
        if not all(0 <= part <= 1 for part in self.forwarded):
            raise ValueError("what is forwarded is a part of 1")
        if min(self.rates) < 0 or any(journey.rate < 0 for journey in self._journeys):
            raise ValueError("no link can be slower than what is forwarded to it")

    @property
    def streams(self) -> Mapping[str, GeneratedStream]:
        return {
            name: GeneratedStream(name, PACKETS, partial(self._tables, link), partial(self._count, link))
            for link, name in enumerate(LINKS)
        }

    @cached_property
    def _journeys(self) -> tuple[_Journey, ...]:
        """All ways through the network; a link's packets are those of the journeys that pass it."""
        (to_b, to_o), (rate_c, rate_b, rate_o) = self.forwarded, self.rates
        enter = (rate_c, rate_b - rate_c * to_b, rate_o - rate_b * to_o)
        goes_on = (to_b, to_o, 0.0)
        journeys: list[_Journey] = []
        for first in range(len(LINKS)):
            arriving = enter[first]
            for last in range(first, len(LINKS)):
                journeys.append(_Journey(len(journeys), first, last, _tidy(arriving * (1 - goes_on[last]))))
                arriving *= goes_on[last]
        return tuple(journeys)

    def _spans(self) -> Iterator[tuple[int, int, int]]:
        """The time of entry in spans that hold about a block of the fastest link's packets."""
        end = self.start + int(self.seconds * SECOND)
        width = max(SECOND, int(ROWS_PER_BLOCK / max(1.0, *self.rates) * SECOND))
        for number, begin in enumerate(range(self.start, end, width)):
            yield number, begin, min(begin + width, end)

    def _entering(
        self, journey: _Journey, number: int, begin: int, end: int
    ) -> tuple[np.random.Generator, int]:
        """How many packets start a journey in a span, and the random numbers for what becomes of them."""
        rng = generator(self.seed, f"backbone.journey{journey.number}", number)
        return rng, int(rng.poisson(journey.rate * (end - begin) / SECOND))

    def _count(self, link: int) -> int:
        journeys = [journey for journey in self._journeys if journey.first <= link <= journey.last]
        return sum(self._entering(journey, *span)[1] for span in self._spans() for journey in journeys)

    def _tables(self, link: int) -> Iterator[pa.Table]:
        packets = (self._packets(link, *span) for span in self._spans())
        for rows, _ in in_order(packets, by="ts"):
            yield pa.table([rows["ts"].view("datetime64[us]"), rows["pid"], rows["size"]], schema=PACKETS)

    def _packets(self, link: int, number: int, begin: int, end: int) -> tuple[Columns, int]:
        """The packets on a link that entered the network within a span, journey by journey."""
        parts: list[Columns] = []
        for journey in self._journeys:
            if journey.first <= link <= journey.last:
                rng, count = self._entering(journey, number, begin, end)
                ts = arrivals(rng, count, begin, end)
                size = _SIZES[_SIZE_CHOICE.draw(rng, count)]
                for delay in self.delays[journey.first : link]:
                    ts = ts + rng.integers(1, delay + 1, size=count)
                pid = _pids(journey.number, number, count)
                parts.append({"ts": ts, "pid": pid, "size": size})
        return {name: np.concatenate([part[name] for part in parts]) for name in PACKETS.names}, end


@dataclass(frozen=True)
class _Journey:
    """Packets that are first seen on one link and last on another, so many a second."""

    number: int
    first: int
    last: int
    rate: float


def _pids(journey: int, span: int, count: int) -> Ints:
    """Unique packet identifiers below 2**62 that look like hashes."""
    # 3 bits of journey, 27 of span, 32 of packet; an odd factor permutes the numbers below a power of two.
    first = np.uint64((journey << 27 | span) << 32)
    scrambled = (first + np.arange(count, dtype=np.uint64)) * np.uint64(0x1E37_79B9_7F4A_7C15)
    return (scrambled & np.uint64((1 << 62) - 1)).astype(np.int64)


def _tidy(rate: float) -> float:
    """A rate without the rounding error that is left when a link carries nothing but forwarded packets."""
    return 0.0 if abs(rate) < 1e-9 else rate
