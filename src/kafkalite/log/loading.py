"""The logs of a broker that starts: which wait to be opened, and how far that has come.

Owns the queue that the workers take from, and the counts that progress bars and log lines show.
Invariant: each worker writes to a `Progress` of its own, and whoever reads adds them up.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial

from kafkalite.env import Env
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.log.directory import LogDirectory
from kafkalite.log.home import LogHome
from kafkalite.log.loader import Opening, load_log, topic_id_in
from kafkalite.log.offline import UNKNOWN_TOPIC_ID, UnopenedLog, is_of_one_log, why_not_opened
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.recovery import Progress

logger = logging.getLogger(__name__)

_MEGA = 1_000_000
_REPORT_MS = 10_000  # a line in the log for each so many of a long start

# A log, why only its partition is offline, or how the disk under it failed.
Opened = PartitionLog | UnopenedLog | OSError


@dataclass(slots=True)
class Loading:
    """All logs on their way from files to memory."""

    total: int = 0
    waiting: deque[tuple[LogDirectory, Opening]] = field(default_factory=deque)
    workers: list[Progress] = field(default_factory=list)

    def new_worker(self) -> Progress:
        self.workers.append(Progress())
        return self.workers[-1]

    def begin(
        self,
        env: Env,
        most_workers: int,
        opened: Callable[[list[tuple[LogDirectory, Opened]]], None],
        done: Callable[[], None],
    ) -> None:
        """Opens all that wait, on several threads; `opened` gets the results of each, `done` is
        told when none is left."""
        self.total = len(self.waiting)
        left = [max(1, min(most_workers, self.total))]

        def heard(outcome: object) -> None:
            if isinstance(outcome, BaseException):
                raise outcome
            assert isinstance(outcome, list)
            opened(outcome)
            left[0] -= 1
            if left[0] == 0:
                reporting[0].cancel()
                done()

        def report() -> None:
            logger.info("%s", self)
            reporting[0] = env.clock.call_later(_REPORT_MS, report)

        reporting = [env.clock.call_later(_REPORT_MS, report)]
        for _ in range(left[0]):
            progress = self.new_worker()
            env.background.submit(partial(self.open_waiting, progress), heard)

    def open_waiting(self, progress: Progress) -> list[tuple[LogDirectory, Opened]]:
        """On a worker thread: opens logs until none is left."""
        results: list[tuple[LogDirectory, Opened]] = []
        while True:
            try:
                directory, opening = self.waiting.popleft()
            except IndexError:
                return results
            results.append((directory, _open(directory.home, opening, progress)))
            progress.logs_opened += 1

    @property
    def done(self) -> int:
        return sum(worker.logs_opened for worker in self.workers)

    @property
    def bytes_expected(self) -> int:
        """To be checked, as far as the logs that were begun tell."""
        return sum(worker.bytes_expected for worker in self.workers)

    @property
    def bytes_checked(self) -> int:
        return sum(worker.bytes_checked for worker in self.workers)

    def __str__(self) -> str:
        opened = f"opened {self.done} of {self.total} logs"
        if not self.bytes_expected:
            return opened
        checked, expected = self.bytes_checked // _MEGA, self.bytes_expected // _MEGA
        return f"{opened}, checked {checked:,} of {expected:,} MB after a stop that was not clean"


def _open(home: LogHome, opening: Opening, progress: Progress) -> Opened:
    try:
        return load_log(home, opening, progress)
    except Exception as error:  # noqa: BLE001 - one log's trouble, whatever it is, is its own
        if isinstance(error, OSError) and not is_of_one_log(error):
            return error
        return _unopened(home, opening, error)


def _unopened(home: LogHome, opening: Opening, error: Exception) -> UnopenedLog | OSError:
    try:
        topic_id = topic_id_in(home.disk, opening.directory)
    except OSError as again:
        if not is_of_one_log(again):
            return again
        topic_id = UNKNOWN_TOPIC_ID
    return UnopenedLog(
        opening.topic,
        opening.partition,
        why_not_opened(opening.directory, error),
        topic_id,
        home=home,
        directory=opening.directory,
        config=opening.config,
        is_clean=opening.is_clean,
    )
