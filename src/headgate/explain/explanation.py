"""Explanation: what `explain` gives, printable in a terminal, a notebook, JSON and SVG."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from headgate.explain.describe import QueryDescription
from headgate.explain.stages import StageDescription
from headgate.explain.svg import query_svg
from headgate.explain.text import query_text


@dataclass(frozen=True)
class Explanation:
    """Described queries; `alternatives` are the other plans that were compared, dearer ones last."""

    queries: tuple[QueryDescription, ...]
    alternatives: tuple[tuple[QueryDescription, ...], ...] = ()
    stages: tuple[tuple[StageDescription, ...], ...] = ()
    """Of each query on Spark, if it was asked for."""

    def as_dict(self) -> dict[str, Any]:
        found = [query.as_dict() for query in self.queries]
        for entry, stages in zip(found, self.stages, strict=False):
            entry["stages"] = [stage.as_dict() for stage in stages]
        for entry, others in zip(found, self.alternatives, strict=False):
            entry["alternatives"] = [other.as_dict() for other in others]
        return {"queries": found}

    def to_json(self) -> str:
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False)

    def to_svg(self) -> str:
        shown = []
        for index, query in enumerate(self.queries):
            shown.append((query, ""))
            others = self.alternatives[index] if index < len(self.alternatives) else ()
            shown += [
                (other, f"alternative {number} of {len(others)}")
                for number, other in enumerate(others, start=1)
            ]
        return query_svg(shown)

    def to_text(self) -> Text:
        text = Text()
        for index, query in enumerate(self.queries):
            if index:
                text.append("\n")
            text.append(query_text(query))
            for number, stage in enumerate(self.stages[index] if index < len(self.stages) else (), start=1):
                text.append(f"stage {number}", style="bold")
                text.append(f"  {stage.show()}\n")
            others = self.alternatives[index] if index < len(self.alternatives) else ()
            for number, other in enumerate(others, start=1):
                text.append(f"\nalternative {number} of {len(others)}\n", style="bold")
                text.append(query_text(other))
        return text

    def __str__(self) -> str:
        return self.to_text().plain.rstrip("\n")

    __repr__ = __str__

    def _repr_svg_(self) -> str:
        return self.to_svg()
