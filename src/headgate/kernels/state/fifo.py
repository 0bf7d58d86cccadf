"""Fifo: rows that die in the order of their birth (WKS), dropped from the front run by run.

```
oldest [ dead ][ dead ][ dead | alive ][ alive ][ alive ][ al ][ a ] newest
        drop    drop    mask until half of it is dead
```

A run never grows beyond a share of the whole, so that the front falls away in pieces that were not just copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from headgate.kernels.state.runs import Runs

# The share of all rows that one run may hold, and the height below which runs are merged anyway.
_SHARE = 8
_SMALL = 1024


@dataclass(frozen=True, eq=False)
class Fifo(Runs):
    """Runs in order of birth and of death."""

    def expire(self, upto: int) -> Self:
        # Only the front can be dead.
        if not self.runs or self.runs[0].first_death > upto:
            return self
        return super().expire(upto)

    def _largest_run(self) -> int | None:
        return max(_SMALL, self.rows // _SHARE)
