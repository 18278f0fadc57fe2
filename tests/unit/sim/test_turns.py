"""No turn of the loop does much, counted in calls: of a usual run, and of passes over many logs."""

from __future__ import annotations

import pytest

from kafkalite.sim import world as worlds
from kafkalite.sim.effort import MOST_CALLS, CountingClock
from kafkalite.sim.run import simulate
from kafkalite.sim.world import World
from tests.unit.handlers.whole_broker import records

LOGS = 1_000
# Whatever is done from time to time is done within this.
PASSES_MS = 4_000
OFTEN = {
    "log.retention.check.interval.ms": "1000",
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "producer.id.expiration.check.interval.ms": "1000",
    "log.flush.scheduler.interval.ms": "500",
}


@pytest.mark.parametrize("seed", [4, 5])
def test_no_turn_of_a_run_does_much(seed: int) -> None:
    clock = CountingClock()
    simulate(seed, clock)
    assert 1_000 < clock.heaviest.calls < MOST_CALLS, clock.heaviest


def test_no_turn_of_the_passes_over_many_logs_does_much(monkeypatch) -> None:
    for name, value in OFTEN.items():
        monkeypatch.setitem(worlds.SETTINGS, name, value)
    clock = CountingClock()
    world = World(3, clock=clock)
    world.run_until(lambda: world.is_up, "the broker starts")
    world.create_topic("many", LOGS, retention_ms="1000")
    logs = [world.broker.context.partitions.find("many", index) for index in range(LOGS)]
    for log in logs:
        log.append(records([b"value"], timestamp=clock.now_ms()), clock.now_ms())
    clock.begin()  # what creates topics is another matter
    world.run(PASSES_MS)
    assert all(log.log.log_start_offset == 1 for log in logs), "retention never came"
    assert 1_000 < clock.heaviest.calls < MOST_CALLS, clock.heaviest
