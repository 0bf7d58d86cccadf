"""Existence closing: which rows EXISTS, NOT EXISTS, EXCEPT and INTERSECT may forget once streams are closed.

The two sides are studied as a join of them on the same keys: a row that can be in no new result of the join can
neither gain a match any more nor give one.

```
left row, k = 7      right closed at 7, and no match is there: it never gets one. EXISTS never says it, NOT EXISTS
                     has said it for good; either way nothing more is to be said, and it is dropped
right row, k = 7     left closed at 7: no row comes that would look for it. Left rows that have found it for ever
                     are gone, so it is dropped
```

A left row whose matches die, because they have a window, is kept until the last of them has: what is said of it
changes then. A right row with a window leaves by itself.

Where NULL equals NULL, as in EXCEPT, a row with NULL in a column that must be closed would stay for good: nothing
closes NULL. Such rows are late.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from headgate.plan.nodes import Join, Negation, Node, SemiJoin
from headgate.plan.patterns import Edges, Pattern
from headgate.safety.lineage import lineage, shown_name
from headgate.safety.promise import Promise, not_null
from headgate.safety.reasons.non_null import non_null_columns
from headgate.safety.reasons.purge_analysis import Chain, Closing, JoinPurge, PurgeAnalysis


@dataclass(frozen=True)
class ExistencePurge:
    """How the sides of EXISTS or NOT EXISTS forget: chains of one step, the left side is member 0."""

    purge: JoinPurge
    filled: tuple[Promise, ...] = ()
    """That columns are not NULL, where only that keeps NULL from staying."""


def close_existence(node: SemiJoin | Negation, edges: Edges) -> ExistencePurge:
    """How the unwindowed sides of EXISTS or NOT EXISTS can be purged."""
    found = _ExistenceAnalysis(node, edges).result
    chains, stuck = dict(found.chains), dict(found.stuck)
    filled: list[Promise] = []
    for number, chain in found.chains.items():
        member, reason = node.inputs[number], chain.reason
        if node.null_equal:
            open_ = _nullable(member, chain)
            if open_ is None:
                del chains[number]
                stuck[number] = (
                    f"NULL equals NULL here, and nothing says that {shown_name(member, number)} has none"
                )
                continue
            filled += open_
            if open_:
                reason += "; a row with NULL there is late"
        if edges[node.right].pattern != Pattern.MON:
            # So it is a left row: a right one leaves with its window.
            reason += " and has no match left in its window"
        chains[number] = replace(chain, reason=reason)
    purge = replace(found, chains=chains, stuck=stuck)
    return ExistencePurge(purge, tuple(dict.fromkeys(filled)))


class _ExistenceAnalysis(PurgeAnalysis):
    """The two sides as a join."""

    def __init__(self, node: SemiJoin | Negation, edges: Edges) -> None:
        super().__init__(Join(node.inputs, _classes(node.keys), node.residual), edges)
        self.keeps_right_rows = bool(node.residual)

    def _aged(
        self, number: int, closing: Closing, at: tuple[tuple[int, str], ...], closings: list[Closing]
    ) -> int | None:
        """As in a join, but of right rows without a residual only the key is kept, and no age."""
        if number == 1 and not self.keeps_right_rows:
            return None
        return super()._aged(number, closing, at, closings)


def _classes(keys: Iterable[tuple[str, str]]) -> tuple[tuple[str, ...], ...]:
    """The keys as classes of equal columns."""
    found: list[dict[str, None]] = []
    for pair in keys:
        met = [each for each in found if any(name in each for name in pair)]
        found = [each for each in found if each not in met]
        found.append(dict.fromkeys([*(name for each in met for name in each), *pair]))
    return tuple(tuple(each) for each in found)


def _nullable(member: Node, chain: Chain) -> tuple[Promise, ...] | None:
    """The promise that the columns of a side that a chain asks for are not NULL; None if it cannot be made."""
    behind = lineage(member)
    names = [name for step in chain.steps for _, name in step.values]
    if behind is None or any(name not in behind.columns for name in names):
        return None
    known = non_null_columns(member)
    open_ = [behind.columns[name] for name in names if behind.columns[name] not in known]
    return (not_null(behind.scan.stream, open_),) if open_ else ()
