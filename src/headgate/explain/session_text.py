"""What a session holds, in a few lines: streams and tables with their columns and sources, and queries."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

from headgate.model.types import spark_name
from headgate.plan.catalog import Catalog, QueryDef, Source, StreamDef

_KINDS = ("stream", "table", "query")
_PLURALS = ("streams", "tables", "queries")
_MOST_COLUMNS = 12


def session_text(catalog: Catalog, engine: str, given: Mapping[str, str]) -> Text:
    """A line for everything that is declared; `given` says of what has rows in memory, how many there are."""
    found: dict[str, list[tuple[str, str]]] = {kind: [] for kind in _KINDS}
    for each in catalog.definitions.values():
        if isinstance(each, QueryDef):
            found["query"].append((each.name, ""))
            continue
        columns = [f"{column.name} {spark_name(column.type)}" for column in each.columns]
        if len(columns) > _MOST_COLUMNS:
            columns = [*columns[:_MOST_COLUMNS], "…"]
        facts = [given.get(each.name) or _source(each.source)]
        kind = "stream" if isinstance(each, StreamDef) else "table"
        if isinstance(each, StreamDef):
            facts.insert(0, "no event time" if each.time is None else f"by {each.time}")
        found[kind].append((each.name, f" ({', '.join(columns)}): {', '.join(facts)}"))
    counts = [
        f"{len(found[kind])} {kind if len(found[kind]) == 1 else plural}"
        for kind, plural in zip(_KINDS, _PLURALS, strict=True)
    ]
    text = Text("session", style="bold")
    text.append(f"  {', '.join(counts)}, {engine}\n", style="not bold")
    for kind in _KINDS:
        for name, rest in found[kind]:
            text.append(f"  {kind:<6}  ", style="not bold cyan")
            text.append(name)
            text.append(f"{rest}\n", style="not bold")
    return text


def _source(source: Source | None) -> str:
    """Where rows come from; no other options, for there may be passwords among them."""
    if source is None:
        return "no rows yet"
    path = next((value for key, value in source.options if key.casefold() == "path"), None)
    return source.format if path is None else f"{source.format} {path}"
