"""Either broker with a listener of each security.protocol, and who may come in by which.

Owns the settings that open them side by side; what is secured is set as an EmbeddedKafka sets it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafkalite.client.addresses import addresses
from kafkalite.client.cluster import Cluster
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import MetadataRequest
from kafkalite.security.client_settings import SCRAM_MODULE
from kafkalite.testing.keys import Keys
from kafkalite.testing.secured import Secured
from tests.compat import brokers
from tests.compat.brokers import Broker

PROTOCOLS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISM = "SCRAM-SHA-512"
USER, USERS = "alice", {"alice": "alice-secret"}


@dataclass(frozen=True)
class Place:
    """A broker; `broker` itself is its PLAINTEXT listener."""

    broker: Broker
    ports: dict[str, int]
    secured: dict[str, Secured]

    def cluster(self, protocol: str) -> Cluster:
        """A client that comes in there, as alice where one logs in."""
        where = addresses(f"127.0.0.1:{self.ports[protocol]}")
        return Cluster(where, security=self.secured[protocol].security)

    def add_users(self) -> None:
        with closing(Cluster(addresses(self.broker.bootstrap))) as cluster:
            for request in self.secured["SASL_PLAINTEXT"].requests:
                answer = cluster.ask_any(request)
                assert [each.error_code for each in answer.results] == [Error.NONE] * len(USERS)

    def lets_in(self, protocol: str) -> bool:
        with closing(self.cluster(protocol)) as cluster:
            return bool(cluster.ask_any(MetadataRequest(topics=[])).brokers)


@contextmanager
def every_listener(
    kind: str,
    folder: Path,
    overrides: dict[str, str] | None = None,
    heap: str = "512M",
    jvm: Sequence[str] = brokers.TEST_JVM,
) -> Iterator[Place]:
    keys = Keys("", ())
    keys.write()
    plain, controller, *found = brokers.free_ports(2 + len(PROTOCOLS))
    ports = dict(zip(PROTOCOLS, found, strict=True))
    secured = {
        "SSL": Secured("SSL", keys=keys),
        "SASL_PLAINTEXT": Secured("SASL_PLAINTEXT", MECHANISM, USERS),
        "SASL_SSL": Secured("SASL_SSL", MECHANISM, USERS, keys),
    }
    settings = {**_listeners(plain, controller, ports), **_secrets(kind, secured)}
    broker = brokers.start(kind, folder, {**settings, **(overrides or {})}, heap, plain, jvm)
    try:
        place = Place(broker, ports, secured)
        place.add_users()
        yield place
    finally:
        broker.stop()
        keys.remove()


def _listeners(plain: int, controller: int, ports: dict[str, int]) -> dict[str, str]:
    every = {"PLAINTEXT": plain, **ports}
    opened = ",".join(f"{name}://127.0.0.1:{port}" for name, port in every.items())
    return {
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{opened},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": opened,
        "listener.security.protocol.map": ",".join(
            [*(f"{name}:{name}" for name in every), "CONTROLLER:PLAINTEXT"]
        ),
    }


def _secrets(kind: str, secured: dict[str, Secured]) -> dict[str, str]:
    """Users of SCRAM need no line of JAAS here, which Apache Kafka wants to see."""
    found: dict[str, str] = {}
    for protocol, each in secured.items():
        found |= each.settings({})
        if each.mechanism:
            prefix = f"listener.name.{protocol.lower()}.{each.mechanism.lower()}"
            found[f"{prefix}.sasl.jaas.config"] = f"{SCRAM_MODULE} required;"
    if kind != brokers.KAFKALITE:  # in its file a line ends with the line
        found = {name: value.replace("\n", r"\n") for name, value in found.items()}
    return found
