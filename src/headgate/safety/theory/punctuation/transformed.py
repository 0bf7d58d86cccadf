"""The transformed punctuation graph: streams that can close each other are merged until nothing merges any
more.

Punctuation document, section 4.3 (Definition 11, Theorem 5). A merged node knows the values of all its
streams, so a scheme of several attributes may close another node from it. The query is safe exactly if one
node remains: in a strongly connected query every node can close another one, and finitely many nodes with
such edges have a cycle.

The document adds the edges of several attributes only from merged nodes. Two streams joined on both
attributes of a scheme need no merging to have one, and without it the theorem fails for them; so here every
node may start such an edge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.safety.theory.punctuation.query import JoinQuery

Node = frozenset[str]


@dataclass(frozen=True)
class Transformed:
    """The nodes left after merging, and which of them each can close."""

    edges: Mapping[Node, frozenset[Node]]

    @property
    def is_single(self) -> bool:
        return len(self.edges) == 1


def transform(query: JoinQuery) -> Transformed:
    """The transformed graph of a query."""
    nodes = [frozenset((stream,)) for stream in query.streams]
    while True:
        edges = {node: _closable(query, node, nodes) for node in nodes}
        merged = _components(edges)
        if len(merged) == len(nodes):
            return Transformed(edges)
        nodes = merged


def _closable(query: JoinQuery, node: Node, nodes: list[Node]) -> frozenset[Node]:
    """The other nodes in which some stream's scheme has partners in `node` for all its attributes."""
    return frozenset(
        other
        for other in nodes
        if other != node
        and any(
            all(
                any(partner[0] in node for partner in query.partners.get((stream, name), ()))
                for name in scheme.attributes
            )
            for stream in other
            for scheme in query.schemes_of[stream]
        )
    )


def _components(edges: Mapping[Node, frozenset[Node]]) -> list[Node]:
    """The strongly connected components, each as one node; the graphs are small, so reachability will do."""
    reach = {node: _reachable(edges, node) for node in edges}
    components = {
        node: frozenset().union(*(other for other in reach[node] if node in reach[other])) for node in edges
    }
    return list(dict.fromkeys(components.values()))


def _reachable(edges: Mapping[Node, frozenset[Node]], start: Node) -> set[Node]:
    seen, waiting = {start}, [start]
    while waiting:
        for other in edges[waiting.pop()] - seen:
            seen.add(other)
            waiting.append(other)
    return seen
