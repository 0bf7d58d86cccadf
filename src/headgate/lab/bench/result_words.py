"""What each result word costs over an aggregate, per row in and out, while a batch and its ticks grow.

Bursts of rows go through a sliding window and a GROUP BY. A larger batch is more bursts. More ticks are longer pauses
between the bursts, in which nothing is there and nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import process_time

import numpy as np
import polars as pl

from headgate.kernels.aggregate import Aggregate, AggregateCall, Function
from headgate.kernels.emit.emit import ChangeLog, Dstream, Emit, Istream
from headgate.kernels.emit.rstream import Rstream
from headgate.kernels.emit.wstream import Wstream
from headgate.kernels.window.time_window import Range, Window
from headgate.model.batch import Batch
from headgate.model.time import SECOND, Clock

LENGTH, SLIDE = 60 * SECOND, 15 * SECOND
BURST, KEYS = 100, 20
BATCHES = (10_000, 160_000)
PAUSES = (60 * SECOND, 60_000 * SECOND)
_ROWS = {"k": pl.Int64(), "v": pl.Int64()}
_ANSWER = {"k": pl.Int64(), "n": pl.Int64(), "sum": pl.Int64()}
WORDS: Mapping[str, Emit] = {
    "ISTREAM": Istream(_ANSWER),
    "DSTREAM": Dstream(_ANSWER),
    "RSTREAM": Rstream(_ANSWER, slide=SLIDE),
    "WSTREAM": Wstream(_ANSWER, spec=Range(LENGTH)),
    "change log": ChangeLog(_ANSWER),
}


@dataclass(frozen=True)
class Cost:
    """One batch through window, aggregate and result word, in seconds of the processor."""

    word: str
    rows: int
    ticks: int
    said: int
    seconds: float

    @property
    def nanoseconds_per_row(self) -> float:
        return self.seconds * 1e9 / (self.rows + self.said)


def measure(word: str, rows: int, pause: int, *, times: int = 3) -> Cost:
    """The cheapest of some runs of one batch."""
    bursts = rows // BURST
    at = np.repeat(np.arange(bursts) * pause, BURST) + np.tile(np.arange(BURST) * (LENGTH // BURST), bursts)
    number = np.arange(rows)
    frame = pl.DataFrame({"k": number % KEYS, "v": number, "_at": at})
    batch = Batch.of(frame, born=pl.col("_at"))
    batch = Batch(batch.frame.drop("_at"))
    upto = int(at[-1]) + LENGTH
    seconds, said = [], 0
    for _ in range(times):
        begun = process_time()
        said = _said(WORDS[word], batch, Clock(-1, upto, 0))
        seconds.append(process_time() - begun)
    return Cost(word, rows, upto // SLIDE, said, min(seconds))


def _said(emit: Emit, batch: Batch, clock: Clock) -> int:
    """How many rows come out when a batch goes through."""
    window = Window(Range(LENGTH, SLIDE), _ROWS)
    calls = (AggregateCall(Function.COUNT, None, "n"), AggregateCall(Function.SUM, "v", "sum"))
    groups = Aggregate(_ROWS, ("k",), calls, endings=False)
    _, windowed = window.advance(window.initial(), [batch], clock)
    _, answer = groups.advance(groups.initial(), [windowed], clock)
    _, pieces = emit.emit(emit.initial(), answer, clock)
    return sum(piece.height for piece in pieces.frames)


def compare(*, quick: bool = False) -> tuple[Cost, ...]:
    """Each result word with a batch, with one 16 times as large, and with 1,000 times as many ticks."""
    small, large = (each // 10 for each in BATCHES) if quick else BATCHES
    cases = ((small, PAUSES[0]), (large, PAUSES[0]), (large, PAUSES[1]))
    return tuple(measure(word, rows, pause) for word in WORDS for rows, pause in cases)
