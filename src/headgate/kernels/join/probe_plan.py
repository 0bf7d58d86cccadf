"""ProbePlan: for new rows of each input, in which order and by which keys the other inputs are probed.

```
classes   S1.a = S2.a        S2.b = S3.b          order S1 S2 S3
new S1    probe S2 by a, then S3 by b
new S2    probe S1 by a, then S3 by b
new S3    probe S2 by b, then S1 by a              S1 comes first in the order but shares nothing with S3 yet
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

EqualityClass = tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class ProbeStep:
    """One more input: its key by number, and the columns of the inputs so far that must equal the key."""

    input: int
    key: int
    columns: tuple[str, ...]


@dataclass(frozen=True)
class ProbePlan:
    """Everything about a join that follows from its equalities and its order."""

    paths: tuple[tuple[ProbeStep, ...], ...]
    """By input with new rows: the probes of the others."""
    keys: tuple[tuple[tuple[str, ...], ...], ...]
    """By input: the sets of columns that it is probed by."""
    alike: tuple[tuple[tuple[str, str], ...], ...]
    """By input: pairs of its own columns that must be equal."""
    compared: tuple[tuple[str, ...], ...]
    """By input: the columns that take part in an equality, and so must not be NULL."""


def plan_probes(inputs: int, equalities: Sequence[EqualityClass], order: Sequence[int]) -> ProbePlan:
    """The plan of a join of so many inputs."""
    column = [
        {number: name for number, each in enumerate(equalities) for i, name in reversed(each) if i == input}
        for input in range(inputs)
    ]
    keys: list[list[tuple[str, ...]]] = [[] for _ in range(inputs)]
    paths = tuple(_path(origin, order, column, keys) for origin in range(inputs))
    members = [[name for each in equalities for i, name in each if i == input] for input in range(inputs)]
    return ProbePlan(
        paths=paths,
        keys=tuple(tuple(each) for each in keys),
        alike=tuple(_alike(input, equalities) for input in range(inputs)),
        compared=tuple(tuple(dict.fromkeys(each)) for each in members),
    )


def _path(
    origin: int, order: Sequence[int], column: Sequence[dict[int, str]], keys: list[list[tuple[str, ...]]]
) -> tuple[ProbeStep, ...]:
    """The probes for new rows of `origin`; notes in `keys` what each input is probed by."""
    bound = dict(column[origin])
    waiting = [input for input in order if input != origin]
    steps = []
    while waiting:
        # The first in the order that is connected; if none is, the first: a product cannot be avoided.
        input = next((each for each in waiting if bound.keys() & column[each].keys()), waiting[0])
        waiting.remove(input)
        shared = sorted(bound.keys() & column[input].keys())
        key = tuple(column[input][each] for each in shared)
        if key not in keys[input]:
            keys[input].append(key)
        steps.append(ProbeStep(input, keys[input].index(key), tuple(bound[each] for each in shared)))
        bound = {**column[input], **bound}
    return tuple(steps)


def _alike(input: int, equalities: Sequence[EqualityClass]) -> tuple[tuple[str, str], ...]:
    pairs = []
    for each in equalities:
        first, *others = [name for i, name in each if i == input] or [""]
        pairs += [(first, other) for other in others]
    return tuple(pairs)
