"""A Kafka server of the tests' own: one process that is broker and controller, on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.services.jars import resolve

VERSION = "4.0.0"


@dataclass
class KafkaServer:
    """A server in a folder of its own, that can be stopped and started, and a client of it in Spark's process."""

    folder: Path
    port: int
    controller_port: int
    spark: Any
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        settings = self.folder / "server.properties"
        if not settings.exists():
            settings.write_text(self._settings())
            self._run(
                "kafka.tools.StorageTool", "format", "-t", "aGVhZGdhdGUtdGVzdHMtMQ", "-c", str(settings)
            ).wait(60)
        self.process = self._run("kafka.Kafka", str(settings))
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.1)
        raise AssertionError("Kafka does not start")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(30)
            self.process = None

    def create(self, topic: str, partitions: int = 1) -> None:
        jvm = self.spark._jvm
        topics = jvm.java.util.ArrayList()
        topics.add(jvm.org.apache.kafka.clients.admin.NewTopic(topic, partitions, 1))
        with_admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(self._properties())
        try:
            with_admin.createTopics(topics).all().get()
        finally:
            with_admin.close()

    def send(
        self, topic: str, values: Iterable[str | None], *, key: str | None = None, partition: int = 0
    ) -> None:
        """Writes messages, and waits until they are there."""
        jvm = self.spark._jvm
        settings = self._properties()
        for each in ("key", "value"):
            settings.put(f"{each}.serializer", "org.apache.kafka.common.serialization.StringSerializer")
        producer = jvm.org.apache.kafka.clients.producer.KafkaProducer(settings)
        record = jvm.org.apache.kafka.clients.producer.ProducerRecord
        try:
            sent = [producer.send(record(topic, partition, key, value)) for value in values]
            for each in sent:
                each.get()
        finally:
            producer.close()

    def messages(self, topic: str) -> list[Any]:
        """All messages of a topic with their headers, in the order of partitions and offsets."""
        options = {"kafka.bootstrap.servers": self.address, "subscribe": topic, "includeHeaders": "true"}
        rows = self.spark.read.format("kafka").options(**options).load()
        chosen = rows.selectExpr(
            "CAST(key AS STRING) AS key", "CAST(value AS STRING) AS value", "partition", "offset", "headers"
        )
        return sorted(chosen.collect(), key=lambda each: (each.partition, each.offset))

    def _properties(self) -> Any:
        settings = self.spark._jvm.java.util.Properties()
        settings.put("bootstrap.servers", self.address)
        return settings

    def _run(self, program: str, *words: str) -> subprocess.Popen[bytes]:
        jars = resolve([("org.apache.kafka", "kafka_2.13", VERSION)])
        assert jars, "Kafka cannot be had from Maven"
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                ["java", "-Xmx256m", "-cp", os.pathsep.join(map(str, jars)), program, *words],
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )

    def _settings(self) -> str:
        settings: Mapping[str, Any] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": self.folder / "data",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": 0,
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())
