"""A Spark that stays on this machine cannot be reached from another one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.spark.faults import descendants
from tests.spark.listening import addresses, beyond_loopback

from headgate.runtime.spark.loopback import loopback

needs_proc = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs /proc")
HOST, BIND = "spark.driver.host", "spark.driver.bindAddress"


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2]", "local[2,3]", "local-cluster[2,1,1024]"])
def test_masters_that_stay_here(master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    with loopback(master, {}) as settings:
        assert settings == {HOST: "127.0.0.1", BIND: "127.0.0.1"}
        assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert "SPARK_LOCAL_IP" not in os.environ


@pytest.mark.parametrize(
    ("master", "given", "ip"),
    [
        ("yarn", {}, None),
        ("spark://local:7077", {}, None),
        ("k8s://https://local[2]", {}, None),
        ("local[2]", {HOST: "10.0.0.1"}, None),
        ("local[2]", {BIND: "0.0.0.0"}, None),
        ("local[2]", {}, "10.0.0.1"),
    ],
)
def test_other_masters_and_other_wishes(
    master: str, given: Mapping[str, str], ip: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    if ip is not None:
        monkeypatch.setenv("SPARK_LOCAL_IP", ip)
    with loopback(master, given) as settings:
        assert settings == {}
        assert os.environ.get("SPARK_LOCAL_IP") == ip


PROGRAM = """
import sys
from headgate.runtime.spark.cluster import open_spark
spark = open_spark(sys.argv[1], {"spark.ui.enabled": "true"})
spark.range(10).repartition(2).count()
print("ready", flush=True)
input()
spark.stop()
"""


@needs_proc
@pytest.mark.parametrize(("master", "listening"), [("local[2]", 1), ("local-cluster[1,1,1024]", 2)])
def test_all_processes_listen_on_loopback_only(master: str, listening: int) -> None:
    """In a process of its own: one Java has all sessions of a process, also those that other tests begin."""
    running = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, master], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    try:
        assert running.stdout.readline() == "ready\n"
        pids = [running.pid, *descendants(running.pid)]
        # The driver, and the executor of a cluster.
        assert sum(bool(addresses([each])) for each in pids) >= listening
        assert beyond_loopback(pids) == set()
        running.communicate("\n", timeout=120)
        assert running.returncode == 0
    finally:
        for each in [*descendants(running.pid), running.pid]:
            if each != running.pid:
                os.kill(each, 9)
        running.kill()
