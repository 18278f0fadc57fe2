"""How far the opening of a broker's logs has come.

Owns the counts that progress bars and log lines show. It never opens a log. Invariant: each worker
writes to a `Progress` of its own, and whoever reads adds them up.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from kafkalite.log.directory import LogDirectory
from kafkalite.log.loader import Opening
from kafkalite.log.recovery import Progress

_MEGA = 1_000_000


@dataclass(slots=True)
class Loading:
    """All logs on their way from files to memory."""

    total: int = 0
    waiting: deque[tuple[LogDirectory, Opening]] = field(default_factory=deque)
    workers: list[Progress] = field(default_factory=list)

    def new_worker(self) -> Progress:
        self.workers.append(Progress())
        return self.workers[-1]

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
