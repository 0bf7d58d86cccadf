"""Random expressions as CQL text over typed columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.oracle.choices import Choices
from tests.oracle.generate_data import BIGINT, BOOLEAN, DATE, DECIMAL, DOUBLE, INT, STRING, TIMESTAMP

_LITERALS = {
    BIGINT: ("1", "0", "2"),
    INT: ("1", "2", "0", "-1"),
    STRING: ("'a'", "'b'", "'Ab'"),
    DOUBLE: ("0.5", "1.0", "0.25", "2"),
    BOOLEAN: ("TRUE", "FALSE"),
    DATE: ("DATE '2024-02-01'", "DATE '2024-01-31'"),
    DECIMAL: ("1.25", "1.50", "0"),
}
TOP, AVERAGE = "TOP", "AVERAGE"
"""Types that no query reads on: lists, and numbers whose sums would depend on their order."""
_NUMERIC = (BIGINT, INT, DOUBLE, DECIMAL)
_OF_NUMBERS = ("sum", "avg", "median", "quantile", "moment", "pairs", "rank")


@dataclass(frozen=True)
class Typed:
    """An expression and the type of its value."""

    text: str
    type: str


def literal(choices: Choices, type_: str) -> str:
    return choices.choose(_LITERALS[type_])


def predicate(choices: Choices, columns: Sequence[Typed], depth: int = 1) -> str:
    """A condition over the columns that is often, but not always, true."""
    if depth and choices.chance(30):
        left, right = predicate(choices, columns, depth - 1), predicate(choices, columns, depth - 1)
        return choices.choose((f"({left} OR {right})", f"({left} AND {right})", f"NOT ({left})"))
    usable = [column for column in columns if column.type != TIMESTAMP]
    if not usable:
        return "TRUE"
    column = choices.choose(usable)
    kinds = {"compare": 6, "null": 2, "in": 2, "between": 1, "pair": 2, "special": 2, "or": 1, "neither": 1}
    match choices.weigh(kinds):
        case "or":
            one, other = literal(choices, column.type), literal(choices, column.type)
            return f"({column.text} = {one} OR {column.text} = {other})"
        case "neither" if choices.chance(30):
            fixed = literal(choices, column.type)
            return f"({column.text} > {fixed} AND {column.text} {choices.choose(('<', '='))} {fixed})"
        case "null":
            return f"{column.text} IS {choices.choose(('NOT NULL', 'NULL'))}"
        case "in":
            few = f"({literal(choices, column.type)}, {literal(choices, column.type)})"
            return f"{column.text} {choices.choose(('IN', 'NOT IN'))} {few}"
        case "between" if column.type in _NUMERIC or column.type == DATE:
            return (
                f"{column.text} BETWEEN {literal(choices, column.type)} AND {literal(choices, column.type)}"
            )
        case "pair":
            others = [other for other in columns if other.type == column.type]
            return f"{column.text} {choices.choose(('<=', '=', '<>', '<=>'))} {choices.choose(others).text}"
        case "special" if column.type == STRING:
            return choices.choose(
                (
                    f"{column.text} LIKE 'a%'",
                    f"{column.text} NOT LIKE 'a/_%' ESCAPE '/'",
                    f"LENGTH({column.text}) > 0",
                    f"UPPER({column.text}) = 'AB'",
                )
            )
        case "special" if column.type in (INT, BIGINT):
            return f"{column.text} % 2 = {choices.choose('01')}"
        case "special" if column.type == BOOLEAN:
            return column.text
    return (
        f"{column.text} {choices.choose(('>=', '<=', '<>', '=', '>', '<'))} {literal(choices, column.type)}"
    )


def scalar(choices: Choices, columns: Sequence[Typed]) -> Typed:
    """A value for a select list: mostly a column, now and then something made of columns."""
    column = choices.choose(columns)
    if column.type == TIMESTAMP or choices.chance(60):
        return column
    text, fixed = column.text, literal(choices, column.type)
    options = [Typed(f"COALESCE({text}, {fixed})", column.type)]
    if column.type in (INT, BIGINT):
        options += [
            Typed(f"{text} {op}", column.type) for op in ("+ 1", "* 2", "% 2", "- 1", "& 3", "| 4", "^ 1")
        ]
        options += [
            Typed(f"~{text}", column.type),
            Typed(f"{text} / 2", DOUBLE),
            Typed(f"ABS({text})", column.type),
            Typed(f"CAST({text} AS DOUBLE)", DOUBLE),
        ]
    if column.type == DOUBLE:
        options += [Typed(f"{text} {op}", DOUBLE) for op in ("+ 0.25", "* 2", "/ 2", "- 1")]
    if column.type == DECIMAL:
        options += [Typed(f"{text} + 1.25", DECIMAL), Typed(f"CAST({text} AS DOUBLE)", DOUBLE)]
    if column.type == STRING:
        options += [
            Typed(f"UPPER({text})", STRING),
            Typed(f"CONCAT({text}, '!')", STRING),
            Typed(f"LENGTH({text})", INT),
        ]
    if column.type == DATE:
        options += [Typed(f"{part}({text})", INT) for part in ("YEAR", "MONTH", "QUARTER", "DAYOFWEEK")]
        options += [Typed(f"{text} {op}", DATE) for op in ("+ 1", "- 31")]
        options += [
            Typed(f"CAST({text} + INTERVAL {span} AS DATE)", DATE)
            for span in ("1 MONTH", "-1 YEAR", "2 DAYS", "1 WEEK")
        ]
        options += [Typed(f"ADD_MONTHS({text}, 1)", DATE), Typed(f"DATEDIFF({text}, {fixed})", INT)]
    condition = predicate(choices, columns, 0)
    options += [
        Typed(f"CASE WHEN {condition} THEN {text} ELSE {fixed} END", column.type),
        Typed(f"CASE WHEN {condition} THEN {text} END", column.type),
        Typed(condition, BOOLEAN),
    ]
    return choices.choose(options)


def few_valued(choices: Choices, columns: Sequence[Typed]) -> Typed:
    """An expression that has few values by its shape, whatever its columns have."""
    column = choices.choose(columns)
    text = column.text
    options: list[Typed] = []
    if column.type in (INT, BIGINT):
        options += [
            Typed(f"{text} % 3", column.type),
            Typed(f"ABS({text} % 2) + 1", column.type),
            Typed(f"COALESCE({text} % 2, 7)", column.type),
            Typed(f"GREATEST({text} % 3, 0)", column.type),
            Typed(f"{text} & 5", column.type),
        ]
    if column.type == STRING:
        options += [Typed(f"STARTSWITH({text}, 'a')", BOOLEAN), Typed(f"CONTAINS({text}, 'b')", BOOLEAN)]
    if column.type == DATE:
        options += [Typed(f"{part}({text})", INT) for part in ("MONTH", "DAY", "QUARTER", "DAYOFYEAR")]
    if column.type == TIMESTAMP:
        options += [Typed(f"{part}({text})", INT) for part in ("SECOND", "MINUTE", "HOUR")]
        return choices.choose(options)
    condition = predicate(choices, columns, 0)
    one, two = (literal(choices, column.type) for _ in range(2))
    options += [
        Typed(f"({condition})", BOOLEAN),
        Typed(f"CASE WHEN {condition} THEN {one} WHEN {text} IS NULL THEN {two} END", column.type),
        Typed(f"IF({condition}, {one}, {two})", column.type),
        Typed(f"COALESCE({condition}, {text} IS NULL)", BOOLEAN),
    ]
    return choices.choose(options)


def aggregate(choices: Choices, columns: Sequence[Typed], *, timed: bool = False) -> Typed:
    """An aggregate function over a column, or COUNT(*); `timed` says that rows have the event time of a stream."""
    usable = [column for column in columns if column.type != TIMESTAMP]
    numeric = [column for column in usable if column.type in _NUMERIC]
    truths = [column for column in usable if column.type == BOOLEAN]
    kinds = {"count": 3, "count_of": 2, "extreme": 3, "distinct": 2, "top": 1}
    kinds |= {"by": 2, "any_value": 1, "set": 1, "sketch": 1}
    if numeric:
        kinds |= {"sum": 4, "avg": 2, "median": 1, "quantile": 1, "moment": 2, "pairs": 2, "rank": 1}
    if truths:
        kinds["truth"] = 2
    if timed:
        kinds |= {"first": 2, "list": 1}
    kind = choices.weigh(kinds) if usable else "count"
    choices.features.add(f"aggregate {kind}")
    if kind == "count":
        return Typed("COUNT(*)", BIGINT)
    column = choices.choose(numeric if kind in _OF_NUMBERS else truths if kind == "truth" else usable)
    # Averages of decimals round in a way of their own; what is tested here is their upkeep.
    real = column.text if column.type != DECIMAL else f"CAST({column.text} AS DOUBLE)"
    match kind:
        case "by":
            order = choices.choose(columns).text
            return Typed(f"{choices.choose(('MIN_BY', 'MAX_BY'))}({column.text}, {order})", column.type)
        case "any_value":
            return Typed(f"ANY_VALUE({column.text})", column.type)
        case "first":
            return Typed(f"{choices.choose(('FIRST', 'LAST'))}({column.text})", column.type)
        case "list":
            return Typed(f"COLLECT_LIST({column.text})", TOP)
        case "sketch" if column.type in (BIGINT, INT, BOOLEAN, DATE):
            # Small numbers fall into cells of their own, so that the count is exact.
            return Typed(f"APPROX_COUNT_DISTINCT({column.text})", BIGINT)
        case "set" | "sketch":
            return Typed(f"COLLECT_SET({column.text})", TOP)
        case "rank":
            return Typed(f"APPROX_PERCENTILE({real}, {choices.choose(('0.25', '0.5', '1'))})", AVERAGE)
        case "truth":
            return Typed(
                f"{choices.choose(('BOOL_AND', 'BOOL_OR', 'EVERY', 'SOME'))}({column.text})", BOOLEAN
            )
        case "moment":
            name = choices.choose(("STDDEV", "VARIANCE", "VAR_POP", "STDDEV_POP", "VAR_SAMP", "STDDEV_SAMP"))
            return Typed(f"{name}({real})", AVERAGE)
        case "pairs":
            name = choices.choose(("COVAR_SAMP", "COVAR_POP", "CORR"))
            return Typed(f"{name}({real}, {choices.choose(numeric).text})", AVERAGE)
        case "count_of":
            return Typed(f"COUNT({column.text})", BIGINT)
        case "distinct":
            return Typed(f"COUNT(DISTINCT {column.text})", BIGINT)
        case "extreme":
            return Typed(f"{choices.choose(('MIN', 'MAX'))}({column.text})", column.type)
        case "sum":
            return Typed(f"SUM({column.text})", BIGINT if column.type == INT else column.type)
        case "avg":
            return Typed(f"AVG({real})", AVERAGE)
        case "median":
            return Typed(f"MEDIAN({real})", DOUBLE)
        case "quantile":
            return Typed(f"QUANTILE({real}, {choices.choose(('0.25', '0.5', '0.75', '0.125'))})", DOUBLE)
        case _:
            return Typed(f"TOP({column.text}, {choices.choose('123')})", TOP)
