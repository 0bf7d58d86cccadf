"""Join: the equi-join of any number of inputs over their lifetimes.

A combination of rows that agree on every equality class is a result from the latest of its births to the
earliest of its deaths, if all its rows are alive at its birth. An internal input takes part in that test, not
in the death.

```
S1    [==============)                +1 [0, 15)
S2          [=======================) +1 [6, 30)
S1⋈S2       [========)                +1 [6, 15)     S2 internal: the same; S1 internal: [6, 30)
```

How a step works (the eager multi-way join of Windows, section 5.2.1, a batch at a time). For each input, its
new rows probe the other inputs one after the other: those before it as they are after the step, those after
it as they were before, so that each combination is found once, by its last new row in input order. Rows that
ended in the step then probe the others as they were at the last instant before the end; of several rows of a
combination that end, the first to end (among equals, the first input) ends it. So the batch contains, for
every result, its birth with the announced death and, if it comes to that, one ending: the same rows however
the input is cut into steps.

A row of an internal input may be gone when another row of its result ends. A join that has both, internal
inputs and others that end rows, therefore remembers its results and which rows they came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl

from headgate.kernels.join.arrivals import Arrivals, arrive, can_match, come
from headgate.kernels.join.early_purge import EarlyPurge, EarlyState
from headgate.kernels.join.partial_match import PartialMatch
from headgate.kernels.join.probe_plan import EqualityClass, ProbePlan, plan_probes
from headgate.kernels.join.purge import Purge
from headgate.kernels.join.settle_early import settle
from headgate.kernels.kernel import State
from headgate.kernels.state.closings import CLOSINGS, Closings
from headgate.kernels.state.composite import Composite, of_part
from headgate.kernels.state.endings import Endings
from headgate.kernels.state.store import ENDS, Instants, Layout, Probes, Store, payload_of, rows_where
from headgate.kernels.state.structure import Structure, empty_store
from headgate.model.batch import BORN, DIES, LIFETIME_COLUMNS, SIGN, Batch
from headgate.model.time import Clock

_RESULTS, _EARLY = "results", "early"


@dataclass(frozen=True)
class JoinInput:
    """One input: its payload columns, whether it is internal, and the structure that holds it."""

    schema: Mapping[str, pl.DataType]
    internal: bool
    store: Structure
    days: int = 8
    """About how many partitions a calendar has."""


@dataclass(frozen=True, eq=False)
class JoinState(Composite):
    """The inputs' live rows, and the live results where they must be remembered."""

    stores: tuple[Store, ...]
    results: Endings | None
    steps: int = 0
    """Clock steps since the state was made or restored; only lazy expiry counts them."""
    closings: Closings | None = None
    """Where rows are dropped by punctuation: the closed values that are remembered."""
    early: EarlyState | None = None
    """Where rows are dropped before they die: what is known of closings."""

    @property
    def _parts(self) -> dict[str, State]:
        parts: dict[str, State] = {str(number): store for number, store in enumerate(self.stores)}
        if self.closings is not None:
            parts[CLOSINGS] = self.closings
        if self.early is not None:
            parts[_EARLY] = self.early
        return parts if self.results is None else {**parts, _RESULTS: self.results}


@dataclass(frozen=True, eq=False)
class Join:
    """The join of `inputs` on `equalities`, classes of columns that are all equal, and on a `residual`.

    All parts of the residual must hold; each is asked as soon as the inputs that it reads have met. `order` is the
    global join order. Lazy expiry drops dead rows only every `lazy_steps` steps. With a `purge`, the inputs of closed
    values follow the joined ones; after them come those of an `early` purge, where no input ends rows.
    """

    inputs: tuple[JoinInput, ...]
    equalities: tuple[EqualityClass, ...]
    residual: tuple[pl.Expr, ...]
    order: tuple[int, ...]
    expiry: Literal["eager", "lazy"] = "eager"
    lazy_steps: int = 16
    purge: Purge | None = None
    early: EarlyPurge | None = None

    def __post_init__(self) -> None:
        if len(self.inputs) < 2:
            raise ValueError("a join has at least two inputs")
        if sorted(self.order) != list(range(len(self.inputs))):
            raise ValueError(f"{self.order} is not an order of {len(self.inputs)} inputs")
        names = [name for each in self.inputs for name in each.schema]
        if len(set(names)) < len(names):
            raise ValueError("a column name occurs in two inputs")
        for each in self.equalities:
            if len({str(self.inputs[number].schema[name]) for number, name in each}) > 1:
                raise ValueError(f"columns of different types cannot be equal: {each}")
        if self.early is not None and any(each.store is not Structure.RUNS for each in self.inputs):
            raise ValueError(
                "rows are dropped early only where all inputs announce deaths, and are kept in runs"
            )

    def initial(self) -> JoinState:
        stores = tuple(
            empty_store(each.store, layout, tuple(each.schema), each.days)
            for each, layout in zip(self.inputs, self._layouts, strict=True)
        )
        closings = None if self.purge is None else self.purge.initial()
        early = None if self.early is None else self.early.initial()
        return JoinState(stores, self._no_results(), closings=closings, early=early)

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> JoinState:
        initial = self.initial()
        stores = tuple(
            store.restored(of_part(chunks, str(number))) for number, store in enumerate(initial.stores)
        )
        results, closings, early = initial.results, initial.closings, initial.early
        return JoinState(
            stores,
            None if results is None else results.restored(of_part(chunks, _RESULTS)),
            closings=None if closings is None else closings.restored(of_part(chunks, CLOSINGS)),
            early=None if early is None else early.restored(of_part(chunks, _EARLY)),
        )

    def advance(self, state: JoinState, inputs: Sequence[Batch], clock: Clock) -> tuple[JoinState, Batch]:
        arrivals = []
        for number, batch in enumerate(inputs[: len(self.inputs)]):
            frame = can_match(batch.frame, self._plan.compared[number], self._plan.alike[number])
            store, layout = state.stores[number], self._layouts[number]
            if self.early is not None and number in self.early.members:
                arrivals.append(come(store, frame, layout, clock))
            else:
                arrivals.append(arrive(store, frame, layout, clock, self._numbered[number]))
        born = self._births(arrivals)
        if state.results is None:
            results, output = None, [*born, *self._endings(arrivals)]
        else:
            results, ended = self._end_results(state.results, born, arrivals, clock)
            output = [*born, ended]
        steps = state.steps + 1
        stores = tuple(each.new for each in arrivals)
        due = self.expiry == "eager" or steps % self.lazy_steps == 0
        # A step of no length lets nothing die, and must not write chunks under names that are taken.
        if due and clock.upto > clock.after:
            stores = tuple(store.expire(clock.upto) for store in stores)
            results = None if results is None else results.expire(clock.upto)
        closings, early = state.closings, state.early
        if self.early is not None and early is not None and clock.upto > clock.after:
            arrived = [each.payloads for each in arrivals]
            further = [batch.frame for batch in inputs[len(inputs) - self.early.sources :]]
            stores, early = settle(self.early, early, stores, arrived, further, clock)
        if self.purge is not None and closings is not None and clock.upto > clock.after:
            closed = [batch.frame for batch in inputs[len(self.inputs) :][: len(self.purge.closings)]]
            closings = closings.observe(
                closed, sum(arrivals[n].births.height for n in self.purge.members), clock
            )
            if self.purge.is_due(closings, closed):
                stores, closings = self.purge.sweep(stores, closings, self.equalities, clock)
        return JoinState(stores, results, steps, closings, early), self._batch(output)

    def _births(self, arrivals: Sequence[Arrivals]) -> list[pl.DataFrame]:
        """Results born in the step, with everything that was carried along."""
        frames = []
        for origin, each in enumerate(arrivals):
            rows = PartialMatch.of(each.births, internal=self.inputs[origin].internal)
            found = self._completed(origin, rows, arrivals, ending=False)
            if found is not None:
                frames.append(_results(found.frame, found.born, found.dies, 1))
        return frames

    def _endings(self, arrivals: Sequence[Arrivals]) -> list[pl.DataFrame]:
        """Endings of results, found through the rows that ended on inputs that are not internal."""
        frames = []
        for origin, each in enumerate(arrivals):
            if self.inputs[origin].internal or each.ghosts.is_empty():
                continue
            rows = PartialMatch.of(each.ghosts, internal=False).just_before()
            found = self._completed(origin, rows, arrivals, ending=True)
            if found is not None:
                frames.append(_results(found.frame, found.ends, found.dies, -1))
        return frames

    def _completed(
        self, origin: int, rows: PartialMatch, arrivals: Sequence[Arrivals], *, ending: bool
    ) -> PartialMatch | None:
        """Rows of one input combined with those of all others."""
        found: PartialMatch | None = rows
        for step, due in zip(self._plan.paths[origin], self._due[origin], strict=True):
            if found is None or found.height == 0:
                return None
            each, earlier = arrivals[step.input], self._rank[step.input] < self._rank[origin]
            found = found.with_partners(
                step,
                each.new_stores if earlier or ending else each.old_stores,
                internal=self.inputs[step.input].internal,
                outlive=ending and earlier,
                residual=due,
            )
        return found

    def _end_results(
        self, results: Endings, born: Sequence[pl.DataFrame], arrivals: Sequence[Arrivals], clock: Clock
    ) -> tuple[Endings, pl.DataFrame]:
        """The remembered results after the step, and the endings of those of which a row ended in it."""
        if born:
            columns = [*results.layout.schema, BORN, DIES]
            results = results.insert(pl.concat([frame[columns] for frame in born]), clock)
        probes = []
        for name, each in zip(self._numbered, arrivals, strict=True):
            if name is not None and each.ghosts.height:
                ends = each.ghosts[ENDS].to_numpy()
                key = results.layout.keys.index((name,))
                probes.append((key, Probes(each.ghosts.select(name), (name,), ends - 1, ends)))
        taken = results.end_partners(probes, clock)
        rows = taken.rows
        return taken.store, _results(payload_of(rows), rows[ENDS].to_numpy(), rows[DIES].to_numpy(), -1)

    def _batch(self, frames: Sequence[pl.DataFrame]) -> Batch:
        """The output: payloads in the order of the inputs, then lifetimes."""
        schema = {name: dtype for each in self.inputs for name, dtype in each.schema.items()}
        chosen = [frame[[*schema, *LIFETIME_COLUMNS]] for frame in frames]
        return Batch(pl.concat(chosen, rechunk=True)) if chosen else Batch.empty(schema)

    @cached_property
    def _plan(self) -> ProbePlan:
        return plan_probes(len(self.inputs), self.equalities, self.order)

    @cached_property
    def _rank(self) -> tuple[int, ...]:
        """The order in which inputs count as coming in a step; last those whose rows may not be stored at all."""
        late = () if self.early is None else self.early.members
        return tuple(number + len(self.inputs) * (number in late) for number in range(len(self.inputs)))

    @cached_property
    def _due(self) -> tuple[tuple[pl.Expr | None, ...], ...]:
        """By input with new rows, and by probe: the parts of the residual that can be asked for the first time."""
        return tuple(tuple(self._due_on(origin)) for origin in range(len(self.inputs)))

    def _due_on(self, origin: int) -> Iterator[pl.Expr | None]:
        met = set(self.inputs[origin].schema)
        waiting = [(part, set(part.meta.root_names())) for part in self.residual]
        for step in self._plan.paths[origin]:
            met |= self.inputs[step.input].schema.keys()
            due = [part for part, reads in waiting if reads <= met]
            waiting = [(part, reads) for part, reads in waiting if not reads <= met]
            yield pl.all_horizontal(due) if due else None

    @cached_property
    def _numbered(self) -> tuple[str | None, ...]:
        """By input: the column that numbers its rows, where results are found by the row they came from."""
        internal = any(each.internal for each in self.inputs)
        return tuple(
            f"_row.{number}" if internal and not each.internal and each.store is Structure.ENDINGS else None
            for number, each in enumerate(self.inputs)
        )

    @cached_property
    def _layouts(self) -> tuple[Layout, ...]:
        layouts = []
        for number, (each, name, keys) in enumerate(
            zip(self.inputs, self._numbered, self._plan.keys, strict=True)
        ):
            schema = dict(each.schema) if name is None else {**each.schema, name: pl.Int64()}
            asked = () if self.early is None else self.early.probed(number)
            layouts.append(Layout(schema, tuple(dict.fromkeys((*keys, *asked)))))
        return tuple(layouts)

    def _no_results(self) -> Endings | None:
        columns = [name for name in self._numbered if name is not None]
        if not columns:
            return None
        schema = {name: dtype for layout in self._layouts for name, dtype in layout.schema.items()}
        return Endings(Layout(schema, tuple((name,) for name in columns)))


def _results(frame: pl.DataFrame, born: Instants, dies: Instants, sign: int) -> pl.DataFrame:
    """Combinations as rows with lifetimes; a result that dies when it would end needs no ending."""
    signs = pl.Series(SIGN, np.full(len(born), sign, dtype=np.int8))
    rows = frame.hstack([pl.Series(BORN, born), pl.Series(DIES, dies), signs])
    return rows_where(rows, born < dies)
