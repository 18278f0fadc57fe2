"""Who may log in at a broker's listeners, and with what: settings, and the metadata's users; and as
whom it logs in at others.

Owns how a mechanism comes to its users; they are looked up at each login, so that a change is felt
at the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.coordinators.java_hash import in_hash_order
from kafkalite.env import Env
from kafkalite.peers.login import Entry
from kafkalite.security.login_settings import LoginSettings, broker_login, login_settings
from kafkalite.security.mechanisms import PLAIN, Mechanism
from kafkalite.security.plain import PlainExchange
from kafkalite.security.scram import BY_NAME, Credential, Scram, ScramExchange
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.limits import LimitedLog
from kafkalite.server.login import Entrance
from kafkalite.server.terms import Service, Terms

SECRET_BITS = 256


def entry_of(env: Env, config: BrokerConfig) -> Entry | None:
    """As whom this broker comes to others, where they want to know."""
    login = broker_login(config)
    return None if login is None else Entry(login, env.random, env.background)


class Logins:
    """Of one broker; raises InvalidSetting for settings that no broker must start with."""

    def __init__(
        self,
        env: Env,
        config: BrokerConfig,
        metadata: Callable[[], Metadata],
        services: Mapping[str, Service],
        log: LimitedLog,
    ) -> None:
        self._env, self._metadata, self._services, self._log = env, metadata, services, log
        self._open = {kind: Terms(service) for kind, service in services.items()}
        self._settings = login_settings(config)
        self._entrances: dict[tuple[str, str], Entrance] = {}
        self._secret = b""  # of what is made up for who is unknown

    def terms(self, info: ConnectionInfo) -> Terms:
        """Those of a connection that has just come."""
        settings = self._settings.get(info.listener)
        if settings is None:
            return self._open[info.kind]
        key = (info.listener, info.kind)
        if key not in self._entrances:
            self._entrances[key] = self._entrance(settings, self._services[info.kind])
        return self._entrances[key].terms()

    def _entrance(self, settings: LoginSettings, service: Service) -> Entrance:
        mechanisms = {
            name: self._mechanism(name, settings) for name in in_hash_order(settings.mechanisms)
        }
        return Entrance(service, settings, mechanisms, self._env.clock, self._log)

    def _mechanism(self, name: str, settings: LoginSettings) -> Mechanism:
        if name == PLAIN:
            return partial(PlainExchange, settings.plain_users)
        scram = BY_NAME[name]
        find = partial(self._credential, scram)
        if not self._secret:
            bits = self._env.random.getrandbits(SECRET_BITS)
            self._secret = bits.to_bytes(SECRET_BITS // 8, "big")
        return partial(ScramExchange, scram, find, self._env.random, self._secret)

    def _credential(self, scram: Scram, user: str) -> Credential | None:
        return self._metadata().image.scram.get((user, scram.number))
