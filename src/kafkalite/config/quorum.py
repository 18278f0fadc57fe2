"""Where the controller is, as server.properties says it, and which roles a process may have.

Owns the two ways to name it: a voter, ID@HOST:PORT, or an address to begin with; and Kafka's
sentences for roles that do not go with the rest. A cluster has one controller here, so more than
one of either is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkalite.config.listeners import PLAINTEXT
from kafkalite.config.setting import InvalidSetting

if TYPE_CHECKING:
    from kafkalite.config.broker import BrokerConfig

VOTERS, SERVERS = "controller.quorum.voters", "controller.quorum.bootstrap.servers"
NAMES = "controller.listener.names"
UNKNOWN_ID = -1


@dataclass(slots=True, frozen=True)
class QuorumAddress:
    """A controller's; its id is -1 until it says it."""

    node_id: int
    host: str
    port: int


def controller_address(config: BrokerConfig) -> QuorumAddress | None:
    """None where nobody named one."""
    for voter in config.get_list(VOTERS):
        node_id, _, address = voter.partition("@")
        return _address(int(node_id), address)
    for address in config.get_list(SERVERS):
        return _address(UNKNOWN_ID, address)
    return None


def _address(node_id: int, text: str) -> QuorumAddress:
    host, _, port = text.rpartition(":")
    return QuorumAddress(node_id, host.strip("[]"), int(port))


def check_roles(config: BrokerConfig) -> None:
    """Raises InvalidSetting for roles that do not go with voters and listeners."""
    if config.is_controller:
        _check_controller(config)
    else:
        _check_broker(config)


def _check_controller(config: BrokerConfig) -> None:
    """It is its cluster's only one: a file that means another is no file for it."""
    voters = config.get_list(VOTERS)
    strangers = [voter for voter in voters if voter.partition("@")[0] != str(config.node_id)]
    if strangers:
        raise InvalidSetting(
            f"{VOTERS} names {', '.join(strangers)}, but the only voter of this "
            f"cluster is its own node {config.node_id}"
        )
    if config.is_broker:
        return
    if not config.controller_listeners:
        raise InvalidSetting(
            f"{NAMES} must contain at least one value appearing in the 'listeners' configuration "
            "when running the KRaft controller role"
        )
    if len(config.controller_listeners) < len(config.at_start("listeners")):
        raise InvalidSetting(
            f"The listeners config must only contain KRaft controller listeners from {NAMES} when "
            "process.roles=controller"
        )


def _check_broker(config: BrokerConfig) -> None:
    if len(config.listeners) < len(config.at_start("listeners")):
        raise InvalidSetting(
            f"{NAMES} must not contain a value appearing in the 'listeners' configuration when "
            "running KRaft with just the broker role"
        )
    voters, servers = config.get_list(VOTERS), config.get_list(SERVERS)
    if not voters and not servers:
        raise InvalidSetting(
            f"If using process.roles, either {SERVERS} must contain the set of bootstrap "
            f"controllers or {VOTERS} must contain a parseable set of controllers."
        )
    if max(len(voters), len(servers)) > 1:
        raise InvalidSetting(
            f"{VOTERS} and {SERVERS} name several controllers, and a broker here joins a cluster "
            "with one"
        )
    if any(voter.partition("@")[0] == str(config.node_id) for voter in voters):
        raise InvalidSetting(
            "If process.roles contains just the 'broker' role, the node id "
            f"{config.node_id} must not be included in the set of voters {VOTERS}={voters[0]}"
        )
    _check_protocol(config)


def _check_protocol(config: BrokerConfig) -> None:
    """A promise to encrypt, or to log in, is never passed over."""
    name = config.get_list(NAMES)[0].upper()
    protocol = config.protocols.get(name, PLAINTEXT)
    if protocol != PLAINTEXT:
        raise InvalidSetting(
            f"listener.security.protocol.map has {name}:{protocol}, and a broker here reaches its "
            f"controller in {PLAINTEXT} alone: keep that listener on an inner network"
        )
