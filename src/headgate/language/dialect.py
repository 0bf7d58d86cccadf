"""CQL as a sqlglot dialect: Spark SQL plus windows, relation-to-stream operators and declarations."""

from __future__ import annotations

from sqlglot.dialects.spark import Spark

from headgate.language.generator import CqlGenerator
from headgate.language.parser import CqlParser


class Cql(Spark):
    """The dialect's door: `sqlglot.parse(text, dialect="cql")` and `tree.sql(dialect="cql")`."""

    Parser = CqlParser
    Generator = CqlGenerator
