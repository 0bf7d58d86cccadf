"""Outcome: what one engine did with one workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

WARM_UP = 2
"""So many batches at the start are not counted."""


@dataclass(frozen=True)
class Outcome:
    """Batches as (rows, seconds), the largest state, the number of results and sums over them."""

    name: str
    batches: Sequence[tuple[int, float]]
    state_bytes: int | None
    results: int
    sums: Mapping[str, int] = field(default_factory=dict)
    memory_bytes: int | None = None

    @property
    def steady(self) -> list[tuple[int, float]]:
        """The batches after the first few, those without rows left out."""
        full = [each for each in self.batches if each[0] > 1]
        return full[WARM_UP:] or full

    @property
    def rows_per_second(self) -> float:
        return sum(rows for rows, _ in self.steady) / sum(seconds for _, seconds in self.steady)

    def percentile(self, share: float) -> float:
        return float(np.quantile([seconds for _, seconds in self.steady], share))

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "rows_per_s": self.rows_per_second,
            "state_bytes": self.state_bytes,
            "memory_bytes": self.memory_bytes,
            "results": self.results,
            "sums": dict(self.sums),
            "p50_batch_s": self.percentile(0.5),
            "p95_batch_s": self.percentile(0.95),
        }

    def to_json(self) -> dict[str, Any]:
        """Everything, for another process."""
        return asdict(self)

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Outcome:
        return Outcome(**{**found, "batches": [(int(rows), float(s)) for rows, s in found["batches"]]})
