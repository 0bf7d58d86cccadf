"""Scan pushdown: which columns of a stream a stage reads, and which rows it would drop at once.

```
a ─ filter x > 3 ─ project y ─ window …      of a only x, y and its time are read, and only rows with x > 3
```
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from headgate.kernels.filter import Filter
from headgate.kernels.project import Project
from headgate.model.scalar import Scalar
from headgate.physical.graph import KernelStep, SourceStep, Step
from headgate.plan.catalog import StreamDef
from headgate.safety.promise import Promise


@dataclass(frozen=True)
class ScanPushdown:
    """The steps with narrower sources, and by relation the columns that are read of it, under their own names."""

    steps: tuple[Step, ...]
    columns: Mapping[str, frozenset[str]]


def scan_pushdown(steps: Sequence[Step], exports: Collection[int]) -> ScanPushdown:
    """The steps of a stage with sources that bring only columns that are read."""
    found: list[Step] = []
    columns: dict[str, frozenset[str]] = {}
    for number, step in enumerate(steps):
        if not isinstance(step, SourceStep) or step.is_table:
            found.append(step)
            continue
        wanted = _read(steps, number, exports)
        pairs = tuple((mine, full) for mine, full in step.columns if wanted is None or full in wanted)
        schema = {full: step.schema[full] for _, full in pairs}
        found.append(replace(step, columns=pairs, schema=schema))
        columns[step.relation] = columns.get(step.relation, frozenset()) | {mine for mine, _ in pairs}
    return ScanPushdown(tuple(found), columns)


def _read(steps: Sequence[Step], at: int, exports: Collection[int]) -> frozenset[str] | None:
    """The columns of a step's batches that are read; None if all of them are."""
    if at in exports:
        return None
    found: frozenset[str] = frozenset()
    for number, step in enumerate(steps):
        if not isinstance(step, KernelStep) or at not in step.inputs:
            continue
        match step.kernel:
            case Project(outputs=outputs):
                found |= {name for _, scalar in outputs for name in scalar.columns}
            case Filter(predicate=predicate):
                beyond = _read(steps, number, exports)
                if beyond is None:
                    return None
                found |= beyond | predicate.columns
            case _:
                return None
    return found


def kept_columns(stream: StreamDef, read: Collection[str], promises: Sequence[Promise]) -> StreamDef:
    """The stream with only its time, the columns that are read, and those that promises are about."""
    mine = [each for each in promises if each.stream == stream.name]
    promised = {name for each in mine for name in each.columns}
    promised |= {name for each in mine if each.when is not None for name in each.when.columns}
    kept = {stream.time, *read, *promised}
    return replace(stream, columns=tuple(each for each in stream.columns if each.name in kept))


def first_filter(steps: Sequence[Step], relation: str) -> Scalar | None:
    """The predicate, over a relation's own columns, that all its rows have to pass before anything else."""
    sources = [
        (number, step)
        for number, step in enumerate(steps)
        if isinstance(step, SourceStep) and step.relation == relation
    ]
    if len(sources) != 1:
        return None
    [(at, source)] = sources
    readers = [step for step in steps if isinstance(step, KernelStep) and at in step.inputs]
    match readers:
        case [KernelStep(kernel=Filter(predicate=predicate))]:
            return predicate.rename({full: mine for mine, full in source.columns})
    return None
