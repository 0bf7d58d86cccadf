"""Assumptions: what must stay true for a state to stay bounded, where a proof cannot say it.

A window bounds a state whatever comes. A promise bounds it only as long as the data goes on: closings have to come,
an order has to rise, a partner has to arrive. Each such sentence is said, with what happens if it is not so, and with
the metric in which that shows while the query runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from headgate.model.adherence import WithinTime
from headgate.safety.promise import Promise, PromiseKind

STATE_ROWS = "state_rows"
"""Of the operator, in `metrics.json` under `operators`."""
FEW = 1_000_000
"""Up to so many values a state is called bounded by them; beyond, that so many do not come is an assumption."""
WAITING_ROWS = "waiting_rows"
"""Rows that have come and that the clock has not passed yet."""

VIOLATIONS = "violations"
"""How often rows strayed further than monitoring had found, in `metrics.json` by constraint under `constraints`."""


@dataclass(frozen=True)
class Assumption:
    """A sentence that must stay true, what happens otherwise, and the metric that shows it."""

    sentence: str
    otherwise: str
    metric: str

    def as_dict(self) -> dict[str, str]:
        return {"sentence": self.sentence, "otherwise": self.otherwise, "metric": self.metric}


def closes_values(name: str, promise: Promise) -> tuple[Assumption, ...]:
    """That what a promise of `name` says goes on being said, so that values do not stay open.

    Where k is a time, the clock says it; it goes on while rows of any stream of the query come, and while none comes
    nothing grows.
    """
    columns = ", ".join(promise.columns)
    match promise.kind:
        case PromiseKind.KEY:
            sentence = f"for every value of {columns} that others bring, {name} brings its row"
            otherwise = f"what waits for a row of {name} that never comes stays"
        case PromiseKind.REFERENCE if isinstance(promise.within, WithinTime):
            return ()
        case PromiseKind.REFERENCE:
            sentence = f"rows of {name} keep coming"
            otherwise = f"what counts rows of {name} until a partner is overdue stays"
        case PromiseKind.ORDER:
            sentence = f"{columns} of {name} goes on rising"
            otherwise = f"while {name} stays at one value or brings no rows, nothing is dropped"
        case PromiseKind.CLUSTER if isinstance(promise.within, WithinTime):
            sentence = f"no value of {columns} keeps coming on {name} for ever"
            otherwise = "what waits for a value that keeps coming stays"
        case PromiseKind.CLUSTER:
            sentence = f"{columns} of {name} goes on to other values"
            otherwise = f"while {name} stays at one value or brings no rows, nothing is dropped"
        case PromiseKind.PUNCTUATION:
            sentence = f"{name} closes every value of {columns} sooner or later"
            otherwise = "what waits for a value that is never closed stays"
        case PromiseKind.CHECK:
            raise AssertionError("a CHECK closes no values")
        case _:
            assert_never(promise.kind)
    return (Assumption(sentence, otherwise, STATE_ROWS),)


def comes_in_time(name: str, closing: str, lifespan: int) -> Assumption:
    """That no row comes for a value whose closing has been forgotten."""
    return Assumption(
        f"a row of {name} comes before {closing} has closed {lifespan:,} other values since it closed the row's own",
        "a row that comes later than that stays for good",
        STATE_ROWS,
    )


def kept_as_observed(constraint: str) -> Assumption:
    """That rows go on as they have been seen to: what is dropped by an observation may have been dropped too soon."""
    return Assumption(
        f"rows go on to keep {constraint} as closely as of late",
        "results with rows that were dropped too soon are missing",
        VIOLATIONS,
    )


def few_values_come(columns: tuple[str, ...], most: int) -> Assumption:
    """That of very many possible values only some come."""
    names = ", ".join(columns)
    return Assumption(
        f"no more than {FEW:,} different values of {names} come",
        f"a row stays for each of up to {most:,} values",
        STATE_ROWS,
    )


def table_stays_small(name: str) -> Assumption:
    """That the changes of a table do not only add rows."""
    return Assumption(
        f"{name} does not grow without end",
        f"all that is in {name} stays, however much its changes have added",
        STATE_ROWS,
    )


def all_streams_go_on(names: tuple[str, ...]) -> Assumption:
    """That none of several streams falls silent: the clock is that of the slowest."""
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    return Assumption(
        f"rows of {listed} keep coming",
        "while one of them is silent, rows of the others wait for it",
        WAITING_ROWS,
    )
