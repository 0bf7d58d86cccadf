"""Network: connections that leave a site over several links, as in the Windows document, section 3.6.

The document splits a trace of wide-area connections by destination, so links share sources, not destinations.
The trace is not at hand; what the queries depend on is imitated and can be set:

- one row per link and second on average;
- about 2000 sources, some far busier than others, each with about ten destinations on a link;
- a link sees most sources of the link before it and no others (containment), so that a negation between the
  two lets some rows live out their window and ends others early: about 40 % for windows of 2000 to 8000 s, as
  in the document, and fewer for longer ones;
- a join on the source gives ten times as many rows for telnet as for ftp. Results grow with the square of a
  protocol's share, so telnet has the share of ftp times the root of ten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from headgate.lab.generators.dataset import START, Dataset, GeneratedStream
from headgate.lab.generators.draw import (
    ROWS_PER_BLOCK,
    Choice,
    addresses,
    arrivals,
    blocks,
    generator,
    words,
    zipf,
)
from headgate.model import types
from headgate.model.time import SECOND

LINK = pa.schema(
    [
        ("ts", types.TIMESTAMP),
        ("duration", types.DOUBLE),
        ("protocol", types.STRING),
        ("bytes", types.BIGINT),
        ("source", types.STRING),
        ("destination", types.STRING),
    ]
)
PROTOCOLS = (("telnet", 0.38), ("smtp", 0.25), ("nntp", 0.15), ("ftp", 0.12), ("finger", 0.10))

_SOURCE_NETWORK = 10
_FIRST_DESTINATION_NETWORK = 100
_MOST_LINKS = 100
_MOST_ADDRESSES = 1 << 24


@dataclass(frozen=True)
class Network(Dataset):
    """Streams `link1`, `link2`, … of `rows` rows each, in time order.

    `protocols` are names and shares, `skew` is the exponent of Zipf's law for the sources, `containment` the
    part of a link's sources that the next link has too, `fan_out` how many destinations a source has on it.
    """

    rows: int = 100_000
    links: int = 3
    rows_per_second: float = 1.0
    protocols: tuple[tuple[str, float], ...] = PROTOCOLS
    sources: int = 2_000
    skew: float = 0.75
    containment: float = 0.92
    fan_out: int = 10
    seed: int = 0
    start: int = START

    def __post_init__(self) -> None:
        if self.rows < 0 or not self.rows_per_second > 0:
            raise ValueError("rows is not negative and rows_per_second is positive")
        if not 1 <= self.links <= _MOST_LINKS:
            raise ValueError(f"there are 1 to {_MOST_LINKS} links, not {self.links}")
        if self.sources < 1 or self.fan_out < 1 or self.sources * self.fan_out >= _MOST_ADDRESSES:
            raise ValueError("sources and fan_out are positive, and a network has less than 2**24 addresses")
        if not 0 < self.containment <= 1:
            raise ValueError(f"containment is a part of 1, not {self.containment}")

    @property
    def streams(self) -> Mapping[str, GeneratedStream]:
        return {
            name: GeneratedStream(name, LINK, partial(self._tables, link), lambda: self.rows)
            for link, name in enumerate(f"link{number}" for number in range(1, self.links + 1))
        }

    def _sources(self, link: int) -> Choice:
        """The sources of a link: a part of those of the link before, with the same relative weights."""
        order = generator(self.seed, "network.sources", 0).permutation(self.sources)
        kept = order[: max(1, round(self.sources * self.containment**link))]
        weights = np.zeros(self.sources)
        weights[kept] = zipf(self.sources, self.skew)[kept]
        return Choice(weights)

    def _tables(self, link: int) -> Iterator[pa.Table]:
        sources, protocols = self._sources(link), Choice(np.array([share for _, share in self.protocols]))
        protocol_names = pa.array([name for name, _ in self.protocols], pa.string())
        source_names = addresses(_SOURCE_NETWORK, self.sources)
        destination_names = addresses(_FIRST_DESTINATION_NETWORK + link, self.sources * self.fan_out)
        for block, first, count in blocks(self.rows, ROWS_PER_BLOCK):
            rng = generator(self.seed, f"network.link{link}", block)
            source = sources.draw(rng, count)
            yield pa.table(
                [
                    arrivals(rng, count, self._time(first), self._time(first + count)).view("datetime64[us]"),
                    np.rint(rng.standard_exponential(count) * 30_000) / 1000,
                    words(protocol_names, protocols.draw(rng, count)),
                    40 + rng.lognormal(6.0, 2.0, count).astype(np.int64),
                    words(source_names, source),
                    words(destination_names, source * self.fan_out + rng.integers(self.fan_out, size=count)),
                ],
                schema=LINK,
            )

    def _time(self, row: int) -> int:
        return self.start + int(row * SECOND / self.rows_per_second)
