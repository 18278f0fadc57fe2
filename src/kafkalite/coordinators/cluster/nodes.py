"""Where clients and brokers find the brokers: addresses as one connection should see them.

Owns the rule for a broker that was told no address to advertise: it is where the client is already.
So one port serves the host, a container network and a forwarded port's other end alike.
"""

from __future__ import annotations

from typing import Protocol

from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.states import BrokerState, EndPoint
from kafkalite.env.dataclasses import dataclass

# In a registration: nothing was set to be advertised for this listener.
UNADVERTISED = ""
LOOPBACK = "127.0.0.1"
WILDCARDS = ("0.0.0.0", "::")


class Reached(Protocol):
    """What is asked of a connection: through which listener and at which address it came."""

    listener: str
    local_address: tuple[str, int]


@dataclass(frozen=True, slots=True)
class Node:
    """A broker as a client is told of it."""

    node_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False


def nodes_for(image: Image, connection: Reached, *, with_fenced: bool = False) -> list[Node]:
    """The living brokers, or all, that have this connection's listener, by id."""
    found: list[Node] = []
    for broker in sorted(image.brokers.values(), key=lambda one: one.broker_id):
        endpoint = _endpoint(broker, connection.listener)
        if endpoint is not None and (with_fenced or not broker.is_fenced):
            host = endpoint.host or connection.local_address[0]
            found.append(
                Node(broker.broker_id, host, endpoint.port, broker.rack, broker.is_fenced)
            )
    return found


def peer_address(
    image: Image, node_id: int, listener: str, own_host: str
) -> tuple[str, int] | None:
    """Where another broker finds this one, None when it is not up. One that was told nothing to
    advertise is on this machine, and listens where the one that asks does: who is elsewhere could
    not find it."""
    broker = image.brokers.get(node_id)
    endpoint = None if broker is None or broker.is_fenced else _endpoint(broker, listener)
    if endpoint is None:
        return None
    host = endpoint.host or (LOOPBACK if own_host in WILDCARDS else own_host)
    return host, endpoint.port


def _endpoint(broker: BrokerState, listener: str) -> EndPoint | None:
    return next((one for one in broker.endpoints if one.name == listener), None)
