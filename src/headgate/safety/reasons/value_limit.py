"""Value limit: how many different rows an edge can have in some columns, whatever comes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.plan.nodes import Node, StreamScan, TableScan
from headgate.safety.assumption import FEW
from headgate.safety.block import flatten
from headgate.safety.reasons.column_values import column_values
from headgate.safety.reasons.memory_query import translate
from headgate.safety.theory.memory.buckets import answer_bound


@dataclass(frozen=True)
class ValueLimit:
    """At most `count` different rows for each row of the `tables`, and the streams whose CHECKs say so."""

    count: int
    tables: frozenset[TableScan] = frozenset()
    checks: frozenset[str] = frozenset()

    @property
    def few(self) -> bool:
        return self.count <= FEW

    def said(self, things: str) -> str:
        """How many there are, in words."""
        if not self.tables:
            return f"there are at most {self.count:,} {things}"
        names = " and ".join(sorted(each.name for each in self.tables))
        if self.count == 1 and len(self.tables) == 1:
            return f"there are no more {things} than {names} has rows"
        return f"there are at most {self.count:,} {things} for each row of {names}"


def value_limit(node: Node, columns: tuple[str, ...]) -> ValueLimit | None:
    """How many different rows an edge can have in some columns; None if there is no limit.

    Windows do not matter: what conditions, types and tables say holds for every row.
    """
    scans = [each for each in node.walk() if isinstance(each, StreamScan)]
    believed = frozenset(each.stream.name for each in scans if each.stream.checks)
    for checks in (frozenset[str](), believed) if believed else (believed,):
        found = list(_limits(node, columns, checks))
        if found:
            return min(found, key=lambda each: (len(each.tables), each.count))
    return None


def _limits(node: Node, columns: tuple[str, ...], checks: frozenset[str]) -> Iterator[ValueLimit]:
    """The limits that follow if the CHECKs of some streams are believed."""
    known = column_values(node, checks=bool(checks))
    endless = tuple(name for name in columns if not known.column(name).finite)
    compared = _by_comparisons(node, endless, checks=bool(checks))
    if compared is not None:
        rest = known.count(name for name in columns if name not in endless)
        assert rest is not None
        yield ValueLimit(compared * rest[0], rest[1], checks)
    whole = _by_comparisons(node, columns, checks=bool(checks)) if endless != columns else None
    if whole is not None:
        yield ValueLimit(whole, frozenset(), checks)


def _by_comparisons(node: Node, columns: tuple[str, ...], *, checks: bool) -> int | None:
    """The same, by what follows from all comparisons of columns together; None if there is no limit."""
    block = flatten(node, windows=True, distinct=True)
    if block is None:
        return None if columns else 1
    outputs = tuple(block.outputs[name] for name in columns)
    translated = translate(block, outputs, checks=checks, lenient=True)
    projection = translated.projection(outputs)
    bound = answer_bound(translated.query.projecting(projection, distinct=True))
    if bound is None:
        return None
    free = sum(attribute not in translated.compared for attribute in projection)
    return bound << free
