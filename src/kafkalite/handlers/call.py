"""What a handler is told about the request it answers, and how it can end the connection.

Owns nothing that lasts: a Call lives as long as its reply is owed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from kafkalite.env.dataclasses import dataclass, field
from kafkalite.quotas.meter import Meter

Address = tuple[str, int]
# Who has not shown who it is.
ANONYMOUS: Final = "User:ANONYMOUS"


class Client(Protocol):
    """Who asks, at the other end of a connection; the same object for all its requests."""

    listener: str
    local_address: Address  # where the client reached us
    peer_address: Address
    kind: str  # of the listener: which APIs are there
    protocol: str  # of the listener: what secures it
    principal: str
    is_by_token: bool  # it logged in with a delegation token
    software_name: str
    software_version: str
    has_ended: bool  # nobody takes a reply any more
    is_follower: bool  # another broker copies by it

    @property
    def is_logging_in(self) -> bool:
        """Whether it is still to say who it is."""
        ...

    def when_gone(self, then: Callable[[], None]) -> None:
        """Has something that waits for this client ended when the client has gone."""
        ...

    def stays_without(self, then: Callable[[], None]) -> None:
        """It has ended by itself."""
        ...


@dataclass(slots=True)
class Call:
    """One request: its header, and the connection it came on."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    connection: Client = field(repr=False)
    meter: Meter | None = field(default=None, repr=False)  # while anybody has a quota


@dataclass(slots=True, frozen=True)
class CloseConnection:
    """Returned in place of a response: what is ready is sent, then the connection ends."""

    reason: str


@dataclass(slots=True, frozen=True)
class Encoded:
    """Returned in place of a response: its bytes, in the version that was asked in."""

    body: bytes
