"""LinearRoad: cars on expressways that report their position every 30 seconds (k-Mon document, section 9).

A car enters, drives, leaves. Some cars stop on the way for several reports: four reports from one position
are a possible accident to the document's query AccSeg.

```
report   0     1      2      3  4  5  6  7      8      9
xpos     |-----|------|------|==========|------|------|      = stopped: speed 0, same xpos
lane     0     2      2      2  2  2  2  2      2      4     0 entry ramp, 1 to 3 travel, 4 exit ramp
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headgate.lab.generators.dataset import START, Dataset, GeneratedStream
from headgate.lab.generators.draw import Floats, Ints, arrivals, blocks, generator
from headgate.lab.generators.merge import Columns, in_order, things_per_block
from headgate.model import types
from headgate.model.time import MINUTE, SECOND

CAR_STR = pa.schema(
    [
        ("ts", types.TIMESTAMP),
        ("cid", types.BIGINT),
        ("speed", types.INT),
        ("xway", types.INT),
        ("lane", types.INT),
        ("dir", types.INT),
        ("sid", types.INT),
        ("xpos", types.INT),
    ]
)
REPORT_EVERY = 30 * SECOND
SEGMENTS = 100
FEET_PER_SEGMENT = 5280

# One mile an hour is 44 feet in 30 seconds: positions stay whole numbers.
_FEET_PER_REPORT_AND_MPH = 44
_SLOWEST, _FASTEST = 10, 100
_FEWEST_REPORTS, _MOST_REPORTS = 3, 100
_ENTRY_RAMP, _EXIT_RAMP, _TRAVEL_LANES = 0, 4, 3


@dataclass(frozen=True)
class LinearRoad(Dataset):
    """The stream `CarStr` of the reports of `cars` cars, in time order; times are microseconds.

    `stopping` is the part of the cars that stop once, for `stops` = (fewest, most) reports.
    """

    cars: int = 10_000
    cars_per_second: float = 10.0
    mean_trip: int = 10 * MINUTE
    xways: int = 1
    stopping: float = 0.01
    stops: tuple[int, int] = (4, 12)
    seed: int = 0
    start: int = START

    def __post_init__(self) -> None:
        if self.cars < 0 or not self.cars_per_second > 0 or self.xways < 1:
            raise ValueError("cars is not negative, cars_per_second and xways are positive")
        if not _FEWEST_REPORTS * REPORT_EVERY <= self.mean_trip <= _MOST_REPORTS * REPORT_EVERY:
            raise ValueError(f"a trip has {_FEWEST_REPORTS} to {_MOST_REPORTS} reports 30 s apart")
        if not 0 <= self.stopping <= 1 or not 1 <= self.stops[0] <= self.stops[1]:
            raise ValueError("stopping is a part of 1, and stops last from at least one report to more")

    @property
    def streams(self) -> Mapping[str, GeneratedStream]:
        return {"CarStr": GeneratedStream("CarStr", CAR_STR, self._tables, self._count)}

    def _trips(self) -> Iterator[_Trips]:
        reports = self.mean_trip / REPORT_EVERY
        alive = self.cars_per_second * self.mean_trip / SECOND
        for block, first, count in blocks(self.cars, things_per_block(reports, alive)):
            rng = generator(self.seed, "linear_road.trips", block)
            end = self._entry(first + count)
            driving = np.rint(rng.standard_gamma(2.0, count) * (reports / 2)).astype(np.int64)
            driving = np.clip(driving, _FEWEST_REPORTS, _MOST_REPORTS)
            stops = rng.random(count) < self.stopping
            yield _Trips(
                block=block,
                first=first,
                end=end,
                enters=arrivals(rng, count, self._entry(first), end),
                driving=driving,
                stopped=stops * rng.integers(self.stops[0], self.stops[1] + 1, size=count),
                # On the way: neither the first nor the last report is one of a stopped car.
                stops_after=rng.integers(driving - 1),
                speed=rng.normal(60.0, 12.0, count),
            )

    def _entry(self, car: int) -> int:
        """The instant at which `car` would enter if cars came like clockwork."""
        return self.start + int(car * SECOND / self.cars_per_second)

    def _count(self) -> int:
        return sum(int(trips.driving.sum() + trips.stopped.sum()) for trips in self._trips())

    def _tables(self) -> Iterator[pa.Table]:
        for rows, _ in in_order(map(self._reports, self._trips()), by="ts"):
            columns = {
                **rows,
                "ts": rows["ts"].view("datetime64[us]"),
                "sid": rows["xpos"] // FEET_PER_SEGMENT,
            }
            yield pa.table([columns[name] for name in CAR_STR.names], schema=CAR_STR)

    def _reports(self, trips: _Trips) -> tuple[Columns, int]:
        """The reports of a block's cars, car by car."""
        rng = generator(self.seed, "linear_road.reports", trips.block)
        cars, reports = trips.driving.size, trips.driving + trips.stopped
        ends = np.cumsum(reports)
        begins, total = ends - reports, int(ends[-1])
        car = np.repeat(np.arange(cars), reports)
        report = np.arange(total) - begins[car]

        speed = np.rint(trips.speed[car] + 3.0 * rng.standard_normal(total))
        speed = np.clip(speed, _SLOWEST, _FASTEST).astype(np.int32)
        since_stop = report - trips.stops_after[car]
        speed[(since_stop > 0) & (since_stop <= trips.stopped[car])] = 0

        # Feet since the car's first report: a running sum over all cars, less what it was then.
        moved = speed * _FEET_PER_REPORT_AND_MPH
        moved[begins] = 0
        driven = np.cumsum(moved, dtype=np.int64)
        driven -= driven[begins][car]
        longest = trips.driving * (_FASTEST * _FEET_PER_REPORT_AND_MPH)
        from_ = rng.integers(SEGMENTS * FEET_PER_SEGMENT - longest)[car] + driven
        direction = rng.integers(2, size=cars, dtype=np.int32)[car]
        xpos = np.where(direction == 0, from_, SEGMENTS * FEET_PER_SEGMENT - 1 - from_)

        lane = 1 + rng.integers(_TRAVEL_LANES, size=cars, dtype=np.int32)[car]
        lane[begins], lane[ends - 1] = _ENTRY_RAMP, _EXIT_RAMP
        return {
            "ts": trips.enters[car] + report * REPORT_EVERY,
            "cid": trips.first + 1 + car,
            "speed": speed,
            "xway": rng.integers(self.xways, size=cars, dtype=np.int32)[car],
            "lane": lane,
            "dir": direction,
            "xpos": xpos.astype(np.int32),
        }, trips.end


@dataclass(frozen=True, eq=False)
class _Trips:
    """The trips of a block's cars: reports while driving, while stopped, and the last one before the stop."""

    block: int
    first: int
    end: int
    enters: Ints
    driving: Ints
    stopped: Ints
    stops_after: Ints
    speed: Floats
