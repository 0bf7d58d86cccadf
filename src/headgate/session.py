"""Session: the one way in. It holds a catalog, reads CQL, and hands out queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text
from sqlglot import exp

from headgate.explain.check_report import CheckReport
from headgate.explain.check_result import CheckResult, html
from headgate.explain.describe import describe_query
from headgate.explain.explanation import Explanation
from headgate.explain.session_text import session_text
from headgate.explain.sizes import measure_sizes
from headgate.explain.stages import StageDescription, describe_stages
from headgate.language.decode import MOST_BYTES, decode
from headgate.language.nodes import CreateStream, CreateTable
from headgate.language.parse import Statement, parse
from headgate.language.render import render_all
from headgate.model.errors import HeadgateError, InputError, NameResolutionError, RefusedError
from headgate.model.source import SourceText
from headgate.model.suggest import did_you_mean
from headgate.optimize.estimate import join_inputs
from headgate.optimize.optimize import Optimized, OptimizedPlan
from headgate.optimize.planned import PlannedQuery
from headgate.optimize.state_size import estimate_state
from headgate.optimize.statistics import Statistics, read_statistics
from headgate.optimize.tree_cost import tree_cost
from headgate.optimize.window_length import suggest_length
from headgate.plan.catalog import Catalog, QueryDef, build_catalog, check_references, redefine
from headgate.plan.nodes import Emit, Join
from headgate.safety.advice.advise import advise
from headgate.safety.advice.edit import Fix
from headgate.safety.advice.sites import names_read
from headgate.safety.examine import examine
from headgate.safety.reasons.join_graph import join_graphs
from headgate.safety.reasons.join_plans import JoinPlans, join_plans
from headgate.safety.theory.punctuation.plans import Cost
from headgate.safety.verdict import Verdict
from headgate.safety.witness.find import find_adversaries, why_none

if TYPE_CHECKING:
    from headgate.physical.edges import Strategy
    from headgate.physical.program import CompiledQuery, Program
    from headgate.runtime.data import Result
    from headgate.runtime.local.witnessing import NotShown, Shown
    from headgate.runtime.local.workspace import LocalWorkspace
    from headgate.runtime.spark.workspace import SparkWorkspace

MOST_EDITED = 32
"""So many sets of edited statements are kept: queries that read each other get the same advice tried."""

_Edited = tuple[Catalog, Statistics, frozenset[tuple[str, str]]]


def read_text(path: str | Path) -> SourceText:
    """A file as source text; InputError if it is missing, too long or not text."""
    file = Path(path)
    try:
        with file.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot read {file}: {reason}", remedy="check the path") from error
    return decode(str(file), data)


def _is_spark(data: Any) -> bool:
    return type(data).__module__.startswith("pyspark.sql") and hasattr(data, "isStreaming")


class Session:
    """Declarations, queries and rows, gathered piece by piece."""

    def __init__(self, spark: Any = None) -> None:
        self.spark = spark
        self.catalog = Catalog()
        self.statements: tuple[Statement, ...] = ()
        self.statistics = Statistics()
        self.base = Path()
        self._known: dict[str, Query] = {}
        """Queries that were asked for: each is planned once, as long as catalog and statistics are the same."""
        self._programs: dict[tuple[object, ...], Program] = {}
        """Programs that were asked for, by the plans of their queries and by how they were compiled."""
        self._edited: list[tuple[_Edited, Mapping[str, Query]]] = []

    @staticmethod
    def from_file(path: str | Path, spark: Any = None) -> Session:
        """A session with all statements of a CQL file."""
        session = Session(spark)
        session.base = Path(path).parent
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
        added = [
            Query(self, PlannedQuery(catalog, query, self.statistics))
            for query in catalog.queries
            if not self.catalog.find(query.name)
        ]
        for query in added:
            query.validate()
        self.catalog = catalog
        self.statements += statements
        self._known |= {query.name: query for query in added}
        return added[-1] if added else None

    def stream(self, name: str, data: Any, *, time: str | None = None, slack: int | None = None) -> None:
        """Gives a stream its rows, in order of arrival; a stream not declared yet gets the data's columns.

        `data` is a streaming DataFrame of Spark's, or a Polars or pandas frame, an Arrow table or a list of dicts;
        `time` names the event time, `slack` is in microseconds; for a declared stream, both may be left out
        and cannot differ.
        """
        if _is_spark(data):
            self.catalog = self.on_spark.add_stream(self.catalog, name, data, time=time, slack=slack)
            return
        self.catalog = self.local.add_stream(self.catalog, name, data, time=time, slack=slack)

    def table(self, name: str, data: Any, *, retroactive: bool | None = None) -> None:
        """Gives a table its rows; one not declared yet gets the data's columns, and is retroactive by default."""
        if _is_spark(data):
            if data.isStreaming:
                raise InputError(
                    f"the DataFrame for table {name} is a streaming one",
                    remedy="give a batch DataFrame (spark.read), or the table's changes with session.table_changes",
                )
            data = data.toArrow()
        self.catalog = self.local.add_table(self.catalog, name, data, retroactive=retroactive)

    def table_changes(self, name: str, data: Any, *, time: str, op: str) -> None:
        """Feeds a declared table by a change stream: `op` is "+" or "-", `time` the instant of the change.

        `data` is a streaming DataFrame of Spark's, or rows as `stream` takes them.
        """
        if _is_spark(data):
            self.catalog = self.on_spark.add_table_changes(self.catalog, name, data, time=time, op=op)
            return
        self.catalog = self.local.add_table_changes(self.catalog, name, data, time=time, op=op)

    def run(self, names: Sequence[str] | None = None, **options: Any) -> dict[str, Result]:
        """Runs the named queries, or all, over all rows in this process; the output of each by name.

        Options are those of `compile`, and of `LocalWorkspace.prepare`: batch_rows, drain, policy, future_us.
        """
        program, options = self._compiled(names, options)
        return self.local.run(program, self.catalog, base=self.base, **options)

    def compile(
        self,
        names: Sequence[str] | None = None,
        *,
        allow_unbounded: bool = False,
        strategy: Strategy = "UPA",
    ) -> Program:
        """The named queries, or all, as a program; RefusedError, with an edit that would help, if one is refused.

        With `allow_unbounded`, those are compiled too whose state is not proven bounded.
        """
        from headgate.physical.compile import compile_queries
        from headgate.physical.program import Refusal

        chosen = [self.query(name) for name in names] if names else list(self.queries)
        planned = [query.planned for query in chosen]
        key = (*planned, allow_unbounded, strategy)
        program = self._programs.get(key)
        if program is None:
            found = compile_queries(planned, allow_unbounded=allow_unbounded, strategy=strategy)
            if isinstance(found, Refusal):
                raise self._advised(found.error)
            self._programs = {key: found}
            program = found
        return program

    def _compiled(
        self, names: Sequence[str] | None, options: Mapping[str, Any]
    ) -> tuple[Program, dict[str, Any]]:
        """A program by those of the options that say how to compile it, and the other options."""
        how = {name: value for name, value in options.items() if name in ("allow_unbounded", "strategy")}
        rest = {name: value for name, value in options.items() if name not in how}
        return self.compile(names, **how), rest

    @cached_property
    def local(self) -> LocalWorkspace:
        """The rows given to this session and the local engine; loaded when it is first needed."""
        from headgate.runtime.local.workspace import LocalWorkspace

        return LocalWorkspace()

    @cached_property
    def on_spark(self) -> SparkWorkspace:
        """The streaming DataFrames given to this session and the engine on Spark."""
        if self.spark is None:
            raise InputError("this session has no Spark", remedy="make it with headgate.Session(spark)")
        from headgate.runtime.spark.cluster import require_spark

        # Before modules are loaded that an old release has not what to load from.
        require_spark()
        from headgate.runtime.spark.workspace import SparkWorkspace

        return SparkWorkspace(self.spark)

    @property
    def trees(self) -> dict[str, exp.Expr]:
        """The syntax trees of all statements, by the case-folded name of what they declare."""
        declared = {
            each.tree.this.name.casefold(): each.tree for each in self.statements if _declares(each.tree)
        }
        return declared | {query.name.casefold(): query.statement.tree for query in self.catalog.queries}

    def _advised(self, error: RefusedError) -> RefusedError:
        """A refusal that says which edit would help, if one is known."""
        fixes = self.query(error.query).fixes
        if not fixes:
            return error
        edit = fixes[0].edit.replace("\n", ", and ")
        remedy = (
            f"{edit} ({fixes[0].effect}); headgate check shows other fixes; or run it with --allow-unbounded"
        )
        return RefusedError(error.cause, query=error.query, remedy=remedy, place=error.place)

    def use_statistics(self, path: str | Path) -> None:
        """Rates and distinct counts for costs, from a YAML file."""
        source = read_text(path)
        self.statistics = read_statistics(source.text, source.name, self.catalog)

    @property
    def queries(self) -> tuple[Query, ...]:
        return tuple(self.query(each.name) for each in self.catalog.queries)

    def query(self, name: str) -> Query:
        """A query by name."""
        found = self.catalog.find(name)
        if not isinstance(found, QueryDef):
            known = [query.name for query in self.catalog.queries]
            raise NameResolutionError(f"there is no query {name}", remedy=did_you_mean(name, known))
        query = self._known.get(found.name)
        if query is None or query.catalog is not self.catalog or query.statistics is not self.statistics:
            planned = PlannedQuery(self.catalog, found, self.statistics)
            query = self._known[found.name] = Query(self, planned)
        return query

    def edited(self, texts: Mapping[str, str]) -> Mapping[str, Query]:
        """The queries as they would be if the statements of these names read so; kept, for other queries ask too."""
        key = (self.catalog, self.statistics, frozenset(texts.items()))
        for position, (known, queries) in enumerate(self._edited):
            if known[0] is key[0] and known[1] is key[1] and known[2] == key[2]:
                self._edited.append(self._edited.pop(position))
                return queries
        catalog = redefine(self.catalog, texts)
        queries = {
            each.name: Query(self, PlannedQuery(catalog, each, self.statistics)) for each in catalog.queries
        }
        self._edited = [*self._edited, (key, queries)][-MOST_EDITED:]
        return queries

    def render(self) -> str:
        """All statements as canonical CQL."""
        return render_all(self.statements)

    def _text(self) -> Text:
        # Engines are not loaded to look at a session: what has not been loaded has no rows.
        local, on_spark = self.__dict__.get("local"), self.__dict__.get("on_spark")
        given = {} if local is None else {name: f"{rows.height:,} rows" for name, rows in local.rows.items()}
        given |= {} if on_spark is None else dict.fromkeys(on_spark.frames, "a streaming DataFrame")
        engine = "on the local engine" if self.spark is None else "on Spark"
        return session_text(self.catalog, engine, given)

    def __repr__(self) -> str:
        return self._text().plain.rstrip("\n")

    def _repr_html_(self) -> str:
        return html(self._text())


def _declares(tree: exp.Expr) -> bool:
    return isinstance(tree, (CreateStream, CreateTable))


@dataclass(frozen=True)
class Query:
    """A query of a session, at every stage of its path."""

    session: Session
    planned: PlannedQuery

    @property
    def name(self) -> str:
        return self.planned.name

    @property
    def catalog(self) -> Catalog:
        return self.planned.catalog

    @property
    def definition(self) -> QueryDef:
        return self.planned.definition

    @property
    def statistics(self) -> Statistics:
        return self.planned.statistics

    @property
    def plan(self) -> Emit:
        """Bound, normalized, and checked to mean something."""
        return self.planned.plan

    def validate(self) -> None:
        """Raises unless the query binds and means something."""
        self.planned.validate()

    @property
    def optimized(self) -> Optimized:
        """The cheapest plan and what it was compared with."""
        return self.planned.optimized

    @property
    def judged(self) -> Verdict:
        """The gate's verdict on the plan that would run, without advice."""
        return self.planned.verdict

    @cached_property
    def _even_unbounded(self) -> CompiledQuery:
        """The query as operators, whatever the gate says: for those who look at it."""
        from headgate.physical.compile import compile_query

        return compile_query(self.planned, allow_unbounded=True)

    def check(self) -> CheckResult:
        """The verdict on every state of the plan that would run, and fixes if it is refused."""
        note = next((each.note for each in self.join_plans if each.note), "")
        return CheckResult.of(
            replace(self.judged, fixes=self.fixes, plan_note=note), show=lambda: self.checked
        )

    @cached_property
    def kept(self) -> OptimizedPlan:
        """The plan that would run, with the states that it has because of what the gate found."""
        return estimate_state(self.optimized.best, self.optimized.judgement.state_plan, self.statistics)

    @cached_property
    def join_plans(self) -> tuple[JoinPlans, ...]:
        """For each join that forgets by promise, which plans could, and which promises it needs."""
        best, state_plan = self.kept, self.optimized.judgement.state_plan
        edges = best.estimates.edges

        def cost(node: Join) -> Cost:
            return tree_cost(join_inputs(node, [edges[each] for each in node.members]))

        return join_plans(best.plan, state_plan, cost)

    @cached_property
    def checked(self) -> CheckReport:
        """The verdict with the graphs of the joins, and the sizes of the states if rates were given."""
        best = self.optimized.best
        sizes = measure_sizes(self.kept, assumed=False) if self.statistics.given else None
        return CheckReport(self.check(), join_graphs(best.plan), sizes, plans=self.join_plans)

    def witness(self, count: int) -> Shown | None:
        """For a refused query, `count` rows that any correct algorithm must remember, and how state grows with them.

        None if the query is admitted, or if no such rows are known. All rows have been played: they keep the promises
        of their streams, they change answers to come, and they are kept.
        """
        from headgate.runtime.local.witnessing import NotShown

        found = self._witnessed(count)
        return None if isinstance(found, NotShown) else found

    @property
    def no_witness(self) -> str:
        """Why a refused query has no witness, in words."""
        from headgate.runtime.local.witnessing import LEAST_ROWS, NotShown

        found = self._witnessed(LEAST_ROWS)
        reason = (
            found.reason
            if isinstance(found, NotShown)
            else "the rows that would show it are too many to play"
        )
        return f"no rows are known that show it for this query: {reason}"

    def _witnessed(self, count: int) -> Shown | NotShown:
        from headgate.runtime.local.witnessing import LEAST_ROWS, NotShown, Shown, play

        if self.judged.admitted:
            return NotShown("it is admitted")
        refuted: NotShown | None = None
        for trial in find_adversaries(self.plan, max(count, LEAST_ROWS)):
            found = play(trial, self._even_unbounded)
            if isinstance(found, Shown) and count < LEAST_ROWS:
                fewer = [each for each in find_adversaries(self.plan, count) if each.resembles(trial)]
                found = play(fewer[0], self._even_unbounded) if fewer else NotShown("there are too few rows")
            if isinstance(found, Shown):
                return found
            refuted = refuted or found
        return refuted or NotShown(why_none(self.plan))

    @cached_property
    def fixes(self) -> tuple[Fix, ...]:
        """For a refused query, edits with which the gate admits it; each has been tried."""
        if self.judged.admitted:
            return ()
        return advise(
            self.definition,
            self.plan,
            self.catalog,
            self.session.trees,
            self._admits,
            lambda stream: suggest_length(self.statistics, stream.name),
        )

    def _admits(self, texts: Mapping[str, str]) -> bool:
        """Whether the gate admits this query once the definitions of these names read so.

        Other queries that read them have to go on meaning something, and to stay admitted if they were.
        """
        try:
            edited = self.session.edited(texts)
            return edited[self.name].planned.is_bounded and all(
                edited[other.name]._stays_as_good_as(other)
                for other in self._others
                if not texts.keys().isdisjoint(other.names_read)
            )
        except HeadgateError:
            return False

    def _stays_as_good_as(self, before: Query) -> bool:
        """Whether this query, which has to mean something, is admitted if it was before."""
        self.validate()
        return not before.judged.admitted or self.planned.is_bounded

    @cached_property
    def _others(self) -> list[Query]:
        """The other queries of the session, kept so that each is judged once."""
        return [each for each in self.session.queries if each.name != self.name]

    @cached_property
    def names_read(self) -> frozenset[str]:
        """The case-folded names of this query and of all queries and streams behind it."""
        return names_read(self.definition, self.catalog)

    def run(self, **options: Any) -> Result:
        """Runs this query alone over all rows of its session, in this process."""
        return self.session.run([self.name], **options)[self.name]

    def to_df(self, *, finite: bool = False, **options: Any) -> Any:
        """The query's output as a streaming DataFrame. Options are those of `Session.compile` and `SparkOptions`.

        An instant is answered once every stream has gone beyond it by more than its slack, since until then a row of
        that instant may come. So the answers to the last rows wait for later ones. With `idle_ms`, a stream that has
        been silent for so long holds nobody up.

        `finite=True` is for streams that end: with what is there when the query starts, all instants are answered, as
        `headgate run` does. Start it with `.trigger(availableNow=True)`; Spark then reads everything in one
        micro-batch, whatever limits the sources have. Rows of a later run are late if those before were answered.
        """
        session = self.session
        program, options = session._compiled([self.name], options)
        return session.on_spark.to_df(
            program.queries[0], base=session.base, tables=session.local.rows, finite=finite, **options
        )

    def start(self, sink: Any, *, checkpoint: str | Path | None = None, **options: Any) -> Any:
        """Starts the query on Spark and gives Spark's handle of it.

        `sink` is a folder (a Path), a name of a Spark format ("memory", "console", "kafka", …) or a function of a
        micro-batch's DataFrame and its number. Options are those of `to_df`; besides, `trigger` and
        `sink_options` are handed to Spark. With `finite=True` the query answers to the end of what is there and
        stops: see `to_df`.
        """
        session = self.session
        program, options = session._compiled([self.name], options)
        return session.on_spark.start(
            program.queries[0],
            sink,
            base=session.base,
            tables=session.local.rows,
            checkpoint=checkpoint,
            **options,
        )

    def explain(self, *, alternatives: bool = False, shards: int | None = None) -> Explanation:
        """The plan, with the update pattern and the state of every operator, and its stages on `shards` of Spark."""
        others = self.optimized.compared[1:] if alternatives else ()
        plans = [
            self.kept,
            *(
                estimate_state(each, examine(self.name, each.plan, each.edges).state_plan, self.statistics)
                for each in others
            ),
        ]
        described = [describe_query(self.name, each, assumed=not self.statistics.given) for each in plans]
        stages: tuple[tuple[StageDescription, ...], ...] = ()
        if shards is not None:
            from headgate.physical.stages import cut

            compiled = self._even_unbounded
            stages = (describe_stages(cut(compiled.graph, compiled.facts, shards), compiled.facts),)
        return Explanation((described[0],), (tuple(described[1:]),) if alternatives else (), stages)

    def __repr__(self) -> str:
        return str(self.explain())

    def _repr_svg_(self) -> str:
        return self.explain().to_svg()
