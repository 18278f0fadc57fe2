"""Blocking work off the event loop: fsync, recovery, compaction, decompression of what is large.

Owns the worker threads. A job runs on a worker and must touch nothing that the loop touches; its
result or its exception comes back on the loop. Invariant: `done` is called exactly once for each
job that was submitted before `close`, and always on the loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Background(Protocol):
    """Where blocking work goes."""

    def submit(self, job: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        """Runs `job` elsewhere; `done` gets what it returned or raised, on the loop."""
        ...


def _outcome(job: Callable[[], T]) -> T | BaseException:
    try:
        return job()
    except BaseException as error:  # noqa: BLE001 - the caller of submit decides what it means
        return error


class ThreadBackground:
    """A few worker threads beside one event loop, each begun when there is work for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, workers: int = 4) -> None:
        self._loop = loop
        self._most_workers = workers
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._under_way = 0
        self._is_closed = False

    def submit(self, job: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        if self._is_closed:
            return  # nobody is left to be told

        def work() -> None:
            outcome = _outcome(job)
            with suppress(RuntimeError):  # the loop was closed
                self._loop.call_soon_threadsafe(self._deliver, done, outcome)

        self._under_way += 1
        is_short = self._under_way > len(self._threads) < self._most_workers
        if is_short and not self._begin_worker():
            work()
        else:
            self._jobs.put(work)

    @property
    def is_idle(self) -> bool:
        """Whether all that was submitted has been told."""
        return self._under_way == 0

    def apart(self) -> ThreadBackground:
        """A worker of its own, which keeps nobody else's job waiting; closed by who has it."""
        return ThreadBackground(self._loop, workers=1)

    def _deliver(
        self, done: Callable[[T | BaseException], None], outcome: T | BaseException
    ) -> None:
        self._under_way -= 1
        done(outcome)

    def _begin_worker(self) -> bool:
        """Whether there is a worker: an interpreter that is about to end gives no new threads."""
        name = f"kafkalite-background_{len(self._threads)}"
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return bool(self._threads)
        self._threads.append(thread)
        return True

    def _work(self) -> None:
        while (work := self._jobs.get()) is not None:
            work()

    def close(self, timeout_s: float | None = None) -> bool:
        """Waits for all jobs and ends the threads; tells whether it could within the time. The
        jobs' `done` is called as long as the loop still turns."""
        if not self._is_closed:
            self._is_closed = True
            for _ in self._threads:
                self._jobs.put(None)
        for thread in self._threads:
            thread.join(timeout_s)
        return not any(thread.is_alive() for thread in self._threads)


class Gate:
    """Lets a job go on, piece by piece, until it is shut: then no piece is under way, and none is
    begun."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_shut = False

    def let(self, piece: Callable[[], T]) -> T | None:
        """On any thread: what a piece returned, None after the gate was shut."""
        with self._lock:
            return None if self._is_shut else piece()

    def shut(self) -> None:
        """Waits for the piece that is under way."""
        with self._lock:
            self._is_shut = True


class InlineBackground:
    """No threads: a job runs, and `done` is called, inside `submit`. For tools, unit tests and
    simulations."""

    def submit(self, job: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        done(_outcome(job))


class QueuedBackground:
    """Jobs wait until the owner lets them run, so a test can put anything between submission and
    outcome."""

    def __init__(self) -> None:
        self._jobs: deque[tuple[Callable[[], Any], Callable[[Any], None]]] = deque()

    def submit(self, job: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        self._jobs.append((job, done))

    def __len__(self) -> int:
        return len(self._jobs)

    def run_one(self) -> None:
        job, done = self._jobs.popleft()
        done(_outcome(job))

    def run_all(self) -> None:
        """Runs everything that waits, and what that submits in turn."""
        while self._jobs:
            self.run_one()
