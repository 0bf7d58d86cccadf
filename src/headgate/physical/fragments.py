"""Fragments: the steps of an operator graph that one stage runs, with sources for what other stages bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.kernels.aggregate.condense import Condense
from headgate.physical.emission import schema_of
from headgate.physical.graph import ExchangeStep, KernelStep, OperatorGraph, SourceStep, Step
from headgate.plan.nodes import Node


@dataclass(frozen=True)
class Fragment:
    """The steps of a stage, and those of them whose batches leave it, in the order of its roots."""

    steps: tuple[Step, ...]
    exports: tuple[int, ...]


def exchange_name(number: int) -> str:
    """What the sources of a stage call the rows that come from the stage before."""
    return f"exchange {number}"


def fragment(
    graph: OperatorGraph, roots: Sequence[Node], entering: Sequence[Node], *, first: bool
) -> Fragment | None:
    """The part of a graph between what enters and what leaves a stage.

    None if it reads a stream, or what closes values, outside the first stage: only that one has them.
    """
    received = {graph.places[node]: (number, node) for number, node in enumerate(entering)}
    tops = [graph.places.get(root, len(graph.steps) - 1) for root in roots]
    wanted: set[int] = set()
    pending = list(tops)
    while pending:
        at = pending.pop()
        if at in wanted:
            continue
        wanted.add(at)
        step = graph.steps[at]
        if at in received:
            continue
        if isinstance(step, KernelStep):
            pending += step.inputs
        if not first and (_is_stream(step) or _closes(step)):
            return None
    number_of = {at: number for number, at in enumerate(sorted(wanted))}
    steps: list[Step] = []
    for at in number_of:
        step = graph.steps[at]
        if at in received:
            steps.append(_exchanged(step, *received[at]))
        elif isinstance(step, KernelStep):
            inputs = tuple(number_of[each] for each in step.inputs)
            steps.append(KernelStep(step.operator, step.kernel, inputs))
        else:
            steps.append(step)
    return Fragment(tuple(steps), tuple(number_of[at] for at in tops))


def _exchanged(step: Step, number: int, node: Node) -> ExchangeStep:
    match step:
        case KernelStep(kernel=Condense() as kernel):
            schema = kernel.output_schema
        case _:
            schema = schema_of(node)
    name = exchange_name(number)
    return ExchangeStep(name, name, False, tuple((column, column) for column in schema), schema)


def _is_stream(step: Step) -> bool:
    return isinstance(step, SourceStep) and not step.is_table


def _closes(step: Step) -> bool:
    return isinstance(step, KernelStep) and step.operator == "punctuations"
