"""Random joins of windows over streams that obey constraints, declared as tightly as the data allows.

Rows come first; then what they obey is measured, and some of it is declared: keys hold by construction, an order, a
cluster or a reference with the least number of rows, or the least time, for which it is true, or some more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations, pairwise
from random import Random
from typing import TypeAlias

Row: TypeAlias = dict[str, int | None]

SHAPES: dict[str, tuple[dict[str, str], tuple[str, ...], dict[str, tuple[str, ...]]]] = {
    "pair": ({"s1": "a", "s2": "a"}, ("s1.a = s2.a",), {"s2": ("a",)}),
    "one to one": ({"s1": "a", "s2": "a"}, ("s1.a = s2.a",), {"s1": ("a",), "s2": ("a",)}),
    "chain": (
        {"s1": "a", "s2": "ab", "s3": "b"},
        ("s1.a = s2.a", "s2.b = s3.b"),
        {"s2": ("a",), "s3": ("b",)},
    ),
    "star": (
        {"s1": "ab", "s2": "a", "s3": "b"},
        ("s1.a = s2.a", "s1.b = s3.b"),
        {"s2": ("a",), "s3": ("b",)},
    ),
    "two roots": (
        {"s1": "a", "s2": "b", "s3": "ab"},
        ("s1.a = s3.a", "s2.b = s3.b"),
        {"s3": ("a", "b")},
    ),
    "one value": (
        {"s1": "a", "s2": "a", "s3": "a"},
        ("s1.a = s2.a", "s2.a = s3.a"),
        {"s1": ("a",), "s2": ("a",), "s3": ("a",)},
    ),
    "diamond": (
        {"s1": "ab", "s2": "ac", "s3": "bd", "s4": "cd"},
        ("s1.a = s2.a", "s1.b = s3.b", "s2.c = s4.c", "s3.d = s4.d"),
        {"s2": ("a",), "s3": ("b",), "s4": ("c", "d")},
    ),
    "cycle": (
        {"s1": "ac", "s2": "ab", "s3": "bc"},
        ("s1.a = s2.a", "s2.b = s3.b", "s3.c = s1.c"),
        {"s1": ("c",), "s2": ("a",), "s3": ("b",)},
    ),
    "two columns": ({"s1": "ab", "s2": "ab"}, ("s1.a = s2.a", "s1.b = s2.b"), {"s2": ("a, b",)}),
    "key and more": ({"s1": "ab", "s2": "ab"}, ("s1.a = s2.a", "s1.b = s2.b"), {"s2": ("a",)}),
    "itself": ({"s1": "ab"}, ("x.a = y.b",), {"s1": ("a",)}),
    "no key": ({"s1": "a", "s2": "a"}, ("s1.a = s2.a",), {}),
}
ALIASES = {"itself": {"x": "s1", "y": "s1"}}
"""Where a query reads a stream under other names, or twice."""
WINDOWS = (
    *(
        "[RANGE 3 SECONDS]",
        "[RANGE 8 SECONDS]",
        "[RANGE 20 SECONDS]",
        "[RANGE 20 SECONDS]",
        "[RANGE 60 SECONDS]",
    ),
    *("[RANGE 9 SECONDS SLIDE 3 SECONDS]", "[RANGE 20 SECONDS INTERNAL]", "", "[NOW]"),
)


@dataclass
class WindowedJoin:
    """A query, its streams' rows in order of time, and its text with and without what the rows obey."""

    shape: str
    seed: int
    count: int = 12
    rows: dict[str, list[Row]] = field(default_factory=dict)
    clauses: dict[str, list[str]] = field(default_factory=dict)
    query: str = ""

    def __post_init__(self) -> None:
        random = Random(self.seed)
        columns, _, _ = SHAPES[self.shape]
        spread = random.choice((1, 2, 4, 9))
        gap = random.choice((1, 2, 3))
        late = {name: random.choice((0, 0, 0, 2, 5)) for name in columns}
        self.rows = {name: self._rows(random, name, spread, gap, late[name]) for name in columns}
        self.clauses = {name: self._clauses(random, name) for name in columns}
        for name in columns:
            self.clauses[name] += self._references(random, name)
        self.query = self._query(random)

    @property
    def text(self) -> str:
        """With promises."""
        return self._text(self.clauses)

    @property
    def observed(self) -> str:
        """With keys, and with constraints of which monitoring is to find the k."""
        return self._text({name: [auto(clause) for clause in each] for name, each in self.clauses.items()})

    @property
    def plain(self) -> str:
        """Without."""
        return self._text({})

    def _text(self, clauses: dict[str, list[str]]) -> str:
        streams = (
            f"CREATE STREAM {name} (ts TIMESTAMP, {', '.join(f'{c} BIGINT' for c in (*columns, 'v', 'w'))}) "
            f"TIMESTAMP BY ts {' '.join(clauses.get(name, ()))};\n"
            for name, columns in SHAPES[self.shape][0].items()
        )
        return "".join(streams) + f"CREATE QUERY q AS {self.query};"

    def _rows(self, random: Random, name: str, spread: int, gap: int, late: int) -> list[Row]:
        columns, _, keys = SHAPES[self.shape]
        seen: dict[str, set[tuple[int | None, ...]]] = {key: set() for key in keys.get(name, ())}
        clock, rows = random.randint(0, 3), []
        for _ in range(random.randint(1, self.count)):
            clock += random.randint(0, gap)
            row: Row = {"ts": clock}
            for column in columns[name]:
                value = max(0, (clock - late) // gap + random.randint(-spread, spread))
                row[column] = None if random.random() < 0.04 else value
            row["v"], row["w"] = random.choice((0, 1, 2, 3, None)), random.randint(0, 3)
            marks = {key: tuple(row[each] for each in key.split(", ")) for key in seen}
            if any(None in mark or mark in seen[key] for key, mark in marks.items()):
                continue
            for key, mark in marks.items():
                seen[key].add(mark)
            rows.append(row)
        return rows

    def _clauses(self, random: Random, name: str) -> list[str]:
        columns, _, keys = SHAPES[self.shape]
        found = [f"KEY ({key})" for key in keys.get(name, ()) if random.random() < 0.9]
        rows = self.rows[name]
        for column in columns[name]:
            if random.random() < 0.35:
                k = within(random, disorder(rows, column), disorder_in_time(rows, column))
                found.append(f"ORDERED BY ({column}) {k}")
            if random.random() < 0.35:
                k = within(random, scatter(rows, column), scatter_in_time(rows, column))
                found.append(f"CLUSTERED BY ({column}) {k}")
        return found

    def _references(self, random: Random, name: str) -> list[str]:
        """To keys of other streams, and to what comes there in clusters."""
        columns, found = SHAPES[self.shape][0], []
        for column in columns[name]:
            for other, theirs in columns.items():
                useful = (f"KEY ({column})", f"CLUSTERED BY ({column})")
                known = any(clause.startswith(useful) for clause in self.clauses[other])
                if other != name and column in theirs and known and random.random() < 0.5:
                    rows, parent = self.rows[name], self.rows[other]
                    k = within(random, distance(rows, parent, column), distance_in_time(rows, parent, column))
                    found.append(f"FOREIGN KEY ({column}) REFERENCES {other} ({column}) {k}")
        return found

    def _query(self, random: Random) -> str:
        streams, equalities, _ = SHAPES[self.shape]
        names = ALIASES.get(self.shape, {name: name for name in streams})
        columns = {name: streams[stream] for name, stream in names.items()}
        kind = random.choice(("ISTREAM", "ISTREAM", "", "DSTREAM", "GROUP", "RSTREAM"))
        # Groups over INTERNAL and other windows together mean nothing.
        windows = [each for each in WINDOWS if kind != "GROUP" or "INTERNAL" not in each]
        inputs = ", ".join(f"{stream} {random.choice(windows)} AS {name}" for name, stream in names.items())
        conditions = list(equalities)
        conditions += [
            random.choice((f"{name}.v > 0", f"{name}.v <> 2", f"NOT {name}.v = 1"))
            for name in columns
            if random.random() < 0.5
        ]
        if random.random() < 0.25:
            first, second, *_ = names
            conditions.append(f"{first}.w <= {second}.w")
        shown = [f"{name}.{column}" for name, each in columns.items() for column in (*each, "w")]
        shown = sorted(random.sample(shown, random.randint(1, len(shown))))
        items = ", ".join(f"{each} AS {each.replace('.', '_')}" for each in shown)
        body = f"FROM {inputs} WHERE {' AND '.join(conditions)}"
        if kind == "GROUP":
            first = next(iter(names))
            return f"SELECT {shown[0]} AS g, COUNT(*) AS n, SUM({first}.w) AS w {body} GROUP BY {shown[0]}"
        return f"SELECT {f'{kind}({items})' if kind else items} {body}"


def within(random: Random, rows: int, seconds: int) -> str:
    """A k that rows keep, in rows or in time: the least one, or some more."""
    slack = random.choice((0, 0, 1, 3))
    return f"WITHIN {rows + slack} ROWS" if random.random() < 0.5 else f"WITHIN {seconds + slack} SECONDS"


def auto(clause: str) -> str:
    """A clause without its k."""
    constraint, within, _ = clause.partition(" WITHIN ")
    return f"{constraint} WITHIN AUTO" if within else clause


def disorder(rows: list[Row], column: str) -> int:
    """The most rows from the first that is greater to a row, that row included."""
    values = [row[column] for row in rows]
    found = 0
    for at, value in enumerate(values):
        greater = (
            at - before
            for before in range(at)
            if value is not None and (other := values[before]) is not None and other > value
        )
        found = max(found, *greater, 0)
    return found


def scatter(rows: list[Row], column: str) -> int:
    """The most rows between two with equal values that follow each other."""
    places: dict[int, list[int]] = {}
    for at, row in enumerate(rows):
        if (value := row[column]) is not None:
            places.setdefault(value, []).append(at)
    return max((b - a - 1 for each in places.values() for a, b in pairwise(each)), default=0)


def distance(rows: list[Row], parent: list[Row], column: str) -> int:
    """The most rows of the parent that are younger than a row, up to the last of its partners."""
    found = 0
    for row in rows:
        partners = [
            at for at, each in enumerate(parent) if each[column] is not None and each[column] == row[column]
        ]
        younger = [at for at, each in enumerate(parent) if each["ts"] > row["ts"]]  # type: ignore[operator]
        found = max([found, *(at - younger[0] + 1 for at in partners if younger and at >= younger[0])])
    return found


def disorder_in_time(rows: list[Row], column: str) -> int:
    """The longest time from a row to a lesser one."""
    known = [(seconds(row), value) for row in rows if (value := row[column]) is not None]
    return max((b - a for (a, one), (b, other) in combinations(known, 2) if other < one), default=0)


def scatter_in_time(rows: list[Row], column: str) -> int:
    """The longest time between two rows with equal values that follow each other."""
    instants: dict[int, list[int]] = {}
    for row in rows:
        if (value := row[column]) is not None:
            instants.setdefault(value, []).append(seconds(row))
    return max((b - a for each in instants.values() for a, b in pairwise(each)), default=0)


def distance_in_time(rows: list[Row], parent: list[Row], column: str) -> int:
    """The longest time from a row to the last of its partners."""
    pairs = ((row, each) for row in rows for each in parent)
    later = (
        seconds(each) - seconds(row)
        for row, each in pairs
        if row[column] is not None and each[column] == row[column]
    )
    return max(0, *later, 0)


def seconds(row: Row) -> int:
    """The event time of a row."""
    found = row["ts"]
    assert found is not None
    return found
