"""A broker's directory as somebody formatted it, and either broker started on it.

Owns the settings file that both read, the ports, and what each wrote into the log since it was
started. Which broker runs is the caller's choice; never both.
"""

from __future__ import annotations

import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from kafkalite.jvm import jars, java
from tests.compat import brokers
from tests.compat.java_tools import JavaTools

CLUSTER_ID = "a2Fma2FsaXRlLXRlc3QtMQ"
# Of a voter that is named by the one who formats.
DIRECTORY_ID = "b3V0YW5kaW5kaXJlY3QwMQ"
START_TIMEOUT_S = 60

STATIC, STANDALONE, INITIAL = "static voters", "standalone", "initial controllers"
# By no tool, but by kafkalite's first start.
OURS = "by kafkalite"
# Dynamic voters came with 3.9; before, the format command refuses them.
ALL_WAYS = (STATIC, STANDALONE, INITIAL)
WAYS = {
    "3.7": (STATIC,),
    **dict.fromkeys(("3.9", "4.0", "4.1", "4.2"), ALL_WAYS),
    "4.3": (*ALL_WAYS, OURS),
}

SETTINGS = {
    **brokers.COMMON,
    "group.streams.initial.rebalance.delay.ms": "0",
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.initial.task.delay.ms": "200",
    # Apache Kafka forgets deletions of records that it has not yet noted when it is killed.
    "log.flush.start.offset.checkpoint.interval.ms": "200",
    "log.segment.bytes": "1048576",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.segment.bytes": "1048576",
    "share.coordinator.state.topic.num.partitions": "2",
    "transaction.max.timeout.ms": "900000",
    "transaction.state.log.num.partitions": "2",
}
# What Apache Kafka alone is given: kafkalite refuses to serve with an authorizer that it lacks.
APACHE_KAFKA_ONLY = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@dataclass(frozen=True, slots=True)
class Format:
    """How a directory came to be."""

    way: str
    release: str
    is_finalized: bool
    log_dirs: int

    @classmethod
    def chosen(cls, dice: Random) -> Format:
        release = dice.choice(list(WAYS))
        way = dice.choice(WAYS[release])
        is_finalized = release == "4.3" or dice.random() < 0.3
        return cls(way, release, is_finalized, dice.choice((1, 3)))

    def __str__(self) -> str:
        dirs = "1 dir" if self.log_dirs == 1 else f"{self.log_dirs} dirs"
        return f"{self.release}{self._level}, {self.way}, {dirs}"

    @property
    def _level(self) -> str:
        if self.release == "4.3":
            return ""
        return ", finalized later" if self.is_finalized else ", not finalized"


class Directory:
    """The folder of one round."""

    def __init__(self, folder: Path, how: Format, tools: JavaTools) -> None:
        folder.mkdir(parents=True)
        self.folder, self.how, self.tools = folder, how, tools
        self.port, self.controller_port = brokers.free_ports(2)
        self.log_dirs = [folder / f"data-{number}" for number in range(how.log_dirs)]
        self.kind = ""
        self._log_at = 0
        (folder / "log4j2.properties").write_text(brokers.LOG4J_2)
        self._format()

    # -- settings and format ---------------------------------------------------------------

    def _settings(self, more: dict[str, str]) -> Path:
        controller = f"127.0.0.1:{self.controller_port}"
        if self.how.way in (STATIC, OURS):
            voters = {"controller.quorum.voters": f"1@{controller}"}
        else:
            voters = {"controller.quorum.bootstrap.servers": controller}
        rows = {
            "process.roles": "broker,controller",
            "node.id": "1",
            **voters,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": ",".join(map(str, self.log_dirs)),
            **SETTINGS,
            **more,
        }
        path = self.folder / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in rows.items()))
        return path

    def _format(self) -> None:
        if self.how.way == OURS:
            return
        words = ["format", "-t", CLUSTER_ID, "-c", str(self._settings({}))]
        words += ["--release-version", self.how.release]
        if self.how.way == STANDALONE:
            words += ["--standalone"]
        elif self.how.way == INITIAL:
            voter = f"1@127.0.0.1:{self.controller_port}:{DIRECTORY_ID}"
            words += ["--initial-controllers", voter]
        said = self.tools.run("kafka.tools.StorageTool", *words)
        missing = [one for one in self.log_dirs if not (one / "meta.properties").exists()]
        assert not missing, f"not formatted: {said}"

    # -- one broker at a time --------------------------------------------------------------

    def start(self, kind: str) -> None:
        assert not self.kind, f"{self.kind} still runs"
        is_ours = kind == brokers.KAFKALITE
        settings = self._settings({} if is_ours else APACHE_KAFKA_ONLY)
        call = [sys.executable, "-m", "kafkalite", "serve", "--config", str(settings)]
        self._log_at = self._log_size()
        process = brokers.spawn(call if is_ours else self._apache_kafka(settings), self.folder)
        self.kind = kind
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline and process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.02)
        raise AssertionError(f"{kind} did not start:\n{self.log()[-3000:]}")

    def _apache_kafka(self, settings: Path) -> list[str]:
        class_path = jars.class_path(brokers.JAR_GROUPS[brokers.APACHE_KAFKA])
        call = java.command(class_path, "kafka.Kafka", str(settings), heap="384M")
        log4j = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        return [call[0], *brokers.TEST_JVM, log4j, *call[1:]]

    def end(self, how: signal.Signals) -> None:
        self.kind = ""
        brokers.end(self.folder, how)

    def _log_size(self) -> int:
        path = self.folder / "log"
        return path.stat().st_size if path.exists() else 0

    def log(self) -> str:
        """What the broker has written since it was started."""
        return (self.folder / "log").read_bytes()[self._log_at :].decode(errors="replace")


@contextmanager
def java_tools(folder: Path) -> Iterator[JavaTools]:
    tools = JavaTools(folder)
    try:
        yield tools
    finally:
        tools.close()


