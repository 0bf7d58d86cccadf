"""Fifo: rows that die in the order of their birth (WKS), dropped from the front run by run.

```
oldest [ dead ][ dead | alive ][ alive ][ alive ][ al ][ a ] newest
        dropped  masked until half of it is dead
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from headgate.kernels.state.runs import Runs


@dataclass(frozen=True, eq=False)
class Fifo(Runs):
    """Runs in order of birth and of death."""

    def expire(self, upto: int) -> Self:
        # While nothing at the front is dead, nothing is.
        if not self.runs or self.runs[0].deaths.first > upto:
            return self
        return super().expire(upto)
