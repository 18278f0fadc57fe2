"""What settings say of logins, for each listener that has its peers log in.

Owns how they are looked up (for a listener and a mechanism, for a listener, for all) and why a
broker must not start with them: a mechanism that is not served, one that nobody could log in by.
What holds is what a broker was started with; Kafka takes changes for new listeners alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkalite.config.broker import BrokerConfig
from kafkalite.config.listeners import SASL_PROTOCOLS, Listener
from kafkalite.config.protections import ALLOW
from kafkalite.config.setting import InvalidSetting, Value
from kafkalite.config.tables import LISTENER_PREFIX
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.security import oauthbearer, plain
from kafkalite.security.client_login import Login
from kafkalite.security.client_settings import jaas_of, module_of
from kafkalite.security.jaas import Entry, MalformedJaas, parse_entry
from kafkalite.security.mechanisms import OAUTHBEARER, PLAIN, SERVED
from kafkalite.security.oauth_settings import CHECK, OauthSettings, Said, oauth_settings

ENABLED = "sasl.enabled.mechanisms"
JAAS = "sasl.jaas.config"
INTER_BROKER = "sasl.mechanism.inter.broker.protocol"
USER_PREFIX = "user_"
EXAMPLE = f'{plain.MODULE} required user_alice="secret";'


@dataclass(slots=True, frozen=True)
class LoginSettings:
    """Those of one listener."""

    mechanisms: tuple[str, ...]
    session_ms: Mapping[str, int]  # by mechanism; 0: a login holds as long as its connection
    plain_users: Mapping[str, str] = field(repr=False)
    oauth: OauthSettings | None
    max_frame_bytes: int
    failure_delay_ms: int


def login_settings(config: BrokerConfig) -> dict[str, LoginSettings]:
    """By the names of listeners; raises InvalidSetting for what no broker must start with."""
    found = {}
    for listener in config.opened_listeners:
        if listener.protocol in SASL_PROTOCOLS:
            try:
                found[listener.name] = _of(config, listener)
            except InvalidSetting as error:
                if not config.get_bool(ALLOW):
                    why = f"{error}; {ALLOW}=true starts without this protection"
                    raise InvalidSetting(why) from None
    return found


def _of(config: BrokerConfig, listener: Listener) -> LoginSettings:
    prefix = f"{LISTENER_PREFIX}{listener.name.lower()}."
    enabled = _value(config, ENABLED, prefix)
    mechanisms = tuple(enabled) if isinstance(enabled, list) else ()
    _check_mechanisms(mechanisms, listener.name, prefix)
    sessions = {
        each: _number(config, "connections.max.reauth.ms", f"{prefix}{each.lower()}.", prefix)
        for each in mechanisms
    }
    return LoginSettings(
        mechanisms,
        sessions,
        _plain_users(config, listener.name, prefix) if PLAIN in mechanisms else {},
        _oauth(config, prefix) if OAUTHBEARER in mechanisms else None,
        _number(config, "sasl.server.max.receive.size", prefix),
        _number(config, "connection.failed.authentication.delay.ms"),
    )


def broker_login(config: BrokerConfig) -> Login | None:
    """As whom this broker logs in at others, None where nobody said so or they want nobody to;
    raises InvalidSetting."""
    listener = _among_brokers(config)
    if listener is None:
        return None
    mechanism, key = _of_brokers(config, listener)
    text = config.text_at_start(key)
    if mechanism not in SERVED or text is None:
        return None
    entry = _entry(key, text)
    user, password = entry.options.get("username"), entry.options.get("password")
    if entry.module != module_of(mechanism) or not user or not password:
        return None
    return Login(mechanism, user, password)


def check_broker_login(config: BrokerConfig) -> None:
    """Of one of several brokers; raises InvalidSetting when it could not log in at the others."""
    listener = _among_brokers(config)
    if listener is None or broker_login(config) is not None:
        return
    mechanism, key = _of_brokers(config, listener)
    if mechanism not in SERVED:
        raise InvalidSetting(
            f"{INTER_BROKER}: brokers log in at each other at listener {listener.name}, and "
            f"{mechanism} is not served: set it to one of {','.join(SERVED)}"
        )
    raise InvalidSetting(
        f"{key}: brokers log in at each other at listener {listener.name} with {mechanism}, and "
        f"are told there as whom: {jaas_of(mechanism, 'broker', 'secret')}"
    )


def _among_brokers(config: BrokerConfig) -> Listener | None:
    """The listener by which brokers ask each other, if one logs in there."""
    named = config.inter_broker_listener
    return next(
        (
            each for each in config.listeners
            if each.name == named and each.protocol in SASL_PROTOCOLS
        ),
        None,
    )  # fmt: skip


def _of_brokers(config: BrokerConfig, listener: Listener) -> tuple[str, str]:
    """Their mechanism, and where their user stands."""
    prefix = f"{LISTENER_PREFIX}{listener.name.lower()}."
    mechanism = config.text_at_start(INTER_BROKER) or str(config.settings[INTER_BROKER].default())
    return mechanism, f"{prefix}{mechanism.lower()}.{JAAS}"


def _number(config: BrokerConfig, name: str, *prefixes: str) -> int:
    value = _value(config, name, *prefixes)
    assert isinstance(value, int), f"{name} is not a number: {value!r}"
    return value


def _value(config: BrokerConfig, name: str, *prefixes: str) -> Value:
    """That of the first prefix which it is set with, or without one."""
    setting = config.settings[name]
    for prefix in (*prefixes, ""):
        text = config.text_at_start(prefix + name)
        if text is not None:
            return setting.parse(text)
    return setting.default()


def _check_mechanisms(mechanisms: tuple[str, ...], listener: str, prefix: str) -> None:
    missing = [each for each in mechanisms if each not in SERVED]
    if mechanisms and not missing:
        return
    what = f"{missing[0]} is not served" if missing else "no mechanism is named"
    raise InvalidSetting(
        f"{ENABLED}: listener {listener} has its clients log in, and {what}: set {ENABLED} or "
        f"{prefix}{ENABLED} to some of {','.join(SERVED)}"
    )


def _plain_users(config: BrokerConfig, listener: str, prefix: str) -> dict[str, str]:
    key = f"{prefix}plain.{JAAS}"
    text = config.text_at_start(key)
    entry = _entry(key, text) if text is not None else Entry("", {})
    users = {
        name.removeprefix(USER_PREFIX): password
        for name, password in entry.options.items()
        if name.startswith(USER_PREFIX) and entry.module == plain.MODULE
    }
    if not users:
        raise InvalidSetting(
            f"{key}: listener {listener} has its clients log in with PLAIN, and there it has no "
            f"users: set it to {EXAMPLE}"
        )
    return users


def _oauth(config: BrokerConfig, prefix: str) -> OauthSettings:
    own = f"{prefix}{OAUTHBEARER.lower()}."
    text = config.text_at_start(own + JAAS)
    entry = Entry(oauthbearer.MODULE, {}) if text is None else _entry(own + JAAS, text)
    if entry.module != oauthbearer.MODULE:
        raise InvalidSetting(f"{own}{JAAS}: expected {oauthbearer.MODULE} required …;")
    said = Said(own, lambda name: _value(config, name, own, prefix), entry.options, own + JAAS)
    return oauth_settings(said, config.text_at_start(own + CHECK))


def _entry(key: str, text: str) -> Entry:
    try:
        return parse_entry(text)
    except MalformedJaas as error:
        raise InvalidSetting(f"{key}: {error}") from None
