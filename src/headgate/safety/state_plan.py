"""StatePlan: how operators keep what the gate's verdict promises; lowering makes kernels of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.plan.nodes import Aggregate, Join, Node
from headgate.safety.reasons.early_purge import JoinEarlyPurge
from headgate.safety.reasons.existence_closing import ExistencePurge
from headgate.safety.reasons.finite_memory import FiniteMemoryPlan
from headgate.safety.reasons.group_closing import GroupClosing
from headgate.safety.reasons.purge_analysis import JoinPurge
from headgate.safety.reasons.time.closing import ClockClosing
from headgate.safety.reasons.time.retention import Retention


@dataclass(frozen=True)
class StatePlan:
    """How operators keep what the verdict promises: purges of joins, closings of groups, synopses of values."""

    joins: dict[Join, JoinPurge] = field(default_factory=dict)
    early: dict[Join, JoinEarlyPurge] = field(default_factory=dict)
    """Joins of windows that drop rows before they die."""
    retained: dict[Node, Mapping[int, Retention]] = field(default_factory=dict)
    """Inputs of joins that time lets go, by their number."""
    existence: dict[Node, ExistencePurge] = field(default_factory=dict)
    groups: dict[Node, GroupClosing] = field(default_factory=dict)
    clocks: dict[Node, ClockClosing] = field(default_factory=dict)
    """Groups and values of DISTINCT that time closes."""
    counted: dict[Node, dict[str, GroupClosing]] = field(default_factory=dict)
    """By aggregate and argument: what closes the values that COUNT(DISTINCT argument) has counted."""
    settled: dict[Node, tuple[Aggregate, GroupClosing]] = field(default_factory=dict)
    """By aggregate: the one below whose groups become final, and what closes them."""
    values: dict[Join, FiniteMemoryPlan] = field(default_factory=dict)
    checks: set[str] = field(default_factory=set)
    """Streams whose CHECKs are relied on."""
