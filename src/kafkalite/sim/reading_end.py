"""The end of a simulated link that a broker or its peer reads from.

Owns what has come and waits: until there is a receiver, while that takes nothing, and for its next
buffer when the last had no room. Bytes keep their order, and the end is told once.
"""

from __future__ import annotations

from collections import deque

from kafkalite.env.network import Receiver


class ReadingEnd:
    """What is sent is nobody's matter here: nothing of it waits."""

    def __init__(self) -> None:
        self._receiver: Receiver | None = None
        self._waiting: deque[bytes] = deque()
        self._is_paused = self._has_ended = False

    @property
    def unsent_bytes(self) -> int:
        return 0

    @property
    def held_bytes(self) -> int:
        return 0

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._read()

    def _came(self, data: bytes) -> None:
        self._waiting.append(data)
        self._read()

    def _read(self) -> None:
        while self._waiting and not self._is_paused and not self._has_ended:
            if self._receiver is None:
                return
            data = self._waiting.popleft()
            buffer = self._receiver.buffer()
            taken = min(len(buffer), len(data))
            buffer[:taken] = data[:taken]
            if taken < len(data):
                self._waiting.appendleft(data[taken:])
            self._receiver.received(taken)

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self._read()

    def _end(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            if self._receiver is not None:
                self._receiver.ended()
