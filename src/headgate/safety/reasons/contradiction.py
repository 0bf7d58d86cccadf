"""Contradictions: whether comparisons of columns can be true together of no row, as `a < b AND b < a`."""

from __future__ import annotations

from dataclasses import replace

from headgate.safety.block import Block
from headgate.safety.reasons.memory_query import translate
from headgate.safety.theory.memory.closure import close


def is_contradictory(block: Block) -> bool:
    """Whether no row can satisfy all conditions of a block.

    Sound because conditions that are not understood are left out, and NULL satisfies none that is. CHECKs are not
    believed, because a row that breaks one is a row; nor comparisons of fractions, whose constants may be rounded.
    """
    if len(block.predicates) < 2:
        return False
    translated = translate(block, (), checks=False, lenient=True)
    query = translated.query
    exact = tuple(p for p in query.predicates if all(translated.kinds[a] != "dense" for a in p.attributes))
    return close(replace(query, predicates=exact)) is None
