"""Apicurio Registry as it is run: a JVM that keeps its schemas in topics of a broker.

Owns its settings, its process, which may end and start again, and the patience with it. Its tables
are in memory, so what it knows after a start it has read from its topics, and it says that it is
ready when it has read them.
"""

from __future__ import annotations

import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient

from kafkalite.jvm import java
from tests.compat import brokers, client_builds
from tests.compat.waiting import until

PATIENCE_S = 90
CALL_TIMEOUT_S = 10
MAIN_CLASS = "io.quarkus.runner.GeneratedMain"
# Where it speaks as Confluent's registry does.
PATH = "/apis/ccompat/v7"


class Registry:
    """A process of the registry; those of one name on one broker are one registry."""

    def __init__(self, folder: Path, bootstrap: str, name: str) -> None:
        self.folder = folder
        self.address = ""
        self.settings = {
            "apicurio.storage.kind": "kafkasql",
            "apicurio.kafkasql.bootstrap.servers": bootstrap,
            "apicurio.kafkasql.topic": f"{name}-journal",
            "apicurio.kafkasql.snapshots.topic": f"{name}-snapshots",
            "apicurio.events.kafka.topic": f"{name}-events",
            "quarkus.http.host": "127.0.0.1",
        }
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True)

    @property
    def url(self) -> str:
        return f"http://{self.address}{PATH}"

    def start(self) -> None:
        """Starts it on a port of its own, and waits until it has read what is in its topics."""
        [port] = brokers.free_ports(1)
        self.address = f"127.0.0.1:{port}"
        settings = {**self.settings, "quarkus.http.port": str(port)}
        call = java.command(str(client_builds.apicurio()), MAIN_CLASS, heap="256M")
        call[1:1] = [*brokers.TEST_JVM, *(f"-D{name}={value}" for name, value in settings.items())]
        self._process = brokers.spawn(call, self.folder)
        self.until(self._is_ready)

    def stop(self) -> None:
        brokers.end(self.folder, signal.SIGTERM)

    def kill(self) -> None:
        brokers.end(self.folder, signal.SIGKILL)

    def client(self) -> SchemaRegistryClient:
        """One that knows nothing yet, to be closed by who asks for it."""
        return SchemaRegistryClient({"url": self.url})

    def contents(self) -> dict[str, Any]:
        """What it tells of each subject: the rule of compatibility, and each version."""
        with self.client() as client:
            return {
                subject: [client.get_compatibility(subject)]
                + [client.get_version(subject, version) for version in client.get_versions(subject)]
                for subject in sorted(client.get_subjects())
            }

    def until(self, condition: Callable[[], bool]) -> None:
        assert self._process is not None
        until(condition, self._process, self.folder / "log", PATIENCE_S)

    def _is_ready(self) -> bool:
        url = f"http://{self.address}/health/ready"
        try:
            with urllib.request.urlopen(url, timeout=CALL_TIMEOUT_S):
                return True
        except urllib.error.HTTPError as not_yet:
            not_yet.close()
        except OSError:  # Nobody listens yet.
            pass
        return False
