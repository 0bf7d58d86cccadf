"""Session: the one way in. It holds a catalog, reads CQL, and hands out queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from headgate.explain.describe import describe_query
from headgate.explain.explanation import Explanation
from headgate.language.parse import LONGEST_TEXT, Statement, parse
from headgate.language.render import render_all
from headgate.model.errors import InputError, NameResolutionError
from headgate.model.source import SourceText
from headgate.model.suggest import did_you_mean
from headgate.optimize.optimize import Optimized, optimize
from headgate.optimize.statistics import Statistics, read_statistics
from headgate.plan.bind import BoundQuery, bind
from headgate.plan.catalog import Catalog, QueryDef, build_catalog, check_references
from headgate.plan.meaning import check_meaning
from headgate.plan.nodes import Emit
from headgate.plan.normalize import normalize
from headgate.plan.patterns import label
from headgate.safety.gate import judge
from headgate.safety.verdict import Verdict


def read_text(path: str | Path) -> SourceText:
    """A file as source text; InputError if it is missing, too long or not text."""
    file = Path(path)
    try:
        with file.open("rb") as stream:
            data = stream.read(4 * LONGEST_TEXT + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot read {file}: {reason}", remedy="check the path") from error
    if len(data) > 4 * LONGEST_TEXT:
        raise InputError(
            f"{file} is too long: at most {LONGEST_TEXT:,} characters are read",
            remedy="split it into several files",
        )
    try:
        return SourceText(str(file), data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(
            f"{file} is not UTF-8 text (byte {error.start})", remedy="give a text file of CQL statements"
        ) from error


class Session:
    """Declarations and queries, gathered statement by statement."""

    def __init__(self) -> None:
        self.catalog = Catalog()
        self.statements: tuple[Statement, ...] = ()
        self.statistics = Statistics()

    @staticmethod
    def from_file(path: str | Path) -> Session:
        """A session with all statements of a CQL file."""
        session = Session()
        session.read(read_text(path))
        return session

    def sql(self, text: str) -> Query | None:
        """Reads statements; gives the last query among them, if there is one."""
        return self.read(SourceText("<sql>", text))

    def read(self, source: SourceText) -> Query | None:
        """Reads the statements of a source text, all or none; gives the last query among them."""
        statements = parse(source)
        catalog = build_catalog(statements, self.catalog)
        check_references(catalog, statements)
        added = [query for query in catalog.queries if not self.catalog.find(query.name)]
        for query in added:
            Query(catalog, query, self.statistics).validate()
        self.catalog = catalog
        self.statements += statements
        return self.query(added[-1].name) if added else None

    def use_statistics(self, path: str | Path) -> None:
        """Rates and distinct counts for costs, from a YAML file."""
        source = read_text(path)
        self.statistics = read_statistics(source.text, source.name, self.catalog)

    @property
    def queries(self) -> tuple[Query, ...]:
        return tuple(Query(self.catalog, query, self.statistics) for query in self.catalog.queries)

    def query(self, name: str) -> Query:
        """A query by name."""
        found = self.catalog.find(name)
        if not isinstance(found, QueryDef):
            known = [query.name for query in self.catalog.queries]
            raise NameResolutionError(f"there is no query {name}", remedy=did_you_mean(name, known))
        return Query(self.catalog, found, self.statistics)

    def render(self) -> str:
        """All statements as canonical CQL."""
        return render_all(self.statements)


@dataclass(frozen=True)
class Query:
    """A query of a session, at every stage of its path."""

    catalog: Catalog
    definition: QueryDef
    statistics: Statistics

    @property
    def name(self) -> str:
        return self.definition.name

    @cached_property
    def bound(self) -> BoundQuery:
        """Names resolved, types checked."""
        return bind(self.catalog, self.definition)

    @cached_property
    def plan(self) -> Emit:
        """Normalized, and checked to mean something."""
        plan = replace(self.bound.plan, input=normalize(self.bound.plan.input))
        check_meaning(plan, label(plan), self.bound.statement)
        return plan

    def validate(self) -> None:
        """Raises unless the query binds and means something."""
        _ = self.plan

    @cached_property
    def optimized(self) -> Optimized:
        """The cheapest plan and what it was compared with."""
        return optimize(self.plan, self.statistics)

    def check(self) -> Verdict:
        """The verdict on every state of the plan that would run."""
        return judge(self.name, self.optimized.best.plan)

    def explain(self, *, alternatives: bool = False) -> Explanation:
        """The plan, with the update pattern and the state of every operator."""
        described = [
            describe_query(self.name, each, assumed=not self.statistics.given)
            for each in self.optimized.compared
        ]
        return Explanation((described[0],), (tuple(described[1:]),) if alternatives else ())

    def __repr__(self) -> str:
        return str(self.explain())

    def _repr_svg_(self) -> str:
        return self.explain().to_svg()
