"""Cuts the bytes of a connection into frames, and puts the size before a frame that goes out.

Sans-IO. What is held is never more than what has arrived: a size that a peer claims allocates
nothing, and one beyond the limit is refused before its bytes come.
"""

from __future__ import annotations

from collections.abc import Sized

from kafkalite.protocol.errors import MalformedFrame

SIZE_BYTES = 4
MAX_FRAME_BYTES = 0x7FFFFFFF


class FrameCutter:
    """Feed it what arrives; take frames until there is None."""

    __slots__ = ("_held", "max_frame_bytes")

    def __init__(self, max_frame_bytes: int) -> None:
        self.max_frame_bytes = min(max_frame_bytes, MAX_FRAME_BYTES)
        self._held = bytearray()

    @property
    def held_bytes(self) -> int:
        return len(self._held)

    def release(self) -> bytearray:
        """All that is held, whole frame or not; nothing is held any more."""
        held, self._held = self._held, bytearray()
        return held

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        self._held += data

    def take(self) -> bytearray | None:
        """The next whole frame without its size; it is the caller's, to keep and to patch."""
        held = self._held
        if len(held) < SIZE_BYTES:
            return None
        size = int.from_bytes(held[:SIZE_BYTES], "big", signed=True)
        if not 0 <= size <= self.max_frame_bytes:
            raise MalformedFrame(f"a frame of {size} bytes; {self.max_frame_bytes} are allowed")
        end = SIZE_BYTES + size
        if len(held) < end:
            return None
        if len(held) == end:
            self._held = bytearray()
            del held[:SIZE_BYTES]
            return held
        frame = held[SIZE_BYTES:end]
        del held[:end]
        return frame


def frame_size(parts: list[Sized]) -> bytes:
    """The four bytes that go before a frame of these parts."""
    size = sum(map(len, parts))
    if size > MAX_FRAME_BYTES:
        raise ValueError(f"a frame of {size} bytes has no size on the wire")
    return size.to_bytes(SIZE_BYTES, "big")
