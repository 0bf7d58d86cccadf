"""MetricsRegistry: the newest metrics of every query of a run, for whoever wants to show them while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

Metrics = Mapping[str, Any]
"""What `metrics.json` holds."""


class MetricsRegistry:
    """Metrics by query; engines put them there from their own threads, readers take whole copies."""

    def __init__(self, on_change: Callable[[Metrics], None] = lambda metrics: None) -> None:
        self._on_change = on_change
        self._lock = Lock()
        self._metrics: dict[str, Metrics] = {}

    def put(self, metrics: Metrics) -> None:
        """Replaces the metrics of the query that they are of."""
        with self._lock:
            self._metrics[str(metrics["query"])] = dict(metrics)
        self._on_change(metrics)

    def all(self) -> list[Metrics]:
        """The metrics of all queries, in the order in which they first came."""
        with self._lock:
            return list(self._metrics.values())
