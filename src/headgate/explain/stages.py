"""Stages for a reader: how many shards each has, and by which columns rows find theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.explain.describe import describe, visible
from headgate.optimize.optimize import OptimizedPlan
from headgate.plan.nodes import Node, StreamScan, TableScan

if TYPE_CHECKING:
    from headgate.physical.stages import StagedPlan, StagePlan


@dataclass(frozen=True)
class InputDescription:
    """What a stage reads: its name, its columns on each axis of the shards, and whether it comes added up."""

    name: str
    columns: tuple[tuple[str, ...], ...]
    condensed: bool

    def show(self, shares: Sequence[int]) -> str:
        axes = [
            ", ".join(names) if names else "all"
            for names, share in zip(self.columns, shares, strict=True)
            if share > 1
        ]
        placed = f" by {' × '.join(axes)}" if axes else ""
        return visible(f"{self.name}{placed}{' (added up before)' if self.condensed else ''}")


@dataclass(frozen=True)
class StageDescription:
    """A stage: the lengths of the axes of its shards, and what it reads."""

    shares: tuple[int, ...]
    inputs: tuple[InputDescription, ...]

    def as_dict(self) -> dict[str, Any]:
        """The stage of `explain --shards N --format json`."""
        return {
            "shares": list(self.shares),
            "inputs": [
                {
                    "input": each.name,
                    "by": [list(names) for names in each.columns],
                    "condensed": each.condensed,
                }
                for each in self.inputs
            ],
        }

    def show(self) -> str:
        axes = [str(share) for share in self.shares if share > 1] or ["1"]
        shards = " × ".join(axes)
        noun = "shard" if shards == "1" else "shards"
        return f"{shards} {noun}: {'; '.join(each.show(self.shares) for each in self.inputs)}"


def describe_stages(staged: StagedPlan, optimized: OptimizedPlan) -> tuple[StageDescription, ...]:
    """The stages of a plan, described."""
    return tuple(_stage(stage, staged, optimized) for stage in staged.stages)


def _stage(stage: StagePlan, staged: StagedPlan, optimized: OptimizedPlan) -> StageDescription:
    inputs = [
        InputDescription(
            _name(leaf, optimized), _short(leaf, stage.routes.columns[number]), leaf in staged.condensed
        )
        for number, leaf in enumerate(stage.leaves)
        if not isinstance(leaf, TableScan)
    ]
    return StageDescription(stage.routes.shares, tuple(inputs))


def _name(leaf: Node, optimized: OptimizedPlan) -> str:
    return leaf.name if isinstance(leaf, StreamScan) else f"rows of {describe(leaf, optimized).op}"


def _short(leaf: Node, columns: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    prefix = f"{leaf.name}." if isinstance(leaf, StreamScan) else ""
    return tuple(tuple(name.removeprefix(prefix) for name in axis) for axis in columns)
