"""Cuts one way of a connection into frames, without keeping a byte from who waits for it.

Sans-IO. Owns what happens to bytes that are no frames, or more than can be held: they pass as they
came, and are said to be unread once. Invariant: the pieces are what was fed, whole and in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.framing import SIZE_BYTES, FrameCutter
from kafkalite.server.other_protocols import recognise

# What brokers take by default (socket.request.max.bytes). Other protocols claim more: "GET ", read
# as a size, is 1.2 GB, the start of a TLS handshake 369 MB.
LARGEST_FRAME_BYTES = 100 << 20
HELD_BYTES = 512 << 20
_PROXY_PROTOCOL = (b"PROXY ", b"\r\n\r\n\0\r\nQUIT\n")


@dataclass(slots=True)
class Held:
    """What all connections of a proxy hold together, in bytes."""

    limit: int = HELD_BYTES
    held: int = 0

    @property
    def is_full(self) -> bool:
        return self.held > self.limit


class Form(Enum):
    WHOLE = "a frame"
    START = "the start of a frame that is not held"
    RAW = "bytes"


@dataclass(slots=True)
class Piece:
    """`data` is as it came; `unread` says why nothing is made of it, where that begins."""

    form: Form
    data: bytes
    unread: str = ""

    @property
    def frame(self) -> bytes:
        """Without its size."""
        return self.data[SIZE_BYTES:]


class Cutter:
    """Feed it what arrives, and pass on the pieces."""

    def __init__(self, held: Held, largest_frame_bytes: int = LARGEST_FRAME_BYTES) -> None:
        self._cutter = FrameCutter(largest_frame_bytes)
        self._held = held
        self._rest = 0  # bytes to come of a frame that is not held
        self._is_raw = self._has_begun = False

    @property
    def held_bytes(self) -> int:
        return self._cutter.held_bytes

    def feed(self, data: bytes) -> Iterator[Piece]:
        if self._is_raw:
            yield Piece(Form.RAW, data)
            return
        if self._rest:
            passed, data = data[: self._rest], data[self._rest :]
            self._rest -= len(passed)
            yield Piece(Form.RAW, passed)
        self._cutter.feed(data)
        self._held.held += len(data)
        yield from self._pieces()

    def _pieces(self) -> Iterator[Piece]:
        try:
            while (frame := self._cutter.take()) is not None:
                self._has_begun = True
                self._held.held -= SIZE_BYTES + len(frame)
                size = len(frame).to_bytes(SIZE_BYTES, "big")
                yield Piece(Form.WHOLE, size + frame)
        except MalformedFrame as reason:
            yield self._beyond(str(reason))
        else:
            if self._held.is_full and self.held_bytes >= SIZE_BYTES:
                yield self._start("the proxy holds as much of unfinished frames as it may")

    def _beyond(self, reason: str) -> Piece:
        """A size that cannot be: of another protocol, unless this one has been spoken before."""
        start = bytes(self._cutter.release())
        self._cutter.feed(start)
        if self._has_begun and int.from_bytes(start[:SIZE_BYTES], "big", signed=True) >= 0:
            return self._start(reason)
        return self.give_up(_name(start) or reason)

    def _start(self, reason: str) -> Piece:
        start = self.release()
        self._rest = SIZE_BYTES + int.from_bytes(start[:SIZE_BYTES], "big") - len(start)
        return Piece(Form.START, start, reason)

    def give_up(self, reason: str) -> Piece:
        """Cuts no more: what is held, and whatever comes, passes as it is."""
        self._is_raw = True
        return Piece(Form.RAW, self.release(), reason)

    def release(self) -> bytes:
        """What is held of an unfinished frame; it is not held any more."""
        self._held.held -= self.held_bytes
        return bytes(self._cutter.release())


def _name(start: bytes) -> str | None:
    found = recognise(start)
    if found is None and not start.startswith(_PROXY_PROTOCOL):
        return None
    name = found.name if found else "the PROXY protocol"
    return f"{name}, which passes as it is and is not read"
