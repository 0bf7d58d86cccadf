"""Random CQL text: strategies that follow the grammar, whether or not the names in it mean anything."""

from __future__ import annotations

from hypothesis import strategies as st

_PLAIN = ["a", "b", "itemid", "Price", "ts", "rows", "now", "closing", "x1"]
_ODD = ["`odd name`", "`select`", "`a.b`", "`istream`", "`it``s`", "`ß`"]
NAMES = st.sampled_from(_PLAIN * 3 + _ODD)
UNITS = st.sampled_from(["SECONDS", "sec", "MINUTES", "min", "HOURS", "DAYS", "ms", "MICROSECONDS", "WEEKS"])
COUNTS = st.sampled_from(["1", "7", "10", "50,000", "2147483647"])
_BINARY = ["+", "-", "*", "/", "%", "DIV", "||", "=", "<>", "<", ">", "<=", ">=", "<=>", "AND", "OR"]
_UNARY = ["-", "NOT ", "+"]
_FUNCTIONS = ["abs", "upper", "COALESCE", "concat", "length", "greatest", "pmod", "sqrt", "year", "nosuch"]
_AGGREGATES = ["COUNT", "SUM", "AVG", "MIN", "MAX", "MEDIAN"]
_TYPES = ["INT", "BIGINT", "DOUBLE", "STRING", "BOOLEAN", "DECIMAL(10, 2)", "TIMESTAMP", "DATE", "ARRAY<INT>"]

COLUMNS = st.one_of(NAMES, st.tuples(NAMES, NAMES).map(".".join))
LITERALS = st.one_of(
    st.integers(0, 10**12).map(str),
    st.sampled_from(
        ["0.5", "1.0", "1e10", ".5", "'x'", "'it''s'", "''", "'a%'", "'\\n'", "'🙂'", "TRUE", "FALSE", "NULL"]
    ),
    st.sampled_from(["DATE '2026-01-01'", "INTERVAL '5' SECONDS", "INTERVAL 1 DAY", "r'\\d'", "'a' 'b'"]),
)


_ATOMS = st.one_of(COLUMNS, LITERALS)


def _deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions around expressions; parentheses everywhere but around what does not need them."""
    some = st.lists(inner, min_size=1, max_size=3).map(", ".join)
    return st.one_of(
        st.tuples(_ATOMS, st.sampled_from(_BINARY), _ATOMS).map(" ".join),
        st.tuples(inner, st.sampled_from(_BINARY), inner).map(lambda p: f"({p[0]}) {p[1]} ({p[2]})"),
        st.tuples(st.sampled_from(_UNARY), inner).map(lambda p: f"{p[0]}({p[1]})"),
        inner.map("({})".format),
        st.tuples(st.sampled_from(_FUNCTIONS), some).map(lambda p: f"{p[0]}({p[1]})"),
        st.tuples(st.sampled_from(_AGGREGATES), inner).map(lambda p: f"{p[0]}({p[1]})"),
        inner.map("COUNT(DISTINCT {})".format),
        inner.map("QUANTILE({}, 0.9)".format),
        inner.map("TOP({}, 3)".format),
        st.tuples(inner, inner, inner).map(lambda p: f"CASE WHEN {p[0]} THEN {p[1]} ELSE {p[2]} END"),
        st.tuples(inner, inner, inner).map(lambda p: f"CASE ({p[0]}) WHEN ({p[1]}) THEN {p[2]} END"),
        st.tuples(inner, st.sampled_from(_TYPES)).map(lambda p: f"CAST({p[0]} AS {p[1]})"),
        st.tuples(inner, some).map(lambda p: f"({p[0]}) IN ({p[1]})"),
        st.tuples(inner, some).map(lambda p: f"({p[0]}) NOT IN ({p[1]})"),
        st.tuples(inner, inner, inner).map(lambda p: f"({p[0]}) BETWEEN ({p[1]}) AND ({p[2]})"),
        inner.map("({}) IS NULL".format),
        inner.map("({}) IS NOT NULL".format),
        inner.map("({}) IS NOT TRUE".format),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}) NOT LIKE ({p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}) IS DISTINCT FROM ({p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]})[{p[1]}]"),
    )


EXPRESSIONS = st.recursive(_ATOMS, _deeper, max_leaves=6)

DURATIONS = st.one_of(
    st.tuples(st.integers(1, 10_000).map(str), UNITS).map(" ".join),
    st.tuples(
        st.integers(1, 100).map(str), st.just("HOURS"), st.integers(1, 59).map(str), st.just("MINUTES")
    ).map(" ".join),
    st.integers(1, 99).map("INTERVAL '{}' SECONDS".format),
)
WINDOWS = st.tuples(
    st.one_of(
        DURATIONS.map("RANGE {}".format),
        st.tuples(DURATIONS, DURATIONS).map(lambda p: f"RANGE {p[0]} SLIDE {p[1]}"),
        COUNTS.map("ROWS {}".format),
        st.tuples(st.lists(COLUMNS, min_size=1, max_size=2).map(", ".join), COUNTS).map(
            lambda p: f"PARTITION BY {p[0]} ROWS {p[1]}"
        ),
        st.sampled_from(["NOW", "UNBOUNDED"]),
    ),
    st.sampled_from(["", " INTERNAL"]),
).map(lambda p: f"[{p[0]}{p[1]}]")


def _maybe(part: st.SearchStrategy[str], shape: str) -> st.SearchStrategy[str]:
    return st.one_of(st.just(""), part.map(shape.format))


ITEMS = st.lists(
    st.one_of(st.just("*"), COLUMNS, EXPRESSIONS, st.tuples(EXPRESSIONS, NAMES).map(" AS ".join)),
    min_size=1,
    max_size=3,
).map(", ".join)
LISTS = st.one_of(
    ITEMS,
    ITEMS.map("DISTINCT {}".format),
    st.tuples(st.sampled_from(["ISTREAM", "DSTREAM", "RSTREAM", "ISTREAM RESTORE"]), ITEMS).map(
        lambda p: f"{p[0]}({p[1]})"
    ),
    ITEMS.map("Istream {}".format),
    ITEMS.map("ISTREAM(DISTINCT {})".format),
    ITEMS.map("WSTREAM({})[ROWS 10]".format),
    EXPRESSIONS.map("SUM(WSTREAM({})[RANGE 1 MINUTE])".format),
)


def _selects(queries: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    named = st.tuples(NAMES, _maybe(WINDOWS, " {}"), _maybe(NAMES, " AS {}")).map("".join)
    derived = st.tuples(queries, _maybe(WINDOWS, " {}"), NAMES).map(lambda p: f"({p[0]}){p[1]} AS {p[2]}")
    source = st.one_of(named, named, derived)
    more = st.one_of(
        source.map(", {}".format),
        source.map(" CROSS JOIN {}".format),
        st.tuples(source, EXPRESSIONS).map(lambda p: f" JOIN {p[0]} ON {p[1]}"),
        source.map(" JOIN {} USING (a, b)".format),
    )
    asked = st.one_of(
        EXPRESSIONS,
        queries.map("EXISTS ({})".format),
        queries.map("NOT EXISTS ({})".format),
        st.tuples(EXPRESSIONS, queries).map(lambda p: f"({p[0]}) IN ({p[1]})"),
    )
    where = st.lists(asked, min_size=1, max_size=2).map(
        lambda parts: " AND ".join(f"({part})" for part in parts)
    )
    groups = st.lists(EXPRESSIONS, min_size=1, max_size=2).map(", ".join)
    return st.tuples(
        LISTS.map("SELECT {}".format),
        source.map(" FROM {}".format),
        st.lists(more, max_size=2).map("".join),
        _maybe(where, " WHERE {}"),
        _maybe(st.tuples(groups, _maybe(EXPRESSIONS, " HAVING {}")).map("".join), " GROUP BY {}"),
    ).map("".join)


def _queries(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT"])
    return st.one_of(
        _selects(inner),
        st.tuples(inner, operators, inner).map(" ".join),
        st.tuples(inner, operators, inner).map(lambda p: f"({p[0]}) {p[1]} ({p[2]})"),
        st.tuples(NAMES, inner, _selects(inner)).map(lambda p: f"WITH {p[0]} AS ({p[1]}) {p[2]}"),
    )


QUERIES = st.recursive(_selects(st.just("SELECT a FROM s")), _queries, max_leaves=3)

_NAME_LISTS = st.lists(NAMES, min_size=1, max_size=2).map(lambda names: f"({', '.join(names)})")
_WITHIN = st.one_of(st.integers(0, 1000).map("WITHIN {} ROWS".format), st.just("WITHIN AUTO"))
_OPTIONS = st.lists(
    st.tuples(
        st.sampled_from(["path", "kafka.bootstrap.servers", "'a b'", "'select'", "n", "from_"]),
        st.sampled_from(["'x'", "5", "TRUE", "'it''s'"]),
    ).map(" ".join),
    min_size=1,
    max_size=3,
).map(", ".join)
_USING = st.tuples(
    st.sampled_from(["parquet", "kafka", "org.example.Format", "`odd one`"]),
    _maybe(_OPTIONS, " OPTIONS ({})"),
).map(lambda p: f"USING {p[0]}{p[1]}")
_CLAUSES = st.lists(
    st.one_of(
        st.tuples(NAMES, _maybe(DURATIONS, " WITHIN {}")).map(lambda p: f"TIMESTAMP BY {p[0]}{p[1]}"),
        _NAME_LISTS.map("KEY {}".format),
        st.tuples(_NAME_LISTS, _WITHIN).map(lambda p: f"ORDERED BY {p[0]} {p[1]}"),
        st.tuples(_NAME_LISTS, _WITHIN).map(lambda p: f"CLUSTERED BY {p[0]} {p[1]}"),
        st.tuples(_NAME_LISTS, NAMES, _NAME_LISTS, _WITHIN).map(
            lambda p: f"FOREIGN KEY {p[0]} REFERENCES {p[1]} {p[2]} {p[3]}"
        ),
        st.tuples(_NAME_LISTS, _maybe(EXPRESSIONS, " WHEN ({})")).map(
            lambda p: f"PUNCTUATED BY {p[0]}{p[1]}"
        ),
        _USING,
    ),
    max_size=4,
).map(" ".join)
_COLUMN_LISTS = st.lists(
    st.one_of(
        st.tuples(NAMES, st.sampled_from(_TYPES), st.sampled_from(["", " NOT NULL"])).map(
            lambda p: f"{p[0]} {p[1]}{p[2]}"
        ),
        EXPRESSIONS.map("CHECK ({})".format),
    ),
    min_size=1,
    max_size=3,
).map(", ".join)

STATEMENTS = st.one_of(
    QUERIES,
    st.tuples(NAMES, QUERIES).map(lambda p: f"CREATE QUERY {p[0]} AS {p[1]}"),
    st.tuples(NAMES, _COLUMN_LISTS, _CLAUSES).map(lambda p: f"CREATE STREAM {p[0]} ({p[1]}) {p[2]}"),
    st.tuples(NAMES, _COLUMN_LISTS, st.sampled_from(["", " NON RETROACTIVE", " KEY (a)", " USING csv"])).map(
        lambda p: f"CREATE TABLE {p[0]} ({p[1]}){p[2]}"
    ),
)
