"""JoinGraph: who is joined with whom, and whose promises let whose rows be dropped.

The punctuation graph of a join (Punctuation document, section 4) as it is shown to people: an arrow from s to c
means that rows of s can be told that c brings no more partners.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from headgate.plan.nodes import Emit, Join
from headgate.plan.patterns import Edges, Pattern, label
from headgate.safety.lineage import shown_name
from headgate.safety.reasons.purge_analysis import PurgeAnalysis


@dataclass(frozen=True)
class Arrow:
    """Rows of `source` wait until `target` is closed; `by` is the promise that closes it, None if nothing does."""

    source: str
    target: str
    by: str | None
    at: tuple[str, ...] = ()
    """The columns of `target` that have to be closed, as far as they equal columns of `source`."""
    relied: bool = True
    """Whether the plan drops rows by this promise; one that is of no use alone is shown too."""

    @property
    def said(self) -> str:
        """The promise, or what nothing closes."""
        return self.by or f"nothing closes {', '.join(self.at) or self.target}"


@dataclass(frozen=True)
class JoinGraph:
    """The inputs of one join, those whose rows leave by themselves, the equalities and the arrows."""

    inputs: tuple[str, ...]
    windowed: frozenset[str]
    equalities: tuple[tuple[str, str, str], ...]
    """Two inputs, and what is equal."""
    arrows: tuple[Arrow, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "inputs": list(self.inputs),
            "windowed": [name for name in self.inputs if name in self.windowed],
            "equalities": [{"between": [a, b], "equal": what} for a, b, what in self.equalities],
            "arrows": [{"from": each.source, "to": each.target, "by": each.by} for each in self.arrows],
        }

    @property
    def relied(self) -> bool:
        """Whether rows are dropped by a promise."""
        return any(each.by is not None and each.relied for each in self.arrows)

    def lines(self) -> list[str]:
        """The graph for a terminal: what is joined, then an arrow a line."""
        found = [f"{a} ── {what} ── {b}" for a, b, what in self.equalities]
        if not found:
            found = [f"{' × '.join(self.inputs)}, nothing is equal"]
        width = max((len(f"{each.source}{each.target}") for each in self.arrows), default=0)
        for each in self.arrows:
            pad = " " * (width - len(f"{each.source}{each.target}"))
            said = each.said if each.by else f"open: {each.said}"
            found.append(f"{each.source} {'──▶' if each.by else '╌╌▷'} {each.target}{pad}  {said}")
        return found


def join_graphs(plan: Emit) -> tuple[JoinGraph, ...]:
    """The graph of every join of several inputs in a plan."""
    edges = label(plan)
    joins = [node for node in plan.walk() if isinstance(node, Join) and len(node.members) > 1]
    return tuple(_graph(join, edges) for join in joins)


def _graph(join: Join, edges: Edges) -> JoinGraph:
    names = [shown_name(member, number) for number, member in enumerate(join.members)]
    owner = {name: number for number, member in enumerate(join.members) for name in member.names}
    windowed = {
        names[number]
        for number, member in enumerate(join.members)
        if max(edges[member].pattern, edges[member].expiry) != Pattern.MON
    }
    equalities = [
        (owner[a], owner[b], f"{a} = {b}")
        for group in join.equalities
        for a, b in pairwise(group)
        if owner[a] != owner[b]
    ]
    analysis = PurgeAnalysis(join, edges)
    partners = {column: group for group in join.equalities for column in group}
    closed: dict[tuple[int, int], tuple[str, bool]] = {}
    for closing in analysis.result.closings:
        for column in closing.columns:
            for other in partners.get(column, ()):
                if owner[other] != closing.member:
                    closed.setdefault((owner[other], closing.member), (str(closing.promise), True))
    for scheme, (promise, _) in analysis.promises.items():
        # A promise that no chain relies on closes its input all the same, for whoever has all values that it names.
        target = int(scheme.stream)
        having = [{owner[other] for other in partners[column]} for column in scheme.attributes]
        for source in set.intersection(*having) - {target} if having else ():
            closed.setdefault((source, target), (str(promise), False))
    joined = {pair for a, b, _ in equalities for pair in ((a, b), (b, a))} | set(closed)
    return JoinGraph(
        tuple(names),
        frozenset(windowed),
        tuple((names[a], names[b], what) for a, b, what in equalities),
        tuple(
            _arrow(names[a], names[b], closed.get((a, b)), _equal_columns(join, owner, a, b))
            for a, b in sorted(joined)
            if names[a] not in windowed or (a, b) in closed
        ),
    )


def _arrow(source: str, target: str, closed: tuple[str, bool] | None, at: tuple[str, ...]) -> Arrow:
    by, relied = closed or (None, False)
    return Arrow(source, target, by, at, relied)


def _equal_columns(join: Join, owner: dict[str, int], source: int, target: int) -> tuple[str, ...]:
    """The columns of one input that equal columns of another."""
    return tuple(
        column
        for group in join.equalities
        if any(owner[each] == source for each in group)
        for column in group
        if owner[column] == target
    )
