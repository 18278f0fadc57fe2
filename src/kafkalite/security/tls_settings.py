"""From settings to one side's part in TLS, a listener's or a client's: what it shows, trusts and
offers.

Owns which settings belong together, which of them cannot be kept here, and the way from Java's
words to OpenSSL's. Nothing is taken that is not honoured: what cannot be is one sentence that names
the setting, before anything is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkalite.config import BrokerConfig, InvalidSetting, broker_settings
from kafkalite.config.listeners import SASL_SSL, SSL, Listener
from kafkalite.config.protections import ALLOW
from kafkalite.config.setting import Value
from kafkalite.config.tables import LISTENER_PREFIX
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.tls import (
    SUITES_13,
    VERSIONS,
    Offer,
    RevocationsUnreadable,
    Shown,
    TlsError,
    client_context,
    server_context,
)
from kafkalite.security.certificates import name_of
from kafkalite.security.der import MalformedDer
from kafkalite.security.key_stores import (
    PEM,
    TYPES,
    Place,
    read_identities,
    read_revoked,
    read_trusted,
)
from kafkalite.security.principals import NoRule, PrincipalMapper

if TYPE_CHECKING:
    import ssl

ENCRYPTED = (SSL, SASL_SSL)
ENGINE = "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"
# Algorithms of Java's by which it chooses a key and follows a chain, as OpenSSL does, too.
KEY_MANAGERS = ("SunX509", "NewSunX509", "PKIX", "X509")
TRUST_MANAGERS = ("PKIX", "SunPKIX", "X.509", "X509", "SunX509")
REVOKED = "kafkalite.ssl.crl.location"
_NO_SUITE = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"


@dataclass(slots=True, frozen=True)
class ListenerTls:
    """What one listener does with TLS; a new one takes its place when its stores change."""

    server: ssl.SSLContext
    client: ssl.SSLContext  # for brokers that call this listener of another one
    mapper: PrincipalMapper
    leaves: list[bytes]  # the certificates that it shows, in DER
    has_trusted: bool
    names_peers: bool  # whether certificates name the user; a login does otherwise

    def user(self, certificate: bytes | None) -> str | None:
        """Of the verified certificate that a peer has shown; None for nobody. Raises NoRule."""
        if certificate is None or not self.names_peers:
            return None
        try:
            return self.mapper.user(name_of(certificate))
        except MalformedDer as error:
            raise NoRule(f"its certificate names nobody: {error}") from None


class Settings:
    """Where the settings of one side are looked up, by Kafka's names."""

    def key(self, name: str) -> str:
        """The name under which it was set."""
        return name

    def value(self, name: str) -> Value:
        raise NotImplementedError

    def text(self, name: str) -> str | None:
        value = self.value(name)
        return value if isinstance(value, str) and value else None

    def items(self, name: str) -> list[str]:
        value = self.value(name)
        return value if isinstance(value, list) else []

    def problem(self, name: str, why: str) -> InvalidSetting:
        return InvalidSetting(f"{self.key(name)}: {why}")


class _OfListener(Settings):
    """Those that hold for a listener: its own, else those of all."""

    def __init__(self, config: BrokerConfig, listener: Listener) -> None:
        self._config = config
        self._prefix = f"{LISTENER_PREFIX}{listener.name.lower()}."

    def is_own(self, name: str) -> bool:
        return self._config.text(self._prefix + name) is not None

    def key(self, name: str) -> str:
        return self._prefix + name if self.is_own(name) else name

    def value(self, name: str) -> Value:
        text = self._config.text(self._prefix + name)
        return self._config.get(name) if text is None else broker_settings()[name].parse(text)


class GivenSettings(Settings):
    """Those of a client, which has no listeners; names and values as a broker's are."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    def value(self, name: str) -> Value:
        setting, text = broker_settings()[name], self._given.get(name)
        return setting.default() if text is None else setting.parse(text)


@dataclass(slots=True, frozen=True)
class Plan:
    """What the settings of a listener say: where its stores are, and what it offers."""

    key_place: Place
    trust_place: Place | None
    rules: str
    versions: tuple[str, ...]
    ciphers: tuple[str, ...] | None
    client_auth: str
    checks_names: bool
    names_peers: bool
    may_change_name: bool
    may_change_alternatives: bool
    revoked_place: Place | None

    @property
    def files(self) -> list[str]:
        places = (self.key_place, self.trust_place, self.revoked_place)
        return [each.location for each in places if each is not None and each.location is not None]

    def made(self) -> ListenerTls:
        """What it comes to; raises InvalidSetting. Reads files, and takes some milliseconds."""
        mapper = PrincipalMapper(self.rules)
        identities = read_identities(self.key_place)
        trusted = None if self.trust_place is None else read_trusted(self.trust_place)
        offer = Offer(
            [Shown(each.key, each.chain, each.password) for each in identities],
            trusted, self.versions, self.ciphers, self.client_auth, self.checks_names,
            None if self.revoked_place is None else read_revoked(self.revoked_place),
        )  # fmt: skip
        try:
            server, client = server_context(offer), client_context(offer)
        except RevocationsUnreadable as error:
            assert self.revoked_place is not None
            raise self.revoked_place.problem(str(error)) from None
        except TlsError as error:
            raise self.key_place.problem(str(error)) from None
        return ListenerTls(
            server, client, mapper, [each.leaf for each in identities], trusted is not None,
            self.names_peers,
        )  # fmt: skip


def plan_of(config: BrokerConfig, listener: Listener) -> Plan | None:
    """What a listener's settings say, None where its protocol has no TLS; raises InvalidSetting.
    Reads no file."""
    settings = _OfListener(config, listener)
    if listener.protocol not in ENCRYPTED or _is_left_open(config, settings):
        return None
    check_classes(settings)
    versions, ciphers = versions_and_ciphers(settings)
    keys = key_place(settings)
    if keys is None:
        raise settings.problem(
            "ssl.keystore.location",
            "a listener with TLS shows a certificate: name the store of its key",
        )
    return Plan(
        keys,
        trust_place(settings),
        settings.text("ssl.principal.mapping.rules") or "DEFAULT",
        tuple(versions),
        None if ciphers is None else tuple(ciphers),
        _client_auth(settings, listener),
        checks_names(settings, is_called=listener.name == config.inter_broker_listener),
        listener.protocol == SSL,
        settings.value("ssl.allow.dn.changes") is True,
        settings.value("ssl.allow.san.changes") is True,
        _revoked_place(settings),
    )


def _is_left_open(config: BrokerConfig, settings: Settings) -> bool:
    """Whether somebody insists on starting without keys."""
    stores = ("ssl.keystore.location", "ssl.keystore.key")
    return config.get_bool(ALLOW) and not any(map(settings.text, stores))


def tls_of(config: BrokerConfig, listener: Listener) -> ListenerTls | None:
    """What a listener's settings come to; raises InvalidSetting."""
    plan = plan_of(config, listener)
    return None if plan is None else plan.made()


def check_tls(config: BrokerConfig) -> None:
    """Raises InvalidSetting for the first listener whose TLS settings cannot be kept."""
    for listener in config.opened_listeners:
        tls_of(config, listener)


def check_classes(settings: Settings) -> None:
    """What another runtime would have to do."""
    for name, known, why in (
        ("ssl.engine.factory.class", (ENGINE,), "no class of another runtime makes TLS engines"),
        ("ssl.provider", (), "TLS is OpenSSL's here, there are no providers of Java's"),
        ("ssl.keymanager.algorithm", KEY_MANAGERS, "keys are chosen by OpenSSL"),
        ("ssl.trustmanager.algorithm", TRUST_MANAGERS, "chains are followed by OpenSSL"),
    ):
        text = settings.text(name)
        if text is not None and text not in known:
            raise settings.problem(name, f"{text} cannot be had: {why}; leave it out")


def checks_names(settings: Settings, *, is_called: bool = True) -> bool:
    """Whether a client compares the name that it called with the certificate's. What a listener
    says that no broker calls is nobody's concern, as in Kafka."""
    name = "ssl.endpoint.identification.algorithm"
    text = settings.text(name)
    if is_called and text is not None and text.lower() != "https":
        raise settings.problem(name, f"{text} cannot be had: https or nothing can")
    return text is not None


def _client_auth(settings: _OfListener, listener: Listener) -> str:
    """A listener with a login asks for certificates only if it alone was told to, as in Kafka."""
    name = "ssl.client.auth"
    if listener.protocol == SASL_SSL and not settings.is_own(name):
        return "none"
    return settings.text(name) or "none"


# --- stores ---------------------------------------------------------------------------------------


def key_place(settings: Settings) -> Place | None:
    """Kafka's rules, in its order; None where no store is named."""
    kind = _kind(settings, "ssl.keystore.type")
    location = settings.text("ssl.keystore.location")
    password = settings.text("ssl.keystore.password")
    key = settings.text("ssl.keystore.key")
    chain = settings.text("ssl.keystore.certificate.chain")
    rules = (
        ("key", key and kind != PEM, "SSL private key can be specified only for PEM, but key store "
         f"type is {kind}."),
        ("key", key and not chain, "SSL private key is specified, but certificate chain is not "
         "specified."),
        ("location", key and location, "Both SSL key store location and separate private key are "
         "specified."),
        ("certificate.chain", chain and not key, "SSL certificate chain is specified, but private "
         "key is not specified"),
        ("password", kind == PEM and password, "SSL key store password cannot be specified with "
         "PEM format, only key password may be specified."),
        ("password", password and not location, "SSL key store is not specified, but key store "
         "password is specified."),
        ("location", kind != PEM and location and password is None, "SSL key store is specified, "
         "but key store password is not specified."),
    )  # fmt: skip
    for name, is_broken, why in rules:
        if is_broken:
            raise settings.problem(f"ssl.keystore.{name}", why)
    if not key and not location:
        return None
    setting = settings.key("ssl.keystore.location" if key is None else "ssl.keystore.key")
    opens = settings.text("ssl.key.password")
    return Place(setting, kind, location, password, opens, key, chain)


def trust_place(settings: Settings) -> Place | None:
    kind = _kind(settings, "ssl.truststore.type")
    location = settings.text("ssl.truststore.location")
    password = settings.text("ssl.truststore.password")
    certificates = settings.text("ssl.truststore.certificates")
    rules = (
        ("certificates", certificates and kind != PEM, "SSL trust store certs can be specified "
         f"only for PEM, but trust store type is {kind}."),
        ("location", certificates and location, "Both SSL trust store location and separate trust "
         "certificates are specified."),
        ("password", kind == PEM and (certificates or location) and password, "SSL trust store "
         "password cannot be specified for PEM format."),
        ("password", password and not location, "SSL trust store is not specified, but trust store "
         "password is specified."),
    )  # fmt: skip
    for name, is_broken, why in rules:
        if is_broken:
            raise settings.problem(f"ssl.truststore.{name}", why)
    if not location and not certificates:
        return None
    name = "certificates" if certificates else "location"
    setting = settings.key(f"ssl.truststore.{name}")
    return Place(setting, kind, location, password, certificates=certificates)


def _revoked_place(settings: Settings) -> Place | None:
    location = settings.text(REVOKED)
    return None if location is None else Place(settings.key(REVOKED), PEM, location)


def _kind(settings: Settings, name: str) -> str:
    text = (settings.text(name) or "").upper()
    if text not in TYPES:
        raise settings.problem(name, f"{text} cannot be read here: {', '.join(TYPES)} can")
    return text


# --- what is offered ------------------------------------------------------------------------------


def versions_and_ciphers(settings: Settings) -> tuple[list[str], list[str] | None]:
    """Of TLS, and those of its version 1.2 in OpenSSL's names; None: all that it has."""
    name = "ssl.enabled.protocols"
    versions = settings.items(name) or list(VERSIONS)
    strangers = [each for each in versions if each not in VERSIONS]
    if strangers:
        raise settings.problem(
            name, f"{', '.join(strangers)} cannot be offered: {', '.join(VERSIONS)} can"
        )
    suites = [each for each in settings.items("ssl.cipher.suites") if each != _NO_SUITE]
    if not suites:
        return versions, None
    return _with_suites(settings, versions, suites)


def _with_suites(
    settings: Settings, versions: list[str], suites: list[str]
) -> tuple[list[str], list[str] | None]:
    """Without a suite of its own a version is not on offer, as with Java."""
    name = "ssl.cipher.suites"
    new = [each for each in suites if each in SUITES_13]
    old = [openssl_name(each) for each in suites if each not in SUITES_13]
    unknown = [each for each, made in zip(
        [each for each in suites if each not in SUITES_13], old, strict=True
    ) if made is None]  # fmt: skip
    if unknown:
        raise settings.problem(name, f"{', '.join(unknown)} cannot be had from OpenSSL")
    if 0 < len(new) < len(SUITES_13) and "TLSv1.3" in versions:
        raise settings.problem(
            name,
            "the suites of TLS 1.3 can only be offered together: name "
            f"{', '.join(SUITES_13)}, or none of them",
        )
    lacks = {"TLSv1.2": not old, "TLSv1.3": not new}
    left = [each for each in versions if not lacks[each]]
    if not left:
        raise settings.problem(name, f"none of them is one of {', '.join(versions)}")
    return left, [each for each in old if each is not None] or None


_KEY_EXCHANGES = {
    "ECDHE_ECDSA": "ECDHE-ECDSA-", "ECDHE_RSA": "ECDHE-RSA-", "DHE_RSA": "DHE-RSA-", "RSA": "",
}  # fmt: skip
_CIPHERS = {
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA": "AES128-SHA",
}


def openssl_name(suite: str) -> str | None:
    """OpenSSL's name of a suite of TLS 1.2 that Java names; None where there is none."""
    exchange, separator, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    if not separator or exchange not in _KEY_EXCHANGES or cipher not in _CIPHERS:
        return None
    return _KEY_EXCHANGES[exchange] + _CIPHERS[cipher]
