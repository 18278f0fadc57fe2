"""Clients of the cluster under one login, each used by one thread at a time.

Owns how many of them there are, and that the connections of one whose use failed oddly are closed.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from kafkalite.client.cluster import ClientFailed, Cluster

MOST_AT_ONCE = 8
MOST_IDLE = 4
WAIT_SECONDS = 10.0
AGAIN_SECONDS = 0.02


class Busy(Exception):
    """All of them are in use."""


class Clients:
    def __init__(self, connect: Callable[[], Cluster]) -> None:
        self._connect = connect
        self._idle: list[Cluster] = []
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)
        self._is_closed = False
        self._lock = threading.Lock()  # of the two above

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """For whoever is about to use `one`. Who waits for it holds no thread, which others of
        other logins need."""
        until_s = time.monotonic() + WAIT_SECONDS
        while not self._places.acquire(blocking=False):
            if time.monotonic() > until_s:
                raise Busy(f"{MOST_AT_ONCE} questions are under way already: ask again in a moment")
            await asyncio.sleep(AGAIN_SECONDS)
        try:
            yield
        finally:
            self._places.release()

    @contextmanager
    def one(self) -> Iterator[Cluster]:
        """In a place."""
        cluster = self._taken() or self._connect()
        try:
            yield cluster
        except ClientFailed:
            self._give_back(cluster)
            raise
        except BaseException:
            cluster.close()
            raise
        self._give_back(cluster)

    def _taken(self) -> Cluster | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _give_back(self, cluster: Cluster) -> None:
        with self._lock:
            is_kept = not self._is_closed and len(self._idle) < MOST_IDLE
            if is_kept:
                self._idle.append(cluster)
        if not is_kept:
            cluster.close()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            left, self._idle = self._idle, []
        for each in left:
            each.close()
