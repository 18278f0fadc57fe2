"""Either broker behind one secured listener, set to what EmbeddedKafka sets its own to.

Owns nothing of that: the settings and the words for clients are those of testing/secured.py, so
that what they say is true of Apache Kafka, too. A PLAINTEXT listener is there to make users by.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafkalite.client.addresses import addresses
from kafkalite.client.cluster import Cluster
from kafkalite.protocol.errors import Error
from kafkalite.security.client_settings import SCRAM_MODULE
from kafkalite.testing.keys import Keys
from kafkalite.testing.secured import Secured
from tests.compat import brokers
from tests.compat.brokers import Broker
from tests.compat.waiting import eventually

USERS = {"alice": "alice-secret", "bob": "bob-secret"}
CLIENTS = ("alice", "bob")
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True)
class SecuredBroker:
    """A broker, and how clients come to its secured listener."""

    broker: Broker
    port: int
    secured: Secured

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def client_config(self, library: str, user: str | None = None) -> dict[str, Any]:
        return self.secured.client_config(library, self.bootstrap, user)

    def java_file(self, folder: Path, **other: str) -> str:
        """A file of settings for Apache Kafka's tools, or ours."""
        told = {**self.client_config("java"), **other}
        del told["bootstrap.servers"]
        path = folder / f"client-{abs(hash(tuple(told.items())))}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
        return str(path)

    def add_users(self) -> None:
        with closing(Cluster(addresses(self.broker.bootstrap))) as cluster:
            for request in self.secured.requests:
                answer = cluster.ask_any(request)
                assert [each.error_code for each in answer.results] == [Error.NONE] * len(USERS)
        eventually(self.broker, self._lets_in)

    def _lets_in(self) -> bool:
        """Apache Kafka's broker follows its controller."""
        from kafkalite.client.cluster import ClientFailed
        from kafkalite.protocol.messages import MetadataRequest

        security = self.secured.security
        with closing(Cluster(addresses(self.bootstrap), security=security)) as cluster:
            try:
                return bool(cluster.ask_any(MetadataRequest(topics=[])).brokers)
            except ClientFailed:
                return False


@contextmanager
def secured_broker(
    kind: str, folder: Path, protocol: str, mechanism: str = "", *, is_mutual: bool = False
) -> Iterator[SecuredBroker]:
    keys = None
    if protocol != "SASL_PLAINTEXT":
        keys = Keys("", CLIENTS if is_mutual else ())
        keys.write()
    secured = Secured(protocol, mechanism, USERS if mechanism else {}, keys)
    plain, controller, port = brokers.free_ports(3)
    opened = f"PLAINTEXT://127.0.0.1:{plain},{protocol}://127.0.0.1:{port}"
    settings = {
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{opened},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": opened,
        "listener.security.protocol.map": (
            f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{protocol}:{protocol}"
        ),
        **secured.settings({}),
    }
    if mechanism in SCRAM:  # which Apache Kafka wants to see
        name = f"listener.name.{protocol.lower()}.{mechanism.lower()}.sasl.jaas.config"
        settings[name] = f"{SCRAM_MODULE} required;"
    if kind != brokers.KAFKALITE:  # in its file a line ends with the line
        settings = {name: value.replace("\n", r"\n") for name, value in settings.items()}
    broker = brokers.start(kind, folder, settings, port=plain)
    try:
        found = SecuredBroker(broker, port, secured)
        found.add_users()
        yield found
    finally:
        broker.stop()
        if keys is not None:
            keys.remove()
