"""Blocks: a select-project-join part of a plan, flat: streams, predicates over their columns, and what it outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from sqlglot import exp

from headgate.model.scalar import Scalar
from headgate.plan.expressions import comparison
from headgate.plan.nodes import Distinct, Filter, Join, Node, Project, StreamScan, Window
from headgate.plan.normalize import split_conjunction

REMEMBERED = 256
"""For so many edges what was found is remembered: a plan is judged edge by edge, each with all that is below."""


@dataclass(frozen=True)
class Block:
    """All predicates and outputs are over columns of the scans, whose names differ."""

    scans: tuple[StreamScan, ...]
    predicates: tuple[Scalar, ...]
    outputs: Mapping[str, Scalar]

    def over_scans(self, scalar: Scalar) -> Scalar:
        """A scalar over the outputs as one over the scans."""
        if scalar.columns <= self._passed_on:
            return scalar
        return scalar.replace(lambda name: self.outputs[name].expression)

    def owners(self, scalar: Scalar) -> frozenset[str]:
        """The names of the scans that a scalar reads."""
        return frozenset(self._owner[name] for name in scalar.columns if name in self._owner)

    @cached_property
    def _passed_on(self) -> frozenset[str]:
        """The outputs that are columns of the scans under their own names."""
        return frozenset(
            name for name, of in self.outputs.items() if of.is_column and of.expression.name == name
        )

    @cached_property
    def _owner(self) -> dict[str, str]:
        """For each column of a scan the name of the scan."""
        return {name: scan.name for scan in self.scans for name in scan.names}


@lru_cache(maxsize=REMEMBERED)
def flatten(node: Node, *, windows: bool, distinct: bool) -> Block | None:
    """The block below an edge; None if something else than selections, projections and joins of streams is there.

    `windows`: whether windows may be there too; what the block says of a row then still holds. `distinct`: whether
    DISTINCT may, because only the set of results matters above.
    """
    match node:
        case StreamScan():
            outputs = {column.name: Scalar.column(column.name, column.type) for column in node.schema}
            return Block((node,), (), outputs)
        case Window() if windows or (node.window.kind == "UNBOUNDED" and not node.window.internal):
            return flatten(node.input, windows=windows, distinct=distinct)
        case Distinct() if distinct:
            return flatten(node.input, windows=windows, distinct=distinct)
        case Filter():
            below = flatten(node.input, windows=windows, distinct=distinct)
            if below is None:
                return None
            added = tuple(below.over_scans(part) for part in split_conjunction(node.predicate))
            return Block(below.scans, below.predicates + added, below.outputs)
        case Project():
            below = flatten(node.input, windows=windows, distinct=distinct)
            if below is None:
                return None
            outputs = {output.name: below.over_scans(output.scalar) for output in node.outputs}
            return Block(below.scans, below.predicates, outputs)
        case Join():
            return _joined(node, windows=windows, distinct=distinct)
    return None


def _joined(node: Join, *, windows: bool, distinct: bool) -> Block | None:
    scans: list[StreamScan] = []
    predicates: list[Scalar] = []
    outputs: dict[str, Scalar] = {}
    for member in node.members:
        below = flatten(member, windows=windows, distinct=distinct)
        if below is None:
            return None
        scans += below.scans
        predicates += below.predicates
        outputs |= below.outputs
    whole = Block(tuple(scans), (), outputs)
    for group in node.equalities:
        columns = [Scalar.column(name, node.type_of(name)) for name in group]
        predicates += [whole.over_scans(comparison(exp.EQ, columns[0], other)) for other in columns[1:]]
    predicates += [whole.over_scans(part) for part in node.residual]
    return Block(tuple(scans), tuple(predicates), outputs)
