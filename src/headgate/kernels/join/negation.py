"""Negation: NOT EXISTS. A left row counts, as often as it is there, while the right side has no match for it.

```
left            [==================)
right match          [====)
output          [==================)     announced up to the death of the left row
                     [-------------)     ended when a match comes
                          [========)     said again when the last match is gone
```

Whether a match will come is not known before it does, so the output has endings whatever the inputs are
(Windows, section 2.2.2).
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.kernels.distinct.distinct import Form
from headgate.kernels.join.existence import Existence


@dataclass(frozen=True, eq=False)
class Negation(Existence):
    """Left rows that have no match."""

    @property
    def negated(self) -> bool:
        return True

    @property
    def sure_form(self) -> Form:
        return "extent"
