"""Real servers for the tests, each started on loopback in a folder of its own and stopped at the end."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
import pytest
from tests.services.jars import resolve
from tests.services.kafka_server import KafkaServer

from headgate.runtime.spark.cluster import open_spark, why_not_spark
from headgate.runtime.spark.sources.connectors import connector

# A repository may be behind PyPI; then the newest connector that is known to work with this Spark is taken.
_OLDER = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)


@dataclass
class PostgresServer:
    """A cluster of its own, that can be stopped and started."""

    binaries: Path
    data: Path
    port: int
    user: str

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user={self.user} dbname=postgres"

    def initialize(self) -> None:
        self._run("initdb", "--auth=trust", f"--username={self.user}", "--no-sync", "-D", str(self.data))

    def start(self) -> None:
        options = f"-p {self.port} -h 127.0.0.1 -k {self.data} -c fsync=off"
        self._run("pg_ctl", "-D", str(self.data), "-l", str(self.data / "log"), "-o", options, "-w", "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.data), "-m", "immediate", "-w", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        # PostgreSQL refuses to run as root.
        chosen = self.user if os.geteuid() == 0 else None
        subprocess.run(
            [str(self.binaries / program), *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            user=chosen,
            group=pwd.getpwnam(chosen).pw_gid if chosen else None,
            extra_groups=[] if chosen else None,
            cwd="/",
        )


def _binaries() -> Path | None:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    found = str(installed[-1]) if installed else shutil.which("pg_ctl")
    return Path(found).resolve().parent if found else None


@pytest.fixture(scope="session")
def connector_jars() -> list[Path]:
    """Spark's connector for Kafka, as its coordinates say."""
    coordinates = connector("kafka")
    assert coordinates is not None
    group, name, version = coordinates.split(":")
    bundled = ("org.slf4j", "org.scala-lang", "org.apache.hadoop")
    found = resolve([(group, name, version)], without=bundled) or resolve(_OLDER, without=["*"])
    assert found, f"neither {coordinates} nor an older connector for Spark {pyspark.__version__} can be had"
    return found


@pytest.fixture(scope="session")
def spark(connector_jars: list[Path]) -> Iterator[Any]:
    """A session that knows Kafka."""
    reason = why_not_spark()
    if reason is not None:
        pytest.fail(reason)
    session = open_spark("local[2]", {"spark.jars": ",".join(map(str, connector_jars))})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def kafka(spark: Any) -> Iterator[KafkaServer]:
    folder = Path(tempfile.mkdtemp(prefix="headgate-kafka-"))
    server = KafkaServer(folder, free_port(), free_port(), spark)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    binaries = _binaries()
    if binaries is None:
        pytest.fail("PostgreSQL is not installed: `make test-services` installs it on Debian and Ubuntu")
    folder = Path(tempfile.mkdtemp(prefix="headgate-pg-"))
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    if os.geteuid() == 0:
        shutil.chown(folder, user)
    server = PostgresServer(binaries, folder / "data", free_port(), user)
    try:
        server.initialize()
        server.start()
        yield server
        server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
