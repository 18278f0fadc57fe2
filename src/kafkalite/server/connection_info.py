"""One connection, as handlers and log lines name it: how it came in, who it is, what waits for it.

Owns what is known of the peer for as long as the connection is open, and nothing of its bytes.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkalite.config.listeners import BROKER, PLAINTEXT, SASL_PROTOCOLS, SASL_SSL, SSL
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.network import Address
from kafkalite.handlers.call import ANONYMOUS
from kafkalite.server.timing import Timed


@dataclass(slots=True)
class ConnectionInfo:
    """The same object for all requests of a connection."""

    listener: str
    local_address: Address  # where the client reached us, and the default for what we advertise
    peer_address: Address
    kind: str = BROKER  # of the listener, as specs have it
    protocol: str = PLAINTEXT  # of the listener: what secures it
    # Of who has logged in. Another one after another login, which is taken when nothing is owed: a
    # request that waits is still its user's.
    principal: str = ANONYMOUS
    is_by_token: bool = False  # it logged in with a delegation token
    software_name: str = "unknown"  # as ApiVersions told it (KIP-511)
    software_version: str = "unknown"
    has_ended: bool = False  # nobody takes a reply any more
    is_follower: bool = False  # another broker copies by it
    # Where requests are timed: when bytes came last, and the request whose reply is on its way.
    heard_ns: int = 0
    timed: Timed | None = field(default=None, repr=False)
    _waits: dict[Callable[[], None], None] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        host, port = self.peer_address
        return f"{host}:{port} ({self.software_name} {self.software_version})"

    @property
    def is_encrypted(self) -> bool:
        return self.protocol in (SSL, SASL_SSL)

    @property
    def is_logging_in(self) -> bool:
        return self.protocol in SASL_PROTOCOLS and self.principal == ANONYMOUS

    def when_gone(self, then: Callable[[], None]) -> None:
        """Has something that waits for this client ended when the client has gone."""
        self._waits[then] = None

    def stays_without(self, then: Callable[[], None]) -> None:
        """It has ended by itself."""
        self._waits.pop(then, None)

    def has_gone(self) -> None:
        """Nobody is left to wait for."""
        for then in list(self._waits):
            then()
