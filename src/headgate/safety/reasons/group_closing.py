"""Group closing: when an aggregate's group, or a value of DISTINCT, can be forgotten because its answer is final.

A group with key k gets a new row only with a new result of what is below that has k. Such a result of a join has a
row of each input; its youngest row comes after the group was closed. If every input is closed at k, by a promise over
columns that the join and the projection make equal to grouping columns, that row cannot come. Of a union it
cannot come if every member is closed at k; and the groups of an aggregate below change only with new rows of theirs.

So all inputs must make a promise over the same grouping columns. It is the same set for all: then a value is
forgotten everywhere at once when the last input has closed it, and nothing about it is left.

| what is kept | columns that must be closed |
|---|---|
| a group of GROUP BY | some of its keys |
| a value of DISTINCT or UNION | some of its columns |
| a value that COUNT(DISTINCT x) has counted | some of x and the keys: it is counted, and does not come again |
| the copies of a value that EXCEPT ALL counts | some of its columns, on both sides |

NULL is a value of a group, and no promise closes it. A join leaves it out, since these columns are all joined on; of
single streams, rows with NULL there must not come: they are late, like others that break a promise. COUNT(DISTINCT x)
does not count it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headgate.plan.nodes import Aggregate, Difference, Distinct, Filter, Join, Node, Project, Union
from headgate.plan.patterns import Edges, Pattern
from headgate.safety.assumption import Assumption, closes_values
from headgate.safety.cause import Cause, of_promises
from headgate.safety.lineage import Lineage, lineage
from headgate.safety.promise import Promise, PromiseKind, not_null, promises_of
from headgate.safety.reasons.non_null import non_null_columns
from headgate.safety.reasons.purge_analysis import Closing


@dataclass(frozen=True)
class GroupClosing:
    """Values of `keys` are final once every closing has brought them; each brings them under these names."""

    keys: tuple[str, ...]
    closings: tuple[Closing, ...]
    cause: Cause
    reason: str
    assumes: tuple[Assumption, ...] = ()
    filled: tuple[Promise, ...] = ()
    """That the columns of the promises are not NULL, where only that keeps NULL out."""


def close_groups(node: Aggregate | Distinct, edges: Edges) -> GroupClosing | None:
    """How the groups of an aggregate, or the values of DISTINCT, are closed; None if nothing closes them."""
    if isinstance(node, Aggregate):
        return _closed(_sources(node.input, _same(node.keys), edges), node.keys, "group")
    names = tuple(column.name for column in node.schema)
    return _closed(_sources(node.input, _same(names), edges), names, "value")


def close_counted(node: Aggregate, argument: str, edges: Edges) -> GroupClosing | None:
    """How the values are closed that COUNT(DISTINCT argument) and the like have counted."""
    names = tuple(dict.fromkeys((*node.keys, argument)))
    found = _sources(node.input, _same(names), edges)
    return _closed(found, names, "counted value", never_null=(argument,))


def close_copies(node: Difference, edges: Edges) -> GroupClosing | None:
    """How the values are closed whose copies EXCEPT ALL counts."""
    names = tuple(column.name for column in node.schema)
    left, right = _sources(node.left, _same(names), edges), None
    if left is not None:
        theirs = (column.name for column in node.right.schema)
        right = _sources(node.right, dict(zip(names, theirs, strict=True)), edges)
    return None if left is None or right is None else _closed([*left, *right], names, "value")


def _same(names: Sequence[str]) -> dict[str, str]:
    return {name: name for name in names}


@dataclass(frozen=True)
class _Source:
    """A stream whose rows bring groups: the columns that hold their keys, and what a join makes equal to them."""

    node: Node
    behind: Lineage
    columns: Mapping[str, str]
    classes: tuple[tuple[str, ...], ...] = ()


def _sources(node: Node, columns: Mapping[str, str], edges: Edges) -> list[_Source] | None:
    """The streams below an edge, with the columns there that hold the keys; None if rows die or come otherwise."""
    edge = edges[node]
    dies = max(edge.pattern, edge.expiry) != Pattern.MON or edge.internal
    if dies and not isinstance(node, (Filter, Project, Aggregate)):
        return None
    behind = lineage(node)
    if behind is not None:
        return None if dies else [_Source(node, behind, columns)]
    match node:
        case Project():
            plain = {o.name: o.scalar.expression.name for o in node.outputs if o.scalar.is_column}
            kept = {key: plain[name] for key, name in columns.items() if name in plain}
            return _sources(node.input, kept, edges)
        case Filter() | Distinct():
            return _sources(node.input, columns, edges)
        case Aggregate():
            kept = {key: name for key, name in columns.items() if name in node.keys}
            return _sources(node.input, kept, edges)
        case Join():
            behinds = [(each, lineage(each)) for each in node.members]
            found = [_Source(each, b, columns, node.equalities) for each, b in behinds if b is not None]
            return found if len(found) == len(behinds) else None
        case Union():
            return _of_union(node, columns, edges)
    return None


def _of_union(node: Union, columns: Mapping[str, str], edges: Edges) -> list[_Source] | None:
    place = {column.name: number for number, column in enumerate(node.schema)}
    found: list[_Source] = []
    for member in node.members:
        theirs = {key: member.schema[place[name]].name for key, name in columns.items()}
        below = _sources(member, theirs, edges)
        if below is None:
            return None
        found += below
    return found


def _closed(
    sources: list[_Source] | None, keys: tuple[str, ...], thing: str, never_null: Collection[str] = ()
) -> GroupClosing | None:
    """How values of some of the keys are closed on all sources; None if they are not."""
    if not sources:
        return None
    several = len(sources) > 1
    options = [dict(_options(each, several)) for each in sources]
    for chosen in options[0]:
        if all(chosen in each for each in options):
            ordered = tuple(key for key in keys if key in chosen)
            closing = _closing(thing, ordered, [each[chosen] for each in options], sources)
            return _without_null(closing, sources, never_null)
    return None


_Option = tuple[Promise, dict[str, str]]


def _options(source: _Source, several: bool) -> Iterator[tuple[frozenset[str], _Option]]:
    """The promises of a source that are about keys: the set of keys, the promise, and its column for each key."""
    key_of: dict[str, str] = {}
    for key, name in source.columns.items():
        equal = next((group for group in source.classes if name in group), (name,))
        for each in equal:
            if each in source.behind.columns:
                key_of.setdefault(source.behind.columns[each], key)
    for promise in promises_of(source.behind.scan.stream):
        if promise.kind is PromiseKind.CLUSTER and several:
            # What a cluster closes on one input may never come on another; then it would be remembered for good.
            continue
        mapped = {key_of[column]: column for column in promise.columns if column in key_of}
        if len(mapped) == len(promise.columns):
            yield frozenset(mapped), (promise, mapped)


def _closing(
    thing: str, keys: tuple[str, ...], options: list[_Option], sources: list[_Source]
) -> GroupClosing:
    closings, words = [], []
    for number, ((promise, mapped), source) in enumerate(zip(options, sources, strict=True)):
        behind = source.behind
        columns = tuple(mapped[key] for key in keys)
        # Rows of a window that slides leave it, so there is none behind groups that close.
        closings.append(Closing(number, keys, columns, promise, behind.scan, slide=None))
        words.append(f"{behind.name} ({promise})")
    names = ", ".join(keys)
    reason = f"a {thing} is forgotten when its {names} is closed on {' and '.join(words)}"
    cause = of_promises(promise.cause for promise, _ in options)
    # A key of the only stream closes each value with its one row: nothing else has to come.
    assumes = tuple(
        assumed
        for (promise, _), source in zip(options, sources, strict=True)
        if len(sources) > 1 or promise.kind is not PromiseKind.KEY
        for assumed in closes_values(source.behind.name, promise)
    )
    return GroupClosing(keys, tuple(closings), cause, reason, assumes)


def _without_null(
    closing: GroupClosing, sources: Sequence[_Source], never_null: Collection[str]
) -> GroupClosing:
    """The closing with the promises that keep NULL out of what is kept, where nothing else does."""
    filled = []
    for only, source in zip(closing.closings, sources, strict=True):
        if source.classes:
            continue
        known = non_null_columns(source.node)
        open_ = [
            name
            for key, name in zip(only.columns, only.sources, strict=True)
            if name not in known and key not in never_null
        ]
        if open_:
            filled.append(not_null(only.scan.stream, open_))
    if not filled:
        return closing
    reason = f"{closing.reason}; a row with NULL there is late"
    return replace(closing, reason=reason, filled=tuple(dict.fromkeys(filled)))
