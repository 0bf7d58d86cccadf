"""Self joins: with duplicates removed, an occurrence that another one covers adds nothing and is dropped
first.

Memory document, section 8.1. There one occurrence covers another if every predicate stays implied when the
second is replaced by the first. Here several occurrences may be replaced at once: any map of occurrences to
occurrences of the same stream under which all predicates stay implied and the result stays the same leaves
an equivalent query over the occurrences that it hits, since a row that serves the target serves the source
too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from headgate.safety.theory.memory.closure import Closure, close
from headgate.safety.theory.memory.query import Attribute, Comparison, Element, SpjQuery

_Map = Mapping[str, str]


def fold(query: SpjQuery) -> SpjQuery:
    """An equivalent duplicate-eliminating query without covered occurrences; the query itself if there are none."""
    closure = close(query)
    while closure is not None:
        images = next(_coverings(query, closure), None)
        if images is None:
            break
        query = _replaced(query, images)
        closure = close(query)
    return query


def coverings(query: SpjQuery) -> _Map | None:
    """A map of occurrences to occurrences that keeps the answer and leaves one unused; None if there is none."""
    closure = close(query)
    return None if closure is None else next(_coverings(query, closure), None)


def _coverings(query: SpjQuery, closure: Closure) -> Iterator[_Map]:
    """Maps of occurrences that keep the answer and leave at least one occurrence unused."""
    names = [schema.occurrence for schema in query.streams]
    targets = {
        name: [other for other in names if query.schema(other).stream == query.schema(name).stream]
        for name in names
    }
    if all(len(choices) == 1 for choices in targets.values()):
        return
    for images in _maps(query, closure, targets, names, {}):
        if len(set(images.values())) < len(names):
            yield images


def _maps(
    query: SpjQuery, closure: Closure, targets: Mapping[str, list[str]], names: list[str], chosen: _Map
) -> Iterator[_Map]:
    if len(chosen) == len(names):
        yield chosen
        return
    name = names[len(chosen)]
    for target in targets[name]:
        images = {**chosen, name: target}
        if _keeps(query, closure, images, name):
            yield from _maps(query, closure, targets, names, images)


def _keeps(query: SpjQuery, closure: Closure, images: _Map, latest: str) -> bool:
    """Whether the map, as far as it is chosen, keeps the predicates and results that name the latest occurrence."""
    for attribute in query.projection:
        if attribute.stream == latest and closure.relation(_image(attribute, images), attribute) != "=":
            return False
    return all(
        closure.implies(_mapped(predicate, images))
        for predicate in query.predicates
        if latest in predicate.streams and predicate.streams <= images.keys()
    )


def _image(attribute: Attribute, images: _Map) -> Attribute:
    return Attribute(images[attribute.stream], attribute.name)


def _mapped(predicate: Comparison, images: _Map) -> Comparison:
    def side(element: Element) -> Element:
        return _image(element, images) if isinstance(element, Attribute) else element

    return Comparison(side(predicate.left), predicate.op, side(predicate.right))


def _replaced(query: SpjQuery, images: _Map) -> SpjQuery:
    hit = set(images.values())
    return replace(
        query,
        streams=tuple(schema for schema in query.streams if schema.occurrence in hit),
        predicates=tuple(dict.fromkeys(_mapped(predicate, images) for predicate in query.predicates)),
        projection=tuple(_image(attribute, images) for attribute in query.projection),
    )
