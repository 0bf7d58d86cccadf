"""Differences: how far instants can be apart, given how far some of them are at most.

```
b − a ≤ 1 hour,  c − b ≤ 1 hour      so c − a ≤ 2 hours: the length of the shortest path
```
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

Name = str | tuple[str, ...]
"""A column, or what a name of a column cannot be."""

Bound = tuple[Name, Name, int]
"""(a, b, c): a is at most c microseconds after b."""


@dataclass(frozen=True)
class Differences:
    """For pairs of names the most that the first can be later than the second; closed, so no sum says more."""

    most: Mapping[tuple[Name, Name], int]

    def bound(self, later: Name, earlier: Name) -> int | None:
        """The most that one instant can be after another one; None if there is no limit."""
        return self.most.get((later, earlier))

    @property
    def bounds(self) -> Iterator[Bound]:
        """All of them, as bounds."""
        return ((a, b, most) for (a, b), most in self.most.items())

    def among(self, names: Collection[Name]) -> Differences:
        """All that is known of some names."""
        return Differences({(a, b): most for a, b, most in self.bounds if a in names and b in names})


def close(bounds: Iterable[Bound]) -> Differences:
    """All differences that follow from some (shortest paths, Floyd and Warshall).

    Bounds that contradict each other leave no row at all, and whatever is said of no row is true.
    """
    # From b to a leads an edge of length c: an instant a is at most c after b.
    reach: dict[Name, dict[Name, int]] = {}
    for later, earlier, most in bounds:
        known = reach.setdefault(earlier, {})
        known[later] = min(most, known.get(later, most))
    for middle, onward in reach.items():
        for ways in reach.values():
            if (first := ways.get(middle)) is not None:
                for end, length in onward.items():
                    ways[end] = min(first + length, ways.get(end, first + length))
    return Differences(
        {(end, start): most for start, ways in reach.items() for end, most in ways.items() if end != start}
    )
