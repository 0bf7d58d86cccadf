"""`headgate profile`: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.cli_runner import headgate

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The shop of the examples, with its data."""
    shutil.copy(EXAMPLES / "shop.cql", tmp_path)
    shutil.copytree(EXAMPLES / "data" / "shop", tmp_path / "data" / "shop")
    return tmp_path / "shop.cql"


def test_json_has_the_measures_the_verdicts_and_the_clauses(shop: Path) -> None:
    outcome = headgate("profile", shop, "--query", "vans", "--format", "json")
    assert (outcome.code, outcome.err) == (0, "")
    found = json.loads(outcome.out)
    assert list(found) == ["streams", "queries"]
    assert found["streams"] == [
        {
            "name": "shipments",
            "rows": 517,
            "keys": [],
            "constraints": [
                {
                    "kind": "ca",
                    "columns": ["van"],
                    "references": None,
                    "k": 3,
                    "unit": "rows",
                    "clause": "CLUSTERED BY (van) WITHIN 3 ROWS",
                },
                {
                    "kind": "oap",
                    "columns": ["van"],
                    "references": None,
                    "k": 3,
                    "unit": "rows",
                    "clause": "ORDERED BY (van) WITHIN 3 ROWS",
                },
            ],
        }
    ]
    (query,) = found["queries"]
    assert query["name"] == "vans"
    assert query["before"]["verdict"] == "refused"
    assert query["after"]["verdict"] == "conditional"
    assert query["after"]["state_rows"] < query["before"]["state_rows"]
    assert query["clauses"] == ["CREATE STREAM shipments … ORDERED BY (van) WITHIN 3 ROWS"]


def test_json_is_alone_on_stdout_and_a_clause_that_would_change_an_answer_is_told_beside_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "f.cql").write_text(
        "CREATE STREAM s (ts TIMESTAMP, a BIGINT) TIMESTAMP BY ts USING csv OPTIONS (path 's.csv', header true);\n"
        "CREATE QUERY q AS SELECT a, COUNT(*) AS n FROM s GROUP BY a;\n",
        encoding="utf-8",
    )
    rows = [f"2025-01-01 00:{n // 60:02}:{n % 60:02},{n // 20 if n % 9 else ''}" for n in range(200)]
    (tmp_path / "s.csv").write_text("\n".join(["ts,a", *rows]), encoding="utf-8")
    outcome = headgate("profile", tmp_path / "f.cql", "--format", "json")
    assert json.loads(outcome.out)["queries"][0]["clauses"] == []
    assert "CREATE STREAM s … ORDERED BY (a) WITHIN 0 ROWS: not proposed: with it, the answer" in outcome.err


def test_html_is_a_page_of_its_own_with_pictures(shop: Path) -> None:
    page = headgate("profile", shop, "--query", "vans", "--format", "html").out
    assert page.startswith("<!doctype html>")
    assert "<script" not in page
    assert "ORDERED BY (van) WITHIN 3 ROWS" in page
    pictures = ["<svg" + part.partition("</svg>")[0] + "</svg>" for part in page.split("<svg")[1:]]
    assert len(pictures) == 2
    for picture in pictures:
        root = ET.fromstring(picture)
        wide = float(root.attrib["width"])
        bars = [each for each in root.iter() if each.tag.endswith("rect") and "x" in each.attrib]
        assert bars
        assert all(float(bar.attrib["x"]) + float(bar.attrib["width"]) < wide for bar in bars)


def test_write_puts_the_clauses_into_the_file_and_the_gate_admits_it(shop: Path) -> None:
    before = shop.read_text(encoding="utf-8")
    outcome = headgate("profile", shop, "--query", "vans", "--margin", "2", "--write")
    assert outcome.code == 0
    assert outcome.err == "written: CREATE STREAM shipments … ORDERED BY (van) WITHIN 6 ROWS\n"
    written = "  ORDERED BY (van) WITHIN 6 ROWS\n  USING csv OPTIONS (path 'data/shop/shipments.csv'"
    assert shop.read_text(encoding="utf-8") == before.replace(
        "  USING csv OPTIONS (path 'data/shop/shipments.csv'", written
    )
    assert headgate("check", shop, "--query", "vans").code == 0
    again = headgate("profile", shop, "--query", "vans", "--write")
    assert "there is nothing to write" in again.err


def test_check_names_profile_where_a_clause_could_help(shop: Path) -> None:
    said = headgate("check", shop, "--query", "vans").out
    assert (
        f"  next   headgate profile {shop}: what the rows promise, and the state that it would save" in said
    )


@pytest.mark.parametrize(
    "text",
    [
        # Without a file there are no rows to look at, of fractions nobody promises anything, the last is not refused.
        "CREATE STREAM s (ts TIMESTAMP, a BIGINT) TIMESTAMP BY ts; SELECT DISTINCT a FROM s;",
        "CREATE STREAM s (ts TIMESTAMP, a DOUBLE) TIMESTAMP BY ts USING csv OPTIONS (path 's');"
        "SELECT DISTINCT a FROM s;",
        "CREATE STREAM s (ts TIMESTAMP, a BIGINT) TIMESTAMP BY ts USING csv OPTIONS (path 's');"
        "SELECT a FROM s [NOW];",
    ],
)
def test_check_does_not_name_profile_where_none_could(text: str, tmp_path: Path) -> None:
    file = tmp_path / "f.cql"
    file.write_text(text, encoding="utf-8")
    assert "headgate profile" not in headgate("check", file).out


STREAM = "CREATE STREAM s (ts TIMESTAMP, a BIGINT) TIMESTAMP BY ts{};\nCREATE QUERY q AS SELECT DISTINCT a FROM s;\n"
CSV = " USING csv OPTIONS (path 's.csv', header true)"

BAD_INPUT = [
    (STREAM.format(""), (), "error[HG203]: s has no source to read rows from"),
    (STREAM.format(" USING rate"), (), "error[HG102]: s reads from rate, and profile looks at files"),
    (STREAM.format(CSV), ("--query", "p"), "error[HG201]: there is no query p"),
    (STREAM.format(CSV), ("--rows", "few"), "error[HG001]: --rows few is not a number of rows"),
    (STREAM.format(CSV), ("--rows", "0"), "error[HG001]: --rows 0 is not a number of rows"),
    (STREAM.format(CSV), (), "error[HG001]: there are no rows in s, so there is nothing to find"),
    (STREAM.format(CSV.replace("s.csv", "t.csv")), (), "error[HG001]: there is no file"),
    (STREAM.format(CSV.replace("s.csv", "../s.csv")), (), "leads out of"),
    (STREAM.format(CSV).replace(" TIMESTAMP BY ts", ""), (), "error[HG203]: stream s has no event time"),
]


@pytest.mark.parametrize(("text", "options", "message"), BAD_INPUT, ids=[each[2] for each in BAD_INPUT])
def test_bad_input_ends_with_a_message(
    text: str, options: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    (tmp_path / "f.cql").write_text(text, encoding="utf-8")
    (tmp_path / "s.csv").write_text("ts,a\n", encoding="utf-8")
    outcome = headgate("profile", tmp_path / "f.cql", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err


def test_a_row_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "f.cql").write_text(STREAM.format(CSV), encoding="utf-8")
    (tmp_path / "s.csv").write_text("ts,a\n2025-01-01 00:00:00,x\n", encoding="utf-8")
    outcome = headgate("profile", tmp_path / "f.cql")
    assert outcome.code == 2
    assert "s.csv" in outcome.err
    assert "error[HG501]" in outcome.err


def test_a_stream_that_no_query_reads_need_not_have_rows(shop: Path) -> None:
    with shop.open("a", encoding="utf-8") as file:
        file.write("CREATE STREAM returns (ts TIMESTAMP, orderid STRING) TIMESTAMP BY ts;\n")
    outcome = headgate("profile", shop, "--rows", "100")
    assert outcome.code == 0
    assert "returns" not in outcome.out
    assert "shipments  100 rows, a sample\n" in outcome.out


def test_a_file_without_queries_still_has_keys(shop: Path) -> None:
    shop.write_text(shop.read_text(encoding="utf-8").partition("-- Which parcels")[0], encoding="utf-8")
    outcome = headgate("profile", shop)
    assert outcome.code == 0
    assert "orders  300 rows; keys: orderid\n" in outcome.out
    assert "There is no query here that a clause could help." in outcome.out
