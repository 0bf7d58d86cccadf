"""The commands: what they say about themselves, their options, pipes and exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.cli_runner import headgate

import headgate as hg
from headgate.cli.interrupt import RunInterrupt, report_kept_on_interrupt
from headgate.cli.main import app
from headgate.explain.glossary import POINTER
from headgate.runtime.local.engine import LocalRun

EXAMPLES = Path(__file__).parents[2] / "examples"
COMMANDS = [command.callback.__name__ for command in app.registered_commands if command.callback]
REFUSED = (
    "CREATE STREAM s (ts TIMESTAMP, a BIGINT) TIMESTAMP BY ts;\nCREATE QUERY q AS SELECT DISTINCT a FROM s;\n"
)


AS_PROGRAM = "import sys; sys.argv[0] = 'headgate'; from headgate.cli.main import run; run()"


def started(*arguments: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Runs `headgate` as a program of its own, its output going into pipes."""
    return subprocess.run(
        [sys.executable, "-c", AS_PROGRAM, *map(str, arguments)],
        capture_output=True,
        env=os.environ | environment,
        timeout=120,
        check=False,
    )


@pytest.fixture
def refused(tmp_path: Path) -> Path:
    file = tmp_path / "refused.cql"
    file.write_text(REFUSED, encoding="utf-8")
    return file


# -- help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(command: str) -> None:
    outcome = headgate(command, "--help")
    words = " ".join(outcome.out.split())
    assert outcome.code == 0
    assert "Example" in words
    assert f"headgate {command}" in words.split("Example", 1)[1]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_80_columns(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = headgate(*filter(None, [command]), "--help").out.splitlines()
    assert max(map(len, lines)) <= 80
    # What an option means has room beside it, in lines of several words.
    told = [line for line in lines if line.lstrip().startswith("-")]
    assert told
    assert not any(word in line for line in lines for word in ("<bool>", "<int", "<float", "[bold]"))


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_says_what_exit_codes_mean(command: str) -> None:
    said = headgate(*filter(None, [command]), "--help").out
    for code in ("  0 ", "  2 ", "  3 "):
        assert code in said.partition("Exit codes:")[2]


def test_the_version_is_that_of_the_package() -> None:
    outcome = headgate("--version")
    assert (outcome.code, outcome.out) == (0, f"headgate {version('headgate')}\n")
    assert hg.__version__ == version("headgate")


@pytest.mark.parametrize(
    ("words", "found"), [("headgate ch", "check"), ("headgate run --over", "--overwrite")]
)
def test_a_shell_completes_commands_and_options(words: str, found: str) -> None:
    position = str(len(words.split()) - 1)
    done = started(_HEADGATE_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=position)
    assert done.stdout.decode().split() == [found]


def test_help_lists_the_commands() -> None:
    assert all(command in headgate("--help").out for command in COMMANDS)
    assert {"check", "explain"} <= set(COMMANDS)


def test_an_unknown_command_is_bad_input() -> None:
    outcome = headgate("explane", "f.cql")
    assert outcome.code == 2
    assert "explain" in outcome.err


@pytest.mark.parametrize(
    "arguments", [["check"], ["explain", "f.cql", "--format", "pdf"], ["check", "--nosuch"]]
)
def test_wrong_usage_is_bad_input(arguments: list[str]) -> None:
    assert headgate(*arguments).code == 2


# -- exit codes -----------------------------------------------------------------------------------


def test_check_leaves_0_when_all_is_bounded() -> None:
    outcome = headgate("check", EXAMPLES / "network.cql")
    assert outcome.code == 0
    assert outcome.out.splitlines()[:2] == [
        "conditional  query1_ftp",
        "  ✓ istream over a, b: window, rows leave after 2000 SECONDS",
    ]


def test_check_leaves_1_when_a_query_is_refused(refused: Path) -> None:
    outcome = headgate("check", refused)
    assert (outcome.code, outcome.err) == (1, "")
    assert (
        outcome.out
        == "refused  q\n  ✗ distinct over s: not bounded, s has no window, so every row of it stays\n"
        "  fix 1  SELECT a\n         a value may be answered several times\n"
        "  fix 2  WHERE a BETWEEN 0 AND 999\n"
        "         only rows with a from 0 to 999 (a placeholder) count\n"
        "  fix 3  FROM s [RANGE 10 MINUTES]\n"
        "         only rows of s from the last 10 MINUTES (a placeholder) count\n"
        "  fix 4  CREATE STREAM s (…, CHECK (a BETWEEN 0 AND 999))\n"
        "         right only if every row of s has a from 0 to 999 (a placeholder)\n"
        "         must find no rows: SELECT * FROM s WHERE NOT (a BETWEEN 0 AND 999)\n"
        "  fix 5  CREATE STREAM s … ORDERED BY (a) WITHIN 1000 ROWS\n"
        "         right only if rows of s come in order of a, up to 1000 rows (a placeholder), with no NULL in a\n"
        "         must find no rows: SELECT * FROM (SELECT a, MAX(a) OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED "
        "PRECEDING AND 1001 PRECEDING) AS before FROM s) AS q WHERE a < before\n"
        "         must find no rows: SELECT * FROM s WHERE a IS NULL\n"
        "  fix 6  CREATE STREAM s (…, closing BOOLEAN) … PUNCTUATED BY (a) WHEN closing\n"
        "         right only if the data of s gets a column closing that is true in the last row of each a, "
        "with no NULL in a\n"
        "         must find no rows: SELECT a FROM s GROUP BY a HAVING MAX(ts) > "
        "MIN(CASE WHEN closing THEN ts END)\n"
        "         must find no rows: SELECT * FROM s WHERE a IS NULL\n"
        f"{POINTER}\n"
    )


def test_check_json(refused: Path) -> None:
    outcome = headgate("check", refused, "--format", "json")
    assert outcome.code == 1
    (query,) = json.loads(outcome.out)["queries"]
    assert (query["name"], query["verdict"]) == ("q", "refused")
    assert [
        (state["operator"], state["stream"], state["bounded"], state["by"]) for state in query["states"]
    ] == [("distinct", "s", False, "none")]
    assert [(fix["kind"], fix["edit"], fix["changes_answer"]) for fix in query["fixes"]] == [
        ("distinct", "SELECT a", True),
        ("values", "WHERE a BETWEEN 0 AND 999", True),
        ("window", "FROM s [RANGE 10 MINUTES]", True),
        ("check", "CREATE STREAM s (…, CHECK (a BETWEEN 0 AND 999))", False),
        ("constraint", "CREATE STREAM s … ORDERED BY (a) WITHIN 1000 ROWS", False),
        ("punctuation", "CREATE STREAM s (…, closing BOOLEAN) … PUNCTUATED BY (a) WHEN closing", False),
    ]
    assert [(fix["needs_proof"], bool(fix["checks"])) for fix in query["fixes"]] == [
        *[(False, False)] * 3,
        *[(True, True)] * 3,
    ]


def test_check_takes_several_files(refused: Path) -> None:
    outcome = headgate("check", EXAMPLES / "quickstart.cql", refused)
    assert outcome.code == 1
    heads = [line for line in outcome.out.splitlines() if not line.startswith(" ")]
    assert heads == [
        str(EXAMPLES / "quickstart.cql"),
        "bounded  wanted",
        "bounded  active",
        str(refused),
        "refused  q",
        POINTER,
    ]


def test_check_draws_the_joins_of_a_query() -> None:
    outcome = headgate("check", EXAMPLES / "auction.cql", "--query", "closing")
    assert outcome.out.splitlines()[-4:-1] == [
        "  graph  i ── i.itemid = b.itemid ── b",
        "         i ──▶ b  PUNCTUATED BY (itemid)",
        "         b ──▶ i  KEY (itemid)",
    ]


def test_check_estimates_the_state_from_statistics() -> None:
    stats = EXAMPLES / "join_order_5_3.yaml"
    outcome = headgate("check", EXAMPLES / "join_order_5_3.cql", "--stats", stats, "--format", "json")
    (query,) = json.loads(outcome.out)["queries"]
    terms = {
        term["stream"]: term["rows"] for term in query["estimate"]["terms"] if term["operator"] == "join"
    }
    assert terms == {"S1": 1000, "S2": 100, "S3": 200, "S4": 300}
    assert query["estimate"]["rows"] == sum(term["rows"] for term in query["estimate"]["terms"])
    assert query["estimate"]["bytes"] == sum(term["bytes"] for term in query["estimate"]["terms"])


@pytest.mark.parametrize("format", ["svg", "html"])
def test_check_as_a_document(format: str, tmp_path: Path) -> None:
    hostile = tmp_path / "hostile.cql"
    text = (EXAMPLES / "refused.cql").read_text(encoding="utf-8")
    hostile.write_text(text.replace("QUERY paid", "QUERY `<script>`"), encoding="utf-8")
    outcome = headgate("check", hostile, "--format", format)
    assert outcome.code == 1
    assert "<script>" not in outcome.out
    assert "&lt;script&gt;" in outcome.out
    drawn = re.search(r"<svg.*?</svg>", outcome.out, re.S)
    assert drawn is not None
    assert len(ET.fromstring(drawn.group()).findall(".//{*}path[@class='head']")) == 2


def test_a_page_has_no_graph_where_windows_alone_bound_the_join(tmp_path: Path) -> None:
    file = tmp_path / "windows.cql"
    file.write_text(
        """CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts KEY (k);
        CREATE STREAM t (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts;
        CREATE QUERY q AS SELECT s.k FROM s [RANGE 1 MINUTE], t [RANGE 1 MINUTE] WHERE s.k = t.k;""",
        encoding="utf-8",
    )
    page = headgate("check", file, "--format", "html")
    assert page.code == 0
    assert "join over s" in page.out
    assert "<svg" not in page.out
    # Who asks for the picture gets it.
    assert "<svg" in headgate("check", file, "--format", "svg").out


def test_explain_leaves_0_even_for_what_check_refuses(refused: Path) -> None:
    assert headgate("explain", refused).code == 0


@pytest.mark.parametrize("command", ["check", "explain"])
def test_a_missing_file(command: str, tmp_path: Path) -> None:
    outcome = headgate(command, tmp_path / "nosuch.cql")
    assert outcome.code == 2
    assert outcome.err.startswith(
        f"error[HG001]: cannot read {tmp_path}/nosuch.cql: No such file or directory\n"
    )


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    outcome = headgate("check", tmp_path)
    assert outcome.code == 2
    assert "Is a directory" in outcome.err


# -- options --------------------------------------------------------------------------------------


def test_one_query_of_many() -> None:
    outcome = headgate("explain", EXAMPLES / "network.cql", "--query", "query3", "-q", "QUERY2_pairs")
    assert [line.split()[0] for line in outcome.out.splitlines() if "answer" in line and "cost" in line] == [
        "query3",
        "query2_pairs",
    ]


@pytest.mark.parametrize("command", ["check", "explain"])
def test_an_unknown_query(command: str) -> None:
    outcome = headgate(command, EXAMPLES / "network.cql", "--query", "query33")
    assert outcome.code == 2
    assert outcome.err == "error[HG201]: there is no query query33\n  help: did you mean query3?\n"


def test_the_canonical_text() -> None:
    outcome = headgate("explain", EXAMPLES / "auction.cql", "--format", "cql")
    assert outcome.code == 0
    expected = """
CREATE QUERY active_bidders AS
SELECT ISTREAM(DISTINCT bidder)
FROM bids [RANGE 1 MINUTE]
WHERE NOT closing;
"""
    assert expected in outcome.out


def test_alternatives_are_shown_on_request() -> None:
    file = EXAMPLES / "network.cql"
    assert "alternative 1 of " not in headgate("explain", file, "-q", "query4").out
    assert "alternative 1 of " in headgate("explain", file, "-q", "query4", "--alternatives").out


STATISTICS = {
    "streams: [S1]": "streams must be a mapping",
    "- a": "the file must be a mapping",
    "streams: {S9: {rate: 1}}": "streams.S9: no such stream or table\n  help: did you mean S4?",
    "streams: {S1: {rat: 1}}": "streams.S1: unknown entry rat",
    "streams: {S1: {rate: fast}}": "streams.S1.rate must be a number from 0 to 1e+15, not 'fast'",
    "streams: {S1: {rate: -1}}": "streams.S1.rate must be a number from 0 to 1e+15, not -1",
    "streams: {S1: {rate: .inf}}": "streams.S1.rate must be a number from 0 to 1e+15, not inf",
    "streams: {S1: {rate: .nan}}": "streams.S1.rate must be a number from 0 to 1e+15, not nan",
    "streams: {S1: {rate: true}}": "streams.S1.rate must be a number from 0 to 1e+15, not True",
    "streams: {S1: {distinct: {b: 5}}}": "streams.S1.distinct.b: no such column",
    "streams: {S1: {distinct: {a: 0}}}": "streams.S1.distinct.a must be a number from 1 to 1e+15, not 0",
    "streams: {S1: 5}": "streams.S1 must be a mapping",
    "streams: {S1: {": "stats.yaml:1:16: error[HG001]: this is not YAML: ",
    "a: b: c": "stats.yaml:1:5: error[HG001]: this is not YAML: mapping values are not allowed here",
    "streams: 2026-13-45": "this is not YAML that can be read",
    "[" * 5000: "this is not YAML that can be read",
}


@pytest.mark.parametrize("text", STATISTICS, ids=range(len(STATISTICS)))
def test_bad_statistics(text: str, tmp_path: Path) -> None:
    stats = tmp_path / "stats.yaml"
    stats.write_text(text, encoding="utf-8")
    outcome = headgate("explain", EXAMPLES / "join_order_5_3.cql", "--stats", stats)
    assert (outcome.code, outcome.out) == (2, "")
    assert STATISTICS[text] in outcome.err
    assert "stats.yaml" in outcome.err


def test_missing_statistics(tmp_path: Path) -> None:
    outcome = headgate("explain", EXAMPLES / "join_order_5_3.cql", "--stats", tmp_path / "nosuch.yaml")
    assert outcome.code == 2
    assert "nosuch.yaml: No such file" in outcome.err


# -- terminals and pipes --------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["check", "explain"])
def test_a_pipe_gets_no_colours(command: str) -> None:
    done = started(command, EXAMPLES / "network.cql")
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout
    assert "query4" in done.stdout.decode()


def test_a_terminal_gets_colours() -> None:
    assert b"\x1b[" in started("explain", EXAMPLES / "network.cql", FORCE_COLOR="1", TERM="xterm").stdout


def test_long_lines_are_not_folded() -> None:
    done = started("explain", EXAMPLES / "linear_road.cql", COLUMNS="40")
    assert max(len(line) for line in done.stdout.decode().splitlines()) > 100


def test_a_terminal_without_unicode() -> None:
    done = started("check", EXAMPLES / "network.cql", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert b"? istream over a, b" in done.stdout
    assert done.stderr == b""


@pytest.mark.parametrize("form", ["text", "json", "svg"])
def test_a_reader_that_goes_away_is_no_error_message(form: str) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [
        sys.executable,
        "-m",
        "headgate.cli.main",
        "explain",
        str(EXAMPLES / "network.cql"),
        "--format",
        form,
    ]
    done = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(write_end)
    assert done.stderr == b""


def test_bad_input_as_a_program(tmp_path: Path) -> None:
    file = tmp_path / "f.cql"
    file.write_text("SELECT a FROM nosuch", encoding="utf-8")
    done = started("check", file)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Traceback" not in done.stderr
    assert (
        f"{file}:1:15: error[HG201]: there is no stream, table or query named nosuch".encode() in done.stderr
    )


# -- the environment ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (OSError(28, "No space left on device", "/x/y"), "there is no space left for /x/y"),
        (OSError(5, "Input/output error"), "Input/output error"),
        (MemoryError("62 TiB"), "there is not enough memory: 62 TiB"),
    ],
)
def test_what_the_system_fails_with_ends_with_3(
    failure: Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise failure

    monkeypatch.setattr("headgate.session.read_text", fails)
    outcome = headgate("check", EXAMPLES / "network.cql")
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.splitlines()[0] == f"error[HG601]: {said}"


# -- Ctrl-C ---------------------------------------------------------------------------------------


def test_an_interrupted_run_says_what_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalRun, "run", interrupted)
    outcome = headgate("run", EXAMPLES / "quickstart.cql", "-o", tmp_path / "out", "--engine", "local")
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.err == (
        f"interrupted: nothing was written to {tmp_path / 'out'}, and the same command starts anew; "
        "with --checkpoint DIR, on Spark, a run can go on where it was\n"
    )
    assert list((tmp_path / "out").iterdir()) == []


def test_an_interrupted_run_with_a_checkpoint_can_go_on() -> None:
    with pytest.raises(RunInterrupt, match=r"the state in state; the same command goes on from there"):
        interrupt_within(Path("state"))


def interrupt_within(checkpoint: Path) -> None:
    with report_kept_on_interrupt(Path("out"), checkpoint):
        raise KeyboardInterrupt


def test_an_interrupted_check_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("headgate.session.read_text", interrupted)
    outcome = headgate("check", EXAMPLES / "network.cql")
    assert (outcome.code, outcome.out, outcome.err) == (130, "", "interrupted\n")


# -- options of sources ---------------------------------------------------------------------------

OPTIONS = {
    "USING csv OPTIONS (path 's.csv', heder true)": "s: csv files have no option heder",
    "USING csv OPTIONS (path 's.csv', sep ';;')": "s: sep ';;' is not one plain character",
    "USING csv OPTIONS (path 's.csv', header 'maybe')": "s: header is 'maybe'",
    "USING csv OPTIONS (header true)": "s has no path",
    "USING csv OPTIONS (path 's.csv', mode 'PERMISSIVE')": "s: mode 'PERMISSIVE' is not supported for csv files",
    "USING json OPTIONS (path 's.json', timestampFormat 'qq')": "the date pattern 'qq' is not supported",
    "USING parquet OPTIONS (path 's', header true)": "s: parquet files have no option header",
}


@pytest.mark.parametrize("using", OPTIONS)
@pytest.mark.parametrize("command", [("check",), ("run", "--engine", "local", "-o", "out")])
def test_check_refuses_the_options_that_run_refuses(
    using: str, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "f.cql"
    file.write_text(
        f"CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts {using};"
        "CREATE QUERY q AS SELECT ISTREAM(k) FROM s [RANGE 1 SECOND];"
    )
    outcome = headgate(*command, file)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"]: {OPTIONS[using]}\n" in outcome.err


@pytest.mark.parametrize(
    ("declaration", "said"),
    [
        (
            "CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts USING kafka",
            "no Kafka servers are named",
        ),
        (
            "CREATE TABLE s (k BIGINT) USING json OPTIONS (path 's', changeTime 'at')",
            "changeTime and changeOp belong together",
        ),
        ("CREATE TABLE s (k BIGINT) USING postgres OPTIONS (tabel 's')", "postgres has no option tabel here"),
    ],
)
def test_check_looks_at_all_sources_that_it_knows(declaration: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "f.cql"
    file.write_text(
        f"CREATE STREAM r (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts; {declaration};"
        "CREATE QUERY q AS SELECT ISTREAM(r.k) FROM r [RANGE 1 SECOND], s WHERE r.k = s.k;"
        "CREATE QUERY p AS SELECT ISTREAM(k) FROM r [RANGE 1 SECOND];"
    )
    outcome = headgate("check", file)
    assert outcome.code == 2
    assert said in outcome.err
    # What no query reads is not looked at, as in a run.
    assert headgate("check", file, "--query", "p").code == 0
