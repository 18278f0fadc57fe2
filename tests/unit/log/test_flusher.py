"""What the loop does for a job of syncs: put together what the logs need, for a slice of time."""

from __future__ import annotations

from dataclasses import dataclass, field

from kafkalite.env import manual_env
from kafkalite.env.background import QueuedBackground
from kafkalite.env.clock import ManualClock
from kafkalite.env.slicing import SLICE_MS
from kafkalite.log.flusher import Flusher, FlushWork

TOOK_MS = 2
MOST_AT_A_TIME = SLICE_MS // TOOK_MS + 1


@dataclass(eq=False)
class SlowLog:
    """It writes files before it can be synced."""

    clock: ManualClock
    told: list[SlowLog] = field(default_factory=list)

    def flush_work(self, *, is_complete: bool) -> FlushWork:
        self.clock.advance(TOOK_MS)
        return FlushWork(0, 0, is_complete=is_complete)

    def flushed(self, work: FlushWork) -> None:
        self.told.append(self)


def test_logs_that_take_their_time_are_put_into_several_jobs() -> None:
    clock, background, told = ManualClock(), QueuedBackground(), list[SlowLog]()
    env = manual_env(clock=clock)
    env.background = background
    flusher = Flusher(env, lambda error: None)
    logs = [SlowLog(clock, told) for _ in range(20)]
    for log in logs:
        flusher.request(log, is_complete=True)
    jobs = 0
    while len(background):
        before, began_ms = len(told), clock.monotonic_ms()
        background.run_one()
        jobs += 1
        assert clock.monotonic_ms() - began_ms <= MOST_AT_A_TIME * TOOK_MS
        assert len(told) - before <= MOST_AT_A_TIME
    assert told == logs
    assert jobs >= len(logs) // MOST_AT_A_TIME
