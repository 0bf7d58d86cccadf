"""Balance: long chains of AND, OR and || as trees of few levels.

A parser reads `a OR b OR c OR d` as `((a OR b) OR c) OR d`, a level for each operator, and passes that walk a tree by
calls of themselves come to the end of their stack. These three operators are associative, in three-valued logic too,
so the same operands in the same order may be grouped in any way:

    before                       after
    OR                           OR
    ├─ OR                        ├─ OR
    │  ├─ OR                     │  ├─ a
    │  │  ├─ a                   │  └─ b
    │  │  └─ b                   └─ OR
    │  └─ c                         ├─ c
    └─ d                            └─ d

Written out again, both are the same text. Sums are left alone: fractions and overflow make their order matter.
"""

from __future__ import annotations

from sqlglot import exp

SHORTEST = 9
"""Operands of the shortest chain that is regrouped; people write shorter ones, and see them as they wrote them."""

_ASSOCIATIVE = (exp.And, exp.Or, exp.DPipe)


def balanced(tree: exp.Expr) -> exp.Expr:
    """The tree with its long chains regrouped; changed in place, and given back because its root may be one."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, _ASSOCIATIVE):
            operands = _operands(node)
            if len(operands) >= SHORTEST:
                _regroup(node, operands)
            pending.extend(operands)
        else:
            pending.extend(node.iter_expressions())
    return tree


def _operands(chain: exp.Expr) -> list[exp.Expr]:
    """What a chain of one operator combines, from left to right."""
    found: list[exp.Expr] = []
    pending = [chain]
    while pending:
        node = pending.pop()
        if type(node) is type(chain):
            pending += [node.args["expression"], node.args["this"]]
        else:
            found.append(node)
    return found


def _regroup(chain: exp.Expr, operands: list[exp.Expr]) -> None:
    """Makes the operands of a chain the leaves of a tree that has the chain's root."""
    level = operands
    while len(level) > 2:
        pairs = [
            type(chain)(**{**chain.args, "this": level[at], "expression": level[at + 1]})
            for at in range(0, len(level) - 1, 2)
        ]
        level = pairs + level[len(pairs) * 2 :]
    chain.set("this", level[0])
    chain.set("expression", level[1])
