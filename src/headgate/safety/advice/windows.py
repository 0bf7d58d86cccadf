"""Window edits: a stream that is read without a window gets one.

The last rows of each value (`[PARTITION BY c ROWS n]`) are something else than the rows of a time, so such a window
is replaced only as a last resort, and the edit says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from headgate.language import nodes
from headgate.model.time import MINUTE, UNITS, format_duration
from headgate.plan.catalog import Catalog, QueryDef, StreamDef
from headgate.safety.advice.edit import Burden, Edit
from headgate.safety.advice.sites import Site, put_window, queries_read, shown_with, sites_of

PLACEHOLDER = 10 * MINUTE
"""The length that is proposed where nothing is known of the streams."""

Lengths = Callable[[StreamDef], int | None]
"""A length in microseconds that statistics suggest for a window on a stream, if they do."""


def window_edits(query: QueryDef, catalog: Catalog, lengths: Lengths) -> Iterator[Edit]:
    """A window for each unwindowed input of the query, and of the queries that it reads."""
    for each in queries_read(query, catalog):
        for site in sites_of(each, catalog):
            if not site.windowed and not site.partitioned and isinstance(site.reads, StreamDef):
                yield _edit(each, site, query, lengths, internal=False)


def replacing_edits(
    query: QueryDef, catalog: Catalog, lengths: Lengths, *, keep_internal: bool = False
) -> Iterator[Edit]:
    """A time window in place of each that keeps the last rows of every value: another question, and it is said so.

    With `keep_internal`, one that is INTERNAL stays so: a window around its query may need the stream that it makes.
    """
    for each in queries_read(query, catalog):
        for site in sites_of(each, catalog):
            if site.partitioned and site.window is not None:
                length, known = _length(each, site, lengths)
                internal = (keep_internal and site.window.args.get("internal")) or None
                spec = nodes.WindowSpec(kind="RANGE", length=length, internal=internal)
                rows = site.window.args["rows"]
                names = ", ".join(column.name for column in site.window.args["partition"])
                effect = (
                    f"asks something else: the rows of {{}} from the last {format_duration(length)} ({known}) "
                    f"in place of the last {rows} of each {names}"
                )
                yield _put(each, site, query, spec, "window", effect, Burden.OTHER_MEANING)


def calendar_edits(query: QueryDef, catalog: Catalog) -> Iterator[Edit]:
    """Windows of the hour, for a query that asks by the hour (date_trunc), or of the minute, the day, …"""
    for each in queries_read(query, catalog):
        found = _truncated(each.tree)
        for site in sites_of(each, catalog) if found is not None else ():
            if site.windowed or site.partitioned or not isinstance(site.reads, StreamDef):
                continue
            assert found is not None
            unit, column = found
            spec = nodes.WindowSpec(kind="RANGE", length=UNITS[unit], slide=UNITS[unit])
            effect = f"the rows of each {unit} of {{}} are answered by themselves, once it is over"
            if column != site.reads.time:
                effect += f"; {unit}S are those of {site.reads.time}, not of {column}"
            yield _put(each, site, query, spec, "window", effect, Burden.CALENDAR)


def _truncated(tree: exp.Expr) -> tuple[str, str] | None:
    """The unit and the column of the first date_trunc outside of conditions; weeks do not start with the epoch."""
    for call in tree.find_all(exp.TimestampTrunc, exp.DateTrunc):
        unit = call.args["unit"].name.upper()
        column = call.find(exp.Column)
        if unit in UNITS and unit != "WEEK" and column is not None and not call.find_ancestor(exp.Where):
            return unit, column.name
    return None


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
            if isinstance(site.reads, StreamDef) and not site.partitioned:
                yield _edit(each, site, query, lengths, internal=True)


def external_edits(query: QueryDef, catalog: Catalog, lengths: Lengths) -> Iterator[Edit]:
    """INTERNAL taken away from each window that has it, which is bounded then: rows leave the answer again."""
    for each in queries_read(query, catalog):
        for site in sites_of(each, catalog):
            if site.window is None or site.partitioned or not site.window.args.get("internal"):
                continue
            effect = "rows of {} leave the answer when they leave the window"
            if site.windowed:
                spec = site.window.copy()
                spec.set("internal", None)
            else:
                length, known = _length(each, site, lengths)
                spec = nodes.WindowSpec(kind="RANGE", length=length)
                held = f"from the last {format_duration(length)} ({known})"
                effect = f"only rows of {{}} {held} count, and they leave the answer"
            yield _put(each, site, query, spec, "internal", effect, Burden.WINDOW)


def _length(holder: QueryDef, site: Site, lengths: Lengths) -> tuple[int, str]:
    """How long a window on a site should be, and how that is known."""
    written = _interval(holder.tree)
    if written is not None:
        return written, "the interval of the join"
    suggested = lengths(site.reads) if isinstance(site.reads, StreamDef) else None
    return (PLACEHOLDER, "a placeholder") if suggested is None else (suggested, "from the statistics")


def _interval(tree: exp.Expr) -> int | None:
    """The longest interval by which a condition lets two inputs be apart; None if there is none."""
    found = []
    for interval in tree.find_all(exp.Interval):
        condition = interval.find_ancestor(exp.Between, exp.LT, exp.LTE, exp.GT, exp.GTE)
        owners = {column.table for column in condition.find_all(exp.Column)} if condition is not None else ()
        unit = interval.args["unit"].name.upper().removesuffix("S") if interval.args.get("unit") else ""
        amount = interval.this.name if isinstance(interval.this, exp.Literal) else ""
        if len(owners) > 1 and unit in UNITS and amount.isdecimal() and int(amount):
            found.append(int(amount) * UNITS[unit])
    return max(found, default=None)


def _edit(holder: QueryDef, site: Site, query: QueryDef, lengths: Lengths, *, internal: bool) -> Edit:
    if site.windowed:
        assert site.window is not None
        spec = site.window.copy()
        spec.set("internal", True)
        effect = "the window of {} does not take back what has been answered"
    else:
        length, known = _length(holder, site, lengths)
        was_internal = site.window is not None and site.window.args.get("internal")
        spec = nodes.WindowSpec(kind="RANGE", length=length, internal=internal or was_internal or None)
        effect = f"only rows of {{}} from the last {format_duration(length)} ({known}) count"
        if internal:
            effect += ", and they do not take back what has been answered"
    kind, burden = ("internal", Burden.INTERNAL) if internal else ("window", Burden.WINDOW)
    return _put(holder, site, query, spec, kind, effect, burden)


def _put(
    holder: QueryDef,
    site: Site,
    query: QueryDef,
    spec: nodes.WindowSpec,
    kind: str,
    effect: str,
    burden: Burden,
) -> Edit:
    shown = f"FROM {shown_with(site.item, spec)}"
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
