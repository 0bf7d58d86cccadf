"""Leaves out occurrences of a stream that others cover, where duplicates do not matter.

Before: `Distinct(a; Join(s AS x, s AS y)) WHERE x.a < 10 AND y.a < 20 AND …`, every row of x serves as one of y too
After:  `Distinct(a; s AS x)`

Memory document, section 8.1: with duplicates removed, an occurrence adds nothing if another one contributes all that
it could. Conditions must all be comparisons of columns: of others it is not known what they say.
"""

from __future__ import annotations

from collections import Counter

from headgate.model.scalar import Scalar, conjunction
from headgate.plan.nodes import Distinct, Filter, Join, Node, Output, Project, StreamScan
from headgate.plan.normalize import normalize
from headgate.safety.block import Block, flatten
from headgate.safety.reasons.memory_query import NotAComparisonError, translate
from headgate.safety.theory.memory.selfjoin import coverings

_MOST_OCCURRENCES = 5
"""Of one stream; with more there are too many ways in which they could cover each other."""


def drop_covered(node: Node) -> Node:
    """The plan without covered occurrences under DISTINCT."""
    node = node.with_inputs([drop_covered(each) for each in node.inputs])
    if not isinstance(node, Distinct) or not any(isinstance(each, Join) for each in node.walk()):
        return node
    block = flatten(node.input, windows=False, distinct=True)
    if block is None:
        return node
    most = max(Counter(scan.stream.name for scan in block.scans).values())
    if most == 1 or most > _MOST_OCCURRENCES:
        return node
    smaller = block
    while (images := _covering(smaller)) is not None:
        smaller = _replaced(smaller, images)
    return node if smaller is block else Distinct(_plan(smaller, node))


def _covering(block: Block) -> dict[str, str] | None:
    """Which occurrence takes the place of which; None if none can."""
    outputs = tuple(block.outputs.values())
    try:
        translated = translate(block, outputs, checks=False, exact=True)
    except NotAComparisonError:
        return None
    query = translated.query.projecting(translated.projection(outputs), distinct=True)
    found = coverings(query)
    return None if found is None else dict(found)


def _replaced(block: Block, images: dict[str, str]) -> Block:
    """The block over the occurrences that are hit, with all conditions moved there."""
    hit = set(images.values())
    names = {
        f"{scan.name}.{column.name}": f"{images[scan.name]}.{column.name}"
        for scan in block.scans
        for column in scan.stream.columns
    }
    unique: dict[object, Scalar] = {}
    for predicate in block.predicates:
        moved = predicate.rename(names)
        unique.setdefault(moved.expression, moved)
    return Block(
        tuple(scan for scan in block.scans if scan.name in hit),
        tuple(unique.values()),
        {name: output.rename(names) for name, output in block.outputs.items()},
    )


def _plan(block: Block, like: Distinct) -> Node:
    """A block as a plan again, with the columns of what it stands for."""
    scans: tuple[StreamScan, ...] = block.scans
    below: Node = scans[0] if len(scans) == 1 else Join(scans)
    if block.predicates:
        below = Filter(below, conjunction(block.predicates))
    outputs = tuple(Output(column.name, block.outputs[column.name]) for column in like.schema)
    return normalize(Project(below, outputs))
