"""Savings: for one query, a smallest set of constraints with the best verdict and the least state.

What a clause is worth is not computed but tried: the query runs over the samples with it and without. The search is
greedy. It begins with the strongest constraint for each set of columns, leaves out what is not missed, the strongest
last, then looks whether another one, in addition or in place of one, makes the state smaller. A set that changes the
answer is no choice, whatever it saves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from headgate.profile.constraint import Constraint
from headgate.profile.trial import Constraints, Judged, Run, Trials, in_order
from headgate.safety.verdict import Kind

NOTABLE = 0.05
"""A state that is larger or smaller by a smaller share is the same."""

MOST_RUNS = 60
LONGEST = 300.0
"""So many sets are run for a query, or for so many seconds; what has been found by then is told."""

MOST_OFFERED = 24
"""Of more constraints, those with the smallest k are tried, those in rows first."""

NONE: Constraints = frozenset()


@dataclass(frozen=True)
class Standing:
    """A query's verdict and the most rows that it kept; None if its run was given up."""

    verdict: Kind
    state_rows: int | None

    @property
    def admitted(self) -> bool:
        return self.verdict != "refused"


@dataclass(frozen=True)
class Saving:
    """What a query is without and with the constraints that help it, and what it would be without each."""

    query: str
    before: Standing
    after: Standing
    constraints: tuple[Constraint, ...]
    without: tuple[Standing, ...] = ()
    """By constraint: the query with all but this one."""
    refuted: tuple[Constraint, ...] = ()
    """Constraints with which the answer over the samples was another one."""


def find_saving(trials: Trials, offered: Sequence[Constraint], tried: Callable[[], None]) -> Saving:
    """The constraints, of those offered, that help a query most; `tried` is called after each run."""
    search = _Search(trials, tried)
    return search.find(_smallest(offered))


def _smallest(offered: Sequence[Constraint]) -> list[Constraint]:
    if len(offered) <= MOST_OFFERED:
        return list(offered)
    return sorted(offered, key=_size)[:MOST_OFFERED]


def _size(constraint: Constraint) -> tuple[bool, int]:
    return (False, 0) if constraint.k is None else (constraint.k.in_time, constraint.k.k)


@dataclass
class _Search:
    trials: Trials
    tried: Callable[[], None]
    runs: int = 0
    seconds: float = 0.0
    refuted: dict[Constraint, None] = field(default_factory=dict)

    def find(self, offered: list[Constraint]) -> Saving:
        before = self.standing(NONE)
        assert before is not None, "a query that was read means something"
        best = self._improved(self._reduced(self._strongest(offered)), offered)
        if best is not NONE and not self._is_worth(best, before):
            best = NONE
        ordered = in_order(best)
        after = self.standing(best)
        assert after is not None
        without = tuple(self.standing(best - {each}) or self._unmeasured(best - {each}) for each in ordered)
        return Saving(self.trials.name, before, after, tuple(ordered), without, tuple(in_order(self.refuted)))

    def standing(self, constraints: Constraints) -> Standing | None:
        """How the query stands with constraints.

        None if its declarations would not do, if its answer is another one, or if enough has been tried.
        """
        judged = self.trials.judge(constraints)
        if judged is None:
            return None
        plain = self.trials.runs.get(NONE)
        if constraints and plain is None:
            # What has answered too much without them would do so with them: the verdict alone is known.
            return Standing(judged.verdict, None)
        known = self._known(judged)
        if not known and constraints and self.is_over:
            return None
        run = known[0] if known else self._run(constraints)
        if run is None:
            return None if constraints else Standing(judged.verdict, None)
        if plain is not None and (run.answers, run.digest) != (plain.answers, plain.digest):
            return None
        return Standing(judged.verdict, run.state_rows)

    @property
    def is_over(self) -> bool:
        """Whether as much has been tried as is worth the time."""
        return self.runs >= MOST_RUNS or self.seconds >= LONGEST

    def _known(self, judged: Judged) -> list[Run | None]:
        """The run of a set that the query makes the same of."""
        found = ((self.trials.judge(known), run) for known, run in self.trials.runs.items())
        return [run for other, run in found if other is not None and other.operators == judged.operators][:1]

    def _run(self, constraints: Constraints) -> Run | None:
        begun = perf_counter()
        run = self.trials.run(constraints)
        self.runs, self.seconds = self.runs + 1, self.seconds + perf_counter() - begun
        self.tried()
        return run

    def _unmeasured(self, constraints: Constraints) -> Standing:
        """How the query stands as far as the gate alone can tell."""
        judged = self.trials.judge(constraints)
        assert judged is not None, "fewer declarations mean something too"
        return Standing(judged.verdict, None)

    def _strongest(self, offered: Iterable[Constraint]) -> Constraints:
        """The first constraint for each set of columns, without those that change the answer."""
        usable = list(offered)
        while True:
            chosen: dict[object, Constraint] = {}
            for each in in_order(usable):
                chosen.setdefault(each.slot, each)
            found = frozenset(chosen.values())
            if not found or self.standing(found) is not None:
                return found
            guilty = next(
                (each for each in in_order(found) if self.standing(frozenset((each,))) is None),
                in_order(found)[-1],
            )
            self.refuted[guilty] = None
            usable.remove(guilty)

    def _reduced(self, chosen: Constraints) -> Constraints:
        """Without the constraints that are not missed, the weakest tried first."""
        full = self.standing(chosen)
        left = reversed(in_order(chosen))
        while (each := next(left, None)) is not None:
            standing = self.standing(chosen - {each})
            if standing is not None and full is not None and not _is_worse(standing, full):
                chosen = chosen - {each}
                # One that was missed beside it may not be missed now.
                left = reversed(in_order(chosen))
        return chosen

    def _improved(self, chosen: Constraints, offered: Sequence[Constraint]) -> Constraints:
        """With constraints added or put in place of others, as long as that makes the query stand better."""
        better: Constraints | None = chosen
        while better is not None:
            chosen = better
            better = next((self._reduced(each) for each in self._better(chosen, offered)), None)
        return chosen

    def _better(self, chosen: Constraints, offered: Sequence[Constraint]) -> Iterator[Constraints]:
        """Sets with another constraint, beside the chosen ones or in place of one, with which it stands better."""
        now = self.standing(chosen)
        for new in in_order(offered):
            if new in chosen or new in self.refuted:
                continue
            rivals = frozenset(each for each in chosen if each.slot == new.slot)
            left = [chosen, chosen - rivals, *(chosen - {each} for each in in_order(chosen))]
            for each in dict.fromkeys(left):
                standing = self.standing(each | {new})
                if now is not None and standing is not None and _is_worse(now, standing):
                    yield each | {new}

    def _is_worth(self, constraints: Constraints, before: Standing) -> bool:
        after = self.standing(constraints)
        return after is not None and _is_worse(before, after)


def _is_worse(one: Standing, other: Standing) -> bool:
    """Whether one is refused where the other is not, or keeps notably more rows."""
    if one.admitted != other.admitted:
        return other.admitted
    if one.state_rows is None or other.state_rows is None:
        return False
    return one.state_rows > other.state_rows * (1 + NOTABLE)
