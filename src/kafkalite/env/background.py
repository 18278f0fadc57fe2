"""Blocking work off the event loop: fsync, recovery, compaction, decompression of what is large.

Owns the worker threads. A job runs on a worker and must touch nothing that the loop touches; its
result or its exception comes back on the loop. Invariant: `done` is called exactly once for each
job that was submitted before `close`, and always on the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
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
    """A fixed number of worker threads beside one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, workers: int = 4) -> None:
        self._loop = loop
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix="kafkalite-background")

    def submit(self, job: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        def deliver(future: Future[T | BaseException]) -> None:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(done, future.result())

        self._executor.submit(_outcome, job).add_done_callback(deliver)

    def close(self) -> None:
        """Waits for the jobs that run; their `done` is called as long as the loop still turns."""
        self._executor.shutdown(wait=True, cancel_futures=False)


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
