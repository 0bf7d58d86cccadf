"""Failure: which condition a query breaks, where, and in which case of its values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from headgate.safety.theory.memory.query import Attribute, Comparison


class Condition(Enum):
    """What a bounded-memory query keeps; the first three are C1 to C3 of the Memory document (section 5)."""

    PROJECTION = "every projected attribute has finitely many values"
    EQUALITY = "both sides of an equality join have finitely many values"
    INEQUALITY = "inequality joins reach the unbounded attributes of a stream in at most one way"
    GROUPING = "every grouping attribute has finitely many values"
    HOLISTIC = "an aggregate that needs all values is taken over finitely many"
    GREATEST = "the greatest value of a stream is not sought among the rows that another inequality selects"
    LEAST = "the least value of a stream is not sought among the rows that another inequality selects"
    SIZE = "the query is small enough to be split into all its cases"


@dataclass(frozen=True)
class Failure:
    """A broken condition: the attributes and predicates at fault, and the filters that single out the bad case."""

    condition: Condition
    attributes: tuple[Attribute, ...] = ()
    predicates: tuple[Comparison, ...] = ()
    case: tuple[Comparison, ...] = ()
    dense: tuple[Attribute, ...] = ()

    def __str__(self) -> str:
        """One sentence for a person."""
        text = self._cause()
        if self.case:
            text += f", when {' and '.join(map(str, self.case))}"
        if self.dense:
            names = ", ".join(map(str, self.dense))
            text += (
                f"; between two values of {names} there is always another, so a range does not help [dense]"
            )
        return text

    def _cause(self) -> str:
        names = " and ".join(map(str, self.attributes))
        joins = " and ".join(map(str, self.predicates))
        match self.condition:
            case Condition.PROJECTION:
                return f"{names} is in the result and can take any number of values [C1]"
            case Condition.EQUALITY:
                return f"{joins} joins on values of which there can be any number [C2]"
            case Condition.INEQUALITY:
                return f"whether {joins} depends on every {names} that has come, and there can be any number [C3]"
            case Condition.GROUPING:
                return f"{names} can form any number of groups"
            case Condition.HOLISTIC:
                return f"the aggregate needs every {names} that has come, of which there can be any number [holistic]"
            case Condition.GREATEST:
                return (
                    f"any {names} may be the greatest of the rows that {joins} selects later, so all are kept"
                )
            case Condition.LEAST:
                return f"any {names} may be the least of the rows that {joins} selects later, so all are kept"
            case Condition.SIZE:
                return "the query has too many cases to be judged, so nothing is known of it"
