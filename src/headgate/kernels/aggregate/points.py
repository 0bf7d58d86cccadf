"""Points: the (group, instant) pairs of a clock step at which something happens, by group and in time order.

```
group 0   p0 ──── p1 ─ p2 ────────      every result is a column over the points:
group 1   ── p3 ───── p4 ──── p5 ─      the value from the point until the group's next one
```
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.kernels.aggregate.sorted_pairs import seek

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Points:
    """Pairs sorted by group and instant, none twice; those of group g start at `first[g]`."""

    group: Ints
    at: Ints
    first: Ints

    @property
    def size(self) -> int:
        return self.at.size

    @staticmethod
    def of(group: Ints, at: Ints, groups: int) -> tuple[Points, Ints]:
        """The points of some events in `groups` groups, and the point of each event."""
        key = pair_key(group, at)
        order = np.argsort(key)
        ordered = key[order]
        new = np.ones(order.size, dtype=np.bool_)
        new[1:] = ordered[1:] != ordered[:-1]
        point = np.empty(order.size, dtype=np.int64)
        point[order] = np.cumsum(new) - 1
        chosen = order[new]
        owners = group[chosen]
        return Points(owners, at[chosen], np.searchsorted(owners, np.arange(groups + 1))), point

    def seek(self, group: Ints, at: Ints) -> Ints:
        """For each pair, the first point of the group at or after the instant, or the end of its points."""
        return seek(self.group, self.at, group, at)

    def running(self, changes: Ints, start: Ints) -> Ints:
        """Sums of the changes at the points on top of what each group starts with."""
        if not self.size:
            return changes
        total = np.cumsum(changes)
        # Groups without points have no part in this; `first` may then point past the end.
        head = np.minimum(self.first[:-1], self.size - 1)
        offset = start - (total[head] - changes[head])
        return np.asarray(total + offset[self.group])


def pair_key(major: Ints, minor: Ints) -> Ints:
    """One integer per pair, in the order of the pairs, comparable within one call; `major` is from 0 up."""
    if not minor.size:
        return minor
    least = int(minor.min())
    span = int(minor.max()) - least + 1
    if (int(major.max()) + 1) * span >= 2**63:
        minor, least = dense(minor), 0
        span = int(minor.max()) + 1
    if (int(major.max()) + 1) * span >= 2**63:
        major = dense(major)
    return np.asarray(major * span + (minor - least))


def dense(numbers: Ints) -> Ints:
    """The rank of each number among the different ones, from 0 up."""
    order = np.argsort(numbers)
    ordered = numbers[order]
    rank = np.empty(numbers.size, dtype=np.int64)
    rank[order] = np.cumsum(np.concatenate([[False], ordered[1:] != ordered[:-1]]))
    return rank
