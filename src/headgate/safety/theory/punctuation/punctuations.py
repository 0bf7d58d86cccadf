"""Whether punctuations themselves can be forgotten (Punctuation document, section 5.1).

A punctuation purges rows that are stored and rows yet to come, so it must stay as long as a row that needs
it can come. It is needed only by rows that carry its values. A counter-punctuation of each stream that
could bring such a row ends that; a lifespan given to the punctuation, or a clean-up in the background, are
the ways out where there is none.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.safety.theory.punctuation.graph import purge
from headgate.safety.theory.punctuation.query import Column, JoinQuery, Scheme


@dataclass(frozen=True)
class Counter:
    """How punctuations of `scheme` are forgotten: by punctuations of every stream joined on one of its attributes.

    `attribute` is that attribute, `by` the schemes; if there is none, `open` names the streams without such a scheme,
    for the attribute that comes closest.
    """

    scheme: Scheme
    attribute: str | None
    by: tuple[Scheme, ...]
    open: tuple[str, ...]

    @property
    def possible(self) -> bool:
        return not self.open


def counter_punctuations(query: JoinQuery, scheme: Scheme) -> Counter:
    """How, if at all, the punctuations of a scheme can be forgotten.

    A punctuation serves rows that give a value for each of its attributes, so it is enough that one value cannot come
    any more: every stream joined on that attribute has a scheme over columns whose values the punctuation knows.
    """
    best: Counter | None = None
    for name in sorted(scheme.attributes):
        partners = query.partners.get((scheme.stream, name), ())
        by: list[Scheme] = []
        missing: list[str] = []
        for stream in dict.fromkeys(partner[0] for partner in partners):
            counter = _counter(query, scheme, stream)
            if counter is None:
                missing.append(stream)
            else:
                by.append(counter)
        found = Counter(scheme, name, tuple(by), tuple(missing))
        if best is None or len(found.open) < len(best.open):
            best = found
    # Without attributes there is one punctuation at most.
    return best or Counter(scheme, None, (), ())


def _counter(query: JoinQuery, scheme: Scheme, stream: str) -> Scheme | None:
    known: set[Column] = set()
    for name in scheme.attributes:
        known.update(query.partners.get((scheme.stream, name), ()))
    for counter in query.schemes_of[stream]:
        if all((stream, name) in known for name in counter.attributes):
            return counter
    return None


def lasting_punctuations(query: JoinQuery) -> tuple[Counter, ...]:
    """The schemes in use whose punctuations can never be forgotten; if there are none, they stay bounded too."""
    used = {step.scheme for stream in query.streams for step in purge(query, stream).steps}
    counters = (counter_punctuations(query, scheme) for scheme in query.schemes if scheme in used)
    return tuple(counter for counter in counters if not counter.possible)
