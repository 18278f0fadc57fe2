"""The broker whose own console this is: it tells who is connected, and its end is the console's.

Owns the socket between the two processes: a byte is the question, a line of JSON the answer.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from typing import Any

from kafkalite.console.server import NoClients

ANSWER_SECONDS = 10.0
MOST_BYTES = 4 << 20
QUESTION = b"?"


class Owner:
    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._lines: list[bytes] = []
        self._has_line = threading.Condition()

    def listen(self, ended: Callable[[], None]) -> None:
        """ended: called when the broker has gone, be it at once."""
        thread = threading.Thread(
            target=self._listen, args=(ended,), name="kafkalite-owner", daemon=True
        )
        thread.start()

    def connected(self) -> list[dict[str, Any]]:
        with self._lock:
            with self._has_line:
                self._lines.clear()
            try:
                self._link.sendall(QUESTION)
            except OSError:
                raise NoClients("the broker has gone") from None
            with self._has_line:
                if not self._has_line.wait_for(lambda: self._lines, ANSWER_SECONDS):
                    raise NoClients(f"the broker did not answer within {ANSWER_SECONDS:.0f} s")
                line = self._lines.pop()
        told = json.loads(line)
        if isinstance(told, str):
            raise NoClients(told)
        found: list[dict[str, Any]] = told
        return found

    def _listen(self, ended: Callable[[], None]) -> None:
        kept = b""
        try:
            while data := self._link.recv(1 << 16):
                *lines, kept = (kept + data).split(b"\n")
                with self._has_line:
                    self._lines += lines
                    self._has_line.notify_all()
                if len(kept) > MOST_BYTES:
                    break
        except OSError:
            pass
        ended()
