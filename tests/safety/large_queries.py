"""Large queries, as texts: many streams, many comparisons, long chains of operators."""

from __future__ import annotations


def streams(count: int, columns: str = "a BIGINT, b BIGINT") -> str:
    """Declarations of s0, s1, …"""
    return "".join(f"CREATE STREAM s{n} (ts TIMESTAMP, {columns}) TIMESTAMP BY ts;\n" for n in range(count))


def _query(select: str, count: int, conditions: list[str]) -> str:
    sources = ", ".join(f"s{n}" for n in range(count))
    return f"CREATE QUERY q AS SELECT {select} FROM {sources} WHERE {' AND '.join(conditions)};"


def many_streams(count: int = 50) -> str:
    """Streams without windows, joined in a chain by an equality and an inequality each."""
    equal = [f"s{n}.a = s{n + 1}.a" for n in range(count - 1)]
    less = [f"s{n}.b < s{n + 1}.b" for n in range(count - 1)]
    return streams(count) + _query("DISTINCT s0.a", count, [*equal, *less, "s0.a BETWEEN 3 AND 9"])


def long_chain(count: int = 50) -> str:
    """Streams without windows, each joined with the next by another column: what closes one must pass through all."""
    equal = [f"s{n}.b = s{n + 1}.a" for n in range(count - 1)]
    less = [f"s{n}.a < s{n + 1}.b" for n in range(count - 1)]
    return streams(count, "a BIGINT, b BIGINT, closing BOOLEAN") + _query("s0.a", count, [*equal, *less])


def all_below(columns: int = 9) -> str:
    """Two streams, every column of the first below every column of the second; bounded, by one extreme of each."""
    names = ", ".join(f"c{n} BIGINT" for n in range(columns))
    below = [f"s0.c{i} < s1.c{j}" for i in range(columns) for j in range(columns)]
    return streams(2, names) + _query("DISTINCT s0.c0", 2, ["s0.c0 BETWEEN 1 AND 3", *below])


def each_below(columns: int = 81) -> str:
    """Two streams, every column of the first below its like of the second."""
    names = ", ".join(f"c{n} BIGINT" for n in range(columns))
    return streams(2, names) + _query("DISTINCT s0.c0", 2, [f"s0.c{n} < s1.c{n}" for n in range(columns)])


def long_or(operands: int = 150) -> str:
    """One stream, a condition of many alternatives."""
    return streams(1) + _query("a", 1, [" OR ".join(f"a = {n} AND b > {n}" for n in range(operands))])


def long_and(operands: int = 2_000) -> str:
    """One stream, a condition of many parts."""
    return streams(1) + _query("a", 1, [f"a <> {n}" for n in range(operands)])
