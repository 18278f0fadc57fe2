"""Who may log in at a broker's listeners, and with what: settings, and the metadata's users; and as
whom it logs in at others.

Owns how a mechanism comes to its users; they are looked up at each login, so that a change is felt
at the next one. Keys of signed tokens are read between `start` and `stop`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from kafkalite.broker.large_tokens import LargeTokens
from kafkalite.broker.token_keys import TokenKeys
from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.coordinators.java_hash import in_hash_order
from kafkalite.env import Env
from kafkalite.env.later import Later
from kafkalite.peers.login import Entry
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.security.delegation import SECRET, Token, TokenLogins
from kafkalite.security.login_settings import broker_login, login_settings
from kafkalite.security.mechanisms import OAUTHBEARER, PLAIN, Mechanism
from kafkalite.security.oauth_settings import SignedSettings
from kafkalite.security.oauthbearer import Check, Checked, OauthExchange
from kafkalite.security.plain import PlainExchange
from kafkalite.security.scram import BY_NAME, Credential, Scram, ScramExchange
from kafkalite.security.unsecured_tokens import UnsecuredRules, UnsecuredTokens
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.limits import LimitedLog
from kafkalite.server.login import Entrance, LoginCounts, LongWords
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
        self.counts: dict[str, LoginCounts] = {}  # by listener
        self._long_words = LongWords()
        self._large = LargeTokens(env)
        self._secret = b""  # of what is made up for who is unknown
        self._tokens = TokenLogins(
            config.get_optional_str(SECRET) or "", self._token, env.background, env.random
        )
        self._keys = {
            name: TokenKeys(env, each.oauth, log, self._large)
            for name, each in self._settings.items()
            if isinstance(each.oauth, SignedSettings)
        }

    def start(self) -> None:
        for keys in self._keys.values():
            keys.start()

    def stop(self) -> None:
        for keys in self._keys.values():
            keys.stop()
        self._large.stop()
        self._tokens.stop(KafkaError(Error.BROKER_NOT_AVAILABLE, "the broker stops"))

    def terms(self, info: ConnectionInfo) -> Terms:
        """Those of a connection that has just come."""
        settings = self._settings.get(info.listener)
        if settings is None:
            return self._open[info.kind]
        key = (info.listener, info.kind)
        if key not in self._entrances:
            self._entrances[key] = self._entrance(info.listener, self._services[info.kind])
        return self._entrances[key].terms()

    def _entrance(self, listener: str, service: Service) -> Entrance:
        settings = self._settings[listener]
        mechanisms = {
            name: self._mechanism(name, listener) for name in in_hash_order(settings.mechanisms)
        }
        counts = self.counts.setdefault(listener, LoginCounts())
        return Entrance(
            service, settings, mechanisms, self._env.clock, self._log, counts, self._long_words
        )

    def _mechanism(self, name: str, listener: str) -> Mechanism:
        if name == PLAIN:
            return partial(PlainExchange, self._settings[listener].plain_users)
        if name == OAUTHBEARER:
            return partial(OauthExchange, self._check(listener))
        scram = BY_NAME[name]
        find = partial(self._credential, scram)
        if not self._secret:
            bits = self._env.random.getrandbits(SECRET_BITS)
            self._secret = bits.to_bytes(SECRET_BITS // 8, "big")
        find_token = partial(self._tokens.find, scram)
        return partial(ScramExchange, scram, find, self._env.random, self._secret, find_token)

    def _check(self, listener: str) -> Check:
        rules = self._settings[listener].oauth
        if isinstance(rules, UnsecuredRules):
            return partial(self._unsecured, UnsecuredTokens(rules, self._env.clock.now_ms))
        return self._keys[listener].check

    def _unsecured(self, tokens: UnsecuredTokens, token: str) -> Checked | Later[Checked]:
        return self._large.read(token, partial(tokens.check, token))

    def _credential(self, scram: Scram, user: str) -> Credential | None:
        return self._metadata().image.scram.get((user, scram.number))

    def _token(self, token_id: str) -> Token | None:
        return self._metadata().image.tokens.get(token_id)
