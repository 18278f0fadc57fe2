"""Brokers of a test whose clients log in: what they are set to, and what each client is told.

Owns the users, by their passwords. The first of them is who the helpers of tests are, and whom
`client_config` names. Starts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafkalite.config.listeners import SASL_PLAINTEXT
from kafkalite.security import plain
from kafkalite.security.client_login import Login
from kafkalite.security.mechanisms import BY_PASSWORD, PLAIN
from kafkalite.security.scram import BY_NAME, MIN_ITERATIONS
from kafkalite.testing.clients import client_config, known_library

if TYPE_CHECKING:
    from kafkalite.protocol.messages import AlterUserScramCredentialsRequest

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
PREFIX = "listener.name.sasl_plaintext"


@dataclass(slots=True, frozen=True)
class Secured:
    """How clients log in."""

    mechanism: str
    users: Mapping[str, str] = field(repr=False)

    @property
    def protocol(self) -> str:
        return SASL_PLAINTEXT

    @property
    def login(self) -> Login:
        """That of the first user."""
        user, password = next(iter(self.users.items()))
        return Login(self.mechanism, user, password)

    @property
    def settings(self) -> dict[str, str]:
        """What a server.properties would say."""
        found = {"sasl.enabled.mechanisms": self.mechanism}
        if self.mechanism == PLAIN:
            users = {f"user_{name}": password for name, password in self.users.items()}
            found[f"{PREFIX}.plain.sasl.jaas.config"] = _jaas(plain.MODULE, users)
        return found

    @property
    def requests(self) -> list[AlterUserScramCredentialsRequest]:
        """What makes the users of SCRAM; PLAIN has them in its settings."""
        from kafkalite.protocol.messages import AlterUserScramCredentialsRequest

        if self.mechanism == PLAIN:
            return []
        scram = BY_NAME[self.mechanism]
        upsertions = [
            AlterUserScramCredentialsRequest.Upsertion(
                name=name, mechanism=scram.number, iterations=MIN_ITERATIONS,
                salt=name.encode(),
                salted_password=scram.salted(password, name.encode(), MIN_ITERATIONS),
            )
            for name, password in self.users.items()
        ]  # fmt: skip
        return [AlterUserScramCredentialsRequest(upsertions=upsertions)]

    def client_config(self, library: str, bootstrap_servers: str) -> dict[str, str]:
        """What a client of this library needs to be told, to be the first user."""
        user, password = next(iter(self.users.items()))
        given = client_config(library, bootstrap_servers)
        known = known_library(library)
        if known in ("kafka-python", "aiokafka"):
            return given | {
                "security_protocol": self.protocol, "sasl_mechanism": self.mechanism,
                "sasl_plain_username": user, "sasl_plain_password": password,
            }  # fmt: skip
        told = {"security.protocol": self.protocol, "sasl.mechanism": self.mechanism}
        if known == "confluent":
            return given | told | {"sasl.username": user, "sasl.password": password}
        module = plain.MODULE if self.mechanism == PLAIN else SCRAM_MODULE
        told["sasl.jaas.config"] = _jaas(module, {"username": user, "password": password})
        prefix = "kafka." if known == "spark" else ""
        return given | {prefix + name: value for name, value in told.items()}


def secured(
    security: str | None, mechanism: str | None, users: Mapping[str, str] | None
) -> Secured | None:
    """What the arguments of an EmbeddedKafka ask for; None: nobody logs in."""
    if security is None:
        if mechanism is not None or users is not None:
            raise ValueError('mechanism and users need security="sasl_plaintext"')
        return None
    if security != "sasl_plaintext":
        raise ValueError(f'security={security!r}: expected "sasl_plaintext"')
    if mechanism not in BY_PASSWORD:
        raise ValueError(f"mechanism={mechanism!r}: expected one of {', '.join(BY_PASSWORD)}")
    if not users or not all(
        isinstance(each, str) and each for pair in users.items() for each in pair
    ):
        raise ValueError('users: expected names with passwords, {"alice": "secret"}')
    return Secured(mechanism, dict(users))


def _jaas(module: str, options: Mapping[str, str]) -> str:
    shown = " ".join(f"{name}={_quoted(value)}" for name, value in options.items())
    return f"{module} required {shown};"


def _quoted(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'
