"""Metrics: what operators hold, the text that Prometheus reads, and the server that hands it out."""

from __future__ import annotations

import http.client
import re
import socket
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import polars as pl
import pytest

import headgate as hg
from headgate.model.errors import SetupError
from headgate.runtime.exposition import CONTENT_TYPE, FAMILIES, exposition
from headgate.runtime.local.engine import LocalRun
from headgate.runtime.local.files import metrics_of
from headgate.runtime.metrics_registry import MetricsRegistry
from headgate.runtime.metrics_server import serve_metrics
from headgate.runtime.spark.shard_reports import constraints_of

METRICS = {
    "query": "hot",
    "output": "ISTREAM",
    "engine": "spark",
    "allowed_unbounded": False,
    "rows_in": 170036,
    "rows_out": 590,
    "late_rows": 3,
    "waiting_rows": 12,
    "clock": 1735692899500000,
    "steps": 7,
    "batches": 6,
    "peak_state_rows": 49981,
    "peak_state_bytes": 1900000,
    "operators": {"4:join": {"state_rows": 5321, "state_bytes": 200000}},
    "seconds": {"4:join": 1.25},
    "stage_seconds": {"load": 0.5},
    "cache_hits": 10,
    "cache_misses": 2,
    "spark": {"seconds": {"addBatch": 4.5}, "state_memory_bytes": 99},
}

LINE = re.compile(r'[a-z_]+\{[a-z]+="(?:[^"\\\n]|\\.)*"(?:,[a-z]+="(?:[^"\\\n]|\\.)*")*\} -?[0-9.e+-]+')


def prepared(text: str, rows: pl.DataFrame) -> LocalRun:
    session = hg.Session()
    session.stream("s", rows)
    session.sql(text)
    run, _ = session.local.prepare(session.compile(None), session.catalog, base=Path(), drain=False)
    return run


def test_operators_that_remember_say_how_much() -> None:
    rows = pl.DataFrame({"ts": [1, 2, 3], "k": [7, 7, 8]}).with_columns(
        pl.from_epoch("ts", time_unit="s").dt.replace_time_zone("UTC")
    )
    run = prepared("CREATE QUERY q AS SELECT ISTREAM(DISTINCT k) FROM s [RANGE 1 MINUTE]", rows)
    run.run(lambda query, frame: None, lambda query, stream, late: None)
    found = metrics_of(run.states["q"], {})
    names = {name.partition(":")[2]: sizes for name, sizes in found["operators"].items()}
    assert "project" not in names
    assert names["distinct"]["state_rows"] > 0
    assert sum(each["state_rows"] for each in found["operators"].values()) == found["state_rows"]
    assert sum(each["state_bytes"] for each in found["operators"].values()) == found["state_bytes"]
    assert found["operators"].keys() < found["seconds"].keys()
    # Another row may still come at 3.
    assert found["clock"] == 2_999_999


def test_each_line_is_one_that_prometheus_reads() -> None:
    text = exposition([METRICS, {**METRICS, "query": "cold"}])
    assert text.endswith("\n")
    for line in text.splitlines():
        assert line.startswith(("# HELP headgate_", "# TYPE headgate_")) or LINE.fullmatch(line), line
    assert 'headgate_state_rows{query="hot",operator="4:join"} 5321' in text
    assert 'headgate_clock_seconds{query="cold"} 1735692899.5' in text
    assert 'headgate_late_rows_total{query="hot"} 3' in text
    assert 'headgate_stage_seconds_total{query="hot",stage="load"} 0.5' in text
    assert 'headgate_spark_seconds_total{query="hot",phase="addBatch"} 4.5' in text


def test_a_family_is_announced_once_and_its_samples_stand_together() -> None:
    text = exposition([METRICS, {**METRICS, "query": "cold"}])
    announced = re.findall(r"# TYPE (\S+) (\S+)", text)
    assert len(announced) == len(dict(announced))
    for name, kind in announced:
        assert (kind == "counter") == name.endswith("_total")
        block = text.split(f"# TYPE {name} ")[1].split("# HELP")[0]
        assert all(line.startswith(f"{name}{{") for line in block.splitlines()[1:])
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def test_what_is_not_known_is_left_out() -> None:
    local = {key: METRICS[key] for key in ("query", "output", "engine", "allowed_unbounded", "rows_in")}
    text = exposition([{**local, "clock": None, "operators": {}}])
    assert "headgate_clock_seconds" not in text
    assert "headgate_spark" not in text
    assert exposition([]) == ""


def test_names_cannot_break_out_of_their_quotes() -> None:
    text = exposition([{**METRICS, "query": 'a"} 1\nheadgate_evil 2\\'}])
    assert 'query="a\\"} 1\\nheadgate_evil 2\\\\"' in text
    assert "\nheadgate_evil" not in text


def test_a_scrape_gets_the_newest_metrics() -> None:
    registry = MetricsRegistry()
    with serve_metrics(lambda: exposition(registry.all()), 0) as address:
        with urlopen(address, timeout=10) as empty:
            assert empty.read() == b""
        registry.put(METRICS)
        registry.put({**METRICS, "rows_in": 200000})
        with urlopen(address, timeout=10) as response:
            assert response.headers["Content-Type"] == CONTENT_TYPE
            text = response.read().decode()
        assert text == exposition(registry.all())
        assert 'headgate_rows_in_total{query="hot"} 200000' in text
        with urlopen(Request(address, method="HEAD"), timeout=10) as head:
            assert head.headers["Content-Length"] == str(len(text.encode()))
            assert head.read() == b""


@pytest.mark.parametrize("path", ["/", "/metrics/../../etc/passwd", "/metricsx"])
def test_nothing_else_is_served(path: str) -> None:
    with serve_metrics(lambda: "secret 1\n", 0) as address:
        with pytest.raises(HTTPError) as refused:
            urlopen(address.replace("/metrics", path, 1), timeout=10)
        assert refused.value.code == 404
        refused.value.close()


def test_other_methods_are_refused() -> None:
    with serve_metrics(lambda: "", 0) as address:
        connection = http.client.HTTPConnection(address.split("/")[2], timeout=10)
        connection.request("POST", "/metrics", body=b"x")
        assert connection.getresponse().status == 501
        connection.close()


def test_only_this_machine_is_answered() -> None:
    with serve_metrics(lambda: "", 0) as address:
        assert address.startswith("http://127.0.0.1:")


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = f"cannot serve metrics on 127.0.0.1:{port}"
        with pytest.raises(SetupError, match=message), serve_metrics(lambda: "", port):
            pass


def test_many_threads_put_and_read() -> None:
    registry = MetricsRegistry()

    def put(name: str) -> None:
        for number in range(200):
            registry.put({**METRICS, "query": name, "rows_in": number})
            exposition(registry.all())

    threads = [Thread(target=put, args=(f"q{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(each["query"] for each in registry.all()) == ["q0", "q1", "q2", "q3"]
    assert {each["rows_in"] for each in registry.all()} == {199}


CONSTRAINTS = {
    "3:punctuations": {
        "constraint": "s ORDERED BY (a) WITHIN AUTO",
        "k": 12,
        "detectable": 15,
        "changes": 3,
        "changed": 1735692899500000,
        "violations": 1,
        "arrived": 5000,
        "window": 1000,
    },
    "4:punctuations": {
        "constraint": "s CLUSTERED BY (a) WITHIN AUTO",
        "k": None,
        "detectable": 100000,
        "changes": 0,
        "changed": None,
        "violations": 0,
        "arrived": 5000,
        "window": 1000,
    },
}


def test_monitored_constraints_say_which_k_is_in_use() -> None:
    lines = [
        line
        for line in exposition([{**METRICS, "constraints": CONSTRAINTS}]).splitlines()
        if line.startswith("headgate_constraint")
    ]
    order, cluster = (
        f'{{query="hot",operator="{operator}",constraint="{known["constraint"]}"}}'
        for operator, known in CONSTRAINTS.items()
    )
    assert lines == [
        f"headgate_constraint_k{order} 12",
        f"headgate_constraint_detectable{order} 15",
        f"headgate_constraint_detectable{cluster} 100000",
        f"headgate_constraint_changes_total{order} 3",
        f"headgate_constraint_changes_total{cluster} 0",
        f"headgate_constraint_changed_seconds{order} 1735692899.5",
        f"headgate_constraint_violations_total{order} 1",
        f"headgate_constraint_violations_total{cluster} 0",
    ]


def test_shards_each_find_a_k_and_the_greatest_is_shown() -> None:
    def shard(k: int | None, arrived: int, violations: int = 0) -> dict[str, Any]:
        known = {**CONSTRAINTS["3:punctuations"], "k": k, "arrived": arrived, "violations": violations}
        return {"constraints": {"3:punctuations": known}}

    def together(*shards: dict[str, Any]) -> tuple[int | None, int, int]:
        known = constraints_of(shards)["3:punctuations"]
        return known["k"], known["arrived"], known["violations"]

    assert together(shard(2, 100), shard(7, 50, 1), shard(None, 0)) == (7, 150, 1)
    assert together(shard(2, 100), shard(None, 50, 1)) == (None, 150, 1)
