"""All brokers that one broker may ask, itself among them.

Owns the ways to the others, made when first asked for and kept while the broker lives: for each
verb a channel, as with Apache Kafka, so that no question waits for the answer to one of the other
kind. Who there is, and where, is the metadata's to say, each time anew.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkalite.coordinators.transactions.peer import Peer
from kafkalite.env.clock import Clock
from kafkalite.env.network import Address, Network
from kafkalite.peers.channel import Channel
from kafkalite.peers.login import Entry
from kafkalite.peers.wire import WirePeer


class Peers:
    """The way from a node id to a broker."""

    def __init__(
        self,
        network: Network,
        clock: Clock,
        *,
        node_id: int,
        address_of: Callable[[int], Address | None],
        timeout_ms: int,
        entry: Entry | None = None,
    ) -> None:
        """`entry` is as whom it comes to the others, where they want to know."""
        self.local: Peer | None = None  # as long as this broker serves
        self._network, self._clock = network, clock
        self._node_id, self._address_of, self._timeout_ms = node_id, address_of, timeout_ms
        self._entry = entry
        self._others: dict[int, WirePeer] = {}
        self._is_stopped = False

    def get(self, node_id: int) -> Peer | None:
        """A broker that is there, as far as the metadata knows; none after the stop."""
        if node_id == self._node_id:
            return self.local
        if self._is_stopped or self._address_of(node_id) is None:
            return None
        if node_id not in self._others:
            self._others[node_id] = WirePeer(
                self._channel(node_id, "transactions"), self._channel(node_id, "markers")
            )
        return self._others[node_id]

    def stop(self) -> None:
        """Nobody is asked any more, and whoever waits for an answer has an error."""
        self._is_stopped, self.local = True, None
        others, self._others = self._others, {}
        for other in others.values():
            other.stop()

    def _channel(self, node_id: int, what: str) -> Channel:
        return Channel(
            self._network,
            self._clock,
            client_id=f"broker-{self._node_id}-{what}-to-{node_id}",
            address=lambda: self._address_of(node_id),
            timeout_ms=self._timeout_ms,
            entry=self._entry,
        )
