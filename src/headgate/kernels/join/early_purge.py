"""Early purge: what a join has to know to drop rows that are still in their windows, once no later result has them.

The synopses of the k-Mon document (section 3), for joins whose rows announce their deaths. What is stored of an input
that has a chain is, in its terms, *Yes* and *Unknown*; *No* is the keys of rows that were refused, by a filter or
because they have no partners, and those are kept only where a step asks for them.

```
row of S1     S2 closed at its a? ── no ──► stays [Unknown]
                   │ yes
              a row of S2 with a? ── no ──► dropped [No]; its own key, if somebody asks for it, is refused
                   │ yes
              all other inputs closed for it and its partners? ── yes ──► dropped: its results are out [Yes]
                   │ no
              stays [Yes]
```

An input is closed at a value if a row with it has come (KEY) or its key was refused; if it is beyond the value
(ORDERED BY); if so much has come since that the partner has, or never will (FOREIGN KEY); or if the value itself was
closed (CLUSTERED BY, PUNCTUATED BY, or a KEY of the input that refers). Why that is enough, see the analysis of early
purges in `safety`. Rows here leave by themselves too, so what is forgotten too soon only keeps a row longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from headgate.kernels.kernel import State
from headgate.kernels.state.closed_values import ClosedValues
from headgate.kernels.state.composite import Composite, of_part
from headgate.kernels.state.lifetime_runs import LifetimeRuns
from headgate.kernels.state.store import Layout
from headgate.model.batch import BORN


def birth_of(member: int) -> str:
    """The column that has the birth of a row of an input, where rows are looked at side by side."""
    return f"{BORN}.{member}"


@dataclass(frozen=True)
class KeyCloser:
    """The row of the input with the key that equals `values` has come, or its key was refused."""

    values: tuple[str, ...]
    refused: int | None = None
    """The number of the keys that have been refused, if they are remembered."""


@dataclass(frozen=True)
class ValueCloser:
    """The input has closed `values`, which it tells one by one: they are among the keys with this number."""

    keys: int
    values: tuple[str, ...]


@dataclass(frozen=True)
class BelowCloser:
    """The bound with this number is beyond `value`, a column or the birth of a row: no such value comes any more."""

    bound: int
    value: str


Closer = KeyCloser | ValueCloser | BelowCloser


@dataclass(frozen=True)
class EarlyStep:
    """One more input, found by its columns `probe` that equal `values`; any of the closers closes it there.

    `alike` are further pairs of a column of the rows so far and one of the input that must be equal.
    """

    input: int
    probe: tuple[str, ...]
    values: tuple[str, ...]
    alike: tuple[tuple[str, str], ...]
    closers: tuple[Closer, ...]

    @cached_property
    def reads(self) -> frozenset[str]:
        """The columns, and births, of the rows so far that it looks at."""
        found = {*self.values, *(ours for ours, _ in self.alike)}
        for closer in self.closers:
            found.update((closer.value,) if isinstance(closer, BelowCloser) else closer.values)
        return frozenset(found)


@dataclass(frozen=True)
class EarlyChain:
    """When rows of `member` may go: the steps from its own columns, then those from columns of its partners.

    With `closes_all` they reach every other input, so that a row may go also when all its partners have come.
    """

    member: int
    own: tuple[EarlyStep, ...]
    further: tuple[EarlyStep, ...] = ()
    closes_all: bool = False
    refuses: int | None = None
    """The number of the keys that take that of a row which has no partners, if somebody asks."""

    @property
    def steps(self) -> tuple[EarlyStep, ...]:
        return (*self.own, *self.further)

    @cached_property
    def reads(self) -> frozenset[str]:
        """The columns and births that its steps look at."""
        return frozenset(name for step in self.steps for name in step.reads)

    @cached_property
    def carries(self) -> frozenset[str]:
        """Those of partners that further steps look at."""
        return frozenset(name for step in self.further for name in step.reads)


@dataclass(frozen=True)
class Keys:
    """Keys that are remembered, with the columns of `schema`.

    The join's further input number `source` brings some; they are remembered for `lifetime` from then on, and refused
    ones that the join adds as long as their rows would have lived. They are forgotten sooner where nobody asks for
    them any more: refused ones once each of `until` has a closer that closes them; closed ones, which have `holders`,
    when no stored row has them, of inputs with the columns to compare, and no key of `refused`, numbers of keys.
    """

    schema: Mapping[str, pl.DataType]
    source: int | None
    lifetime: int
    until: tuple[tuple[Closer, ...], ...] = ()
    chosen: bool = False
    """Whether rows that ask for refused keys would be let go by their age too, only later: then all are remembered
    where that keeps less than the rows that wait, and else a sample, from which the next decision follows."""
    holders: tuple[tuple[int, tuple[str, ...]], ...] | None = None
    refused: tuple[int, ...] = ()
    observed: bool = False
    """Whether they are only observed: a row with a negative sign takes back all that came before it."""


@dataclass(frozen=True)
class Bound:
    """A value that the join's further input number `source` moves up; what is below it does not come any more.

    Of one that is only `observed`, a row with a negative sign takes back all that came before it.
    """

    column: str
    dtype: pl.DataType
    source: int
    observed: bool = False

    @property
    def nothing(self) -> ClosedValues:
        """Before anything was said."""
        return ClosedValues.nothing({self.column: self.dtype}, below=True)


@dataclass(frozen=True)
class Choice:
    """Whether all refused keys are remembered or a sample, and what has been seen since that was decided.

    `kept` is how many keys were remembered, and `spared` how many rows did not have to wait because of them, both
    times microseconds.
    """

    all: bool = False
    begun: int | None = None
    kept: float = 0.0
    spared: float = 0.0

    @property
    def better(self) -> bool:
        """Whether remembering all keeps less; a sample makes both figures smaller by the same factor."""
        return self.spared > self.kept * (1.0 if self.all else 1.25)


@dataclass(frozen=True, eq=False)
class EarlyState(Composite):
    """Keys and bounds; for each chain, then each of the keys, how much has come since they were looked through."""

    keys: tuple[LifetimeRuns, ...]
    bounds: tuple[ClosedValues, ...]
    since: tuple[int, ...]
    choices: tuple[Choice, ...]
    """By number of the keys; a restored state decides anew."""

    @property
    def _parts(self) -> dict[str, State]:
        parts: dict[str, State] = {f"keys.{number}": each for number, each in enumerate(self.keys)}
        return parts | {f"bound.{number}": each for number, each in enumerate(self.bounds)}

    def restored(self, chunks: Mapping[str, pl.DataFrame]) -> EarlyState:
        """The state like this empty one whose `chunks()` these are."""
        return EarlyState(
            tuple(e.restored(of_part(chunks, f"keys.{number}")) for number, e in enumerate(self.keys)),
            tuple(e.restored(of_part(chunks, f"bound.{number}")) for number, e in enumerate(self.bounds)),
            self.since,
            self.choices,
        )


@dataclass(frozen=True)
class EarlyPurge:
    """Everything that a join has to know to drop rows before they die.

    Chains stand children first, so that the next one knows what one has refused. `eager` looks at all stored rows in
    every step, for tests and experiments.
    """

    chains: tuple[EarlyChain, ...]
    keys: tuple[Keys, ...]
    bounds: tuple[Bound, ...]
    eager: bool = False

    @cached_property
    def members(self) -> frozenset[int]:
        """The inputs whose rows may go."""
        return frozenset(chain.member for chain in self.chains)

    @cached_property
    def sources(self) -> int:
        """How many further inputs bring keys and bounds."""
        return sum(each.source is not None for each in self.keys) + len(self.bounds)

    def probed(self, member: int) -> Iterator[tuple[str, ...]]:
        """The sets of columns by which rows of an input are looked up, with repeats."""
        yield from (step.probe for chain in self.chains for step in chain.steps if step.input == member)
        yield from (step.values for chain in self.chains for step in chain.own if chain.member == member)
        yield from (
            columns for keys in self.keys for holder, columns in keys.holders or () if holder == member
        )

    def initial(self) -> EarlyState:
        return EarlyState(
            tuple(LifetimeRuns(Layout(each.schema, (tuple(each.schema),))) for each in self.keys),
            tuple(each.nothing for each in self.bounds),
            (0,) * (len(self.chains) + len(self.keys)),
            (Choice(),) * len(self.keys),
        )
