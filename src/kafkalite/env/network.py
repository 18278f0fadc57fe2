"""The network: listening addresses, and links from and to one peer each, real or simulated.

Owns the interfaces alone; sockets.py and connecting.py have the real ones. A link carries bytes and
knows nothing of frames or requests; encryption is a link over another link.
Invariant: a receiver hears of a link's end exactly once, and nothing after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kafkalite.env.dataclasses import dataclass
from kafkalite.env.disk import FileRange

Address = tuple[str, int]
Part = bytes | bytearray | memoryview | FileRange  # what a link sends, in memory or in a file


class Receiver(Protocol):
    """Who reads what comes over a link."""

    def buffer(self) -> memoryview:
        """Where the next bytes go: at least one byte of room, used before anything else happens."""
        ...

    def received(self, count: int) -> None:
        """That many bytes are in the buffer now."""
        ...

    def sent(self) -> None:
        """The peer has taken some of what it had left waiting."""
        ...

    def finished(self) -> None:
        """The peer sends nothing more, but may still read: whoever knows that all is said ends the
        link."""
        ...

    def ended(self) -> None:
        """Nothing comes or goes any more, whoever ended it."""
        ...


class Link(Protocol):
    """A connection to one peer."""

    peer_address: Address

    @property
    def local_address(self) -> Address: ...

    @property
    def unsent_bytes(self) -> int:
        """What was given to send and has not been taken by the peer's side."""
        ...

    @property
    def held_bytes(self) -> int:
        """What of that lies in memory; the rest is in files."""
        ...

    def start(self, receiver: Receiver) -> None:
        """Begins to read; the link is still until then."""
        ...

    def send(self, parts: Sequence[Part]) -> None:
        """Sends in order, now as far as that goes without waiting. The parts must not change."""
        ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None:
        """Reads no more, and ends when everything given has been sent."""
        ...

    def abort(self) -> None:
        """Ends at once."""
        ...


class Port(Protocol):
    """An address that peers can connect to."""

    address: Address

    def pause(self) -> None:
        """Takes no connections until `resume`: they wait, also the next one that is ready now."""
        ...

    def resume(self) -> None: ...

    def close(self) -> None: ...


class Attempt(Protocol):
    """A connection on its way to a peer."""

    def cancel(self) -> None:
        """Gives it up, and tells nobody; does nothing when it has been told already."""
        ...


@dataclass(slots=True, frozen=True)
class Buffers:
    """Sizes of the system's buffers of a connection; -1 leaves the system its choice."""

    send_bytes: int = -1
    receive_bytes: int = -1


SYSTEM_BUFFERS = Buffers()


class Network(Protocol):
    """Where links come from."""

    def listen(
        self,
        host: str,
        port: int,
        backlog: int,
        accept: Callable[[Link], None],
        buffers: Buffers = SYSTEM_BUFFERS,
    ) -> Port:
        """Opens an address; port 0 picks a free one, an empty host means all of this machine."""
        ...

    def connect(self, host: str, port: int, done: Callable[[Link | OSError], None]) -> Attempt:
        """Tells, in a later turn of the loop, the link to a peer or why there is none. Whoever
        will not wait as long as the system does cancels."""
        ...

    def soon(self, callback: Callable[[], None]) -> None:
        """Calls back in the next turn of the loop, after what is ready now."""
        ...
