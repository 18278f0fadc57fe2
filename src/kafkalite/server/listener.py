"""The server: named listeners, and all connections that came in through them.

Owns who is connected, from the first byte of a connection to its end. Opens addresses on the
network that it is given; decides nothing about requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType

from kafkalite.config.broker import BrokerConfig
from kafkalite.config.listeners import SASL_PROTOCOLS, Listener
from kafkalite.env.clock import Clock, Timer
from kafkalite.env.later import Later
from kafkalite.env.network import Address, Buffers, Link, Network, Port
from kafkalite.env.slicing import Slices
from kafkalite.server.common import Common
from kafkalite.server.connection import Connection
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.door import Door
from kafkalite.server.encryption import Encrypted, Encryption
from kafkalite.server.limits import (
    Deadlines,
    LimitedLog,
    Limits,
    RequestMemory,
)
from kafkalite.server.quotas import ConnectionQuotas, RateOf
from kafkalite.server.terms import Terms
from kafkalite.server.timing import Watch

STOP_LOOK_MS = 20

# Who is given the links that a stop leaves, with the names of their listeners.
Keep = Callable[[str, Link], None]


class Server:
    """Listeners of one broker and their connections, each on the terms that `terms_of` gives it for
    the listener it came in by."""

    def __init__(
        self,
        network: Network,
        clock: Clock,
        slices: Slices,
        config: BrokerConfig,
        terms_of: Callable[[ConnectionInfo], Terms],
        log: LimitedLog,
        rate_of: RateOf = lambda host: None,
        encrypted: Mapping[str, Encrypted] = MappingProxyType({}),
        watch: Watch | None = None,
    ) -> None:
        self._network = network
        self._clock = clock
        self._config = config
        self._terms_of = terms_of
        self._log = log
        self._quotas = ConnectionQuotas(config, clock, rate_of)
        limits = Limits.of(config)
        memory = RequestMemory(limits.max_queued_request_bytes)
        self._deadlines = Deadlines(clock, slices, limits, memory)
        self._common = Common(limits, memory, self._deadlines, network.soon, watch=watch)
        self._encryption = Encryption(
            clock, network.soon, limits.frame_timeout_ms, log, encrypted
        )
        self._listeners: dict[str, Listener] = {}
        self._ports: dict[str, Port] = {}
        self._doors: dict[str, Door] = {}
        self._connections: dict[Connection, None] = {}
        self.opened: Counter[str] = Counter()  # by listener, since the start
        self.closed: Counter[str] = Counter()
        self._stopped: Later[None] | None = None
        self._keep: Keep | None = None
        self._grace: Timer | None = None

    @property
    def addresses(self) -> dict[str, Address]:
        """What each listener is bound to, by its name."""
        return {name: port.address for name, port in self._ports.items()}

    @property
    def clients(self) -> list[ConnectionInfo]:
        """Who is connected."""
        return [each.info for each in self._connections]

    @property
    def request_memory(self) -> RequestMemory:
        return self._common.memory

    def start(self, listeners: list[Listener] | None = None) -> None:
        """Opens the listeners; raises OSError when an address cannot be had, with none open."""
        backlog = self._config.get_int("socket.listen.backlog.size")
        try:
            for listener in self._config.opened_listeners if listeners is None else listeners:
                self._listeners[listener.name] = listener
                door = Door(listener.name, self._quotas, self._clock, self._log, self._arrived)
                door.port = self._ports[listener.name] = self._network.listen(
                    listener.host, listener.port, backlog, door.arrived, self._buffers()
                )
                self._doors[listener.name] = door
        except OSError:
            self.stop_listening()
            raise
        self._deadlines.start()

    def wait_with_all(self) -> None:
        """Nobody is let in until `admit`: who comes waits with the system."""
        for port in self._ports.values():
            port.pause()

    def admit(self) -> None:
        for port in self._ports.values():
            port.resume()

    def _buffers(self) -> Buffers:
        """What was asked for; Kafka's defaults of 100 KB only slow down what the system tunes."""
        names = ("socket.send.buffer.bytes", "socket.receive.buffer.bytes")
        config = self._config
        sizes = (config.get_int(name) if config.is_given(name) else -1 for name in names)
        return Buffers(*sizes)

    def _arrived(self, name: str, link: Link) -> None:
        if self._encryption.holds(name):
            host = link.peer_address[0]
            self._encryption.arrived(
                name, link, lambda made: self._let_in(name, made), lambda: self._left(name, host)
            )
        else:
            self._let_in(name, link)

    def _let_in(self, name: str, link: Link) -> None:
        self._connect(name, link)

    def _connect(self, name: str, link: Link) -> ConnectionInfo:
        listener = self._listeners[name]
        info = ConnectionInfo(
            name, link.local_address, link.peer_address, listener.kind, listener.protocol,
            self._encryption.principal(name, link),
        )  # fmt: skip
        connection = Connection(self._common, self._terms_of(info), link, info, self._ended)
        self._connections[connection] = None
        self.opened[name] += 1
        link.start(connection)
        if self._quotas.has_too_many and self._quotas.is_protected(name):
            self._make_room(name)
        return info

    def _make_room(self, name: str) -> None:
        """Brokers come in in any case; somebody else who has been silent for longest goes."""
        others = [each for each in self._connections if each.info.listener != name]
        if others:
            oldest = min(others, key=lambda each: (each.is_busy, each.last_active_ms))
            why = f"{oldest.info} was closed to make room for a broker on listener {name}"
            self._log.warn("room", f"{why}, since max.connections are open")
            oldest.abort()

    def _ended(self, connection: Connection) -> None:
        del self._connections[connection]
        self.closed[connection.info.listener] += 1
        self._left(connection.info.listener, connection.info.peer_address[0])
        if self._stopped is not None and not self._connections:
            self._finish()

    def _left(self, name: str, host: str) -> None:
        self._quotas.leave(name, host)
        for door in self._doors.values():
            door.look_again()

    def skip(self, duration_ms: int) -> None:
        """The clock has jumped: so much of its time has passed for nobody who is connected."""
        self._deadlines.skip(duration_ms)

    # --- stopping ---------------------------------------------------------------------------------

    def stop_listening(self) -> None:
        """Takes no more connections; those that are open go on."""
        for port in self._ports.values():
            port.close()
        self._ports.clear()
        for door in self._doors.values():
            door.close()
        self._doors.clear()

    def hear_no_more(self) -> None:
        """Takes no more requests, and has what waits for more to come answered."""
        for port in self._ports.values():
            port.pause()
        for connection in list(self._connections):
            connection.hear_no_more()

    def take_over(self, name: str, link: Link) -> ConnectionInfo:
        """Goes on with a link that another server of this listener has let go of."""
        self._quotas.count(name, link.peer_address[0])
        return self._connect(name, link)

    def stop(self, grace_ms: int, keep: Keep | None = None) -> Later[None]:
        """Ends all connections: at once those that owe nothing, the others within the grace. The
        links of those that owe nothing are not ended when somebody keeps them."""
        self._keep = keep
        assert self._stopped is None, "the server was stopped twice"
        self._stopped = Later()
        self.stop_listening()
        self._encryption.stop()
        self._deadlines.stop()
        self._grace = self._clock.call_later(grace_ms, self.disconnect)
        self._end_quiet()
        if not self._connections:
            self._finish()
        return self._stopped

    def _end_quiet(self) -> None:
        """Looks again and again at who is done; over after the grace at the latest."""
        for connection in list(self._connections):
            # Who has logged in has done so with this broker: the next one asks again.
            is_kept = connection.info.protocol not in SASL_PROTOCOLS
            if connection.is_quiet and self._keep is not None and is_kept:
                self._keep(connection.info.listener, connection.release())
            elif connection.is_quiet or (self._keep is not None and not connection.is_busy):
                connection.abort()  # of those that go on, one that is in the middle of a request
        if self._connections:
            look_ms = STOP_LOOK_MS if self._keep is None else 1
            self._clock.call_later(look_ms, self._end_quiet)

    def disconnect(self) -> None:
        """Ends all connections at once, whatever they are owed; their clients may come again."""
        for connection in list(self._connections):
            connection.abort()

    def _finish(self) -> None:
        if self._grace is not None:
            self._grace.cancel()
        if self._stopped is not None and not self._stopped.is_resolved:
            self._stopped.resolve(None)
