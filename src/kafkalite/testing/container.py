"""A broker in a container, for suites that have testcontainers: a host and a port that clients
outside reach it by, a name that containers in its network do, and topics that are there at once."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from typing import Any, Self

try:
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.wait_strategies import LogMessageWaitStrategy
except ImportError as error:
    raise ImportError(
        f"KafkaliteContainer needs testcontainers ({error}): pip install 'kafkalite[testing]'"
    ) from error

IMAGE = "kafkalite:latest"
PORT = 9092
NETWORK_PORT = 9093
START_S = 60
_SCRIPT = "/tmp/kafkalite-start.sh"
_READY = r"\[KafkaServer id=\d+\] started"
# The port outside is known once the container runs, so the broker waits for its own address.
_WAIT = f"while [ ! -s {_SCRIPT} ]; do sleep 0.05; done; exec bash {_SCRIPT}"


class KafkaliteContainer(DockerContainer):
    """`with KafkaliteContainer(topics={"orders": 3}) as kafka: kafka.get_bootstrap_server()`."""

    def __init__(
        self,
        image: str = IMAGE,
        *,
        topics: Mapping[str, int] | None = None,
        settings: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(image, **options)
        self.with_exposed_ports(PORT)
        listeners = f"PLAINTEXT://0.0.0.0:{PORT},NETWORK://0.0.0.0:{NETWORK_PORT}"
        self.with_env("KAFKA_LISTENERS", listeners)
        self.with_env(
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "PLAINTEXT:PLAINTEXT,NETWORK:PLAINTEXT"
        )
        named = ",".join(f"{name}:{count}:1" for name, count in (topics or {}).items())
        self.with_env("KAFKA_CREATE_TOPICS", named)
        for setting, value in (settings or {}).items():
            self.with_env(_variable(setting), value)
        self.with_command(["bash", "-c", _WAIT])

    def start(self) -> Self:
        """Returns once the broker serves and its topics are there."""
        super().start()
        outside = f"PLAINTEXT://{self.get_bootstrap_server()}"
        inside = f"NETWORK://{self._name_in_network()}:{NETWORK_PORT}"
        self._put(
            f"export KAFKA_ADVERTISED_LISTENERS={outside},{inside}\nexec /etc/kafka/docker/run\n"
        )
        LogMessageWaitStrategy(_READY).with_startup_timeout(START_S).wait_until_ready(self)
        return self

    def get_bootstrap_server(self) -> str:
        """HOST:PORT for clients outside containers."""
        return f"{self.get_container_host_ip()}:{self.get_exposed_port(PORT)}"

    def get_network_bootstrap_server(self) -> str:
        """HOST:PORT for clients in containers of the same network."""
        return f"{self._name_in_network()}:{NETWORK_PORT}"

    def _name_in_network(self) -> str:
        aliases: list[str] = list(self._network_aliases or ())
        return aliases[0] if aliases else self.get_container_id()[:12]

    def _put(self, script: str) -> None:
        data = script.encode()
        with io.BytesIO() as packed:
            with tarfile.open(fileobj=packed, mode="w") as archive:
                entry = tarfile.TarInfo(_SCRIPT.lstrip("/"))
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
            self.get_wrapped_container().put_archive("/", packed.getvalue())


def _variable(setting: str) -> str:
    name = setting.replace("_", "__").replace("-", "___").replace(".", "_")
    return f"KAFKA_{name.upper()}"
