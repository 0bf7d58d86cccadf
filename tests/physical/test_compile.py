"""Compiling happens once: every pass runs once for each query, whatever a command asks for."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from typer.testing import CliRunner

from headgate.cli.main import app
from headgate.model.errors import RefusedError
from headgate.optimize.optimize import optimize
from headgate.optimize.planned import PlannedQuery
from headgate.physical.compile import compile_queries, compile_query
from headgate.physical.lower import lower
from headgate.physical.program import CompiledQuery, Program, Refusal
from headgate.plan import patterns
from headgate.plan.bind import bind
from headgate.plan.normalize import normalize
from headgate.runtime.io import tables
from headgate.safety.examine import examine
from headgate.session import Session

PASSES = (bind, optimize, examine, lower)
FILE = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts USING csv OPTIONS (path 's.csv', header true);
CREATE TABLE t (k BIGINT, name STRING) USING csv OPTIONS (path 't.csv', header true);
CREATE QUERY counts AS SELECT k, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k;
CREATE QUERY named AS SELECT ISTREAM(t.name) FROM s [RANGE 1 MINUTE], t WHERE s.k = t.k;
"""
OPEN = "CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts; CREATE QUERY q AS SELECT DISTINCT k FROM s"


def counting(do: Callable[[], Any], functions: tuple[Callable[..., Any], ...]) -> Counter[str]:
    """How often the functions are called, from wherever."""
    names = {each.__code__: each.__name__ for each in functions}
    found: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in names:
            found[names[frame.f_code]] += 1

    sys.setprofile(note)
    try:
        do()
    finally:
        sys.setprofile(None)
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "s.csv").write_text("ts,k\n2026-01-01T00:00:00Z,1\n")
    (tmp_path / "t.csv").write_text("k,name\n1,one\n")
    (tmp_path / "q.cql").write_text(FILE)
    return tmp_path / "q.cql"


def invoke(*words: str) -> None:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("command", ["check", "explain"])
def test_a_command_that_looks_at_queries_plans_each_once(command: str, file: Path) -> None:
    found = counting(lambda: invoke(command, str(file)), PASSES)
    assert found == {"bind": 2, "optimize": 2, "examine": 2}


def test_a_run_compiles_each_query_once_and_reads_each_table_once(file: Path, tmp_path: Path) -> None:
    words = ("run", str(file), "-o", str(tmp_path / "out"), "--engine", "local", "--quiet")
    found = counting(lambda: invoke(*words), (*PASSES, normalize, tables.read_table))
    assert found.pop("normalize") >= 2
    assert found == {"bind": 2, "optimize": 2, "examine": 2, "lower": 2, "read_table": 1}


def test_a_node_is_labelled_once_in_whatever_plans_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    kept: list[object] = []
    edge = patterns._edge

    def noting(node: Any, inputs: Any) -> Any:
        seen.append(id(node))
        kept.append(node)
        return edge(node, inputs)

    monkeypatch.setattr(patterns, "_edge", noting)
    session = Session()
    session.sql(FILE)
    for query in session.queries:
        query.check()
        query.explain(alternatives=True)
    session.compile()
    assert len(seen) == len(set(seen)) > 0


def test_a_program_is_kept_until_something_changes() -> None:
    session = Session()
    session.sql(FILE)
    program = session.compile()
    assert session.compile() is program
    assert session.compile(["counts"]) is not program
    session.sql("CREATE QUERY more AS SELECT COUNT(*) AS n FROM s [RANGE 1 MINUTE]")
    assert [query.name for query in session.compile()] == ["counts", "named", "more"]


def test_a_program_says_what_it_reads_and_why_it_may_run() -> None:
    session = Session()
    session.sql(FILE)
    program = session.compile()
    assert [stream.name for stream in program.streams] == ["s"]
    assert [table.name for table in program.tables] == ["t"]
    assert [query.verdict.kind for query in program] == ["bounded", "bounded"]


def planned(text: str) -> PlannedQuery:
    query = Session().sql(text)
    assert query is not None
    return query.planned


def test_what_the_gate_refuses_is_no_program() -> None:
    refusal = compile_queries([planned(OPEN)])
    assert isinstance(refusal, Refusal)
    assert refusal.verdict.kind == "refused"
    assert refusal.error.query == "q"
    allowed = compile_queries([planned(OPEN)], allow_unbounded=True)
    assert isinstance(allowed, Program)
    assert allowed.queries[0].graph.allowed_unbounded


def test_operators_belong_to_the_plan_that_was_admitted() -> None:
    one, other = (compile_query(planned(FILE)) for _ in range(2))
    with pytest.raises(ValueError, match="another plan"):
        CompiledQuery(one.admitted, other.facts, one.graph)


def test_a_refusal_says_which_edit_would_help() -> None:
    session = Session()
    session.sql(OPEN)
    with pytest.raises(RefusedError) as refused:
        session.compile()
    assert refused.value.remedy is not None
    assert "headgate check shows other fixes" in refused.value.remedy
