"""What `headgate run` says of constraints WITHIN AUTO: that rows strayed from them, or that no k was ever found."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli_runner import headgate

from headgate.model import monitoring
from headgate.model.monitoring import Monitoring

JOIN = """
CREATE STREAM s (ts TIMESTAMP, a BIGINT) TIMESTAMP BY ts USING csv OPTIONS (path 's.csv', header 'true');
CREATE STREAM t (ts TIMESTAMP, a BIGINT) TIMESTAMP BY ts ORDERED BY (a) WITHIN AUTO
  USING csv OPTIONS (path 't.csv', header 'true');
CREATE QUERY q AS SELECT ISTREAM(s.a) FROM s [RANGE 1 HOUR], t [RANGE 1 HOUR] WHERE s.a = t.a;
"""


def said(folder: Path, values: list[int]) -> str:
    """What a run says on standard error, over rows of t with these values."""
    rows = "".join(f"2026-01-01 00:00:{at:02},{value}\n" for at, value in enumerate(values))
    for name in ("s", "t"):
        (folder / f"{name}.csv").write_text(f"ts,a\n{rows}")
    (folder / "q.cql").write_text(JOIN)
    options = ("--engine", "local", "--output", folder / "out")
    return " ".join(headgate("run", folder / "q.cql", *options).err.split())


def test_a_stream_that_ends_before_a_k_was_found(tmp_path: Path) -> None:
    assert (
        "warning t ORDERED BY (a) WITHIN AUTO was never used: its stream ended after 4 rows, and a k is found from "
        "1,000 on; write the k if you know it, t ORDERED BY (a) WITHIN k ROWS, or ask `headgate profile` for it"
    ) in said(tmp_path, [1, 2, 3, 4])


def test_rows_that_never_keep_to_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "DEFAULT", Monitoring(window=4, limit=2))
    assert (
        "t ORDERED BY (a) WITHIN AUTO was never used: among any 4 of 8 rows some strayed by 2 or more; leave the "
        "clause out"
    ) in said(tmp_path, [9, 1, 1, 1, 9, 1, 1, 1])


def test_rows_that_stray_from_what_was_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "DEFAULT", Monitoring(window=4))
    found = said(tmp_path, [1, 2, 3, 4, 5, 1])
    assert "q: rows have strayed further than before from t ORDERED BY (a) WITHIN AUTO" in found
    assert "never used" not in found


def test_nothing_is_said_while_rows_keep_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "DEFAULT", Monitoring(window=4))
    assert "WITHIN AUTO" not in said(tmp_path, [1, 2, 3, 4, 5, 6])
