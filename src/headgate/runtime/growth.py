"""Growth: whether the assumptions that a query's bound rests on still hold, told from what it keeps.

```
rows kept   ▁▂▂▁▂▂▂▃▅█     level 10,000, then 20,000, 40,000, 80,000: three rises without a fall between
```

An assumption that fails shows in rows that stay: closings that do not come, partners that never arrive, rows that
wait for a silent stream. So the number of rows is followed: each time it has doubled is a rise, and after three rises
without a fall, once all windows had time to fill, the assumptions behind that number are in doubt. Which of them has
failed the number does not tell. It is an observation, not a proof, and is taken back when as many rows again have
come without another rise.

An assumption that is itself an observation, of a constraint WITHIN AUTO, is in doubt while its monitor has seen rows
stray further than they did, until it has found another k.

What has been seen goes into the metrics themselves, so that a run that goes on from a checkpoint remembers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from headgate.physical.graph import OperatorGraph
from headgate.safety.assumption import VIOLATIONS

LEAST = 10_000
"""Fewer rows than this are no reason to worry."""
RISES = 3


@dataclass(frozen=True)
class Growth:
    """How far a number of rows has risen: the level it has reached, and how often it has doubled on the way."""

    level: int = LEAST
    rises: int = 0
    arrived: int = 0
    """Rows that had come when the level was reached."""

    @property
    def goes_on(self) -> bool:
        return self.rises >= RISES

    def after(self, size: int, arrived: int) -> Growth:
        """What is known once there are `size` rows and `arrived` have come in all."""
        if size >= 2 * self.level:
            return Growth(size, self.rises + 1, arrived)
        if size < self.level // 2 and self.level > LEAST:
            return Growth(max(LEAST, size), 0, arrived)
        settled = self.rises and arrived >= 2 * self.arrived
        return replace(self, rises=0, arrived=arrived) if settled else self


def with_assumptions(
    metrics: Mapping[str, Any], before: Mapping[str, Any], graph: OperatorGraph
) -> dict[str, Any]:
    """The metrics of a run so far with its verdict and which assumptions are in doubt; `before` are the last ones."""
    known = before.get("growth") or {}
    begun = known.get("begun", metrics.get("clock"))
    clock = metrics.get("clock")
    filled = begun is not None and clock is not None and clock - begun >= graph.settles
    arrived = metrics["rows_in"] + metrics.get("waiting_rows", 0)
    growth = {}
    for name in dict.fromkeys(each.metric for each in graph.assumes if each.metric != VIOLATIONS):
        last = Growth(**known[name]) if name in known else Growth()
        size = metrics.get(name, 0)
        growth[name] = last.after(size, arrived) if filled or name != "state_rows" else Growth()
    doubted = {
        each: any(known["constraint"] in each.sentence for known in strayed(metrics))
        if each.metric == VIOLATIONS
        else growth[each.metric].goes_on
        for each in graph.assumes
    }
    return {
        **metrics,
        "verdict": graph.verdict,
        "assumes": [{**each.as_dict(), "in_doubt": doubted[each]} for each in graph.assumes],
        "growth": {"begun": begun, **{name: asdict(each) for name, each in growth.items()}},
    }


def strayed(metrics: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The observed constraints from which rows have strayed, and of which no other k has been found yet."""
    known = metrics.get("constraints", {}).values()
    return [each for each in known if each["violations"] and each["k"] is None]


def in_doubt(metrics: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """The assumptions of which one does not seem to hold, by the number of rows that shows it."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for each in metrics.get("assumes", ()):
        if each["in_doubt"]:
            found.setdefault(str(each["metric"]), []).append(each)
    return found
