"""The work that a broker's logs need from time to time: retention, flushes, checkpoints, expiry.

Owns one timer for each kind of work, over all logs; a broker with ten thousand idle logs has no
more timers than one with a single log. It never does blocking work itself. Invariant: a kind of
work is due again only after it was done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkalite.env.clock import Timer
from kafkalite.log.cleaner import Cleaner
from kafkalite.log.config import FOREVER
from kafkalite.log.names import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from kafkalite.log.retention import delete_old_segments

if TYPE_CHECKING:
    from kafkalite.log.manager import LogManager

_LONGEST_TIMER_MS = 86_400_000
_FLUSH_CHECK_MS = 1000


class Periodic:
    """The timers of one `LogManager`."""

    def __init__(self, manager: LogManager) -> None:
        self._manager = manager
        self._timers: dict[str, Timer] = {}
        self.cleaner = Cleaner(manager)

    def start(self) -> None:
        settings, manager = self._manager.settings, self._manager
        flush_ms = min(settings.log_flush_scheduler_interval_ms, _FLUSH_CHECK_MS)
        work: list[tuple[str, int, Callable[[], None]]] = [
            ("retention", settings.log_retention_check_interval_ms, self.retain),
            ("flush", flush_ms, self.flush),
            ("expiry", settings.producer_id_expiration_check_interval_ms, self.expire_producers),
            (
                RECOVERY_POINTS,
                settings.log_flush_offset_checkpoint_interval_ms,
                lambda: manager.checkpoint(RECOVERY_POINTS),
            ),
            (
                LOG_STARTS,
                settings.log_flush_start_offset_checkpoint_interval_ms,
                lambda: manager.checkpoint(LOG_STARTS),
            ),
            (
                HIGH_WATERMARKS,
                settings.replica_high_watermark_checkpoint_interval_ms,
                lambda: manager.checkpoint(HIGH_WATERMARKS),
            ),
        ]
        for name, interval_ms, job in work:
            self._set(name, interval_ms, job)
        self.cleaner.start()

    def _set(self, name: str, interval_ms: int, job: Callable[[], None]) -> None:
        def fire() -> None:
            job()
            self._set(name, interval_ms, job)

        delay_ms = min(interval_ms, _LONGEST_TIMER_MS)
        self._timers[name] = self._manager.env.clock.call_later(delay_ms, fire)

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self.cleaner.stop()

    def retain(self) -> None:
        """Removes segments that retention does not keep."""
        now_ms = self._manager.env.clock.now_ms()
        for log in self._manager:
            if log.home.is_online:
                delete_old_segments(log, now_ms)

    def flush(self) -> None:
        """Has logs synced whose flush.ms has passed since the last time."""
        now_ms = self._manager.env.clock.now_ms()
        for log in self._manager:
            flush_ms = log.config.flush_ms
            if flush_ms < FOREVER and now_ms - log.last_flush_ms >= flush_ms:
                log.flush()

    def expire_producers(self) -> None:
        now_ms = self._manager.env.clock.now_ms()
        for log in self._manager:
            log.expire_producers(now_ms)
