"""Aggregate: a row per group with the aggregates of its contents, at every instant at which they change.

```
rows of a group     [== 3 ========)             SUM   ──3──┬──8──┬──5──┬ and the group is gone
                          [== 5 ========)             announce 3, end it and announce 8, ...
```

A row is two changes: it comes at its birth and goes at its death; an ending is the reverse. Changes after the
step wait in a timer queue. Those in the step make points (group, instant), and every call is evaluated at all of
them at once.

| function | remembered | a step costs |
|---|---|---|
| COUNT, SUM, AVG, variances | sums per group; per group and announced death | as its changes |
| ... DISTINCT, counts by sketch | also how often each value or cell occurs, now and by death | as its changes |
| extremes | rows that can still be extreme; with endings, how often each value occurs | as its changes |
| ranks, frequent values, arrays | how often each value occurs, now and by death | as what its groups hold |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from headgate.kernels.aggregate import ledger
from headgate.kernels.aggregate.bag import Bag, Histories
from headgate.kernels.aggregate.call import AggregateCall
from headgate.kernels.aggregate.coding import decode
from headgate.kernels.aggregate.frontier import Frontier
from headgate.kernels.aggregate.groups import NUMBER, Fresh, Groups, Known
from headgate.kernels.aggregate.ledger import ROWS, Columns, Measure
from headgate.kernels.aggregate.points import Points
from headgate.kernels.aggregate.readings import read, read_type
from headgate.kernels.aggregate.results import Evaluation
from headgate.kernels.aggregate.state import AggregateState
from headgate.kernels.aggregate.step import Arguments, Due, Step
from headgate.kernels.aggregate.tally import GROUP
from headgate.kernels.keys import with_plain_zeros
from headgate.kernels.state.timer_queue import TimerQueue
from headgate.model.aggregates import Structure
from headgate.model.batch import BORN, DIES, LIFETIME_SCHEMA, SIGN, Batch
from headgate.model.time import NEVER, Clock, tick_at_or_after

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Aggregate:
    """GROUP BY `keys` with `calls`, over input columns of types `schema`.

    Without keys there is one row from the query's first instant on (with `slide`, from the first tick), also
    over nothing. `append` announces each new value of a group and never ends one. `endings` says whether the
    input may take lifetimes back; if it says not, MIN and MAX forget what can no longer matter.
    """

    schema: Mapping[str, pl.DataType]
    keys: tuple[str, ...]
    calls: tuple[AggregateCall, ...]
    slide: int | None = None
    append: bool = False
    endings: bool = True

    def __post_init__(self) -> None:
        names = [*self.keys, *(call.output for call in self.calls)]
        if len(set(names)) < len(names):
            raise ValueError(f"two columns of one name among {names}")
        arguments = (name for call in self.calls for name in (call.argument, call.second))
        missing = {*self.keys, *arguments} - {*self.schema, None}
        if missing:
            raise ValueError(f"no input columns {sorted(map(str, missing))}")
        for call in self.calls:
            call.result_type(self.schema)

    @cached_property
    def output_schema(self) -> dict[str, pl.DataType]:
        """The payload of the output: keys, then results."""
        keys = {key: self.schema[key] for key in self.keys}
        return keys | {call.output: call.result_type(self.schema) for call in self.calls}

    def initial(self) -> AggregateState:
        """No groups, nothing pending."""
        keys = {key_column(number): self.schema[key] for number, key in enumerate(self.keys)}
        values: dict[str, pl.DataType] = {ROWS: pl.Int64()}
        for measure in self.measures.values():
            values |= measure.schema()
        for number, call in enumerate(self.calls):
            values[_result(number)] = self.output_schema[call.output]
        return AggregateState(
            Groups.empty(keys, values),
            TimerQueue({GROUP: pl.Int64()}, ROWS, summed=True),
            {argument: Bag.empty(self.types[argument]) for argument in self._in_bags},
            {(argument, largest): Frontier(largest) for argument, largest in self.in_frontiers},
        )

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> AggregateState:
        """The state whose `chunks()` these are."""
        return self.initial().restored(chunks)

    def advance(
        self, state: AggregateState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[AggregateState, Batch]:
        """All changes of the groups' rows in (clock.after, clock.upto], given all input births in it."""
        (batch,) = inputs
        frame, upto = batch.frame, min(clock.upto, NEVER - 1)
        if not self.endings and frame[SIGN].min() == -1:
            raise ValueError("an ending from an input that was said to have none")
        if upto <= clock.after:
            return state, Batch.empty(self.output_schema)
        pending, due = state.pending.due(clock.after, upto)
        bags, bags_due = {}, {}
        for argument, bag in state.bags.items():
            bags[argument], bags_due[argument] = bag.due(clock.after, upto)
        state = replace(state, pending=pending, bags=bags)
        opens = self._opens(clock)
        # The query's first row comes after all that has been answered, so the step of the opening is yet to come.
        opening = opens if opens is not None and clock.after < opens <= upto else None
        rows = state.groups.identify(self.keys_of(frame))
        step = Step.of(frame, rows, Due(due, bags_due), clock.after, upto, opening)
        if not step.points.size:
            return state, Batch.empty(self.output_schema)
        return self._advanced(state, step, rows.fresh, opens)

    def _advanced(
        self, state: AggregateState, step: Step, fresh: Fresh, opens: int | None
    ) -> tuple[AggregateState, Batch]:
        known = state.groups.read(step.groups)
        columns = self._added(step)
        arguments = {argument: Arguments.of(self.read(step.frame, argument)) for argument in state.bags}
        extremes = {
            which: Arguments.of(self.values(step.frame, which[0], largest=which[1]))
            for which in state.frontiers
        }
        histories = {
            argument: bag.histories(step.changes(argument, arguments[argument]), step.points, step.groups)
            for argument, bag in state.bags.items()
        }
        totals = self._totals(step, known, columns, histories)
        evaluation = Evaluation(
            step.points,
            step.groups,
            totals,
            self.measures,
            state.bags,
            {argument: state.bags[argument].held(step.groups) for argument in self._holistic},
            histories,
            {which: step.covers(extremes[which], front) for which, front in state.frontiers.items()},
            self.schema,
        )
        results = [
            evaluation.column(call).cast(self.output_schema[call.output]).alias(_result(number))
            for number, call in enumerate(self.calls)
        ]
        if self.keys:
            alive, was_alive = totals[ROWS] > 0, known.exists
        else:
            alive = np.full(step.points.size, False) if opens is None else step.points.at >= opens
            was_alive = known.exists & (opens is not None and opens <= step.after)
        before = _placed(known, [result.name for result in results])
        keys = self._keys_of_groups(step, known, fresh)
        output = self._output(step.points, keys, results, before, alive, was_alive)

        last = step.points.first[1:] - 1
        at_last = {name: values[last] for name, values in totals.items()}
        record = pl.DataFrame(
            {
                NUMBER: step.groups,
                **{key.name: key for key in keys},
                **ledger.packed(at_last, tuple(self.measures.values()), step.groups.size),
                **{result.name: result.gather(last) for result in results},
            }
        )
        stays = alive[last] if self.keys else np.ones(1, dtype=np.bool_)
        following = AggregateState(
            state.groups.write(record, known, stays, fresh, step.after, step.upto),
            state.pending.add(step.announced(columns), step.upto),
            {
                argument: bag.advance(histories[argument], step.groups, step.upto).announce(
                    *step.announced_changes(arguments[argument]), step.upto
                )
                for argument, bag in state.bags.items()
            },
            {
                which: front.advance(step.frontier_rows(extremes[which]), step.upto)
                for which, front in state.frontiers.items()
            },
        )
        return following, output

    def parts(self, frame: pl.DataFrame) -> Columns:
        """What every row adds to the ledger, but for its sign."""
        columns: Columns = {ROWS: np.ones(frame.height, dtype=np.int64)}
        for argument, measure in self.measures.items():
            columns |= measure.of_rows(self.read(frame, argument))
        return columns

    def values(self, frame: pl.DataFrame, argument: str, *, largest: bool) -> pl.Series:
        """The values of an argument among which the smallest, or largest, is looked for."""
        return self.read(frame, argument)

    def read(self, frame: pl.DataFrame, argument: str) -> pl.Series:
        """What the calls of an argument read of rows."""
        return read(self._readers[argument], frame)

    def _added(self, step: Step) -> Columns:
        return {name: part * step.sign for name, part in self.parts(step.frame).items()}

    def _totals(
        self, step: Step, known: Known, columns: Columns, histories: Mapping[str, Histories]
    ) -> Columns:
        """The ledger at every point."""
        sums = step.at_points(columns)
        for argument, history in histories.items():
            _add_presences(sums, self.measures[argument], history)
        start = ledger.unpacked(known.rows, tuple(self.measures.values()), known.place, step.groups.size)
        zeros = np.zeros(step.groups.size, dtype=np.int64)
        nothing = np.zeros(step.points.size, dtype=np.int64)
        return {
            name: step.points.running(sums.get(name, nothing), start.get(name, zeros))
            for name in {**start, **sums}
        }

    def _output(
        self,
        points: Points,
        keys: Sequence[pl.Series],
        results: Sequence[pl.Series],
        before: Sequence[pl.Series],
        alive: Mask,
        was_alive: Mask,
    ) -> Batch:
        """What is announced and ended at the points, given the results there and before the step."""
        groups, size = was_alive.size, points.size
        previous = groups + np.arange(size) - 1
        previous[points.first[:-1]] = np.arange(groups)
        prior_alive = np.concatenate([was_alive, alive])[previous]
        changed = np.zeros(size, dtype=np.bool_)
        known = [pl.concat(both) for both in zip(before, results, strict=True)]
        for values, result in zip(known, results, strict=True):
            changed |= result.ne_missing(_gathered(values, previous)).to_numpy()
        announced = alive & (~prior_alive | changed)
        ended = np.zeros(size, dtype=np.bool_) if self.append else prior_alive & (~alive | changed)
        # In time order, two places for each point: what ends there, then what begins.
        order = np.argsort(points.at)
        said = np.flatnonzero(np.stack([ended[order], announced[order]], axis=1))
        point, sign = order[said >> 1], (said & 1) * 2 - 1
        source = np.where(sign < 0, previous[point], groups + point)
        payload = [_gathered(key, points.group[point]) for key in keys]
        payload += [_gathered(values, source) for values in known]
        lifetimes = {BORN: points.at[point], DIES: np.full(point.size, NEVER), SIGN: sign}
        return Batch(
            pl.DataFrame(
                [
                    *(column.alias(name) for column, name in zip(payload, self.output_schema, strict=True)),
                    *(
                        pl.Series(name, lifetimes[name]).cast(dtype)
                        for name, dtype in LIFETIME_SCHEMA.items()
                    ),
                ]
            )
        )

    @cached_property
    def measures(self) -> dict[str, Measure]:
        """What is added up, by argument."""
        return {measure.argument: measure for measure in Measure.of(self.calls, self.types)}

    @cached_property
    def types(self) -> dict[str, pl.DataType]:
        """The types of what is read of rows, by argument."""
        return {argument: read_type(call, self.schema) for argument, call in self._readers.items()}

    @cached_property
    def _readers(self) -> dict[str, AggregateCall]:
        """A call for each argument; all calls of one read the same."""
        return {call.reads: call for call in reversed(self.calls) if call.reads is not None}

    @cached_property
    def _holistic(self) -> tuple[str, ...]:
        """Arguments of which a step has to see all values."""
        holistic = (call.reads for call in self.calls if call.structure is Structure.BAG)
        return tuple(dict.fromkeys(argument for argument in holistic if argument is not None))

    @cached_property
    def _in_bags(self) -> tuple[str, ...]:
        """Arguments whose multiplicities are kept."""
        counted = (
            call.reads
            for call in self.calls
            if call.structure is Structure.PRESENCES or (self.endings and call.structure is Structure.EXTREME)
        )
        return tuple(
            dict.fromkeys(argument for argument in (*self._holistic, *counted) if argument is not None)
        )

    @cached_property
    def in_frontiers(self) -> tuple[tuple[str, bool], ...]:
        """Arguments of which the rows are kept that can still be the smallest, or (True) the largest."""
        return tuple(
            dict.fromkeys(
                (call.reads, call.function.is_largest)
                for call in self.calls
                if call.reads is not None and not self.endings and call.structure is Structure.EXTREME
            )
        )

    def _opens(self, clock: Clock) -> int | None:
        """From when on the one group without keys has a row; None with keys, or if it is not known yet."""
        if self.keys or clock.start is None:
            return None
        return clock.start if self.slide is None else tick_at_or_after(clock.start, self.slide)

    def keys_of(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The key columns of rows under the names the state uses, -0.0 as 0.0."""
        if not self.keys:
            return frame.select(BORN)
        return frame.select(
            with_plain_zeros(key, self.schema[key]).alias(key_column(number))
            for number, key in enumerate(self.keys)
        )

    def _keys_of_groups(self, step: Step, known: Known, fresh: Fresh) -> list[pl.Series]:
        """The key of each group of the step."""
        place = np.concatenate([known.place, np.searchsorted(step.groups, fresh.number)])
        names = [key_column(number) for number in range(len(self.keys))]
        return [
            _at_places(pl.concat([known.rows[name], fresh.keys[name]]), place, step.groups.size)
            for name in names
        ]


def key_column(number: int) -> str:
    """The state's name for a key."""
    return f"key{number}"


def _result(number: int) -> str:
    return f"result{number}"


def _placed(known: Known, names: Sequence[str]) -> list[pl.Series]:
    return [_at_places(known.rows[name], known.place, known.position.size) for name in names]


def _at_places(values: pl.Series, place: Ints, size: int) -> pl.Series:
    """A column of `size` rows with these values at their places and NULLs elsewhere."""
    index = np.full(size, values.len())
    index[place] = np.arange(values.len())
    return _gathered(values if values.len() == size else pl.concat([values, values.clear(1)]), index)


def _gathered(values: pl.Series, index: Ints) -> pl.Series:
    # Polars indexes with 32 bits; anything else it has to check and convert first.
    return values.gather(pl.Series(index.astype(np.uint32)))


def _add_presences(sums: Columns, measure: Measure, histories: Histories) -> None:
    """Adds to the sums what values add that appear or disappear."""
    if not measure.distinct:
        return
    here = histories.after > 0
    change = here.astype(np.int64) - (histories.after - histories.change > 0)
    some = np.flatnonzero(change)
    point = histories.point[some]
    values = decode(histories.pairs.value.gather(histories.pair[some]), measure.dtype)
    for name, parts in measure.of_presences(values, change[some]).items():
        column = sums.setdefault(name, np.zeros(histories.points.size, dtype=np.int64))
        np.add.at(column, point, parts)
