"""Brokers of a test that do not let everybody in: what they are set to, what clients are told.

Owns the users, by their passwords, and the names of those who have certificates. The first of them
is who the helpers of tests are, and whom `client_config` means. Starts nothing.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafkalite.config.authorization import AUTHORIZER, STANDARD_AUTHORIZER, SUPER_USERS
from kafkalite.config.listeners import SASL_PLAINTEXT, SASL_PROTOCOLS, SASL_SSL, SSL
from kafkalite.security.client_login import Login, Security
from kafkalite.security.client_settings import jaas_line, jaas_of, module_of, security_of
from kafkalite.security.mechanisms import BY_PASSWORD, PLAIN
from kafkalite.security.scram import BY_NAME, MIN_ITERATIONS
from kafkalite.testing.clients import client_config, known_library
from kafkalite.testing.keys import BROKER, Keys

if TYPE_CHECKING:
    from kafkalite.protocol.messages import AlterUserScramCredentialsRequest

KINDS = {each.lower(): each for each in (SSL, SASL_SSL, SASL_PLAINTEXT)}
# Of certificates: names of files, too.
NAME = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_@. -]{0,62}")


@dataclass(slots=True, frozen=True)
class Secured:
    """How clients come in."""

    protocol: str
    mechanism: str = ""  # by which they log in
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    keys: Keys | None = field(default=None, repr=False)
    has_rules: bool = False
    broker_password: str = field(default="", repr=False)  # of several, who log in at each other

    @property
    def login(self) -> Login | None:
        """That of the first user."""
        if not self.mechanism:
            return None
        user, password = next(iter(self.users.items()))
        return Login(self.mechanism, user, password)

    @property
    def security(self) -> Security:
        """How the helpers of tests come in."""
        keys = self.keys
        if keys is None:
            return Security(login=self.login)
        told = {"security.protocol": SSL, **_trusting(keys)}
        for shown in list(keys.clients.values())[:1]:
            told |= {
                "ssl.keystore.type": "PEM", "ssl.keystore.key": shown.key_pem,
                "ssl.keystore.certificate.chain": shown.chain_pem,
            }  # fmt: skip
        return Security(security_of(told).context, self.login)

    def settings(self, given: Mapping[str, str]) -> dict[str, str]:
        """What a server.properties would say; what is given counts."""
        found = {} if self.keys is None else self._tls_settings(self.keys)
        if self.mechanism:
            found |= self._login_settings()
        if self.has_rules:
            found[AUTHORIZER] = STANDARD_AUTHORIZER
        found |= given
        if self.has_rules:  # which are not for brokers among each other
            broker = f"User:{BROKER}" if self.mechanism else f"User:CN={BROKER}"
            found[SUPER_USERS] = ";".join(filter(None, [found.get(SUPER_USERS), broker]))
        return found

    def _login_settings(self) -> dict[str, str]:
        options = {}
        if self.broker_password:
            options = {"username": BROKER, "password": self.broker_password}
        if self.mechanism == PLAIN:
            users = self._all_users.items()
            options |= {f"user_{name}": password for name, password in users}
        found = {"sasl.enabled.mechanisms": self.mechanism}
        if options:
            found["sasl.mechanism.inter.broker.protocol"] = self.mechanism
            key = f"{self._prefix}.{self.mechanism.lower()}.sasl.jaas.config"
            found[key] = jaas_line(module_of(self.mechanism), options)
        return found

    @property
    def _all_users(self) -> dict[str, str]:
        """With the brokers' own."""
        own = {BROKER: self.broker_password} if self.broker_password else {}
        return {**self.users, **own}

    @property
    def _prefix(self) -> str:
        return f"listener.name.{self.protocol.lower()}"

    def _tls_settings(self, keys: Keys) -> dict[str, str]:
        found = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": keys.broker.key_pem,
            "ssl.keystore.certificate.chain": keys.broker.chain_pem,
            **_trusting(keys),
        }
        if keys.clients or self.has_rules:  # brokers have to be somebody to each other
            found[f"{self._prefix}.ssl.client.auth"] = "required" if keys.clients else "requested"
        return found

    @property
    def requests(self) -> list[AlterUserScramCredentialsRequest]:
        """What makes the users of SCRAM; PLAIN has them in its settings."""
        from kafkalite.protocol.messages import AlterUserScramCredentialsRequest

        if self.mechanism not in BY_NAME:
            return []
        scram = BY_NAME[self.mechanism]
        upsertions = [
            AlterUserScramCredentialsRequest.Upsertion(
                name=name, mechanism=scram.number, iterations=MIN_ITERATIONS,
                salt=name.encode(),
                salted_password=scram.salted(password, name.encode(), MIN_ITERATIONS),
            )
            for name, password in self._all_users.items()
        ]  # fmt: skip
        return [AlterUserScramCredentialsRequest(upsertions=upsertions)]

    # --- what clients are told --------------------------------------------------------------------

    def client_config(
        self, library: str, bootstrap_servers: str, user: str | None = None
    ) -> dict[str, Any]:
        """What a client of this library needs to be told, to be a user, or the first."""
        self._check_user(user)
        given = client_config(library, bootstrap_servers)
        known = known_library(library)
        if known in ("kafka-python", "aiokafka"):
            told: dict[str, Any] = {"security_protocol": self.protocol}
            return given | told | self._python(known, user) | self._python_login(user)
        told = {"security.protocol": self.protocol}
        if known == "confluent":
            return given | told | self._librdkafka(user) | self._librdkafka_login(user)
        prefix = "kafka." if known == "spark" else ""
        told |= self._java(user) | self._java_login(user)
        return given | {prefix + name: value for name, value in told.items()}

    def _check_user(self, user: str | None) -> None:
        shown = () if self.keys is None else self.keys.clients
        known = list(self.users) or list(shown)
        if user is not None and user not in known:
            raise ValueError(f"user={user!r}: expected one of {', '.join(known) or 'none'}")

    def _named(self, user: str | None) -> tuple[str, str]:
        name = next(iter(self.users)) if user is None else user
        return name, self.users[name]

    def _client(self, user: str | None) -> str | None:
        """Whose certificate is shown."""
        shown = {} if self.keys is None else self.keys.clients
        return user if user in shown else next(iter(shown), None)

    def _python(self, library: str, user: str | None) -> dict[str, Any]:
        keys, client = self.keys, self._client(user)
        if keys is None:
            return {}
        if library == "aiokafka":
            return {"ssl_context": keys.context(client)}
        if client is None:
            return {"ssl_cafile": keys.ca}
        own = keys.file_of(client)
        return {"ssl_cafile": keys.ca, "ssl_certfile": own, "ssl_keyfile": own}

    def _python_login(self, user: str | None) -> dict[str, str]:
        if not self.mechanism:
            return {}
        name, password = self._named(user)
        return {
            "sasl_mechanism": self.mechanism, "sasl_plain_username": name,
            "sasl_plain_password": password,
        }  # fmt: skip

    def _librdkafka(self, user: str | None) -> dict[str, str]:
        keys, client = self.keys, self._client(user)
        if keys is None:
            return {}
        if client is None:
            return {"ssl.ca.location": keys.ca}
        own = keys.file_of(client)
        return {
            "ssl.ca.location": keys.ca, "ssl.certificate.location": own, "ssl.key.location": own
        }  # fmt: skip

    def _librdkafka_login(self, user: str | None) -> dict[str, str]:
        if not self.mechanism:
            return {}
        name, password = self._named(user)
        return {
            "sasl.mechanism": self.mechanism, "sasl.username": name, "sasl.password": password
        }  # fmt: skip

    def _java(self, user: str | None) -> dict[str, str]:
        keys, client = self.keys, self._client(user)
        if keys is None:
            return {}
        told = {"ssl.truststore.type": "PEM", "ssl.truststore.location": keys.ca}
        if client is not None:
            told |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": keys.file_of(client)}
        return told

    def _java_login(self, user: str | None) -> dict[str, str]:
        if not self.mechanism:
            return {}
        jaas = jaas_of(self.mechanism, *self._named(user))
        return {"sasl.mechanism": self.mechanism, "sasl.jaas.config": jaas}


def _trusting(keys: Keys) -> dict[str, str]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": keys.root}


# --- what people ask for --------------------------------------------------------------------------


def secured(
    security: str | None,
    mechanism: str | None,
    users: Mapping[str, str] | None,
    client_certificates: Iterable[str] = (),
    *,
    host: str = "",
    has_rules: bool = False,
    are_several: bool = False,
) -> Secured | None:
    """What the arguments of an EmbeddedKafka ask for; None: everybody may come."""
    if isinstance(client_certificates, str):
        raise TypeError(
            f"client_certificates={client_certificates!r}: expected [{client_certificates!r}]"
        )
    clients = list(dict.fromkeys(client_certificates))
    if security is None:
        if mechanism is not None or users is not None or clients:
            raise ValueError(
                "mechanism, users and client_certificates need security, one of "
                f"{', '.join(KINDS)}"
            )
        return None
    if security not in KINDS:
        raise ValueError(f"security={security!r}: expected one of {', '.join(KINDS)}")
    protocol = KINDS[security]
    _check_logins(protocol, mechanism, users)
    _check_clients(protocol, clients)
    keys = Keys(host, clients) if protocol != SASL_PLAINTEXT else None
    password = secrets.token_urlsafe() if are_several and mechanism else ""
    return Secured(protocol, mechanism or "", dict(users or {}), keys, has_rules, password)


def _check_logins(
    protocol: str, mechanism: str | None, users: Mapping[str, str] | None
) -> None:
    if protocol not in SASL_PROTOCOLS:
        if mechanism is not None or users is not None:
            raise ValueError('security="ssl" has nobody log in: "sasl_ssl" takes mechanism, users')
        return
    if mechanism not in BY_PASSWORD:
        raise ValueError(f"mechanism={mechanism!r}: expected one of {', '.join(BY_PASSWORD)}")
    if not users or not all(
        isinstance(each, str) and each for pair in users.items() for each in pair
    ):
        raise ValueError('users: expected names with passwords, {"alice": "secret"}')
    if BROKER in users:
        raise ValueError(f"users: {BROKER} is the user that brokers are to each other")


def _check_clients(protocol: str, clients: list[str]) -> None:
    if clients and protocol == SASL_PLAINTEXT:
        raise ValueError('client_certificates need security="ssl" or "sasl_ssl"')
    if BROKER in clients:
        raise ValueError(f"client_certificates: {BROKER} is what brokers are to each other")
    for name in clients:
        if not isinstance(name, str) or NAME.fullmatch(name) is None:
            raise ValueError(
                f"client_certificates: {name!r}: a name has 1 to 63 letters, digits and . _ @ -"
            )
