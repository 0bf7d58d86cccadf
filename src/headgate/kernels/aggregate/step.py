"""Step: the changes of one clock step, located at points, and those that it announces for later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from headgate.kernels.aggregate.bag import Changes
from headgate.kernels.aggregate.coding import encode
from headgate.kernels.aggregate.frontier import DIES as FRONTIER_DIES
from headgate.kernels.aggregate.frontier import Frontier
from headgate.kernels.aggregate.groups import Identified
from headgate.kernels.aggregate.ledger import Columns
from headgate.kernels.aggregate.points import Points
from headgate.kernels.aggregate.results import Covers
from headgate.kernels.aggregate.tally import COUNT, GROUP, VALUE
from headgate.kernels.state.timer_queue import AT
from headgate.model.batch import BORN, DIES, SIGN
from headgate.model.time import NEVER

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Due:
    """Announced changes whose instants lie in the step: for the ledger, and for the bag of each argument."""

    ledger: pl.DataFrame
    bags: Mapping[str, pl.DataFrame]


@dataclass(frozen=True, eq=False)
class Arguments:
    """The values of an argument, as codes, in the rows that have one."""

    row: Ints
    value: pl.Series

    @staticmethod
    def of(values: pl.Series) -> Arguments:
        if not values.null_count():
            return Arguments(np.arange(values.len()), encode(values))
        row = np.flatnonzero(values.is_not_null().to_numpy())
        return Arguments(row, encode(values.gather(row)))


@dataclass(frozen=True, eq=False)
class Step:
    """Rows and due changes of (after, upto] by point; `groups` are the numbers of the groups, ascending."""

    after: int
    upto: int
    frame: pl.DataFrame
    groups: Ints
    points: Points
    row_group: Ints
    sign: Ints
    dies: Ints
    birth: Ints
    """The point of each row's birth."""
    dying: Ints
    """Rows that die in the step."""
    death: Ints
    """The point of each such death."""
    due: Due
    due_points: Ints
    bag_points: Mapping[str, Ints]

    @staticmethod
    def of(
        frame: pl.DataFrame, rows: Identified, due: Due, after: int, upto: int, opening: int | None
    ) -> Step:
        """The step with these rows and due changes; at `opening`, group 0 has a point in any case."""
        born, dies = frame[BORN].to_numpy(), frame[DIES].to_numpy()
        dying = np.flatnonzero(dies <= upto)
        pieces = [due.ledger, *due.bags.values()]
        opened = np.array([] if opening is None else [opening], dtype=np.int64)
        others = [*(piece[GROUP].to_numpy() for piece in pieces), np.zeros_like(opened)]
        groups = np.unique(np.concatenate([rows.number, *others]))
        row_group = np.searchsorted(groups, rows.number)[rows.code]
        places = [row_group, row_group[dying], *(np.searchsorted(groups, other) for other in others)]
        instants = [born, dies[dying], *(piece[AT].to_numpy() for piece in pieces), opened]
        points, point = Points.of(np.concatenate(places), np.concatenate(instants), groups.size)
        parts = np.split(point, np.cumsum([place.size for place in places])[:-1])
        return Step(
            after,
            upto,
            frame,
            groups,
            points,
            row_group,
            frame[SIGN].cast(pl.Int64).to_numpy(),
            dies,
            parts[0],
            dying,
            parts[1],
            due,
            parts[2],
            dict(zip(due.bags, parts[3:], strict=False)),
        )

    @property
    def later(self) -> Ints:
        """Rows that die after the step, at an instant that is known."""
        return np.flatnonzero((self.dies > self.upto) & (self.dies < NEVER))

    def at_points(self, columns: Columns) -> Columns:
        """What the rows' columns and the due changes add at each point."""
        sums: Columns = {}

        def column(name: str) -> Ints:
            return sums.setdefault(name, np.zeros(self.points.size, dtype=np.int64))

        for name, values in columns.items():
            np.add.at(column(name), self.birth, values)
            np.subtract.at(column(name), self.death, values[self.dying])
        for name in self.due.ledger.columns:
            if name not in (AT, GROUP):
                np.add.at(column(name), self.due_points, self.due.ledger[name].to_numpy())
        return sums

    def announced(self, columns: Columns) -> pl.DataFrame:
        """What the rows' columns take back after the step."""
        later = self.later
        rows = {GROUP: self.groups[self.row_group[later]], AT: self.dies[later]}
        return pl.DataFrame(rows | {name: -values[later] for name, values in columns.items()})

    def changes(self, argument: str, arguments: Arguments) -> Changes:
        """The changes of multiplicity of an argument's values in the step."""
        row, value = arguments.row, arguments.value
        dying = np.zeros(self.sign.size, dtype=np.bool_)
        dying[self.dying] = True
        going = np.flatnonzero(dying[row])
        death = np.empty(self.sign.size, dtype=np.int64)
        death[self.dying] = self.death
        due = self.due.bags[argument]
        return Changes.concat(
            [
                Changes(self.birth[row], value, self.sign[row]),
                Changes(death[row[going]], value.gather(going), -self.sign[row[going]]),
                Changes(self.bag_points[argument], due[VALUE], due[COUNT].to_numpy()),
            ]
        )

    def announced_changes(self, arguments: Arguments) -> tuple[Ints, Ints, pl.Series, Ints]:
        """Instant, group, value and change of multiplicity after the step."""
        row = arguments.row
        later = np.flatnonzero((self.dies[row] > self.upto) & (self.dies[row] < NEVER))
        row = row[later]
        group = self.groups[self.row_group[row]]
        return self.dies[row], group, arguments.value.gather(later), -self.sign[row]

    def covers(self, arguments: Arguments, front: Frontier) -> Covers:
        """The points that each value covers: those of the new rows and those that lead the frontier."""
        points, row = self.points, arguments.row
        end = points.first[self.row_group + 1]
        end[self.dying] = self.death
        group, leaders = front.within(self.groups, self.after, self.upto)
        if not leaders.height:
            return Covers(self.birth[row], end[row], arguments.value)
        until = points.seek(group, leaders[FRONTIER_DIES].to_numpy())
        low = np.concatenate([self.birth[row], points.first[group]])
        high = np.concatenate([end[row], until])
        value = pl.concat([arguments.value, leaders[VALUE]])
        # A leader may die at its group's first point.
        some = np.flatnonzero(low < high)
        return Covers(low[some], high[some], value.gather(some))

    def frontier_rows(self, arguments: Arguments) -> pl.DataFrame:
        """The rows that outlive the step, as a frontier keeps them."""
        row = arguments.row
        lasting = np.flatnonzero(self.dies[row] > self.upto)
        row = row[lasting]
        return pl.DataFrame(
            {
                GROUP: self.groups[self.row_group[row]],
                FRONTIER_DIES: self.dies[row],
                VALUE: arguments.value.gather(lasting),
            }
        )
