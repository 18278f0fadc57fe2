"""Kafka Connect as it is run: workers, each a JVM of its own, governed over REST.

Owns the settings of the workers and the patience with them: a cluster of workers that distributes
its work anew answers 409 until it has, and such an answer is asked for again.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kafkalite.jvm import jars, java
from tests.compat import brokers

PATIENCE_S = 90
CALL_TIMEOUT_S = 30
POLL_S = 0.1
WORKER = "org.apache.kafka.connect.cli.ConnectDistributed"
TEXT = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
# Busy with a rebalance, or not yet heard of what another worker was told.
AGAIN = (404, 409, 500, 503)

# Without these a worker that died is waited for, for five minutes, and offsets kept each minute.
SETTINGS = {
    "key.converter": TEXT,
    "value.converter": TEXT,
    "exactly.once.source.support": "enabled",
    "plugin.discovery": "service_load",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1000",
    "scheduled.rebalance.max.delay.ms": "0",
    "offset.flush.interval.ms": "500",
    **{f"{what}.storage.replication.factor": "1" for what in ("offset", "config", "status")},
    "offset.storage.partitions": "3",
    "status.storage.partitions": "2",
}
JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
INTERNAL = ("configs", "offsets", "status")


class RestRefused(Exception):
    """An answer that is an error: its status and what it says."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"{status}: {said}")
        self.status = status


class Worker:
    """A process of Connect; it may take seconds until it answers."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        [self.port] = brokers.free_ports(1)
        self.address = f"127.0.0.1:{self.port}"
        self.folder = folder
        folder.mkdir(parents=True)
        properties = {**settings, "listeners": f"http://{self.address}"}
        lines = (f"{name}={value}\n" for name, value in properties.items())
        file = folder / "worker.properties"
        file.write_text("".join(lines))
        self._process = start_jvm(folder, WORKER, str(file))

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Once; the JSON of the answer."""
        request = urllib.request.Request(
            f"http://{self.address}{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=CALL_TIMEOUT_S) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                raise RestRefused(error.code, error.read().decode()) from error

    def is_answering(self) -> bool:
        return self.ask("GET", "/connectors") is not None

    def kill(self) -> None:
        brokers.end(self.folder, signal.SIGKILL)

    def stop(self) -> None:
        brokers.end(self.folder, signal.SIGTERM)

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")


class Workers:
    """The workers of one cluster: one group, one set of internal topics."""

    def __init__(self, folder: Path, bootstrap: str, name: str) -> None:
        self.folder = folder
        self.name = name
        self.settings = {
            **SETTINGS, "bootstrap.servers": bootstrap, "group.id": name,
            "config.storage.topic": f"{name}-configs", "offset.storage.topic": f"{name}-offsets",
            "status.storage.topic": f"{name}-status",
        }
        self.all: list[Worker] = []

    @property
    def alive(self) -> list[Worker]:
        return [worker for worker in self.all if worker.is_alive]

    def start(self, count: int) -> None:
        """Starts so many more, and waits until each does what it is asked."""
        for _ in range(count):
            self.all.append(Worker(self.folder / f"worker-{len(self.all)}", self.settings))
        for worker in self.alive:
            self.until(worker.is_answering)

    def stop(self) -> None:
        for worker in self.alive:
            worker.stop()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Of the first worker that lives, again and again while the workers are at odds."""
        answers: list[Any] = []

        def is_answered() -> bool:
            answers.append(self.alive[0].ask(method, path, body))
            return True

        self.until(is_answered)
        return answers[-1]

    def create(self, name: str, **config: str) -> None:
        """Makes a connector, or gives it another configuration; waits until it and its task run."""
        words = {key.replace("_", "."): value for key, value in config.items()}
        self.ask("PUT", f"/connectors/{name}/config", {"tasks.max": "1", **words})
        self.until(lambda: self.states(name) == ["RUNNING", "RUNNING"])

    def states(self, name: str) -> list[str]:
        """Of a connector and of each of its tasks."""
        status = self.alive[0].ask("GET", f"/connectors/{name}/status")
        return [each["state"] for each in (status["connector"], *status["tasks"])]

    def worker_of(self, name: str) -> Worker:
        """Who has the connector's only task."""
        [task] = self.ask("GET", f"/connectors/{name}/status")["tasks"]
        return next(worker for worker in self.alive if worker.address == task["worker_id"])

    def halt(self, name: str) -> None:
        """Stops a connector, so that its offsets may be changed."""
        self.ask("PUT", f"/connectors/{name}/stop")
        self.until(lambda: self.states(name) == ["STOPPED"])

    def resume(self, name: str) -> None:
        self.ask("PUT", f"/connectors/{name}/resume")
        self.until(lambda: self.states(name) == ["RUNNING", "RUNNING"])

    def offsets(self, name: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        told = self.ask("GET", f"/connectors/{name}/offsets")["offsets"]
        return [(each["partition"], each["offset"]) for each in told]

    def until(self, condition: Callable[[], bool]) -> None:
        """Waits for a condition; says what the workers said when it does not come to be."""
        deadline = time.monotonic() + PATIENCE_S
        last: object = None
        while time.monotonic() < deadline:
            try:
                if condition():
                    return
            except RestRefused as refused:
                if refused.status not in AGAIN:
                    raise
                last = refused
            except OSError as error:
                last = error
            assert self.alive, self.said()
            time.sleep(POLL_S)
        raise AssertionError(f"it did not come to be; {last}; {self.said()}")

    def said(self) -> str:
        return "\n".join(f"{worker.address}: {worker.log()[-2000:]}" for worker in self.all)


def start_jvm(folder: Path, main_class: str, *words: str) -> subprocess.Popen[bytes]:
    """A program of Connect in `folder`, with its log there."""
    (folder / "log4j2.properties").write_text(brokers.LOG4J_2)
    call = java.command(jars.class_path("connect"), main_class, *words, heap="256M")
    call[1:1] = [*JVM, f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"]
    return brokers.spawn(call, folder)
