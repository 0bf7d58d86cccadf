"""Shard reports: what the shards of a query say of themselves, added up to the metrics of the query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headgate.runtime.lateness import Arrivals
from headgate.runtime.stage import Stage


def summed(
    stage: Stage, reports: Sequence[Mapping[str, Any]], before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The metrics of all shards as one, in the form of the local engine's."""
    before = before or {}
    total: dict[str, Any] = {
        "query": stage.graph.query,
        "output": stage.graph.output,
        "engine": "spark",
        "allowed_unbounded": stage.graph.allowed_unbounded,
        "shards": stage.most_shards,
        "stages": len(stage.chain),
    }
    for name in (
        "rows_in",
        "rows_out",
        "state_rows",
        "state_bytes",
        "late_rows",
        "future_rows",
        "waiting_rows",
    ):
        total[name] = sum(each[name] for each in reports)
    total["streams"] = Arrivals.together(each["streams"] for each in reports)
    total["steps"] = max((each["steps"] for each in reports), default=0)
    total["clock"] = min((each["clock"] for each in reports if each["clock"] is not None), default=None)
    # Shards need not have theirs at one moment, so this is the most that there can have been.
    for name in ("peak_state_rows", "peak_state_bytes"):
        total[name] = max(before.get(name, 0), sum(each[name] for each in reports))
    seconds: dict[str, float] = {}
    for each in reports:
        for operator, spent in each["seconds"].items():
            seconds[operator] = round(seconds.get(operator, 0.0) + spent, 6)
    total["seconds"] = seconds
    total["operators"] = _operators(reports)
    total["constraints"] = constraints_of(reports)
    total["cache_hits"] = before.get("cache_hits", 0) + sum(each["batch"]["cached"] for each in reports)
    total["cache_misses"] = before.get("cache_misses", 0) + sum(
        not each["batch"]["cached"] for each in reports
    )
    total["written_bytes"] = before.get("written_bytes", 0) + sum(
        each["batch"]["written_bytes"] for each in reports
    )
    stages: dict[str, float] = dict(before.get("stage_seconds", {}))
    for each in reports:
        for name, spent in each["batch"]["seconds"].items():
            stages[name] = round(stages.get(name, 0.0) + spent, 6)
    total["stage_seconds"] = stages
    return total


def constraints_of(reports: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What the monitors of all shards know: each finds a k for its own rows.

    The k of all is the greatest, if every shard uses one to which a row has come.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for each in reports:
        for name, known in each.get("constraints", {}).items():
            found.setdefault(name, []).append(known)
    return {name: _together(all_known) for name, all_known in found.items()}


def _together(shards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    busy = [each for each in shards if each["arrived"]] or shards[:1]
    used = [each["k"] for each in busy]
    return {
        **busy[0],
        "k": None if None in used else max(used),
        "detectable": max(each["detectable"] for each in busy),
        "changed": max((each["changed"] for each in busy if each["changed"] is not None), default=None),
        **{name: sum(each[name] for each in busy) for name in ("changes", "violations", "arrived")},
    }


def _operators(reports: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """What each operator holds in all shards."""
    total: dict[str, dict[str, int]] = {}
    for each in reports:
        for name, sizes in each["operators"].items():
            mine = total.setdefault(name, dict.fromkeys(sizes, 0))
            for key, size in sizes.items():
                mine[key] += size
    return total
