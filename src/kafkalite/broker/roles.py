"""What a process is, by its process.roles: a broker, its cluster's controller, or both.

Owns the choice. What is not wanted is not imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from kafkalite.broker.broker import Broker
from kafkalite.config import BrokerConfig
from kafkalite.env import Env
from kafkalite.env.network import Network

if TYPE_CHECKING:
    from kafkalite.broker.controller_server import ControllerServer

Process: TypeAlias = "Broker | ControllerServer"


def process_of(env: Env, network: Network, config: BrokerConfig) -> Process:
    """Raises as making any of them does."""
    if config.is_broker and config.is_controller:
        return Broker(env, network, config)
    if config.is_broker:
        from kafkalite.broker.member import MemberBroker

        return MemberBroker(env, network, config)
    from kafkalite.broker.controller_server import ControllerServer

    return ControllerServer(env, network, config)
