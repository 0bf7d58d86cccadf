"""Window edits: a stream that is read without a window gets one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headgate.language import nodes
from headgate.model.time import MINUTE, format_duration
from headgate.plan.catalog import Catalog, QueryDef, StreamDef
from headgate.safety.advice.edit import Edit
from headgate.safety.advice.sites import Site, put_window, queries_read, shown_with, sites_of

PLACEHOLDER = 10 * MINUTE
"""The length that is proposed where nothing is known of the streams."""

Lengths = Callable[[StreamDef], int | None]
"""A length in microseconds that statistics suggest for a window on a stream, if they do."""


def window_edits(query: QueryDef, catalog: Catalog, lengths: Lengths) -> Iterator[Edit]:
    """A window for each unwindowed input of the query, and of the queries that it reads."""
    for each in queries_read(query, catalog):
        for site in sites_of(each, catalog):
            if not site.windowed and isinstance(site.reads, StreamDef):
                yield _edit(each, site, query, lengths, internal=False)


def derived_edits(query: QueryDef, catalog: Catalog, lengths: Lengths) -> Iterator[Edit]:
    """A window for each unwindowed query or sub-query that is read as a stream."""
    for each in queries_read(query, catalog):
        for site in sites_of(each, catalog):
            if not site.windowed and site.is_stream and not isinstance(site.reads, StreamDef):
                yield _edit(each, site, query, lengths, internal=False)


def internal_edits(query: QueryDef, catalog: Catalog, lengths: Lengths) -> Iterator[Edit]:
    """The same windows, but as INTERNAL ones: what has been answered stays answered."""
    for each in queries_read(query, catalog):
        for site in sites_of(each, catalog):
            if isinstance(site.reads, StreamDef):
                yield _edit(each, site, query, lengths, internal=True)


def external_edits(query: QueryDef, catalog: Catalog, lengths: Lengths) -> Iterator[Edit]:
    """INTERNAL taken away from each window that has it, which is bounded then: rows leave the answer again."""
    for each in queries_read(query, catalog):
        for site in sites_of(each, catalog):
            if site.window is None or not site.window.args.get("internal"):
                continue
            effect = "rows of {} leave the answer when they leave the window"
            if site.windowed:
                spec = site.window.copy()
                spec.set("internal", None)
            else:
                length, known = _length(site, lengths)
                spec = nodes.WindowSpec(kind="RANGE", length=length)
                held = f"from the last {format_duration(length)} ({known})"
                effect = f"only rows of {{}} {held} count, and they leave the answer"
            yield _put(each, site, query, spec, "internal", effect, burden=4)


def _length(site: Site, lengths: Lengths) -> tuple[int, str]:
    """How long a window on a site should be, and how that is known."""
    suggested = lengths(site.reads) if isinstance(site.reads, StreamDef) else None
    return (PLACEHOLDER, "a placeholder") if suggested is None else (suggested, "from the statistics")


def _edit(holder: QueryDef, site: Site, query: QueryDef, lengths: Lengths, *, internal: bool) -> Edit:
    if site.windowed:
        assert site.window is not None
        spec = site.window.copy()
        spec.set("internal", True)
        effect = "the window of {} does not take back what has been answered"
    else:
        length, known = _length(site, lengths)
        was_internal = site.window is not None and site.window.args.get("internal")
        spec = nodes.WindowSpec(kind="RANGE", length=length, internal=internal or was_internal or None)
        effect = f"only rows of {{}} from the last {format_duration(length)} ({known}) count"
        if internal:
            effect += ", and they do not take back what has been answered"
    kind, burden = ("internal", 6) if internal else ("window", 4)
    return _put(holder, site, query, spec, kind, effect, burden)


def _put(
    holder: QueryDef, site: Site, query: QueryDef, spec: nodes.WindowSpec, kind: str, effect: str, burden: int
) -> Edit:
    shown = f"FROM {shown_with(holder.statement.tree, site.place, spec)}"
    if holder is not query:
        shown = f"CREATE QUERY {holder.name}: {shown}"
    return Edit(
        kind,
        site.target,
        lambda tree: put_window(tree, site.place, spec.copy()),
        shown,
        effect,
        site.name,
        burden,
    )
