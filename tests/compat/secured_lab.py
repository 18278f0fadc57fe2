"""Either broker with every way to come to a secured one, and access rules: the place of the matrix.

Owns the listeners, users, keys and rules. Whoever is let in may do everything to topics that begin
with `open`, and nothing to the other one; the admin may do all.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from kafkalite.config.protections import SIGNED_CHECK
from kafkalite.security.authority import Authority, Issued, pem_of, utc_now
from kafkalite.security.client_settings import jaas_line, module_of
from kafkalite.security.mechanisms import OAUTHBEARER, PLAIN
from kafkalite.testing.keys import Keys
from tests.compat import brokers
from tests.compat.brokers import TEST_JVM, Broker
from tests.compat.issuer import AUDIENCE, ISSUER, Issuer, token
from tests.compat.waiting import PATIENCE_S, eventually

PASSWORDS = {"admin": "admin-secret", "alice": "alice-secret"}
SCRAMS = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
MECHANISMS = (PLAIN, *SCRAMS, OAUTHBEARER)
# Listeners and their protocols.
PROTOCOLS = {
    "ENCRYPTED": "SSL", "MUTUAL": "SSL", "NAMED": "SASL_PLAINTEXT", "CLOSED": "SASL_SSL",
}  # fmt: skip
STORE_PASSWORD = "of-tests-only"
ALLOWED_URLS = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="
OPEN, SHUT = "open", "shut"  # how topics begin that may be used, and the one that may not


@dataclass(frozen=True)
class Way:
    """A listener, and the mechanism by which one logs in there."""

    name: str
    listener: str
    mechanism: str = ""

    @property
    def protocol(self) -> str:
        return PROTOCOLS[self.listener]

    @property
    def is_encrypted(self) -> bool:
        return self.protocol.endswith("SSL")


WAYS = (
    Way("SSL", "ENCRYPTED"),
    Way("mutual TLS", "MUTUAL"),
    *(Way(f"SASL_PLAINTEXT {each}", "NAMED", each) for each in MECHANISMS),
    *(Way(f"SASL_SSL {each}", "CLOSED", each) for each in MECHANISMS),
)


@dataclass(frozen=True)
class Security:
    """What a client is told, in the fields that programs in other languages read. To an issuer of
    tokens user and password are a client and its secret."""

    protocol: str
    ca: str
    certificate: str
    mechanism: str
    user: str
    password: str
    token: str
    issuer: str


class Strange:
    """Another authority, and a certificate that it gave to an alice."""

    def __init__(self, folder: Path) -> None:
        authority = Authority("another root", utc_now(time.time_ns() // 1_000_000))
        shown = authority.issue("CN=alice")
        self.ca = str(folder / "strange-ca.pem")
        Path(self.ca).write_text(pem_of(authority.root))
        self.certificate = written(folder / "strange.pem", shown)


def written(path: Path, shown: Issued) -> str:
    """The path; beside it is a PKCS #12 store, as Java's clients 2.8 want a password for keys."""
    path.write_text(shown.key_pem + shown.chain_pem)
    path.with_suffix(".p12").write_bytes(shown.pkcs12(STORE_PASSWORD))
    return str(path)


class Lab:
    """A broker, the keys on both sides, and strangers."""

    def __init__(
        self, broker: Broker, ports: dict[str, int], keys: Keys, issuer: Issuer, folder: Path
    ) -> None:
        self.broker, self._ports, self._issuer = broker, ports, issuer.address
        self._ca, self._strange = keys.ca, Strange(folder)
        self._certificate = written(folder / "alice.pem", keys.clients["alice"])
        self.admin = AdminClient({
            "bootstrap.servers": f"127.0.0.1:{ports['NAMED']}",
            "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": PLAIN,
            "sasl.username": "admin", "sasl.password": PASSWORDS["admin"], "log_level": 0,
        })  # fmt: skip

    def bootstrap(self, way: Way) -> str:
        return f"127.0.0.1:{self._ports[way.listener]}"

    def right(self, way: Way) -> Security:
        """What lets alice in."""
        shown = self._certificate if way.listener == "MUTUAL" else ""
        is_bearer = way.mechanism == OAUTHBEARER
        return Security(
            way.protocol, self._ca if way.is_encrypted else "", shown, way.mechanism, "alice",
            "right" if is_bearer else PASSWORDS["alice"], token() if is_bearer else "",
            self._issuer,
        )  # fmt: skip

    def wrong(self, way: Way) -> dict[str, Security]:
        """What lets nobody in, by what is wrong with it."""
        right, found = self.right(way), {}
        if way.mechanism == OAUTHBEARER:
            strange = token(key="stranger")
            found["token of another issuer"] = replace(right, token=strange, password="strange")
        elif way.mechanism:
            found["wrong password"] = replace(right, password="wrong")
        if way.is_encrypted:
            found["another authority is trusted"] = replace(right, ca=self._strange.ca)
        if way.listener == "MUTUAL":
            shown = self._strange.certificate
            found["certificate of another authority"] = replace(right, certificate=shown)
            found["no certificate"] = replace(right, certificate="")
        return found

    def create(self, topic: str) -> None:
        made = self.admin.create_topics([NewTopic(topic, 1)])[topic]
        made.result(PATIENCE_S)
        eventually(self.broker, lambda: topic in self.admin.list_topics().topics)

    def furnish(self) -> None:
        """Users, rules, and what nobody may use."""
        salt = b"salt-of-the-tests"
        for mechanism in SCRAMS.values():  # a user stands in a request once
            info = ScramCredentialInfo(mechanism, 4096)
            alice = UserScramCredentialUpsertion("alice", info, PASSWORDS["alice"].encode(), salt)
            [made] = self.admin.alter_user_scram_credentials([alice]).values()
            made.result(PATIENCE_S)
        topics, groups = ResourceType.TOPIC, ResourceType.GROUP
        rules = [
            _rule(topics, OPEN, ResourcePatternType.PREFIXED, AclOperation.ALL),
            _rule(groups, "*", ResourcePatternType.LITERAL, AclOperation.ALL),
        ]
        for made in self.admin.create_acls(rules).values():
            made.result(PATIENCE_S)
        self.create(SHUT)


def _rule(
    kind: ResourceType, name: str, pattern: ResourcePatternType, operation: AclOperation
) -> AclBinding:
    return AclBinding(kind, name, pattern, "User:*", "*", operation, AclPermissionType.ALLOW)


@contextmanager
def lab(kind: str) -> Iterator[Lab]:
    """Starts all of it, and leaves nothing."""
    keys = Keys("", ("alice",))
    folder = Path(tempfile.mkdtemp(prefix="kafkalite-lab-"))
    issuer = Issuer()
    issuer.kinds["strange"] = {"key": "stranger"}
    try:
        keys.write()
        with _running(kind, folder, keys, f"{issuer.address}/keys") as (broker, ports):
            found = Lab(broker, ports, keys, issuer, folder)
            found.furnish()
            yield found
    finally:
        issuer.close()
        keys.remove()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(
    kind: str, folder: Path, keys: Keys, key_set: str
) -> Iterator[tuple[Broker, dict[str, int]]]:
    plain, controller, *free = brokers.free_ports(2 + len(PROTOCOLS))
    ports = dict(zip(PROTOCOLS, free, strict=True))
    settings = {
        **_addresses({"PLAINTEXT": plain, **ports}, controller),
        **_logins(key_set),
        **_stores(keys, "\n" if kind == brokers.KAFKALITE else r"\n"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    jvm = (*TEST_JVM, ALLOWED_URLS + key_set)
    broker = brokers.start(kind, folder, settings, port=plain, jvm=jvm)
    try:
        yield broker, ports
    finally:
        broker.stop()


def _addresses(ports: dict[str, int], controller: int) -> dict[str, str]:
    opened = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "SASL_PLAINTEXT", **PROTOCOLS}
    return {
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{opened},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": opened,
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in protocols.items()
        ),
    }


def _logins(key_set: str) -> dict[str, str]:
    """All mechanisms at both listeners where one logs in; the controller's peers are the admin."""
    users = {f"user_{name}": password for name, password in PASSWORDS.items()}
    own = {"username": "admin", "password": PASSWORDS["admin"]}
    found = {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.mechanism.controller.protocol": PLAIN,
        "listener.name.controller.sasl.enabled.mechanisms": PLAIN,
        "listener.name.controller.plain.sasl.jaas.config": jaas_line(
            module_of(PLAIN), {**own, **users}
        ),
        "sasl.oauthbearer.jwks.endpoint.url": key_set,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
    }
    for listener in ("named", "closed"):
        for mechanism in MECHANISMS:
            prefix = f"listener.name.{listener}.{mechanism.lower()}"
            options = users if mechanism == PLAIN else {}
            found[f"{prefix}.sasl.jaas.config"] = jaas_line(module_of(mechanism), options)
        handler = f"listener.name.{listener}.oauthbearer.sasl.server.callback.handler.class"
        found[handler] = SIGNED_CHECK
    return found


def _stores(keys: Keys, end_of_line: str) -> dict[str, str]:
    texts = {
        "ssl.keystore.key": keys.broker.key_pem,
        "ssl.keystore.certificate.chain": keys.broker.chain_pem,
        "ssl.truststore.certificates": keys.root,
    }
    return {
        "ssl.keystore.type": "PEM",
        "ssl.truststore.type": "PEM",
        "listener.name.mutual.ssl.client.auth": "required",
        **{name: text.replace("\n", end_of_line) for name, text in texts.items()},
    }
