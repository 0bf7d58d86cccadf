"""Soak: a query that follows files for a long time, watched from outside: does what it holds stay as it is?

A generated auction is written file by file, a span of its time in each, into the folders that `headgate run --follow`
reads, and old files are taken away again. Meanwhile the memory of all processes and the state of all queries are
noted at intervals.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.lab.child import end
from headgate.lab.generators import Auction
from headgate.lab.generators.dataset import START, GeneratedStream
from headgate.lab.plots import figure
from headgate.lab.process_tree import tree_use
from headgate.model.errors import SetupError
from headgate.model.time import SECOND

QUERIES = """
CREATE STREAM items (
  ts TIMESTAMP, itemid BIGINT, sellerid BIGINT, name STRING, category STRING, initialprice DOUBLE
) TIMESTAMP BY ts KEY (itemid) USING parquet OPTIONS (path 'items');

CREATE STREAM bids (
  ts TIMESTAMP, bidid BIGINT, itemid BIGINT, bidder BIGINT, increase DOUBLE, closing BOOLEAN
) TIMESTAMP BY ts WITHIN INTERVAL 5 SECONDS KEY (bidid) PUNCTUATED BY (itemid) WHEN closing
  USING parquet OPTIONS (path 'bids');

-- Bounded by windows.
CREATE QUERY hot AS
SELECT ISTREAM(i.category, COUNT(*) AS bids, SUM(b.increase) AS raised)
FROM items [RANGE 1 HOUR] AS i, bids [RANGE 10 MINUTES SLIDE 1 MINUTE] AS b
WHERE i.itemid = b.itemid AND NOT b.closing
GROUP BY i.category;

CREATE QUERY active AS SELECT ISTREAM(DISTINCT bidder) FROM bids [RANGE 10 MINUTES] WHERE NOT closing;

-- Bounded by punctuation: an item and its bids go when the item is closed.
CREATE QUERY closed AS
SELECT ISTREAM(i.itemid, SUM(b.increase) AS gain) FROM items AS i, bids AS b
WHERE i.itemid = b.itemid GROUP BY i.itemid;
"""
NAMES = ("hot", "active", "closed")
TOLERANCE = 0.10
_KEPT_FILES = 10
"""So many files of a stream stay after all queries have answered beyond them."""


@dataclass(frozen=True)
class Sample:
    """What was seen at one moment; bytes are resident."""

    seconds: float
    jvm_bytes: int | None
    python_bytes: int | None
    processes: int | None
    state_rows: int
    state_bytes: int
    rows_in: int
    behind_seconds: float
    """How far the slowest query's clock is behind the data, in the auction's time."""
    log_bytes: int
    """Of the log of files."""
    processor_seconds: float | None = None
    """Of all processes since the start."""


@dataclass(frozen=True)
class Flatness:
    """How a quantity moved after the warm-up: its mean, how far the ends of its range are from it, its drift.

    The drift is the mean of the last third over that of the first, less one.
    """

    name: str
    mean: float
    low: float
    high: float
    drift: float

    @property
    def flat(self) -> bool:
        return abs(self.drift) <= TOLERANCE

    @staticmethod
    def of(name: str, values: Sequence[float]) -> Flatness:
        middle, third = mean(values), max(1, len(values) // 3)
        if middle == 0:
            return Flatness(name, 0.0, 0.0, 0.0, 0.0)
        first, last = mean(values[:third]), mean(values[-third:])
        drift = last / first - 1.0 if first else float("inf")
        return Flatness(name, middle, min(values) / middle - 1.0, max(values) / middle - 1.0, drift)


@dataclass(frozen=True)
class Soak:
    """All samples of a run, and what followed the warm-up."""

    minutes: float
    rows_per_second: float
    warm_up_seconds: float
    samples: tuple[Sample, ...]

    @property
    def steady(self) -> tuple[Sample, ...]:
        return tuple(each for each in self.samples if each.seconds >= self.warm_up_seconds)

    @property
    def processor_us_per_row(self) -> float | None:
        """Microseconds of the processor for each row that came after the warm-up; None where nothing tells."""
        times = [(each.processor_seconds, each.rows_in) for each in self.steady]
        known = [(seconds, rows) for seconds, rows in times if seconds is not None]
        rows = known[-1][1] - known[0][1] if known else 0
        return 1e6 * (known[-1][0] - known[0][0]) / rows if rows else None

    @property
    def flatness(self) -> tuple[Flatness, ...]:
        names = ("jvm_bytes", "python_bytes", "state_rows", "state_bytes")
        found = {name: [getattr(each, name) for each in self.steady] for name in names}
        return tuple(Flatness.of(name, each) for name, each in found.items() if each and None not in each)

    @property
    def flat(self) -> bool:
        return bool(self.flatness) and all(each.flat for each in self.flatness)

    def as_dict(self) -> dict[str, Any]:
        return {
            "soak": "auction",
            "minutes": self.minutes,
            "rows_per_second": self.rows_per_second,
            "warm_up_seconds": self.warm_up_seconds,
            "processor_us_per_row": self.processor_us_per_row,
            "flat": self.flat,
            "flatness": [{**asdict(each), "flat": each.flat} for each in self.flatness],
            "samples": [asdict(each) for each in self.samples],
        }


def run(
    minutes: float,
    *,
    every: float = 3.0,
    span: int = 60,
    sample_every: float = 30.0,
    warm_up: float | None = None,
    scratch: Path | None = None,
    on_sample: Callable[[Sample], None] = lambda sample: None,
) -> Soak:
    """Follows an auction for so many minutes: every `every` seconds come files with `span` seconds of it."""
    begun, ends = monotonic(), monotonic() + 60 * minutes
    samples: list[Sample] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="headgate-soak-", dir=scratch)))
        (folder / "soak.cql").write_text(QUERIES)
        feeder = Feeder(folder, files=int(60 * minutes / every) + 60, span=span)
        feeder.write_next()
        log = stack.enter_context((folder / "log").open("wb"))
        command = [sys.executable, "-m", "headgate.cli.main", "run", "soak.cql", "-o", "out"]
        running = subprocess.Popen(
            [*command, "--checkpoint", "state", "--follow", "--quiet"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        stack.callback(end, running)
        over = threading.Event()
        thread = threading.Thread(target=feeder.feed, args=(every, over), daemon=True)
        thread.start()
        stack.callback(thread.join)
        stack.callback(over.set)
        while monotonic() < ends:
            over.wait(max(0.0, min(sample_every, ends - monotonic())))
            if running.poll() is not None:
                said = (folder / "log").read_text(errors="replace").strip() or "it said nothing"
                raise SetupError(f"the run ended with {running.returncode}: {said[-500:]}")
            samples.append(_sample(running.pid, folder, feeder, monotonic() - begun))
            on_sample(samples[-1])
        rows = samples[-1].rows_in / (monotonic() - begun) if samples else 0.0
    return Soak(minutes, rows, 20 * minutes if warm_up is None else 60 * warm_up, tuple(samples))


class Feeder:
    """Writes an auction file by file, each moved into place whole, and takes old files away."""

    def __init__(self, folder: Path, *, files: int, span: int) -> None:
        auction = Auction(items=5 * span * files, disorder=3 * SECOND, seed=7)
        self._streams = {name: cut_by_time(stream, span * SECOND) for name, stream in auction.streams.items()}
        self._folder, self._span = folder, span
        self._oldest = 0
        self.number = 0
        for name in self._streams:
            (folder / name).mkdir()

    @property
    def latest(self) -> int:
        """Up to which instant the auction has been written."""
        return START + self.number * self._span * SECOND

    def write_next(self) -> None:
        for name, pieces in self._streams.items():
            piece = next(pieces, None)
            if piece is None:
                continue
            hidden = self._folder / f".{name}-{self.number}"
            pq.write_table(piece, hidden)
            target = self._folder / name / f"{self.number:06d}.parquet"
            hidden.rename(target)
        self.number += 1

    def take_away(self, answered: int | None) -> None:
        """Removes files that lie well before the instant up to which all queries have answered."""
        passed = 0 if answered is None else (answered - START) // (self._span * SECOND) - _KEPT_FILES
        while self._oldest < passed:
            for name in self._streams:
                (self._folder / name / f"{self._oldest:06d}.parquet").unlink(missing_ok=True)
            self._oldest += 1

    def feed(self, every: float, over: threading.Event) -> None:
        """Writes until told that it is over."""
        due = monotonic() + every
        while not over.wait(max(0.0, due - monotonic())):
            self.write_next()
            self.take_away(answered(self._folder))
            due += every


def cut_by_time(stream: GeneratedStream, span: int) -> Iterator[pa.Table]:
    """A stream in pieces that each bring its clock forward by a span of microseconds."""
    kept, upto = stream.schema.empty_table(), START + span
    for block in stream.blocks():
        kept = pa.concat_tables([kept, block])
        times = np.maximum.accumulate(kept["ts"].cast(pa.int64()).to_numpy())
        while times.size and times[-1] >= upto:
            cut = int(np.searchsorted(times, upto))
            yield kept.slice(0, cut).combine_chunks()
            kept, times, upto = kept.slice(cut), times[cut:], upto + span
    if kept.num_rows:
        yield kept.combine_chunks()


def answered(folder: Path) -> int | None:
    """The instant up to which all queries have answered; None before that."""
    clocks = [(_metrics(folder / "out" / name / "metrics.json") or {}).get("clock") for name in NAMES]
    known = [each for each in clocks if each is not None]
    return min(known) if len(known) == len(NAMES) else None


def _sample(pid: int, folder: Path, feeder: Feeder, seconds: float) -> Sample:
    metrics = [found for name in NAMES if (found := _metrics(folder / "out" / name / "metrics.json"))]
    clock = answered(folder)
    use = tree_use(pid)
    return Sample(
        seconds=round(seconds, 1),
        jvm_bytes=None if use is None else use.jvm,
        python_bytes=None if use is None else use.other,
        processes=None if use is None else use.processes,
        state_rows=sum(each["state_rows"] for each in metrics),
        state_bytes=sum(each["state_bytes"] for each in metrics),
        rows_in=max((each["rows_in"] for each in metrics), default=0),
        behind_seconds=(feeder.latest - (START if clock is None else clock)) / SECOND,
        log_bytes=sum(
            each.stat().st_size for each in (folder / "state" / "headgate" / "files").glob("*.jsonl")
        ),
        processor_seconds=None if use is None else use.processor_seconds,
    )


def _metrics(path: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError):
        return None


def draw(found: Soak, path: Path) -> None:
    """Memory and state over time."""
    minutes = [each.seconds / 60 for each in found.samples]
    with figure(path, rows=1, columns=2, width=12.0) as (memory, state):
        for name, values in (
            ("JVM", [each.jvm_bytes for each in found.samples]),
            ("Python", [each.python_bytes for each in found.samples]),
        ):
            memory.plot(minutes, [None if v is None else v / 1e6 for v in values], label=name)
        memory.set(title="resident memory", xlabel="minutes", ylabel="MB", ylim=(0, None))
        state.plot(minutes, [each.state_rows for each in found.samples], label="state rows")
        state.set(title="state of all queries", xlabel="minutes", ylabel="rows", ylim=(0, None))
        for panel in (memory, state):
            panel.axvline(found.warm_up_seconds / 60, color="grey", linestyle=":", label="end of warm-up")
            panel.legend(fontsize=8, frameon=False)
