"""Writes down what is said, on a thread of its own: nobody who speaks waits for a disk.

Owns the queue to that thread, the count of what was written, and what becomes of a failure: it is
told once, and nothing more is written. Invariant: what counts as written is.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

from kafkalite.testing.recording.said import Said

# How much may wait to be written before the proxy reads no more; a line costs more than its frame.
WAITING_BYTES = 64 << 20
LINE_BYTES = 2_000
# At the end, without a line more that is written.
STUCK_SECONDS = 10.0


class Scribe:
    """`write` is called for each, in order; what it raises ends the writing, and nothing else."""

    def __init__(self, write: Callable[[Said], None], tell: Callable[[str], None]) -> None:
        self._write, self._tell = write, tell
        self._queue: SimpleQueue[Said | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._waiting_bytes = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._eased = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="kafkalite-scribe", daemon=True)
        self._thread.start()
        self.heard = self.written = 0
        self.failure: str | None = None

    def hear(self, said: Said) -> None:
        self.heard += 1
        self._waits(LINE_BYTES + len(said.frame))
        self._queue.put(said)

    async def room(self) -> None:
        """Until more may be heard."""
        self._loop = asyncio.get_running_loop()
        while self._waiting_bytes > WAITING_BYTES:
            self._eased.clear()
            if self._waiting_bytes > WAITING_BYTES:
                await self._eased.wait()

    def close(self) -> None:
        """When all that was heard is written, or cannot be: a pipe may have nobody who reads."""
        self._queue.put(None)
        written = -1
        while self._thread.is_alive() and written != self.written:
            written = self.written
            self._thread.join(STUCK_SECONDS)
        if self._thread.is_alive():
            self.fail(f"nobody has taken a line for {STUCK_SECONDS} s, and the rest is given up")

    def fail(self, reason: str) -> None:
        """Nothing more is written. Said once."""
        if self.failure is None:
            self.failure = reason
            self._tell(reason)

    def _run(self) -> None:
        while (said := self._queue.get()) is not None:
            if self.failure is None:
                self._note(said)
            self._waits(-LINE_BYTES - len(said.frame))

    def _note(self, said: Said) -> None:
        try:
            self._write(said)
        except Exception as error:  # noqa: BLE001 - without this thread nobody who speaks goes on
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            self.fail(f"nothing is written any more: {reason}; clients are served as before")
        else:
            self.written += 1

    def _waits(self, more: int) -> None:
        with self._lock:
            self._waiting_bytes += more
            loop = self._loop if more < 0 and self._waiting_bytes <= WAITING_BYTES else None
        if loop is not None and not self._eased.is_set():
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(self._eased.set)
