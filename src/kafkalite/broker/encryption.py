"""The keys of a broker's encrypted listeners, as they are in their stores now.

Owns what each listener shows and trusts, and looks now and then whether a store has changed: on a
worker, never on the loop. New connections meet the new keys, those that are open keep the old ones,
and so does the listener when the new store is no good. Invariant: a listener is never without keys.
"""

from __future__ import annotations

import logging
from functools import partial

from kafkalite.config import BrokerConfig, InvalidSetting
from kafkalite.env import Env
from kafkalite.env.clock import Timer
from kafkalite.env.handshakes import EncryptedNetwork, Handshakes
from kafkalite.env.later import Later
from kafkalite.env.network import Network
from kafkalite.security.renewal import Stamp, renewed, stamp_of
from kafkalite.security.tls_settings import ListenerTls, Plan, plan_of

logger = logging.getLogger(__name__)

LOOK_MS = 5_000

# What settings and files were when they were last read.
Seen = tuple[Plan, Stamp]


class Keys:
    """Of one broker; making them raises InvalidSetting for what cannot be kept."""

    def __init__(self, env: Env, config: BrokerConfig) -> None:
        self._env = env
        self._config = config
        self.listeners: dict[str, ListenerTls] = {}  # by name; of those that are encrypted
        self._seen: dict[str, Seen] = {}
        self._timer: Timer | None = None
        self._is_stopped = False
        for name, plan in self._plans(self._config).items():
            stamp = stamp_of(plan)
            self.listeners[name] = plan.made()
            self._seen[name] = plan, stamp

    def calling(self, network: Network) -> Network:
        """The network by which other brokers are called: encrypted where their listener is."""
        name = self._config.inter_broker_listener
        if name not in self.listeners:
            return network
        timeout_ms = self._config.get_int("request.timeout.ms")
        handshakes = Handshakes(self._env.clock, network.soon, timeout_ms)
        return EncryptedNetwork(network, handshakes, lambda: self.listeners[name].client)

    def watch(self) -> None:
        """Looks again from time to time, while the broker serves."""
        if self.listeners:
            self._look()

    def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def check(self, changed: BrokerConfig) -> Later[InvalidSetting | None]:
        """Why the listeners could not go on with these settings; None when they can. A worker reads
        the new stores."""
        try:
            plans = self._plans(changed)
        except InvalidSetting as error:
            return Later.of(error)
        new = [
            (plan, self.listeners[name])
            for name, plan in plans.items()
            if name in self._seen and self._seen[name][0] != plan
        ]
        if not new:
            return Later.of(None)
        answer: Later[InvalidSetting | None] = Later()

        def read(outcome: InvalidSetting | BaseException | None) -> None:
            if outcome is None or isinstance(outcome, InvalidSetting):
                answer.resolve(outcome)
            elif isinstance(outcome, Exception):
                answer.fail(outcome)
            else:
                raise outcome

        self._env.background.submit(partial(_fault_of, new), read)
        return answer

    def settings_changed(self) -> None:
        """Looks at once: somebody has changed settings."""
        if self.listeners and not self._is_stopped:
            self._look_at_all()

    def _plans(self, config: BrokerConfig) -> dict[str, Plan]:
        plans = {each.name: plan_of(config, each) for each in config.opened_listeners}
        return {name: plan for name, plan in plans.items() if plan is not None}

    def _look(self) -> None:
        self._look_at_all()
        self._timer = self._env.clock.call_later(LOOK_MS, self._look)

    def _look_at_all(self) -> None:
        try:
            plans = self._plans(self._config)
        except InvalidSetting as error:
            logger.error("the keys of all listeners stay as they are: %s", error)
            return
        for name, plan in plans.items():
            job = partial(_news, plan, self._seen[name], self.listeners[name])
            self._env.background.submit(job, partial(self._looked, name))

    def _looked(self, name: str, outcome: _News | BaseException | None) -> None:
        """A store that is no good is told of once."""
        if outcome is None or self._is_stopped:
            return
        if isinstance(outcome, BaseException):
            raise outcome
        seen, made = outcome
        if seen == self._seen[name]:
            return  # another look was faster
        self._seen[name] = seen
        if isinstance(made, InvalidSetting):
            logger.error("listener %s keeps its keys, the new ones are no good: %s", name, made)
        else:
            self.listeners[name] = made
            logger.info("listener %s has new keys for those who connect from now on", name)


def _fault_of(new: list[tuple[Plan, ListenerTls]]) -> InvalidSetting | None:
    """On a worker: why one of them cannot take the place of what a listener has."""
    for plan, old in new:
        try:
            renewed(plan, old)
        except InvalidSetting as error:
            return error
    return None


_News = tuple[Seen, ListenerTls | InvalidSetting]


def _news(plan: Plan, seen: Seen, old: ListenerTls) -> _News | None:
    """On a worker: what a listener comes to, if anything is other than it was."""
    now = plan, stamp_of(plan)
    if now == seen:
        return None
    try:
        return now, renewed(plan, old)
    except InvalidSetting as error:
        return now, error
