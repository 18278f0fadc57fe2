"""What settings say of OAUTHBEARER: how tokens are checked, and why a broker must not start so.

Owns the way from the settings of one listener and its line of JAAS to rules. Unsecured tokens let
anybody in under any name: nothing but a word for them has them taken. A set of keys may be read
from any address that the settings name: whoever writes them starts the broker, so there is no
second list of what is allowed, as Apache Kafka has one in a property of its JVM.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Final

from kafkalite.config.protections import SIGNED_CHECK, UNSECURED_CHECK
from kafkalite.config.setting import InvalidSetting, Value
from kafkalite.env.dataclasses import dataclass
from kafkalite.security.key_source import SCHEMES, KeySource
from kafkalite.security.key_stores import PEM, TYPES, Place
from kafkalite.security.signed_tokens import SignedRules
from kafkalite.security.unsecured_tokens import UnsecuredRules

CHECK: Final = "sasl.server.callback.handler.class"
URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
VALIDATOR: Final = "sasl.oauthbearer.jwt.validator.class"
PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
VALIDATORS: Final = (f"{PACKAGE}.DefaultJwtValidator", f"{PACKAGE}.BrokerJwtValidator")
UNSECURED: Final = "unsecured"  # how options about such tokens begin
TRUST_OPTIONS: Final = frozenset(
    f"ssl.{each}"
    for each in (
        "truststore.type", "truststore.location", "truststore.password", "truststore.certificates",
        "endpoint.identification.algorithm", "protocol", "enabled.protocols",
    )
)  # fmt: skip

_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


@dataclass(slots=True, frozen=True)
class SignedSettings:
    """Tokens are signed by keys of a set."""

    source: KeySource
    rules: SignedRules
    refresh_ms: int
    backoff_ms: int
    most_backoff_ms: int


OauthSettings = SignedSettings | UnsecuredRules


@dataclass(slots=True, frozen=True)
class Said:
    """Settings as one listener has them for OAUTHBEARER."""

    prefix: str  # how the names of its own ones begin
    value: Callable[[str], Value]
    options: Mapping[str, str]  # of its line of JAAS
    jaas: str  # the name of that

    def text(self, name: str) -> str | None:
        value = self.value(name)
        return (value.strip() or None) if isinstance(value, str) else None

    def number(self, name: str) -> int:
        value = self.value(name)
        assert isinstance(value, int), f"{name} is not a number: {value!r}"
        return value


def oauth_settings(said: Said, check: str | None) -> OauthSettings:
    """By the class that is named as the one that checks tokens; raises InvalidSetting."""
    if check == SIGNED_CHECK:
        return _signed(said)
    if check == UNSECURED_CHECK or any(each.startswith(UNSECURED) for each in said.options):
        return _unsecured(said)
    raise InvalidSetting(
        f"{said.prefix}{CHECK}: nothing says how tokens of OAUTHBEARER are checked: set it to "
        f"{SIGNED_CHECK}, and {URL} to where keys are; or, for tests, name an option that begins "
        f"with {UNSECURED}Validator in {said.jaas}, and whoever comes is whom its token names"
    )


# --- signed ---------------------------------------------------------------------------------------


def _signed(said: Said) -> SignedSettings:
    if find_spec("joserfc") is None:
        raise InvalidSetting(
            f"{said.prefix}{CHECK}: signed tokens need the extra: pip install 'kafkalite[security]'"
        )
    validator = said.text(VALIDATOR)
    if validator not in VALIDATORS:
        raise InvalidSetting(f"{VALIDATOR}: no class of another runtime checks tokens")
    audience = said.value("sasl.oauthbearer.expected.audience")
    refresh_ms = said.number("sasl.oauthbearer.jwks.endpoint.refresh.ms")
    if refresh_ms <= 0:
        raise InvalidSetting("sasl.oauthbearer.jwks.endpoint.refresh.ms: expected more than 0")
    return SignedSettings(
        _source(said),
        SignedRules(
            tuple(audience) if isinstance(audience, list) else (),
            said.text("sasl.oauthbearer.expected.issuer"),
            said.number("sasl.oauthbearer.clock.skew.seconds"),
            _claim(said, "sasl.oauthbearer.scope.claim.name"),
            _claim(said, "sasl.oauthbearer.sub.claim.name"),
        ),
        refresh_ms,
        max(1, said.number("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms")),
        max(1, said.number("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms")),
    )


def _claim(said: Said, setting: str) -> str:
    found = said.text(setting)
    if found is None:
        raise InvalidSetting(f"{setting}: expected the name of a claim")
    return found


def _source(said: Said) -> KeySource:
    url = said.text(URL)
    if url is None:
        raise InvalidSetting(
            f"{URL}: {SIGNED_CHECK} checks signatures, and there are no keys for that: set it to "
            "the address of a set of keys (JWKS), file:///… or https://…"
        )
    source = KeySource(url, _trusted(said), _checks_name(said))
    try:
        scheme, port = source.parts.scheme.lower(), source.parts.port
        is_none = scheme not in SCHEMES or port == 0 or not (source.path or source.parts.hostname)
    except ValueError:
        is_none = True
    if is_none:
        raise InvalidSetting(f"{URL}: expected an address of {', '.join(SCHEMES)}")
    if source.path is not None:
        if source.path.is_fifo():  # nobody may ever write to it
            raise InvalidSetting(f"{URL}: {source.path}: it is no file")
        try:
            source.path.open("rb").close()
        except OSError as error:
            raise InvalidSetting(f"{URL}: {source.path}: {error.strerror}") from None
    return source


def _trusted(said: Said) -> Place | None:
    """Whose certificates are trusted when keys are read, by options of JAAS, as in Kafka."""
    strange = [
        each for each in said.options if each.startswith("ssl.") and each not in TRUST_OPTIONS
    ]
    if strange:
        raise InvalidSetting(
            f"{said.jaas}: {strange[0]} cannot be had where keys are read: {URL} is asked without "
            "a certificate of ours"
        )
    location = said.options.get("ssl.truststore.location")
    certificates = said.options.get("ssl.truststore.certificates")
    if not location and not certificates:
        return None
    kind = said.options.get("ssl.truststore.type", "JKS").upper()
    if kind not in TYPES or (certificates and kind != PEM):
        raise InvalidSetting(f"{said.jaas}: ssl.truststore.type: {kind} cannot be read here")
    password = said.options.get("ssl.truststore.password")
    return Place(said.jaas, kind, location, password, certificates=certificates)


def _checks_name(said: Said) -> bool:
    return said.options.get("ssl.endpoint.identification.algorithm", "https").lower() == "https"


# --- unsecured ------------------------------------------------------------------------------------


def _unsecured(said: Said) -> UnsecuredRules:
    def option(name: str) -> str:
        return said.options.get(f"{UNSECURED}Validator{name}", "").strip()

    skew, scope = option("AllowableClockSkewMs") or "0", option("RequiredScope").split()
    if not skew.isdecimal() or int(skew[:12]) >= 2**31:
        raise InvalidSetting(
            f"{said.jaas}: {UNSECURED}ValidatorAllowableClockSkewMs: expected a number, 0 or more"
        )
    if not all(map(_SCOPE.fullmatch, scope)):
        raise InvalidSetting(f"{said.jaas}: {UNSECURED}ValidatorRequiredScope: expected words")
    return UnsecuredRules(
        option("PrincipalClaimName") or "sub", option("ScopeClaimName") or "scope", tuple(scope),
        int(skew),
    )  # fmt: skip
