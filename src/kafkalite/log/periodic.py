"""The work that a broker's logs need from time to time: retention, flushes, checkpoints, expiry.

Owns one timer for each kind of work, over all logs; a broker with ten thousand idle logs has no
more timers than one with a single log. It never does blocking work itself. Invariant: a kind of
work is due again only after it was done.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kafkalite.env.clock import Timer
from kafkalite.env.slicing import Steps, Work
from kafkalite.log.cleaner import Cleaner
from kafkalite.log.config import FOREVER
from kafkalite.log.log_table import LogTable
from kafkalite.log.names import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.retention_pass import RetentionPass

_LONGEST_TIMER_MS = 86_400_000
_SOON_MS = 100
_FLUSH_CHECK_MS = 1000


class Periodic:
    """The timers of one `LogManager`."""

    def __init__(self, logs: LogTable) -> None:
        self._logs = logs
        self._timers: dict[str, Timer] = {}
        self._slices = logs.env.slices
        self._under_way: set[str] = set()  # what is gone over all logs for, or over a directory's
        self.cleaner = Cleaner(logs)

    def start(self) -> None:
        settings, logs = self._logs.settings, self._logs
        flush_ms = min(settings.log_flush_scheduler_interval_ms, _FLUSH_CHECK_MS)
        work: list[tuple[str, int, Callable[[], None]]] = [
            ("retention", settings.log_retention_check_interval_ms, self.retain),
            ("flush", flush_ms, self.flush),
            ("expiry", settings.producer_id_expiration_check_interval_ms, self.expire_producers),
            (
                RECOVERY_POINTS,
                settings.log_flush_offset_checkpoint_interval_ms,
                lambda: logs.checkpoint(RECOVERY_POINTS),
            ),
            (
                LOG_STARTS,
                settings.log_flush_start_offset_checkpoint_interval_ms,
                lambda: logs.checkpoint(LOG_STARTS),
            ),
            (
                HIGH_WATERMARKS,
                settings.replica_high_watermark_checkpoint_interval_ms,
                lambda: logs.checkpoint(HIGH_WATERMARKS),
            ),
        ]
        for name, interval_ms, job in work:
            self._set(name, interval_ms, job)
        self.cleaner.start()

    def _set(self, name: str, interval_ms: int, job: Callable[[], None]) -> None:
        def fire() -> None:
            try:
                job()
            finally:  # what went wrong once must not be the last time
                self._set(name, interval_ms, job)

        delay_ms = min(interval_ms, _LONGEST_TIMER_MS)
        self._timers[name] = self._logs.env.clock.call_later(delay_ms, fire)

    def soon(self, name: str) -> None:
        """Has a checkpoint written once for all that happens now and a moment later."""

        def fire() -> None:
            del self._timers[key]
            self._logs.checkpoint(name)

        key = f"{name}, soon"
        if key not in self._timers:
            self._timers[key] = self._logs.env.clock.call_later(_SOON_MS, fire)

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._slices.drop(self)
        self.cleaner.stop()

    def retain(self) -> None:
        """Removes segments that retention does not keep, unless that is still being done."""
        for directory in self._logs.directories:
            name = directory.path
            if directory.home.is_online and name not in self._under_way:
                self._under_way.add(name)
                end = partial(self._under_way.discard, name)
                begin = partial(self._begin, lost=end)
                RetentionPass(self._logs, directory, begin, end).start()

    def flush(self) -> None:
        """Has logs synced whose flush.ms has passed since the last time, unless that is still being
        done."""
        now_ms = self._logs.env.clock.now_ms()

        def look_at(log: PartitionLog) -> None:
            flush_ms = log.config.flush_ms
            if flush_ms < FOREVER and now_ms - log.last_flush_ms >= flush_ms:
                log.flush()

        self._go_over("flush", look_at)

    def expire_producers(self) -> None:
        now_ms = self._logs.env.clock.now_ms()
        self._go_over("expiry", lambda log: log.expire_producers(now_ms))

    def _go_over(self, kind: str, job: Callable[[PartitionLog], None]) -> None:
        """A loop with much to do may be at it still when its time has come again."""
        if kind not in self._under_way:
            self._under_way.add(kind)
            end = partial(self._under_way.discard, kind)
            self._begin(_each(self._logs, job), end, end)

    def _begin(
        self, steps: Steps[None], done: Callable[[], None], lost: Callable[[], None]
    ) -> None:
        """Long work, which ends with their service."""
        self._slices.begin(Work(steps, lambda _: done(), lost, owner=self))


def _each(logs: LogTable, job: Callable[[PartitionLog], None]) -> Steps[None]:
    """A job for every log, of those that are still there when its turn comes."""
    for log in logs.logs:
        if logs.get(log.topic, log.partition) is log:
            job(log)
        yield
