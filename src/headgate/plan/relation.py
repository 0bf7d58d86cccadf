"""Relation: a bound query block, between its own syntax and whatever reads it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headgate.model.scalar import Scalar
from headgate.plan.nodes import Node, Output, Project


@dataclass(frozen=True)
class Relation:
    """A bound query block: its node and, in the order of the node's columns, the names users know.

    `also` are second names: SUM(a) without an alias answers to a.
    """

    node: Node
    labels: tuple[str, ...]
    also: tuple[str | None, ...] = ()

    def renamed(self, name: str) -> tuple[Node, list[str]]:
        """The block with its columns called `name.label`, and those names."""
        names = [f"{name}.{label}" for label in self.labels]
        outputs = tuple(
            Output(new, Scalar.column(column.name, column.type))
            for new, column in zip(names, self.node.schema, strict=True)
        )
        return Project(self.node, outputs), names


def unused(name: str, taken: Iterable[str], *, start: int = 1) -> str:
    """The name, with a number behind it if it is taken (in any case)."""
    folded = {each.casefold() for each in taken}
    if name.casefold() not in folded:
        return name
    number = start
    while f"{name}_{number}".casefold() in folded:
        number += 1
    return f"{name}_{number}"
