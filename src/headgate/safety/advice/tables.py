"""Table edits: NON RETROACTIVE, so that a change of a table need not find the rows that it was joined with."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from headgate.plan.nodes import Node, TableJoin
from headgate.safety.advice.edit import Burden, Edit, Trees


def table_edits(plan: Node, trees: Trees) -> Iterator[Edit]:
    """Each retroactive table that a plan joins, declared NON RETROACTIVE."""
    joined = {
        node.table.name for node in plan.walk() if isinstance(node, TableJoin) and node.table.retroactive
    }
    for name in sorted(joined):
        if name.casefold() in trees:
            yield _edit(name)


def _edit(name: str) -> Edit:
    def change(tree: exp.Expr) -> None:
        tree.set("non_retroactive", True)

    return Edit(
        "table",
        name.casefold(),
        change,
        f"CREATE TABLE {name} … NON RETROACTIVE",
        "a change of {} counts for rows that come after it, not for those that were joined before",
        name,
        Burden.TABLE,
    )
