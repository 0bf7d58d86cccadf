"""Random queries with EXISTS, EXCEPT, UNION, COUNT(DISTINCT …) and nested groups over two streams with promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from tests.differential.punctuated import Punctuated

PROMISES = (
    Punctuated("ab", ("a",)),
    Punctuated("ab", ("ab",)),
    Punctuated("ab", keys=("a",)),
    Punctuated("ab", ordered=("a",)),
    Punctuated("ab", ordered=("a",), timed=True),
)
CLUSTERED = Punctuated("ab", clusters=("a",))
"""Of use only beside another one, which refers to it."""


@dataclass(frozen=True)
class Promised:
    """Two streams, s1 and s2, and a query over them."""

    streams: dict[str, Punctuated]
    query: str

    def text(self, *, promises: bool = True) -> str:
        declared = (
            about.declared(name)
            if promises
            else f"CREATE STREAM {name} (ts TIMESTAMP, {about.without_promises()}) TIMESTAMP BY ts;\n"
            for name, about in self.streams.items()
        )
        return f"{''.join(declared)}CREATE QUERY q AS {self.query};"


def random_query(random: Random) -> Promised:
    """A query that the gate may admit or refuse."""
    streams = {"s1": random.choice(PROMISES), "s2": random.choice(PROMISES)}
    if random.random() < 0.1:
        streams = {"s1": CLUSTERED, "s2": CLUSTERED}
    elif streams["s2"].keys and random.random() < 0.5:
        # Rows of s1 then refer to the key of s2, whose values all come.
        streams["s1"] = replace(streams["s1"], refers=(("a", "s2"),))
    kinds: tuple[Callable[[Random], str], ...] = (_existence, _existence, _set_operation, _counting, _nested)
    return Promised(streams, random.choice(kinds)(random))


def _columns(random: Random) -> str:
    return random.choice(("a", "a", "a, b", "b, a"))


def _window(random: Random) -> str:
    return random.choice(("", "", "", " [RANGE 6 SECONDS]", " [RANGE 6 SECONDS SLIDE 3 SECONDS]"))


def _where(random: Random) -> str:
    return random.choice(("", "", " WHERE b % 2 = 0", " WHERE a > 2"))


def _existence(random: Random) -> str:
    conditions = ["s2.a = s1.a"]
    conditions += random.choice(([], [], ["s2.b = s1.b"], ["s2.b > s1.b"], ["s2.b % 2 = 0"]))
    word = random.choice(("EXISTS", "NOT EXISTS"))
    emit = random.choice(
        ("s1.a, s1.b", "ISTREAM(s1.a, s1.b)", "DISTINCT s1.a", "COUNT(*) AS n, SUM(s1.b) AS b")
    )
    left, right = _window(random), _window(random)
    inner = f"SELECT * FROM s2{right} WHERE {' AND '.join(conditions)}"
    own = random.choice(("", " AND s1.b % 3 > 0"))
    return f"SELECT {emit} FROM s1{left} WHERE {word} ({inner}){own}"


def _set_operation(random: Random) -> str:
    columns = _columns(random)
    word = random.choice(("EXCEPT", "EXCEPT ALL", "INTERSECT", "UNION", "UNION"))
    found = f"SELECT {columns} FROM s1{_where(random)} {word} SELECT {columns} FROM s2{_where(random)}"
    if random.random() < 0.3:
        return f"SELECT a, COUNT(*) AS n FROM ({found}) x GROUP BY a"
    return found


def _source(random: Random) -> str:
    """A FROM item with the columns a and b."""
    return random.choice(
        (
            "s1",
            "s1",
            "(SELECT a, b FROM s1 UNION ALL SELECT a, b FROM s2) y",
            "s1 [RANGE 6 SECONDS INTERNAL]",
            "(SELECT DISTINCT a, b FROM s1) y",
            "(SELECT s1.a, s2.b FROM s1 [RANGE 6 SECONDS INTERNAL], s2 [NOW INTERNAL] WHERE s1.a = s2.a) y",
            "(SELECT s1.a, s2.b FROM s1 [RANGE 6 SECONDS INTERNAL], s2 WHERE s1.a = s2.a) y",
            "(SELECT s1.a, s2.b FROM s1, s2 WHERE s1.a = s2.a) y",
        )
    )


def _counting(random: Random) -> str:
    calls = random.sample(
        ("COUNT(DISTINCT a)", "SUM(DISTINCT a)", "COUNT(DISTINCT b)", "COUNT(*)", "MAX(b)"), 2
    )
    said = ", ".join(f"{call} AS c{number}" for number, call in enumerate(calls))
    source = _source(random)
    if random.random() < 0.5:
        return f"SELECT {said} FROM {source}{_where(random)}"
    return f"SELECT a, {said} FROM {source}{_where(random)} GROUP BY a"


def _nested(random: Random) -> str:
    inner = random.choice(("a", "a", "a, b"))
    source = _source(random)
    having = random.choice(("", "", " HAVING COUNT(*) > 1"))
    call = random.choice(("SUM(b)", "MAX(b)", "COUNT(*)", "AVG(b)"))
    groups = f"SELECT {inner}, {call} AS m FROM {source}{_where(random)} GROUP BY {inner}{having}"
    outer = random.sample(("MIN(m)", "MAX(m)", "SUM(m)", "COUNT(*)", "AVG(m)", "COUNT(DISTINCT a)"), 2)
    said = ", ".join(f"{call} AS c{number}" for number, call in enumerate(outer))
    if random.random() < 0.3:
        return f"SELECT a, {said} FROM ({groups}) x GROUP BY a"
    return f"SELECT {said} FROM ({groups}) x"
