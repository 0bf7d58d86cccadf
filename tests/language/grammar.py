"""Random CQL text that follows the grammar, whether or not the names in it mean anything."""

from __future__ import annotations

import re

from hypothesis import strategies as st

GRAMMAR: dict[str, list[str]] = {
    "name": [
        *("a", "b", "itemid", "Price", "rows", "now", "closing"),
        *("`odd name`", "`select`", "`a.b`", "`it``s`", "`ß`"),
    ],
    "column": ["a", "{name}", "{name}.{name}"],
    "literal": [
        *("0", "42", "999999999999", "0.5", "1.0", "1e10", ".5", "TRUE", "FALSE", "NULL"),
        *("'x'", "'it''s'", "''", "'a%'", r"'\n'", "'🙂'", r"r'\d'", "'a' 'b'"),
        *("DATE '2026-01-01'", "(INTERVAL '5' SECONDS)", "(INTERVAL 1 DAY)"),
    ],
    "atom": ["a", "{column}", "{column}", "{literal}"],
    "arithmetic": ["+", "-", "*", "/", "%", "DIV", "||"],
    "relation": ["=", "<>", "<", ">", "<=", ">=", "<=>", "IS DISTINCT FROM", "LIKE", "NOT LIKE", "RLIKE"],
    "type": ["INT", "BIGINT", "DOUBLE", "STRING", "BOOLEAN", "DECIMAL(10, 2)", "TIMESTAMP", "ARRAY<INT>"],
    "expression": [
        "{atom}",
        "{atom} {arithmetic} {atom}",
        "{atom} {relation} {atom}",
        "{atom} + {atom} * {atom} - {atom}",
        "{atom} = {atom} OR NOT {atom} AND {atom}",
        "({expression}) {arithmetic} ({expression})",
        "({expression}) {relation} ({expression})",
        "({expression}) AND ({expression})",
        "({expression}) OR ({expression})",
        "NOT ({expression})",
        "-({expression})",
        "- {atom}",
        "({expression}) IN ({expression}, {expression})",
        "({expression}) NOT IN ({expression})",
        "({expression}) BETWEEN {atom} AND {atom}",
        "({expression}) NOT BETWEEN {atom} AND {atom}",
        "({expression}) IS NULL",
        "({expression}) IS NOT NULL",
        "({expression}) IS NOT TRUE",
        "CASE WHEN {expression} THEN {expression} ELSE {expression} END",
        "CASE ({expression}) WHEN ({expression}) THEN {expression} END",
        "CAST({expression} AS {type})",
        "({expression})[{expression}]",
        "abs({expression})",
        "nosuch({expression})",
        "COALESCE({expression}, {expression})",
        "concat({expression}, {expression}, {expression})",
        "COUNT(*)",
        "COUNT(DISTINCT {expression})",
        "SUM({expression})",
        "MEDIAN({expression})",
        "QUANTILE({expression}, 0.9)",
        "TOP({expression}, 3)",
        "MAX({expression}) FILTER (WHERE {expression})",
    ],
    "duration": [
        "10 SECONDS",
        "90 sec",
        "1 HOUR 30 MINUTES",
        "INTERVAL '5' DAYS",
        "7 ms",
        "1.5 min",
        "3 WEEKS",
    ],
    "count": ["1", "10", "50,000", "2147483647"],
    "content": [
        "NOW",
        "UNBOUNDED",
        "RANGE {duration}",
        "RANGE {duration} SLIDE {duration}",
        "ROWS {count}",
        "PARTITION BY {column} ROWS {count}",
        "PARTITION BY {column}, {column} ROWS {count}",
    ],
    "window": ["", " [{content}]", " [{content} INTERNAL]"],
    "item": ["a", "*", "{name}.*", "{expression}", "{expression} AS {name}"],
    "items": ["{item}", "{item}, {item}", "{item}, {item}, {item}"],
    "list": [
        "{items}",
        "DISTINCT {items}",
        "ISTREAM({items})",
        "Istream a, {items}",
        "DSTREAM({items})",
        "RSTREAM(DISTINCT {items})",
        "ISTREAM RESTORE({items})",
        "WSTREAM({items})[ROWS 10]",
        "SUM(WSTREAM({expression})[RANGE 1 MINUTE])",
    ],
    "source": [
        "{name}{window}",
        "{name}{window} AS {name}",
        "({query}){window} AS {name}",
        "(s [NOW]) AS {name}",
    ],
    "more": [
        "",
        ", {source}",
        ", {source}, {source}",
        " JOIN {source} ON {expression}",
        " JOIN {source} USING (a, b), {source}",
        " CROSS JOIN {source}",
    ],
    "condition": [
        "{expression}",
        "EXISTS ({query})",
        "NOT EXISTS ({query})",
        "({expression}) IN ({query})",
        "({condition}) AND ({condition})",
    ],
    "where": ["", " WHERE {condition}"],
    "group": ["", " GROUP BY {expression}", " GROUP BY {column}, {expression} HAVING {expression}"],
    "select": ["SELECT {list} FROM {source}{more}{where}{group}"],
    "operator": ["UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT"],
    "query": [
        "{select}",
        "{select} {operator} {select}",
        "({query}) {operator} ({query})",
        "{select} {operator} {select} {operator} {select}",
        "WITH {name} AS ({query}) {select}",
    ],
    "names": ["({name})", "({name}, {name})"],
    "within": ["WITHIN AUTO", "WITHIN 0 ROWS", "WITHIN 50 ROWS", "WITHIN {duration}"],
    "clause": [
        "KEY {names}",
        "TIMESTAMP BY {name}",
        "TIMESTAMP BY {name} WITHIN {duration}",
        "ORDERED BY {names} {within}",
        "CLUSTERED BY {names} {within}",
        "FOREIGN KEY {names} REFERENCES {name} {names} {within}",
        "PUNCTUATED BY {names}",
        "PUNCTUATED BY {names} WHEN ({expression})",
        "USING parquet OPTIONS (path 'x', kafka.servers 'h:1', 'a b' 5, flag = TRUE)",
        "USING org.example.Format OPTIONS ('select' 'it''s')",
        "USING `odd one`",
    ],
    "field": ["a INT", "{name} {type}", "{name} {type} NOT NULL", "CHECK ({expression})"],
    "fields": ["{field}", "{field}, {field}", "{field}, {field}, {field}"],
    "statement": [
        "{query}",
        "CREATE QUERY {name} AS {query}",
        "CREATE STREAM {name} ({fields})",
        "CREATE STREAM {name} ({fields}) {clause} {clause}",
        "CREATE STREAM {name} ({fields}) {clause} {clause} {clause} {clause}",
        "CREATE TABLE {name} ({fields})",
        "CREATE TABLE {name} ({fields}) NON RETROACTIVE KEY {names} USING csv",
    ],
}
"""What each word in braces may become; its first choice leads to an end soonest."""


@st.composite
def texts(draw: st.DrawFn, symbol: str, size: int = 40) -> str:
    """A text that a word of the grammar may become; after `size` choices every word takes its first."""
    left = [size]

    def expand(word: str) -> str:
        left[0] -= 1
        choices = GRAMMAR[word]
        chosen = draw(st.sampled_from(choices)) if left[0] > 0 else choices[0]
        return re.sub(r"\{(\w+)\}", lambda found: expand(found.group(1)), chosen)

    return expand(symbol)
