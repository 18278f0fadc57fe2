"""Keys and users that a project mounts into its broker's container, and a client that has them.

Owns a folder of them. The client looks the broker up under the name that it has in its network.
"""

from __future__ import annotations

import socket
import ssl
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer

from kafkalite.security.authority import Authority, pem_of, utc_now

PASSWORD = "of-tests-only"
JAAS_FILE = "kafka_server_jaas.conf"
JAAS = """KafkaServer {
  org.apache.kafka.common.security.plain.PlainLoginModule required
  username="admin" password="admin" user_admin="admin" user_app="app-secret";
};
"""


class Secrets:
    """As vector's file of compose has them: the broker's keys are also what it trusts."""

    def __init__(self, folder: Path) -> None:
        authority = Authority("root of tests", utc_now(int(time.time() * 1000)))
        issued = authority.issue("CN=kafka", ["kafka"])
        self.folder = folder
        (folder / "kafka.p12").write_bytes(issued.pkcs12(PASSWORD))
        (folder / "kafka.pass").write_text(f"{PASSWORD}\n")
        (folder / JAAS_FILE).write_text(JAAS)
        (folder / "client.pem").write_text(issued.key_pem + issued.chain_pem)
        (folder / "root.pem").write_text(pem_of(authority.root))
        for each in (folder, *folder.iterdir()):
            each.chmod(0o755)  # the container's user is another

    @property
    def mounts(self) -> list[str]:
        return [
            "--volume", f"{self.folder}:/etc/kafka/secrets:ro",
            "--volume", f"{self.folder}/{JAAS_FILE}:/etc/kafka/{JAAS_FILE}:ro",
        ]  # fmt: skip

    def client(self, protocol: str) -> dict[str, Any]:
        """What kafka-python is told."""
        if protocol == "SSL":
            context = ssl.create_default_context(cafile=str(self.folder / "root.pem"))
            context.load_cert_chain(self.folder / "client.pem")
            return {"security_protocol": protocol, "ssl_context": context}
        return {
            "security_protocol": protocol, "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "app", "sasl_plain_password": "app-secret",
        }  # fmt: skip


def to_and_fro_as(config: dict[str, Any], name: str, address: str) -> None:
    """One record, there and back, where the host of `name` is at an address of the engine's."""
    host, topic = name.partition(":")[0], f"t-{uuid.uuid4().hex}"
    ask_system = socket.getaddrinfo

    def look_up(asked: Any, *rest: Any, **more: Any) -> Any:
        return ask_system(address if asked == host else asked, *rest, **more)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", look_up)
        with KafkaProducer(bootstrap_servers=name, **config) as producer:
            producer.send(topic, b"there").get(30)
        with KafkaConsumer(
            topic, bootstrap_servers=name, auto_offset_reset="earliest",
            consumer_timeout_ms=30_000, **config,
        ) as consumer:  # fmt: skip
            assert next(consumer).value == b"there"
