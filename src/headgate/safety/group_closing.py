"""Group closing: when an aggregate's group, or a value of DISTINCT, can be forgotten because its answer is final.

A group with key k gets a new row only with a new result of the join below that has k. Such a result has a row
of each input; its youngest row comes after the group was closed. If every input is closed at k, by a promise
over columns that the join and the projection make equal to grouping columns, that row cannot come.

So all inputs must make a promise over the same grouping columns. It is the same set for all: then a value is
forgotten everywhere at once when the last input has closed it, and nothing about it is left.

NULL is a value of a group, and no promise closes it. A join leaves it out, since these columns are all joined on; of
one stream alone, rows with NULL there must not come: they are late, like others that break a promise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from headgate.plan.nodes import Aggregate, Distinct, Filter, Join, Node, Project
from headgate.plan.patterns import Edges, Pattern
from headgate.safety.assumption import Assumption, closes_values
from headgate.safety.filled import filled_columns
from headgate.safety.lineage import Lineage, lineage
from headgate.safety.promise import Promise, not_null, promises_of
from headgate.safety.purging import Closing


@dataclass(frozen=True)
class GroupClosing:
    """Values of `keys` are final once every closing has brought them; each brings them under these names."""

    keys: tuple[str, ...]
    closings: tuple[Closing, ...]
    cause: str
    reason: str
    assumes: tuple[Assumption, ...] = ()
    filled: Promise | None = None
    """That the columns of the promise are not NULL, where only that keeps NULL out of the groups."""


def close_groups(node: Aggregate | Distinct, edges: Edges) -> GroupClosing | None:
    """How the groups of an aggregate, or the values of DISTINCT, are closed; None if nothing closes them."""
    edge = edges[node.input]
    if max(edge.pattern, edge.expiry) != Pattern.MON or edge.internal:
        return None
    keys = node.keys if isinstance(node, Aggregate) else tuple(column.name for column in node.schema)
    core, columns = _core(node.input, {key: key for key in keys})
    inputs = core.members if isinstance(core, Join) else (core,)
    lineages = [lineage(each) for each in inputs]
    found = [each for each in lineages if each is not None]
    if not columns or len(found) < len(lineages):
        return None
    classes = core.equalities if isinstance(core, Join) else ()
    options = [dict(_options(each, inputs[n], columns, classes)) for n, each in enumerate(found)]
    for chosen in options[0]:
        if all(chosen in each for each in options):
            ordered = tuple(key for key in keys if key in chosen)
            thing = "group" if isinstance(node, Aggregate) else "value"
            closing = _closing(thing, ordered, [each[chosen] for each in options], found)
            return closing if isinstance(core, Join) else _without_null(closing, core)
    return None


def _core(node: Node, columns: Mapping[str, str]) -> tuple[Node, dict[str, str]]:
    """The join or stream below projections and filters, and the columns there that hold the keys."""
    names = dict(columns)
    while isinstance(node, (Filter, Project)) and lineage(node) is None:
        if isinstance(node, Project):
            plain = {o.name: o.scalar.expression.name for o in node.outputs if o.scalar.is_column}
            names = {key: plain[name] for key, name in names.items() if name in plain}
        node = node.input
    return node, {key: name for key, name in names.items() if name in node.names}


_Option = tuple[Promise, dict[str, str]]


def _options(
    behind: Lineage, node: Node, columns: Mapping[str, str], classes: tuple[tuple[str, ...], ...]
) -> Iterator[tuple[frozenset[str], _Option]]:
    """The promises of an input that are about keys: the set of keys, the promise, and its column for each key."""
    key_of: dict[str, str] = {}
    for key, name in columns.items():
        equal = next((group for group in classes if name in group), (name,))
        for each in equal:
            if each in node.names and each in behind.columns:
                key_of.setdefault(behind.columns[each], key)
    for promise in promises_of(behind.scan.stream):
        if promise.cause == "constraint" and not promise.ordered and classes:
            # What a cluster closes on one input may never come on another; then it would be remembered for good.
            continue
        mapped = {key_of[column]: column for column in promise.columns if column in key_of}
        if len(mapped) == len(promise.columns):
            yield frozenset(mapped), (promise, mapped)


def _closing(
    thing: str, keys: tuple[str, ...], options: list[_Option], lineages: list[Lineage]
) -> GroupClosing:
    closings, words, causes = [], [], set()
    for number, ((promise, mapped), behind) in enumerate(zip(options, lineages, strict=True)):
        sources = tuple(mapped[key] for key in keys)
        slide = None if behind.window is None else behind.window.slide
        closings.append(Closing(number, keys, sources, promise, behind.scan, slide))
        words.append(f"{behind.name} ({promise})")
        causes.add(promise.cause)
    names = ", ".join(keys)
    reason = f"a {thing} is forgotten when its {names} is closed on {' and '.join(words)}"
    cause = causes.pop() if len(causes) == 1 else "punctuation"
    assumes = tuple(
        closes_values(behind.name, promise) for (promise, _), behind in zip(options, lineages, strict=True)
    )
    return GroupClosing(keys, tuple(closings), cause, reason, assumes)


def _without_null(closing: GroupClosing, core: Node) -> GroupClosing:
    """The closing of groups of one stream, with the promise that keeps NULL out of them if nothing else does."""
    (only,) = closing.closings
    filled = filled_columns(core)
    open_ = [name for name in only.sources if name not in filled]
    if not open_:
        return closing
    reason = f"{closing.reason}; a row with NULL there is late"
    return replace(closing, reason=reason, filled=not_null(only.scan.stream, open_))
