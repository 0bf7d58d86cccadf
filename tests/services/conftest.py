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

import pytest
from tests.spark.conftest import spark

__all__ = ["postgres", "spark"]


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
