"""What `explain` and `check` print, for people and for programs."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from tests.cli_runner import headgate
from tests.explain.plans import ask

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*.cql"))


def check_node(node: dict[str, Any]) -> int:
    """Asserts the shape of a JSON node and all below it; counts them."""
    assert set(node) == {"op", "pattern", "state", "detail", "inputs"}
    assert node["pattern"] in ("MON", "WKS", "WK", "STR")
    if node["op"] == "join" and "order" in node["detail"]:
        assert len(node["detail"]["order"]) == len(node["inputs"])
        assert node["detail"]["cost"] >= 0
    return 1 + sum(check_node(each) for each in node["inputs"])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_json_of_every_example(file: Path) -> None:
    done = headgate("explain", str(file), "--format", "json")
    assert done.code == 0
    for query in json.loads(done.out)["queries"]:
        assert query["output"] in ("ISTREAM", "DSTREAM", "RSTREAM", "WSTREAM", "RELATION")
        assert query["pattern"] in ("MON", "WKS", "WK", "STR")
        assert check_node(query["plan"]) > 1


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_svg_is_well_formed_and_shows_every_operator(file: Path) -> None:
    picture = ET.fromstring(headgate("explain", str(file), "--format", "svg").out)
    queries = json.loads(headgate("explain", str(file), "--format", "json").out)["queries"]
    boxes = [element for element in picture.iter() if element.tag.endswith("}title")]
    assert len(boxes) == sum(check_node(query["plan"]) for query in queries)


def test_text_has_one_line_per_operator_and_no_colours_in_a_pipe() -> None:
    done = headgate("explain", str(EXAMPLES / "quickstart.cql"), "--query", "active")
    assert done.out.splitlines()[2] == "distinct  bidder                   WK   calendar(10) ~60 rows"
    assert "\x1b" not in done.out


def test_canonical_cql_explains_the_same(tmp_path: Path) -> None:
    file = EXAMPLES / "auction.cql"
    again = tmp_path / "again.cql"
    again.write_text(headgate("explain", str(file), "--format", "cql").out)
    assert headgate("explain", str(again)).out == headgate("explain", str(file)).out


def test_notebooks_get_a_picture_and_terminals_a_tree() -> None:
    query = ask("SELECT a FROM S1 [RANGE 1 MINUTE]")
    assert query._repr_svg_().startswith("<svg")
    assert "window  [RANGE 1 MINUTE]" in repr(query)


def test_check_exits_1_when_a_query_is_refused_and_0_when_none_is(tmp_path: Path) -> None:
    assert headgate("check", str(EXAMPLES / "quickstart.cql")).code == 0
    assert headgate("check", str(EXAMPLES / "auction.cql")).code == 0
    file = tmp_path / "half.cql"
    file.write_text(
        "CREATE STREAM s (ts TIMESTAMP, a BIGINT) TIMESTAMP BY ts;\n"
        "CREATE QUERY grows AS SELECT DISTINCT a FROM s;\n"
        "CREATE QUERY stays AS SELECT DISTINCT a FROM s [ROWS 5];\n",
        encoding="utf-8",
    )
    done = headgate("check", str(file), "--format", "json")
    assert done.code == 1
    verdicts = {query["name"]: query["verdict"] for query in json.loads(done.out)["queries"]}
    assert verdicts == {"grows": "refused", "stays": "bounded"}


def test_a_query_that_does_not_exist(tmp_path: Path) -> None:
    done = headgate("explain", str(EXAMPLES / "quickstart.cql"), "--query", "activ")
    assert done.code == 2
    assert "did you mean active?" in done.err


@pytest.mark.parametrize("command", ["explain", "check", "run", "demo", "reproduce", "bench"])
def test_help_has_an_example(command: str) -> None:
    done = headgate(command, "--help")
    assert done.code == 0
    assert "headgate" in done.out
    assert "Example" in done.out


def test_a_reader_that_goes_away_is_no_error() -> None:
    script = f"{sys.executable} -m headgate.cli.main explain {EXAMPLES / 'auction.cql'} | head -1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("closing")
    assert "Traceback" not in done.stderr
