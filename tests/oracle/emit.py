"""From relations to streams: ISTREAM, DSTREAM, RSTREAM, and their RESTORE forms for periodic evaluation.

Each function gives events, (instant, position of a row in the relation).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.oracle.contents import tick_from
from tests.oracle.relation import Relation
from tests.oracle.values import Row

Event = tuple[int, int]


def bag(relation: Relation, instant: int) -> Counter[Row]:
    """The answer at an instant."""
    return Counter(relation.keys[position] for position in relation.at(instant))


def differences(relation: Relation) -> Iterator[tuple[int, list[int], list[int]]]:
    """For each instant of change, the rows gained and lost: the bag difference of the answers at and before it."""
    before: Sequence[int] = ()
    for instant in relation.changes:
        now = relation.at(instant)
        yield instant, _minus(relation, now, before), _minus(relation, before, now)
        before = now


def _minus(relation: Relation, left: Sequence[int], right: Sequence[int]) -> list[int]:
    remaining = Counter(relation.keys[position] for position in right)
    difference = []
    for position in left:
        key = relation.keys[position]
        if remaining[key]:
            remaining[key] -= 1
        else:
            difference.append(position)
    return difference


def births(relation: Relation) -> list[Event]:
    """ISTREAM."""
    return [(instant, position) for instant, gained, _ in differences(relation) for position in gained]


def deaths(relation: Relation) -> list[Event]:
    """DSTREAM."""
    return [(instant, position) for instant, _, lost in differences(relation) for position in lost]


def answers_at_changes(relation: Relation) -> list[Event]:
    """RSTREAM without SLIDE: the whole answer whenever it differs from the one before."""
    changed = [instant for instant, gained, lost in differences(relation) if gained or lost]
    return [(instant, position) for instant in changed for position in relation.at(instant)]


def ticks(relation: Relation, start: int, slide: int) -> range:
    """Multiples of the slide from the first row's until the first one at or after the last change."""
    last = max(start, *relation.changes) if relation.changes else start
    return range(tick_from(start, slide), tick_from(last, slide) + slide, slide)


def answers_at_ticks(relation: Relation, start: int, slide: int) -> list[Event]:
    """RSTREAM with SLIDE: the whole answer at every tick."""
    return [(tick, position) for tick in ticks(relation, start, slide) for position in relation.at(tick)]


def restored_births(relation: Relation, slide: int) -> list[Event]:
    """ISTREAM RESTORE over a relation that was evaluated continuously: each birth, at the next tick."""
    return [(tick_from(instant, slide), position) for instant, position in births(relation)]


def restored_answers(relation: Relation, start: int, slide: int) -> list[Event]:
    """RSTREAM RESTORE over a relation that was evaluated continuously: at tick t, all that lived in (t - s, t].

    That is what is there just after the tick before, and what was born later.
    """
    born = births(relation)
    events = []
    for tick in ticks(relation, start, slide):
        first = tick - slide + 1
        events += [(tick, position) for position in relation.at(first)]
        events += [(tick, position) for instant, position in born if first < instant <= tick]
    return events
