"""All brokers that one broker may ask, itself among them.

Owns the ways to the others, made when first asked for and kept while the broker lives: for each
verb a channel, as with Apache Kafka, so that no question waits for the answer to one of the other
kind; and one for what is copied from them. Who there is, and where, is the metadata's to say, each
time anew.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkalite.coordinators.shares.persister import Peer as SharePeer
from kafkalite.coordinators.transactions.peer import Peer
from kafkalite.env.clock import Clock
from kafkalite.env.network import Address, Network
from kafkalite.env.slicing import Slices
from kafkalite.peers.channel import Channel
from kafkalite.peers.login import Entry
from kafkalite.peers.wire import WirePeer


class Peers:
    """The way from a node id to a broker."""

    def __init__(
        self,
        network: Network,
        clock: Clock,
        slices: Slices,
        *,
        node_id: int,
        address_of: Callable[[int], Address | None],
        timeout_ms: int,
        entry: Entry | None = None,
    ) -> None:
        """`entry` is as whom it comes to the others, where they want to know."""
        self.local: Peer | None = None  # as long as this broker serves
        self.local_shares: SharePeer | None = None
        self._network, self._clock, self._slices = network, clock, slices
        self._node_id, self._address_of, self._timeout_ms = node_id, address_of, timeout_ms
        self._entry = entry
        self._others: dict[int, WirePeer] = {}
        self._copied: list[Channel] = []
        self._is_stopped = False

    def get(self, node_id: int) -> Peer | None:
        """A broker that is there, as far as the metadata knows; none after the stop."""
        return self.local if node_id == self._node_id else self._other(node_id)

    def of_shares(self, node_id: int) -> SharePeer | None:
        """The same, as it is asked for states of shared partitions."""
        return self.local_shares if node_id == self._node_id else self._other(node_id)

    def _other(self, node_id: int) -> WirePeer | None:
        if self._is_stopped or self._address_of(node_id) is None:
            return None
        if node_id not in self._others:
            self._others[node_id] = WirePeer(
                self._channel(node_id, "transactions"),
                self._channel(node_id, "markers"),
                self._channel(node_id, "shares"),
            )
        return self._others[node_id]

    def stop(self) -> None:
        """Nobody is asked any more, and whoever waits for an answer has an error."""
        self._is_stopped, self.local, self.local_shares = True, None, None
        others, self._others = self._others, {}
        copied, self._copied = self._copied, []
        for other in others.values():
            other.stop()
        for channel in copied:
            channel.stop()

    def to_copy_from(self, node_id: int, timeout_ms: int) -> Channel:
        """A way that is its owner's: the answers to what is asked on it may take their time."""
        channel = self._channel(node_id, "fetcher", timeout_ms)
        self._copied.append(channel)
        return channel

    def _channel(self, node_id: int, what: str, timeout_ms: int = 0) -> Channel:
        return Channel(
            self._network,
            self._clock,
            self._slices,
            client_id=f"broker-{self._node_id}-{what}-to-{node_id}",
            address=lambda: self._address_of(node_id),
            timeout_ms=timeout_ms or self._timeout_ms,
            entry=self._entry,
        )
