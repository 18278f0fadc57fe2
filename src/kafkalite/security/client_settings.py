"""From the settings of a client to how it comes to brokers: what it shows and trusts, its login.

Owns which of Java's names say that (security.protocol, ssl.*, sasl.*), for whoever calls: a tool, a
helper of tests, a broker that asks another one. What cannot be kept is InvalidSetting, one sentence
without a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkalite.config.listeners import PLAINTEXT, PROTOCOLS, SASL_PROTOCOLS, SSL
from kafkalite.config.setting import InvalidSetting
from kafkalite.security.client_login import Login, Security
from kafkalite.security.jaas import MalformedJaas, parse_entry
from kafkalite.security.mechanisms import BY_PASSWORD, OAUTHBEARER, PLAIN
from kafkalite.security.oauthbearer import MODULE as OAUTHBEARER_MODULE
from kafkalite.security.plain import MODULE as PLAIN_MODULE

if TYPE_CHECKING:
    import ssl

    from kafkalite.env.tls import Offer

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
MODULES = {PLAIN: PLAIN_MODULE, OAUTHBEARER: OAUTHBEARER_MODULE}
PROTOCOL, MECHANISM, JAAS = "security.protocol", "sasl.mechanism", "sasl.jaas.config"
DEFAULT_MECHANISM = "GSSAPI"
# Classes of another runtime, each of which would decide who a client is.
_CLASSES = (
    "sasl.client.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class",
)  # fmt: skip


def is_of_security(name: str) -> bool:
    """Whether a setting is one that is read here."""
    return name == PROTOCOL or name.startswith(("ssl.", "sasl."))


def security_of(given: Mapping[str, str]) -> Security:
    """What settings say; raises InvalidSetting. Reads the stores that they name."""
    protocol = given.get(PROTOCOL, PLAINTEXT).strip().upper()
    if protocol not in PROTOCOLS:
        raise InvalidSetting(f"{PROTOCOL}: {protocol} is none of {', '.join(PROTOCOLS)}")
    return Security(
        _context(given) if protocol.endswith(SSL) else None,
        login_of(given) if protocol in SASL_PROTOCOLS else None,
    )


def _context(given: Mapping[str, str]) -> ssl.SSLContext:
    from kafkalite.env.tls import TlsError, client_context

    try:
        return client_context(_offer(given))
    except TlsError as error:
        raise InvalidSetting(f"ssl.keystore.location: {error}") from None


def shown_context(given: Mapping[str, str]) -> ssl.SSLContext:
    """What settings of a listener show to who calls, where no broker listens; raises
    InvalidSetting."""
    from kafkalite.env.tls import TlsError, server_context

    offer = _offer(given, given.get("ssl.client.auth", "none").strip().lower())
    if not offer.shown:
        raise InvalidSetting(
            "ssl.keystore.location: who listens with TLS shows a certificate: name the store of "
            "its key"
        )
    try:
        return server_context(offer)
    except TlsError as error:
        raise InvalidSetting(f"ssl.keystore.location: {error}") from None


def _offer(given: Mapping[str, str], client_auth: str = "none") -> Offer:
    from kafkalite.env.tls import CLIENT_AUTH, Offer, Shown
    from kafkalite.security.key_stores import read_identities, read_trusted
    from kafkalite.security.tls_settings import (
        GivenSettings,
        check_classes,
        checks_names,
        key_place,
        trust_place,
        versions_and_ciphers,
    )

    if client_auth not in CLIENT_AUTH:
        known = ", ".join(CLIENT_AUTH)
        raise InvalidSetting(f"ssl.client.auth: {client_auth} is none of {known}")
    settings = GivenSettings(given)
    check_classes(settings)
    versions, ciphers = versions_and_ciphers(settings)
    keys, trusted = key_place(settings), trust_place(settings)
    shown = [] if keys is None else read_identities(keys)
    return Offer(
        [Shown(each.key, each.chain, each.password) for each in shown],
        None if trusted is None else read_trusted(trusted), versions, ciphers, client_auth,
        checks_name=checks_names(settings),
    )  # fmt: skip


def login_of(given: Mapping[str, str]) -> Login:
    """Who a client is to be; raises InvalidSetting."""
    mechanism = given.get(MECHANISM, DEFAULT_MECHANISM).strip()
    if mechanism not in BY_PASSWORD:
        raise InvalidSetting(
            f"{MECHANISM}: {mechanism} is not spoken here: set it to one of "
            f"{', '.join(BY_PASSWORD)}"
        )
    for name in _CLASSES:
        if given.get(name, "").strip():
            raise InvalidSetting(f"{name}: no class of another runtime can be asked; leave it out")
    text = given.get(JAAS)
    if text is None:
        raise InvalidSetting(
            f"{JAAS} is not set: there a client has its user and password, such as "
            f"{jaas_of(mechanism, 'alice', 'secret')}"
        )
    return login_in(JAAS, text, mechanism)


def login_in(key: str, text: str, mechanism: str) -> Login:
    """The user and password of an entry; raises InvalidSetting, which names the key."""
    try:
        entry = parse_entry(text)
    except MalformedJaas as error:
        raise InvalidSetting(f"{key}: {error}") from None
    if entry.module != module_of(mechanism):
        raise InvalidSetting(
            f"{key}: {entry.module} is no module of {mechanism}, which is {module_of(mechanism)}"
        )
    missing = [name for name in ("username", "password") if not entry.options.get(name)]
    if missing:
        raise InvalidSetting(f"{key}: {missing[0]} is not given there")
    return Login(mechanism, entry.options["username"], entry.options["password"])


def module_of(mechanism: str) -> str:
    return MODULES.get(mechanism, SCRAM_MODULE)


def jaas_of(mechanism: str, user: str, password: str) -> str:
    """The line by which Java's clients are told who they are."""
    return jaas_line(module_of(mechanism), {"username": user, "password": password})


def jaas_line(module: str, options: Mapping[str, str]) -> str:
    shown = " ".join(f"{name}={_quoted(value)}" for name, value in options.items())
    return f"{module} required {shown};"


def _quoted(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'
