"""Draws queries that tend to be refused: expressions, promises, tables, INTERNAL windows, nested aggregates."""

from __future__ import annotations

import re
from random import Random

KEYS = (
    "k",
    "k",
    "v",
    "s",
    "k + 1",
    "5 - v",
    "-k",
    "k % 10",
    "k % 1000",
    "v > 3",
    "k / 7",
    "abs(v)",
    "k * 0",
    "upper(s)",
)
TWO = ("CASE WHEN {a}v > 3 THEN 'x' ELSE 'y' END", "{a}k + {a}v", "coalesce({a}k, {a}v)")
PROMISES = (
    "KEY (k)",
    "KEY (v)",
    "KEY (id)",
    "PUNCTUATED BY (k) WHEN f",
    "PUNCTUATED BY (v) WHEN k % 3 = 0",
    "PUNCTUATED BY (k, v) WHEN f",
    "ORDERED BY (k) WITHIN 5 ROWS",
    "ORDERED BY (v) WITHIN 0 ROWS",
    "ORDERED BY (k, v) WITHIN 20 ROWS",
    "CLUSTERED BY (k) WITHIN 5 ROWS",
    "CLUSTERED BY (v) WITHIN 100 ROWS",
    "ORDERED BY (k) WITHIN 5 SECONDS",
    "ORDERED BY (v) WITHIN 0 SECONDS",
    "CLUSTERED BY (k) WITHIN 1 DAY",
    "CLUSTERED BY (v) WITHIN 5 MILLISECONDS",
)
REFERRED = ("KEY (k)", "CLUSTERED BY (k) WITHIN 5 ROWS", "CLUSTERED BY (k) WITHIN 5 SECONDS")
CHECKS = ("CHECK (k > 5)", "CHECK (v BETWEEN 0 AND 20)", "CHECK (k % 2 = 0)", "CHECK (k <> 17)")
FILTERS = ("{a}k > 10", "{a}v <> 7", "{a}k % 2 = 0", "{a}s <> 'x'", "{a}k BETWEEN 3 AND 40", "{a}f")
WINDOWS = (" [RANGE 10 SECONDS]", " [RANGE 10 SECONDS INTERNAL]", " [ROWS 5]", " [PARTITION BY k ROWS 2]")


def refusable_text(random: Random) -> str:
    """Declarations of two streams and a table, and a query over them."""
    columns = "ts TIMESTAMP, id BIGINT, k BIGINT, v INT, s STRING, f BOOLEAN"
    streams = []
    for name in ("a", "b"):
        checked = f", {random.choice(CHECKS)}" if random.random() < 0.15 else ""
        promise = random.choice(PROMISES) if random.random() < 0.3 else ""
        streams.append(f"CREATE STREAM {name} ({columns}{checked}) TIMESTAMP BY ts {promise}")
    if random.random() < 0.1:
        streams[0] += f" FOREIGN KEY (k) REFERENCES b (k) WITHIN {random.choice(('5 ROWS', '5 SECONDS'))}"
        streams[1] = f"CREATE STREAM b ({columns}) TIMESTAMP BY ts {random.choice(REFERRED)}"
    table = "CREATE TABLE t (k BIGINT, w BIGINT)" + random.choice(("", " NON RETROACTIVE"))
    return ";\n".join([*streams, table, f"CREATE QUERY answer AS {_query(random)}"]) + ";\n"


def _window(random: Random) -> str:
    return random.choice(WINDOWS) if random.random() < 0.3 else ""


def _key(random: Random, alias: str = "") -> str:
    if random.random() < 0.2:
        return random.choice(TWO).format(a=alias)
    key = random.choice(KEYS)
    return re.sub(r"\b[kvs]\b", lambda found: alias + found[0], key)


def _where(random: Random, *conditions: str, alias: str = "") -> str:
    parts = [*conditions]
    if random.random() < 0.25:
        parts.append(random.choice(FILTERS).format(a=alias))
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def _query(random: Random) -> str:
    key, window, distinct = _key(random), _window(random), random.choice(("DISTINCT ", ""))
    one, other = f"a{_window(random)} AS x", f"b{_window(random)} AS y"
    equal = f"x.{random.choice('kv')} = y.{random.choice('kv')}"
    shown = _key(random, "x.")
    match random.randrange(12):
        case 0 | 1:
            return f"SELECT DISTINCT {key} AS g FROM a{window}{_where(random)}"
        case 2 | 3:
            call = random.choice(("COUNT(*)", "SUM(v)", "MAX(k)", "MEDIAN(v)", "COUNT(DISTINCT v)"))
            having = random.choice(("", "", " HAVING COUNT(*) > 1"))
            return f"SELECT {key} AS g, {call} AS n FROM a{window}{_where(random)} GROUP BY {key}{having}"
        case 4:
            call = random.choice((f"COUNT(DISTINCT {key})", "MEDIAN(v)", "QUANTILE(v, 0.9)", "MEDIAN(k + 1)"))
            return f"SELECT {call} AS n FROM a{window}{_where(random)}"
        case 5 | 6:
            where = _where(random, equal, alias="x.")
            return f"SELECT ISTREAM({distinct}{shown}) FROM {one}, {other}{where}"
        case 7:
            conditions = ("x.k < y.k", "x.k <= y.v AND x.v < y.k", "x.k % 10 = y.k % 10", "x.k + 1 = y.k")
            where = _where(random, random.choice(conditions), alias="x.")
            return f"SELECT {distinct}{shown} AS g FROM {one}, {other}{where}"
        case 8:
            exists = f"{random.choice(('', 'NOT '))}EXISTS (SELECT * FROM {other} WHERE {equal})"
            return f"SELECT ISTREAM({shown}) FROM {one}{_where(random, exists, alias='x.')}"
        case 9:
            operator = random.choice(("EXCEPT", "EXCEPT ALL", "UNION"))
            return f"SELECT {key} AS g FROM a{window} {operator} SELECT {key} AS g FROM b"
        case 10:
            inner = f"SELECT {key} AS g, COUNT(*) AS n FROM a{window} GROUP BY {key}"
            asked, grouped = random.choice((("n, COUNT(*) AS m", " GROUP BY n"), ("MAX(n) AS m", "")))
            return f"SELECT {asked} FROM ({inner}) AS q{grouped}"
        case _:
            where = _where(random, equal, "t.k = x.v")
            return f"SELECT {distinct}x.k, t.w FROM {one}, {other}, t{where}"
