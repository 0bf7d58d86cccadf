"""Advise: the smallest sets of edits that make a refused query safe.

Nothing is shown that the gate has not admitted: each set is applied to the statements, written out, read again,
bound and judged, by the `admits` that is handed in. In a family each edit is tried alone; if none is enough, all of
them together, and then those that are not needed are taken away one after the other, so that what is left is minimal.
A query that is too large for that gets the whole family, with a word that not all of it may be needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from headgate.plan.catalog import Catalog, QueryDef
from headgate.plan.nodes import Emit
from headgate.safety.advice.contents import distinct_edits, value_edits
from headgate.safety.advice.edit import Burden, Edit, Fix, Trees, apply, fix_of
from headgate.safety.advice.needed import needed_promises
from headgate.safety.advice.promises import check_edits, order_edits, promise_edits
from headgate.safety.advice.sites import queries_read
from headgate.safety.advice.tables import table_edits
from headgate.safety.advice.windows import (
    Lengths,
    calendar_edits,
    derived_edits,
    external_edits,
    internal_edits,
    replacing_edits,
    window_edits,
)

Admits = Callable[[Mapping[str, str]], bool]
"""Whether the gate admits the query once the statements of these names have these texts."""

MOST_TRIALS = 120
"""So many sets of edits are tried for a query; what has been found by then is shown."""

MOST_READ = 4_000
"""So many nodes of syntax are bound and judged again for a query, over all trials: a large query has fewer trials."""

NOT_MINIMAL = "perhaps not all of these are needed: the query is too large to try without each"

MOST_ALONE = 12
"""In a family with more edits than this, no single one is tried: the query is wide, and one will not do."""

MOST_FIXES = 6

LAST_TRIALS = 16
"""So many more sets that ask something else are tried where the trials are spent and nothing has been found."""


def advise(
    query: QueryDef, plan: Emit, catalog: Catalog, trees: Trees, admits: Admits, lengths: Lengths
) -> tuple[Fix, ...]:
    """Fixes for a refused query: first what can be judged by reading it, last what only the data can prove right."""
    size = sum(1 for each in queries_read(query, catalog) for _ in each.tree.walk())
    search = _Search(plan, trees, admits, min(MOST_TRIALS, MOST_READ // size))
    promises = list(promise_edits(plan, trees))
    at_hand = [edit for edit in promises if edit.burden < Burden.NEW_COLUMN]
    punctuations = [edit for edit in promises if edit.kind == "punctuation"]
    checks = list(check_edits(plan, trees))
    tables = list(table_edits(plan, trees))
    windows = list(window_edits(query, catalog, lengths))
    derived = list(derived_edits(query, catalog, lengths))
    external = list(external_edits(query, catalog, lengths))
    replacing = list(replacing_edits(query, catalog, lengths))
    families: list[list[Edit]] = [
        [edit for edit in at_hand if edit.kind == "punctuation"],
        at_hand,
        windows,
        list(order_edits(plan, trees)),
        tables,
        list(distinct_edits(query)),
        list(value_edits(query, catalog)),
        checks,
        list(calendar_edits(query, catalog)),
        punctuations,
        external,
        [*at_hand, *windows],
        [*tables, *at_hand],
        [*checks, *windows],
        [*windows, *derived],
        [*windows, *derived, *external],
        [*tables, *windows, *derived, *external],
        list(internal_edits(query, catalog, lengths)),
        replacing,
        [*tables, *windows, *derived, *external, *replacing],
    ]
    found: dict[tuple[Edit, ...], None] = {}
    for family in families:
        if any(edits and set(edits) <= set(family) for edits in found):
            # A family that has a smaller one's answer within it has nothing lighter to offer.
            continue
        if found and len(family) > MOST_ALONE // 2 and family[0].kind == "internal":
            # The heaviest edits, and many of them: what has been found is better.
            continue
        for edits in search.smallest(family):
            if not any(set(known) < set(edits) for known in found):
                found.setdefault(edits)
    as_internal = list(replacing_edits(query, catalog, lengths, keep_internal=True))
    for family in (families[-1], [*tables, *windows, *derived, *as_internal]):
        if replacing and not found:
            search.more(LAST_TRIALS)
            found |= dict.fromkeys(search.smallest(family))
    ordered = sorted(found, key=lambda edits: (max(edit.burden for edit in edits), len(edits)))
    if len(ordered) > MOST_FIXES:
        # Where there is much to choose from, a window that forgets without saying so is the first to be left out.
        ordered = [edits for edits in ordered if max(edit.burden for edit in edits) != Burden.INTERNAL]
    return tuple(
        fix_of(edits, trees, NOT_MINIMAL if edits in search.whole else "") for edits in ordered[:MOST_FIXES]
    )


class _Search:
    def __init__(self, plan: Emit, trees: Trees, admits: Admits, trials: int) -> None:
        self.plan, self.trees, self.admits, self.trials = plan, trees, admits, trials
        self.known: dict[frozenset[Edit], bool] = {}
        self.whole: set[tuple[Edit, ...]] = set()
        """Families that are enough and were not made smaller."""

    def smallest(self, family: Sequence[Edit]) -> Iterator[tuple[Edit, ...]]:
        """Each edit that is enough by itself; if there is none, one minimal set that is enough."""
        alone: list[tuple[Edit, ...]] = []
        if len(family) > MOST_ALONE and all(edit.columns for edit in family):
            guess = needed_promises(self.plan, family)
            if guess is not None and self.enough(guess):
                yield guess
                return
        elif len(family) <= MOST_ALONE // 2 or (len(family) <= MOST_ALONE and not _covers_all(family)):
            alone = [(edit,) for edit in family if self.enough((edit,))]
        yield from alone
        if alone or len(family) < 2 or not self.enough(family):
            return
        if len(family) > (self.trials - len(self.known)) // 2:
            # Other families want their trial too.
            self.whole.add(tuple(family))
            yield tuple(family)
            return
        needed = list(family)
        for edit in sorted(family, key=lambda edit: -edit.burden):
            fewer = [each for each in needed if each is not edit]
            if fewer and self.enough(fewer):
                needed = fewer
        yield tuple(needed)

    def more(self, trials: int) -> None:
        """Allows so many more trials."""
        self.trials = max(self.trials, len(self.known) + trials)

    def enough(self, edits: Sequence[Edit]) -> bool:
        key = frozenset(edits)
        if key not in self.known:
            if len(self.known) >= self.trials:
                return False
            self.known[key] = self.admits(apply(edits, self.trees))
        return self.known[key]


def _covers_all(family: Sequence[Edit]) -> bool:
    """Whether edits of a family are windows of one kind: then of many one will not do."""
    return all(edit.kind in ("window", "internal") for edit in family)
