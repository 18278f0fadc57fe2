"""A process that appends until it is killed, and says on its output what was acknowledged.

python -m tests.crash.victim DIRECTORY SEED

Each line is `partition base last`, written after the append had returned. Values can be computed
from partition and offset, so whoever killed it knows what must be there.
"""

from __future__ import annotations

import os
import sys
from random import Random

from kafkalite.env import Env
from kafkalite.env.background import InlineBackground
from kafkalite.env.clock import ManualClock
from kafkalite.env.disk import RealDisk
from kafkalite.env.randomness import seeded_random
from kafkalite.log.config import LogConfig, LogSettings
from kafkalite.log.manager import LogManager
from kafkalite.records.record import BatchBuilder

PARTITIONS = 3
TOPIC_ID = b"the topic killed"
CONFIG = LogConfig(segment_bytes=60_000, index_interval_bytes=500, retention_ms=-1)
SETTINGS = LogSettings(log_cleaner_enable=False)


def value_at(partition: int, offset: int) -> bytes:
    return b"%d/%d/" % (partition, offset) + b"x" * (offset * 7 % 300)


def open_logs(directory: str, seed: int) -> LogManager:
    clock = ManualClock()
    env = Env(clock, RealDisk(), InlineBackground(), seeded_random(seed))
    manager = LogManager(
        env, [directory], node_id=1, cluster_id="crash", settings=SETTINGS,
        config_of=lambda topic: CONFIG,
    )  # fmt: skip
    assert manager.start().is_resolved
    return manager


def batch_at(partition: int, offset: int, count: int) -> memoryview:
    builder = BatchBuilder()
    for index in range(count):
        builder.append(1_700_000_000_000 + offset, None, value_at(partition, offset + index))
    return memoryview(builder.build(0))


def main(directory: str, seed: int) -> None:
    random = Random(seed)
    manager = open_logs(directory, seed)
    logs = [manager.create("t", partition, TOPIC_ID) for partition in range(PARTITIONS)]
    os.write(1, b"ready\n")
    while True:
        partition = random.randrange(PARTITIONS)
        log = logs[partition]
        data = batch_at(partition, log.log_end_offset, random.randint(1, 20))
        result = log.append_as_leader(data, 0)
        log.replicated(log.log_end_offset)
        os.write(1, b"%d %d %d\n" % (partition, result.base_offset, result.last_offset))
        if random.random() < 0.01:
            manager.periodic.retain()
            manager.checkpoint("recovery-point-offset-checkpoint")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
