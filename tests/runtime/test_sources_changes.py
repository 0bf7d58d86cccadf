"""Tables that change: their insertions and deletions from files mean what the same changes given in memory mean."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from headgate.model.errors import DataError, DeclarationError
from headgate.session import Session

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
QUERY = "CREATE QUERY q AS SELECT s.k, p.price FROM s [RANGE 10 SECONDS], p WHERE s.k = p.k;"
CHANGES = [(0, "+", 1, 10), (3, "-", 1, 10), (3, "insert", 1, 11), (6, "DELETE", 1, 11), (7, "+", 2, 20)]


def at(second: int) -> dt.datetime:
    return START + dt.timedelta(seconds=second)


def session(folder: Path, source: str) -> Session:
    found = Session()
    found.base = folder
    found.sql(
        "CREATE STREAM s (ts TIMESTAMP, k INT) TIMESTAMP BY ts;"
        f"CREATE TABLE p (k INT, price INT){source};" + QUERY
    )
    found.stream("s", [{"ts": at(each), "k": each % 2 + 1} for each in range(1, 9)])
    return found


def lines(changes: list[tuple[int, Any, int, int]]) -> str:
    rows = [{"at": at(t).isoformat(), "op": op, "k": k, "price": price} for t, op, k, price in changes]
    return "".join(json.dumps(each) + "\n" for each in rows)


def test_changes_from_files(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(lines(CHANGES))
    source = " USING json OPTIONS (path 'p.json', changeTime 'at', changeOp 'op')"
    from_files = session(tmp_path, source).run()["q"].to_polars()
    given = session(tmp_path, "")
    rows = [{"at": at(t), "op": op, "k": k, "price": price} for t, op, k, price in CHANGES]
    given.table_changes("p", rows, time="at", op="op")
    in_memory = given.run()["q"].to_polars()
    assert from_files.equals(in_memory)
    births = (
        from_files.filter(from_files["_op"] == "+").select("k", "price", "_time").sort("_time", "k").rows()
    )
    # The table changes what was joined before: the price that is replaced dies, the new one is born.
    assert (1, 11, at(3)) in births
    assert (2, 20, at(7)) in births


def test_a_change_is_an_insertion_or_a_deletion(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(lines([(0, "+", 1, 1), (1, "upsert", 1, 1)]))
    source = " USING json OPTIONS (path 'p.json', changeTime 'at', changeOp 'op')"
    with pytest.raises(DataError, match="table p: a change is 'upsert' in column op"):
        session(tmp_path, source).run()


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ("changeTime 'at'", "belong together"),
        ("changeTime 'k', changeOp 'op'", "not a TIMESTAMP"),
        ("changeTime 'at', changeOp 'price'", "is a column of the table"),
    ],
)
def test_wrong_options(options: str, cause: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(lines(CHANGES))
    with pytest.raises(DeclarationError, match=cause):
        session(tmp_path, f" USING json OPTIONS (path 'p.json', {options})").run()
