"""A checkpoint knows its query: every process describes it the same way, and another query otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from tests.oracle.casefile import all_cases
from tests.spark.on_spark import folder_at
from tests.spark.shards import stage_of

from headgate.model.errors import InputError
from headgate.runtime.spark.checkpoint import claim

pytestmark = pytest.mark.usefixtures("spark")

ROOT = Path(__file__).parents[2]

BY_VALUES = """
CREATE STREAM s (ts TIMESTAMP, a BIGINT, b BIGINT, c BIGINT, e BIGINT) TIMESTAMP BY ts;
CREATE STREAM t (ts TIMESTAMP, d BIGINT) TIMESTAMP BY ts;
CREATE QUERY least AS SELECT DISTINCT a, c, e FROM s, t
  WHERE b < d AND a BETWEEN 11 AND 19 AND c BETWEEN 1 AND 3 AND e BETWEEN 5 AND 6;
CREATE QUERY total AS SELECT a, SUM(b) FROM s, t WHERE a = d AND a BETWEEN 11 AND 19 GROUP BY a;
"""

DECLARED = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT, v BIGINT, w DOUBLE) TIMESTAMP BY ts;
CREATE STREAM p (ts TIMESTAMP, k BIGINT, v BIGINT) TIMESTAMP BY ts PUNCTUATED BY (k) WHEN v + 7 > 9;
CREATE TABLE t (k BIGINT, v BIGINT) NON RETROACTIVE;
CREATE QUERY q AS """
TABLES = {"t": pa.table({"k": pa.array([1]), "v": pa.array([2])})}


def descriptions() -> str:
    """What a checkpoint remembers of every query of every case, and of queries that keep few values."""
    stages = {
        f"{case} {query}": stage_of(case.text, query, case.tables, shards=4)
        for case in all_cases()
        for query in case.expected
    }
    stages |= {query: stage_of(BY_VALUES, query, {}, shards=4) for query in ("least", "total")}
    return "\n".join(line for name, stage in stages.items() for line in (name, *stage.description()))


def test_other_processes_describe_a_query_the_same() -> None:
    program = "from tests.spark.test_fingerprint import descriptions; print(descriptions())"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    one, other = (process.communicate()[0] for process in running)
    assert all(process.returncode == 0 for process in running)
    assert len(one.splitlines()) > len(all_cases())
    assert one == other


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM s [NOW] WHERE v * 2 + 7 > k",
        "SELECT v + 7 FROM s [NOW]",
        "SELECT a.k FROM s [NOW] a, s [NOW] b WHERE a.k = b.k AND a.v + 7 < b.v",
        "SELECT k FROM s [NOW] WHERE EXISTS (SELECT * FROM s [NOW] b WHERE b.k * 2 + b.v < s.k + 7)",
        "SELECT k FROM s [NOW] WHERE NOT EXISTS (SELECT * FROM s [NOW] b WHERE b.k = s.k AND b.v < s.v + 7)",
        "SELECT s.k FROM s [NOW], t WHERE s.k = t.k AND s.v + 7 < t.v",
        "SELECT k, SUM(v + 7) FROM s [RANGE 1 MINUTE] GROUP BY k",
        "SELECT k, COUNT(*) FROM s [RANGE 1 MINUTE] GROUP BY k HAVING COUNT(*) > 7",
        "SELECT k, QUANTILE(w, 0.7) FROM s [RANGE 1 MINUTE] GROUP BY k",
        "SELECT k FROM s [RANGE 7 MINUTES]",
        "SELECT k FROM s [ROWS 7]",
        "SELECT ISTREAM(k, COUNT(*)) FROM p GROUP BY k",
    ],
)
def test_a_query_with_another_constant_is_refused_with_the_difference(query: str, tmp_path: Path) -> None:
    text = DECLARED + query
    other = text.replace("7", "8")
    claimed = claim(folder_at(tmp_path), [stage_of(text, "q", TABLES, shards=2)])
    claimed.keep()
    again = claim(folder_at(tmp_path), [stage_of(text, "q", TABLES, shards=2)])
    assert (claimed.fresh, again.fresh) == (True, False)
    assert claimed.run == again.run
    with pytest.raises(InputError, match="another form of query q") as refusal:
        claim(folder_at(tmp_path), [stage_of(other, "q", TABLES, shards=2)])
    went = [line for line in str(refusal.value).splitlines() if line.startswith("  - ")]
    came = [line for line in str(refusal.value).splitlines() if line.startswith("  + ")]
    assert went
    assert not {line[4:] for line in went} & {line[4:] for line in came}


def test_a_long_line_is_shown_from_where_it_differs(tmp_path: Path) -> None:
    columns = ", ".join(f"v + {number} AS c{number}" for number in range(100, 180))
    text = f"{DECLARED} SELECT {columns}, v * 2 AS last FROM s [NOW]"
    claim(folder_at(tmp_path), [stage_of(text, "q", TABLES, shards=2)]).keep()
    with pytest.raises(InputError, match=r"- ….*\* CAST\(2 AS BIGINT\)") as refusal:
        claim(folder_at(tmp_path), [stage_of(text.replace("v * 2", "v * 3"), "q", TABLES, shards=2)])
    assert max(map(len, str(refusal.value).splitlines())) < 400
