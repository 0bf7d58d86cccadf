"""Stream reader: the chunks of a stream in this process as pieces for a shard, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from headgate.model.batch import BORN
from headgate.plan.catalog import StreamDef
from headgate.runtime.io.arrival import Arrival, without_future
from headgate.runtime.lateness import LATE_BY
from headgate.runtime.shard import Piece


@dataclass
class StreamReader:
    """Reads a stream; rows that come late, or from too far ahead of the wall clock, are told apart."""

    stream: StreamDef
    chunks: Iterator[pl.DataFrame]
    future_us: int | None = None
    ended: bool = False
    height: int = 0
    """How many rows the chunk had that was read last."""
    pieces: int = 0
    arrival: Arrival = field(init=False)

    def __post_init__(self) -> None:
        self.arrival = Arrival(self.stream)

    @property
    def clock(self) -> int:
        """No row with a smaller instant is on time any more."""
        return self.arrival.clock

    def read(self) -> Piece | None:
        """The next piece, for the feed that is numbered 0; None at the end of the stream."""
        chunk = next(self.chunks, None)
        if chunk is None:
            self.ended = True
            return None
        self.height, self.pieces = chunk.height, self.pieces + 1
        chunk, early = without_future(chunk, self.stream, self.future_us)
        admitted = self.arrival.admit(chunk)
        rows, aside = admitted.rows, None
        if admitted.late.height or early.height:
            late = admitted.late.drop(BORN).with_columns(admitted.late_by.alias(LATE_BY))
            aside = pl.concat([late, early.with_columns(pl.lit(None, dtype=pl.Int64).alias(LATE_BY))])
        low, high = (None, None) if rows.is_empty() else (rows[BORN].min(), rows[BORN].max())
        assert low is None or isinstance(low, int)
        assert high is None or isinstance(high, int)
        return Piece(0, 0, self.pieces, low, high, rows, aside, chunk.height)
