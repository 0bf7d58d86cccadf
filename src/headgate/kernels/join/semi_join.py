"""SemiJoin: EXISTS. A left row counts, as often as it is there, while the right side has a match for it.

```
left            [=================)
right match          [====)
                        [======)
without endings      [====)          announced with its death
                          [====)     said at the death of the first match
with endings         [============)  announced up to the death of the left row
                               [--)  ended when the last match is gone
```

Over inputs without endings the output has none either: a match stays as long as it was announced, and
DISTINCT over the matches hands over from one to the next.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.kernels.distinct.distinct import Form
from headgate.kernels.join.existence import Existence


@dataclass(frozen=True, eq=False)
class SemiJoin(Existence):
    """Left rows that have a match."""

    @property
    def negated(self) -> bool:
        return False

    @property
    def sure_form(self) -> Form:
        return "star"
