"""What the connections of one loop share: the receive buffer, spare ones, and memory by its limits.

Owns who sends in the next turn, and which buffers are kept for the next large frame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from kafkalite.server.in_turn import InTurn
from kafkalite.server.limits import Deadlines, Limits, RequestMemory
from kafkalite.server.timing import Watch

RECEIVE_BUFFER_BYTES = 524_288
SPARE_BYTES = 4 * 1024 * 1024  # kept of buffers for large frames, over all connections

View = memoryview  # mypyc looks for the types of a dataclass among the names of its module


class Flushing(Protocol):
    """A connection that has something to send."""

    def flush(self) -> None: ...


@dataclass(slots=True)
class Common:
    """Of one loop."""

    limits: Limits
    memory: RequestMemory
    deadlines: Deadlines
    soon: Callable[[Callable[[], None]], None]
    buffer: View = field(
        default_factory=lambda: memoryview(bytearray(RECEIVE_BUFFER_BYTES)), repr=False
    )
    watch: Watch | None = None  # where requests are counted and timed
    _flushing: list[Flushing] = field(default_factory=list)
    _spare: dict[int, list[bytearray]] = field(default_factory=dict, repr=False)  # by size
    spare_bytes: int = 0
    in_turn: InTurn = field(init=False)

    def __post_init__(self) -> None:
        self.in_turn = InTurn(self.deadlines.clock, self.soon)

    def room(self, held: int, needed: int) -> bytearray:
        """A buffer for what is needed: one that was used before, however large, since the peer's
        word costs no memory then; or a new one of no more than twice what is held."""
        most = 1 << (needed - 1).bit_length()
        size = min(1 << (2 * held).bit_length() - 1, most)
        return self._take_spare(most) or self._take_spare(size) or bytearray(size)

    def _take_spare(self, size: int) -> bytearray | None:
        spares = self._spare.get(size)
        if not spares:
            return None
        self.spare_bytes -= size
        return spares.pop()

    def spare(self, buffer: bytearray) -> None:
        """Keeps a buffer for the next large frame: new memory costs more than what is put in it."""
        if self.spare_bytes + len(buffer) <= SPARE_BYTES:
            self.spare_bytes += len(buffer)
            self._spare.setdefault(len(buffer), []).append(buffer)

    def flush_soon(self, connection: Flushing) -> None:
        """Sends what has become ready, once per turn however many replies that were."""
        if not self._flushing:
            self.soon(self._flush_all)
        self._flushing.append(connection)

    def _flush_all(self) -> None:
        flushing, self._flushing = self._flushing, []
        for connection in flushing:
            connection.flush()
