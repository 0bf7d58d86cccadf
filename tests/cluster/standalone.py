"""Spark standalone over nodes: a master and workers, each in a file system of its own, and a node for drivers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
from tests.cluster.node import OWN, Node, python_places
from tests.cluster.store import Store
from tests.services.jars import cache

_HOME = Path(pyspark.__file__).parent
_CHECKOUT = Path(__file__).parents[2]
_CONF = "/tmp/conf"
_LOG = "/tmp/spark.log"
MASTER, DRIVER, WORKERS = "127.0.0.1", "127.0.0.4", ("127.0.0.2", "127.0.0.3")
"""Loopback has many addresses; Spark takes processes with different ones for different machines."""


@dataclass
class Cluster:
    """A running cluster. Programs start in nodes for drivers, which know master and store."""

    store: Store
    jars: Sequence[Path]
    port: int
    master: Node = field(init=False)
    workers: list[Node] = field(init=False, default_factory=list)

    @property
    def url(self) -> str:
        return f"spark://{MASTER}:{self.port}"

    def start(self) -> None:
        self.master = self._node("master", MASTER)
        self._start(
            self.master, "master.Master", "--host", MASTER, "--port", str(self.port), "--webui-port", "0"
        )
        self._await(self.master, "I have been elected leader")
        self.workers = [self._node(f"worker {number}", each) for number, each in enumerate(WORKERS, 1)]
        for wait in [self.start_worker(node) for node in self.workers]:
            wait()

    def start_worker(self, node: Node) -> Callable[[], None]:
        """Starts a worker in a node that has none; what is given back waits until the master knows it."""
        before = self._logged(node).count("Successfully registered")
        self._start(
            node,
            "worker.Worker",
            *("--host", node.address, "--webui-port", "0", "--cores", "1", "--memory", "1g"),
            *("--work-dir", "/tmp/work", self.url),
        )
        return lambda: self._await(node, "Successfully registered", before + 1)

    def stop(self) -> None:
        for node in [*self.workers, getattr(self, "master", None)]:
            if node is not None:
                node.close()

    @contextmanager
    def driver(self) -> Iterator[Driver]:
        """A node from which programs are submitted; it has nothing of other drivers."""
        node = self._node("driver", DRIVER)
        try:
            yield Driver(node, self)
        finally:
            node.close()

    def _node(self, name: str, address: str) -> Node:
        node = Node(name, address, [*python_places(), cache()])
        # What an administrator has put on every machine.
        node.path(_CONF).mkdir()
        lines = [f"{key} {value}\n" for key, value in self._settings().items()]
        node.path(f"{_CONF}/spark-defaults.conf").write_text("".join(lines))
        return node

    def _settings(self) -> Mapping[str, str]:
        path = os.pathsep.join(map(str, self.jars))
        return {
            **self.store.spark_settings,
            "spark.driver.extraClassPath": path,
            "spark.executor.extraClassPath": path,
            "spark.executor.memory": "512m",
            "spark.driver.memory": "768m",
            "spark.ui.enabled": "false",
            "spark.sql.streaming.checkpointFileManagerClass": (
                "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
            ),
        }

    def _start(self, node: Node, program: str, *words: str) -> subprocess.Popen[bytes]:
        # A worker that is killed shall be missed sooner than after a minute, a slow one not be taken for dead.
        options = "-Dspark.worker.timeout=40 -Dspark.master.rest.enabled=false"
        environment = self.environment(node) | {"SPARK_MASTER_OPTS": options}
        command = [str(_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}", *words]
        return node.start(command, environment, log=_LOG)

    def environment(self, node: Node) -> dict[str, str]:
        return {
            "SPARK_HOME": str(_HOME),
            "SPARK_CONF_DIR": _CONF,
            "SPARK_LOCAL_IP": node.address,
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "HOME": "/tmp",
            # Many short-lived processes: what compiling well would cost is not earned back.
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
            # This checkout, whatever the virtual environment has installed; programs may use the tests' own modules.
            "PYTHONPATH": os.pathsep.join([str(_CHECKOUT / "src"), str(_CHECKOUT)]),
            # Sources are read-only in a node.
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def _logged(self, node: Node) -> str:
        log = node.path(_LOG)
        return log.read_text(errors="replace") if log.exists() else ""

    def _await(self, node: Node, words: str, times: int = 1) -> None:
        for _ in range(1200):
            if self._logged(node).count(words) >= times:
                return
            time.sleep(0.1)
        raise AssertionError(f"Spark does not start in {node.name}: {self._logged(node)[-3000:]}")


@dataclass(frozen=True)
class Driver:
    """Where programs of the cluster are started."""

    node: Node
    cluster: Cluster

    def python(self, program: str, *, timeout: float = 1_800) -> str:
        """Runs a Python program; what it prints."""
        done = self.node.run([sys.executable, "-c", program], self._environment(), timeout=timeout)
        assert done.returncode == 0, done.stderr[-6000:]
        return done.stdout

    def headgate(self, *words: str, timeout: float = 1_800) -> subprocess.CompletedProcess[str]:
        """Runs a command of Headgate."""
        return self.node.run(self._command(words), self._environment(), timeout=timeout)

    def start_headgate(self, *words: str) -> subprocess.Popen[bytes]:
        """Starts a command of Headgate."""
        return self.node.start(self._command(words), self._environment())

    def said(self) -> str:
        """The end of what started commands have printed."""
        return self.node.path("/tmp/log").read_text()[-4000:]

    def write(self, place: str, text: str) -> None:
        """Makes a file in the driver's own file system."""
        file = self.node.path(place)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def _command(self, words: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "headgate.cli.main", *words]

    def _environment(self) -> dict[str, str]:
        return self.cluster.environment(self.node) | {"HEADGATE_MASTER": self.cluster.url}


def written(node: Node) -> list[str]:
    """The files of a node's own file systems, but Spark's and Java's scratch files and what they print.

    Scratch too are an executor's copies of states, in its own work folder, which nobody removes when it is killed.
    """
    shown = tuple(f"{each}/" for each in node.shown)
    files = (each for own in OWN for each in node.path(own).rglob("*") if each.is_file())
    names = (f"/{each.relative_to(node.path('/'))}" for each in files)
    return sorted(each for each in names if not each.startswith(shown) and not _SCRATCH.match(each))


_SCRATCH = re.compile(
    r"/tmp/((conf|artifacts-[^/]*|hsperfdata[^/]*|spark-[^/]*|blockmgr-[^/]*|hadoop-[^/]*)/|(spark\.)?log$"
    r"|work/app-[^/]*/\d+/(std(out|err)$|headgate-states/)|lib[^/]*\.so|liblz4|snappy-|rocksdb)"
)
