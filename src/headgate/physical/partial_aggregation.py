"""Partial aggregation: what enters an aggregate from another stage is added up before it is sent.

```
… → window ─────── exchange ───────→ aggregate                 all rows
… → window → condense ─ exchange ─→ merging aggregate          one for each group and lifetime
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from headgate.kernels.aggregate import Aggregate, PaneAggregate
from headgate.kernels.aggregate.condense import Condense, is_mergeable, merging
from headgate.kernels.kernel import Kernel
from headgate.physical.graph import KernelStep, OperatorGraph, Step
from headgate.plan.nodes import Node


@dataclass(frozen=True)
class Merger:
    """An aggregate, by number of its step, that alone reads another step and can read it condensed."""

    step: int
    aggregate: Aggregate
    reading_condensed: Kernel[Any]
    """The kernel in its place."""
    reads: int


def merger(graph: OperatorGraph, node: Node) -> Merger | None:
    """The aggregate that a node's rows can be condensed for."""
    at = graph.places[node]
    readers = [
        (number, step)
        for number, step in enumerate(graph.steps)
        if isinstance(step, KernelStep) and at in step.inputs
    ]
    match readers:
        case [(number, KernelStep(kernel=Aggregate() as kernel))] if is_mergeable(kernel):
            return Merger(number, kernel, merging(kernel), at)
        case [(number, KernelStep(kernel=PaneAggregate(kernel)))]:
            return Merger(number, kernel, PaneAggregate(merging(kernel)), at)
    return None


def condensed(graph: OperatorGraph, nodes: Sequence[Node]) -> OperatorGraph:
    """The graph with the rows of some nodes condensed for the aggregates that read them."""
    mergers = {node: found for node in nodes if (found := merger(graph, node)) is not None}
    by_step = {each.step: each for each in mergers.values()}
    by_source = {each.reads: each for each in mergers.values()}
    steps: list[Step] = []
    moved: dict[int, int] = {}
    condensing: dict[int, int] = {}
    for number, step in enumerate(graph.steps):
        if not isinstance(step, KernelStep):
            steps.append(step)
        elif number in by_step:
            found = by_step[number]
            steps.append(KernelStep(step.operator, found.reading_condensed, (condensing[found.reads],)))
        else:
            steps.append(replace(step, inputs=tuple(moved[at] for at in step.inputs)))
        moved[number] = len(steps) - 1
        if number in by_source:
            steps.append(KernelStep("condense", Condense(by_source[number].aggregate), (moved[number],)))
            condensing[number] = len(steps) - 1
    places = {node: moved[at] for node, at in graph.places.items()}
    places |= {node: condensing[each.reads] for node, each in mergers.items()}
    return replace(graph, steps=tuple(steps), places=places)
