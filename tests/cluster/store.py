"""The store: an S3 server on loopback, which is all that the nodes of the tests' cluster share."""

from __future__ import annotations

import re
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import pathsep
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from tests.services.jars import resolve

SERVER = (
    ("org.gaul", "s3proxy", "4.1.0"),
    # Of two that the server asks for, Maven would take the older one, with which it does not start.
    ("com.fasterxml.jackson.core", "jackson-annotations", "2.21"),
)
BUCKET = "headgate"
_HIDDEN = re.compile("/[._]")
_USER, _PASSWORD = "headgate", "for-these-tests"
# Without settings of its own, the server logs every byte.
_LOGGING = """<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %level %logger %msg%n</pattern></encoder>
  </appender>
  <root level="warn"><appender-ref ref="out"/></root>
</configuration>
"""


@dataclass
class Store:
    """A server with one bucket, whose objects are in a folder that no node sees."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def address(self, key: str) -> str:
        """A place in the store as Spark names it."""
        return f"s3a://{BUCKET}/{key}"

    @property
    def spark_settings(self) -> Mapping[str, str]:
        """What Spark needs to know to use the store."""
        return {
            "spark.hadoop.fs.s3a.endpoint": self.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
            "spark.hadoop.fs.s3a.access.key": _USER,
            "spark.hadoop.fs.s3a.secret.key": _PASSWORD,
            # Small parts: the tests' files are to be written in several too.
            "spark.hadoop.fs.s3a.multipart.size": "5M",
        }

    def start(self) -> None:
        jars = resolve(SERVER)
        assert jars, "the S3 server cannot be had from Maven"
        (self.folder / "objects").mkdir()
        settings = {
            "s3proxy.endpoint": self.endpoint,
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.identity": _USER,
            "s3proxy.credential": _PASSWORD,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": str(self.folder / "objects"),
        }
        quiet = self.folder / "logback.xml"
        quiet.write_text(_LOGGING)
        file = self.folder / "s3proxy.conf"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    "java",
                    "-Xmx256m",
                    "-XX:TieredStopAtLevel=1",
                    f"-Dlogback.configurationFile={quiet}",
                    "-cp",
                    pathsep.join(map(str, jars)),
                    "org.gaul.s3proxy.Main",
                    "--properties",
                    str(file),
                ],
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    break
            assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.1)
        else:
            raise AssertionError("the store does not start")
        self._client.create_dir(BUCKET)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(30)
            self.process = None

    def put(self, key: str, content: bytes) -> None:
        with self._client.open_output_stream(f"{BUCKET}/{key}") as out:
            out.write(content)

    def put_table(self, key: str, rows: pa.Table) -> None:
        pq.write_table(rows, f"{BUCKET}/{key}", filesystem=self._client)

    def get(self, key: str) -> bytes:
        with self._client.open_input_stream(f"{BUCKET}/{key}") as source:
            return bytes(source.read())

    def table(self, prefix: str) -> pa.Table:
        """All rows of the Parquet files below a prefix, as a reader finds them."""
        client = self._client
        return pa.concat_tables(
            [pq.read_table(f"{BUCKET}/{each}", filesystem=client) for each in self.parquet(prefix)]
        )

    def parquet(self, prefix: str) -> list[str]:
        """The names of all Parquet files below a prefix but hidden ones, such as those of unfinished tasks."""
        found = (each for each in self.keys(prefix) if each.endswith(".parquet"))
        return [each for each in found if not _HIDDEN.search(each.removeprefix(prefix))]

    def keys(self, prefix: str = "") -> list[str]:
        """The names of all objects below a prefix."""
        place = pafs.FileSelector(f"{BUCKET}/{prefix}".rstrip("/"), recursive=True, allow_not_found=True)
        found = self._client.get_file_info(place)
        return sorted(
            each.path.removeprefix(f"{BUCKET}/") for each in found if each.type is pafs.FileType.File
        )

    @cached_property
    def _client(self) -> pafs.S3FileSystem:
        return pafs.S3FileSystem(
            access_key=_USER,
            secret_key=_PASSWORD,
            endpoint_override=f"127.0.0.1:{self.port}",
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
            request_timeout=60,
            connect_timeout=60,
        )
