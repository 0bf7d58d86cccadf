"""Join queries for the tests of bounded memory by punctuation, and what is true of them by exhaustion."""

from __future__ import annotations

from collections.abc import Collection
from itertools import product

from hypothesis import strategies as st

from headgate.safety.theory.punctuation.query import Column, JoinPredicate, JoinQuery, Scheme, classes

TRIANGLE = "S1.B=S2.B, S2.C=S3.C, S3.A=S1.A"


def join(predicates: str, schemes: str, *, streams: str = "S1 S2 S3") -> JoinQuery:
    """A query from text: `join("S1.B=S2.B", "S1(B), S2(B)", streams="S1 S2")`, closed."""
    parsed = [JoinPredicate.of(*map(str.strip, text.split("="))) for text in predicates.split(",")]
    return JoinQuery(tuple(streams.split()), tuple(parsed), tuple(scheme_list(schemes))).closed()


def scheme_list(text: str) -> list[Scheme]:
    """Schemes from text: `S1(B), S3(A C)`."""
    found = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        stream, _, names = part.removesuffix(")").partition("(")
        found.append(Scheme.on(stream, *names.split()))
    return found


@st.composite
def random_joins(draw: st.DrawFn, *, max_streams: int = 4) -> JoinQuery:
    """Up to four streams of three attributes, up to five equalities, up to six schemes of up to two attributes."""
    streams = tuple(f"S{n}" for n in range(1, draw(st.integers(2, max_streams)) + 1))
    pairs = [(left, right) for left in streams for right in streams if left < right]
    predicates = draw(
        st.lists(
            st.builds(
                lambda pair, a, b: JoinPredicate((pair[0], a), (pair[1], b)),
                st.sampled_from(pairs),
                st.sampled_from("abc"),
                st.sampled_from("abc"),
            ),
            max_size=5,
        )
    )
    schemes = draw(
        st.lists(
            st.builds(
                Scheme,
                st.sampled_from(streams),
                st.sampled_from([frozenset(names) for names in ("a", "b", "c", "ab", "ac", "bc")]),
            ),
            max_size=6,
        )
    )
    return JoinQuery(streams, tuple(dict.fromkeys(predicates)), tuple(dict.fromkeys(schemes))).closed()


def can_join_later(query: JoinQuery, stream: str, known: Collection[int] = (1,)) -> bool:
    """Whether a row of a stream can still get a new result, after all possible rows and punctuations over `known`.

    By exhaustion: all rows with known values are stored, all punctuations with known values have come, and values
    outside `known` (one stands for all) are still free. A result takes one row of each stream, the row in question
    among them; the others are stored, or new and not forbidden; at least one is new.
    """
    fresh = 0
    groups = classes(query.predicates)
    for chosen in product((*known, fresh), repeat=len(groups)):
        value = {column: v for members, v in zip(groups, chosen, strict=True) for column in members}
        if any(value[column] == fresh for column in value if column[0] == stream):
            continue
        others = [other for other in query.streams if other != stream]
        stored = {o: all(v != fresh for column, v in value.items() if column[0] == o) for o in others}
        new = {o: _may_come(query, o, value, fresh) for o in others}
        if all(stored[o] or new[o] for o in others) and any(new.values()):
            return True
    return False


def _may_come(query: JoinQuery, stream: str, value: dict[Column, int], fresh: int) -> bool:
    """Whether a new row with these values is forbidden by no punctuation; columns that are not joined are free."""
    return all(
        any(value.get((stream, name), fresh) == fresh for name in scheme.attributes)
        for scheme in query.schemes_of[stream]
    )
