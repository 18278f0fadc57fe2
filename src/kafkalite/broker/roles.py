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
    from kafkalite.server.counting import Counts

Process: TypeAlias = "Broker | ControllerServer"


def process_of(
    env: Env, network: Network, config: BrokerConfig, counts: Counts | None = None
) -> Process:
    """Raises as making any of them does; a broker counts what it does, if that is asked for."""
    if config.is_broker and config.is_controller:
        return Broker(env, network, config, counts=counts)
    if config.is_broker:
        from kafkalite.broker.member import MemberBroker

        return MemberBroker(env, network, config, counts)
    from kafkalite.broker.controller_server import ControllerServer

    return ControllerServer(env, network, config)
