"""The relational answer, by DuckDB: one query over the contents that its inputs have at each of many instants.

`SELECT k FROM s [RANGE 5 SECONDS]` becomes

    SELECT _i._t, _q.*
    FROM _instants AS _i,
         LATERAL (SELECT k FROM (SELECT k FROM _leaf0 AS _l WHERE _l._t = _i._t) AS s) AS _q

where `_leaf0` holds the contents of the window once for every instant. The query itself stays as it was written; in
`plain` mode it is run by itself for each instant, which is slower and which the tests compare with this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import duckdb
import pyarrow as pa
from sqlglot import exp
from tests.oracle.relation import Relation

INSTANTS, INSTANT, LEAF = "_instants", "_t", "_leaf"

_TOP = """CREATE MACRO top_items(x, k) AS list_transform(
    list_sort(list_transform(
        map_entries(histogram(x)), lambda e: {'n': -CAST(e.value AS BIGINT), 'item': e.key}))[1:k],
    lambda e: {'item': e.item, 'count': -e.n})"""


# Spark's answers where DuckDB's are others: the value of the row that comes first though it is NULL, equal ones by
# value with NULL before all; arrays without NULL, in an order, empty over nothing; no correlation of a single pair.
_MACROS = (
    _TOP,
    """CREATE MACRO first_by(x, y) AS
        arg_min_null(x, CASE WHEN y IS NOT NULL THEN row(y, x IS NOT NULL, x) END)""",
    """CREATE MACRO last_by(x, y) AS
        arg_max_null(x, CASE WHEN y IS NOT NULL THEN row(y, x IS NOT NULL, x) END)""",
    """CREATE MACRO collected(x, t) AS
        list_filter(coalesce(list(x ORDER BY t, x), []), lambda e: e IS NOT NULL)""",
    """CREATE MACRO collected_set(x) AS
        list_sort(list_filter(coalesce(list(DISTINCT x), []), lambda e: e IS NOT NULL))""",
    # Of one value DuckDB says 0 even if it is NaN. What it says of more depends in the last digit on their order.
    """CREATE MACRO population_variance(x) AS
        CASE WHEN bool_or(isnan(x::DOUBLE)) THEN 'nan'::DOUBLE ELSE round(var_pop(x), 12) END""",
    "CREATE MACRO sample_variance(x) AS round(var_samp(x), 12)",
    """CREATE MACRO population_covariance(x, y) AS
        CASE WHEN bool_or(isnan(x::DOUBLE + y::DOUBLE)) THEN 'nan'::DOUBLE ELSE round(covar_pop(x, y), 12) END""",
    "CREATE MACRO sample_covariance(x, y) AS round(covar_samp(x, y), 12)",
    "CREATE MACRO correlation(x, y) AS CASE WHEN regr_count(x, y) > 1 THEN round(corr(x, y), 12) END",
)


@dataclass(frozen=True)
class Answers:
    """Result rows of a query, and the positions of those that belong to each instant."""

    rows: pa.Table
    contents: dict[int, list[int]]


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    # Tiny inputs: threads would cost more than they bring.
    connection.execute("SET threads = 1")
    for macro in _MACROS:
        connection.execute(macro)
    return connection


def answer(
    query: exp.Expr,
    leaves: Mapping[str, Relation],
    instants: Sequence[int],
    width: int,
    *,
    plain: bool = False,
) -> Answers:
    """What a query of `width` columns answers at each instant; its inputs are tables named after the leaves."""
    connection = _connection()
    tables = {name: _contents(leaf, instants) for name, leaf in leaves.items()}
    tables[INSTANTS] = pa.table({INSTANT: pa.array(instants, pa.int64())})
    for name, table in tables.items():
        connection.register(name, table)
    try:
        if plain:
            return _one_by_one(connection, query, leaves, instants, width)
        names = [f"_c{position}" for position in range(width)]
        now = exp.column(INSTANT, table="_i")
        inner = translate(_with_contents(query, leaves, now)).sql(dialect="duckdb")
        sql = (
            f"SELECT _i.{INSTANT}, {', '.join('_q.' + name for name in names)} "
            f"FROM {INSTANTS} AS _i, LATERAL ({inner}) AS _q({', '.join(names)})"
        )
        return _grouped(_fetch(connection, sql), instants)
    finally:
        for name in tables:
            connection.unregister(name)


def _one_by_one(
    connection: duckdb.DuckDBPyConnection,
    query: exp.Expr,
    leaves: Mapping[str, Relation],
    instants: Sequence[int],
    width: int,
) -> Answers:
    names = ", ".join(f"_c{position}" for position in range(width))
    parts = []
    # One instant at which nothing is there gives the columns their types even if there are no instants.
    for instant in (*instants, None):
        now = exp.null() if instant is None else exp.Literal.number(instant)
        inner = translate(_with_contents(query, leaves, now)).sql(dialect="duckdb")
        nothing = " WHERE FALSE" if instant is None else ""
        part = _fetch(connection, f"SELECT * FROM ({inner}) AS _q({names}){nothing}")
        parts.append(part.add_column(0, INSTANT, pa.array([instant] * part.num_rows, pa.int64())))
    return _grouped(pa.concat_tables(parts), instants)


def _hidden(leaf: Relation) -> dict[str, Sequence[int]]:
    """What a query may ask of a leaf's rows besides their columns.

    Their positions, the instants of a stream's rows, the lives of the versions of a table's rows.
    """
    hidden: dict[str, Sequence[int]] = {"_id": range(leaf.rows.num_rows)}
    if leaf.times is not None:
        hidden["_ts"] = leaf.times
    if leaf.versions is not None:
        hidden |= {"_born": leaf.versions.born, "_dies": leaf.versions.dies}
    return hidden


def _contents(leaf: Relation, instants: Sequence[int]) -> pa.Table:
    """The rows of a relation at each instant, with what is hidden about them."""
    at = [(instant, position) for instant in instants for position in leaf.at(instant)]
    positions = pa.array([position for _, position in at], pa.int64())
    table = leaf.rows.take(positions)
    for name, values in _hidden(leaf).items():
        table = table.append_column(name, pa.array(values, pa.int64()).take(positions))
    return table.append_column(INSTANT, pa.array([instant for instant, _ in at], pa.int64()))


def _with_contents(query: exp.Expr, leaves: Mapping[str, Relation], now: exp.Expr) -> exp.Expr:
    """The query with each leaf narrowed to its contents at an instant."""

    def visit(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Table) or node.name not in leaves:
            return node
        leaf = leaves[node.name]
        columns = [exp.column(name, quoted=True) for name in (*leaf.rows.column_names, *_hidden(leaf))]
        inner = exp.select(*columns).from_(exp.alias_(exp.to_table(node.name), "_l", table=True))
        inner = inner.where(exp.EQ(this=exp.column(INSTANT, table="_l"), expression=now.copy()))
        return inner.subquery(node.alias)

    return query.copy().transform(visit)


def translate(query: exp.Expr) -> exp.Expr:
    """The tree with what CQL and DuckDB say differently said DuckDB's way."""

    def visit(node: exp.Expr) -> exp.Expr:
        match node:
            case exp.Anonymous() if node.name.upper() == "TOP":
                return exp.Anonymous(this="top_items", expressions=node.expressions)
            case exp.Anonymous() if node.name.upper() == "EVERY":
                return exp.LogicalAnd(this=node.expressions[0])
            case exp.Anonymous() if node.name.upper() == "SOME":
                return exp.LogicalOr(this=node.expressions[0])
            case exp.Anonymous() if node.name.upper() in ("STD", "MEAN"):
                if node.name.upper() == "MEAN":
                    return exp.Avg(this=node.expressions[0])
                return exp.Sqrt(this=exp.Anonymous(this="sample_variance", expressions=[node.expressions[0]]))
            case exp.Any():
                return exp.LogicalOr(this=node.this.this)
            case exp.AnyValue():
                return exp.Min(this=node.this)
            case exp.ArgMin() | exp.ArgMax():
                name = "first_by" if isinstance(node, exp.ArgMin) else "last_by"
                return exp.Anonymous(this=name, expressions=[node.this, node.expression])
            case exp.VariancePop():
                return exp.Anonymous(this="population_variance", expressions=[node.this])
            case exp.StddevPop():
                return exp.Sqrt(this=exp.Anonymous(this="population_variance", expressions=[node.this]))
            case exp.CovarPop():
                return exp.Anonymous(this="population_covariance", expressions=[node.this, node.expression])
            case exp.Variance():
                return exp.Anonymous(this="sample_variance", expressions=[node.this])
            case exp.Stddev() | exp.StddevSamp():
                return exp.Sqrt(this=exp.Anonymous(this="sample_variance", expressions=[node.this]))
            case exp.CovarSamp():
                return exp.Anonymous(this="sample_covariance", expressions=[node.this, node.expression])
            case exp.Corr():
                return exp.Anonymous(this="correlation", expressions=[node.this, node.expression])
            case exp.ArrayUniqueAgg():
                return exp.Anonymous(this="collected_set", expressions=[node.this])
            case exp.ApproxDistinct():
                # Few values are counted exactly.
                return exp.Count(this=exp.Distinct(expressions=[node.this]))
            case exp.ApproxQuantile():
                return exp.Anonymous(this="quantile_disc", expressions=[node.this, node.args["quantile"]])
            case exp.Quantile():
                return exp.Anonymous(this="quantile_cont", expressions=[node.this, node.args["quantile"]])
            case exp.StrToUnix():
                # Whole seconds, the fraction cut off also before the epoch.
                seconds = exp.Anonymous(
                    this="trunc", expressions=[exp.Anonymous(this="epoch", expressions=[node.this])]
                )
                return exp.Cast(this=seconds, to=exp.DataType.build("BIGINT"))
            case exp.DayOfWeek():
                # Sundays are 1, not 0.
                return exp.Add(
                    this=exp.Anonymous(this="dayofweek", expressions=[node.this]),
                    expression=exp.Literal.number(1),
                )
            case exp.AddMonths():
                return exp.Cast(this=node.copy(), to=exp.DataType.build("DATE"))
            case exp.TimestampDiff():
                # Whole units between, not how many of their ends.
                return exp.Anonymous(
                    this="date_sub",
                    expressions=[exp.Literal.string(node.args["unit"].name), node.expression, node.this],
                )
            case exp.DataType() if node.this in (exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPNTZ):
                return exp.DataType(this=exp.DType.TIMESTAMP, nested=False)
            case _:
                return node

    return query.transform(visit)


def _fetch(connection: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    table = connection.sql(sql).to_arrow_table()
    for position, field in enumerate(table.schema):
        # DuckDB sums whole numbers in 128 bits, which Arrow only has as a decimal.
        if field.type == pa.decimal128(38, 0):
            table = table.set_column(position, field.name, table.column(position).cast(pa.int64()))
    return table


def _grouped(table: pa.Table, instants: Sequence[int]) -> Answers:
    contents: dict[int, list[int]] = {instant: [] for instant in instants}
    for position, instant in enumerate(table.column(INSTANT).to_pylist()):
        contents[instant].append(position)
    return Answers(table.remove_column(0), contents)
