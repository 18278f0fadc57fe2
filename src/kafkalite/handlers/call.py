"""What a handler is told about the request it answers, and how it can end the connection.

Owns nothing that lasts: a Call lives as long as its reply is owed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

ANONYMOUS = "User:ANONYMOUS"
Address = tuple[str, int]


@dataclass(slots=True)
class ConnectionInfo:
    """One connection, as handlers and log lines name it; the same object for all its requests."""

    listener: str
    local_address: Address  # where the client reached us, and the default for what we advertise
    peer_address: Address
    principal: str = ANONYMOUS
    software_name: str = "unknown"  # as ApiVersions told it (KIP-511)
    software_version: str = "unknown"
    has_ended: bool = False  # nobody takes a reply any more
    _waits: dict[Callable[[], None], None] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        host, port = self.peer_address
        return f"{host}:{port} ({self.software_name} {self.software_version})"

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


@dataclass(slots=True)
class Call:
    """One request: its header, and the connection it came on."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    connection: ConnectionInfo = field(repr=False)


@dataclass(slots=True, frozen=True)
class CloseConnection:
    """Returned in place of a response: what is ready is sent, then the connection ends."""

    reason: str


@dataclass(slots=True, frozen=True)
class Encoded:
    """Returned in place of a response: its bytes, in the version that was asked in."""

    body: bytes
