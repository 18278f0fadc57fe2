"""The shards of one internal topic: which of them answers for a key, and whether it is ours.

Owns one runtime per partition of the topic that this broker leads. Knows nothing of what a shard
does. Invariant: a partition has a runtime exactly while this broker leads it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TypeVar

from kafkalite.coordinators.events import Event
from kafkalite.coordinators.java_hash import java_hash
from kafkalite.coordinators.ports import Partition, Shard
from kafkalite.coordinators.runtime import APPEND_TIMEOUT_MS, Runtime, Supply
from kafkalite.env import Env
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError

# Each request of a group or transaction asks for its partition, by a hash that goes over the key
# unit by unit; so many keys are remembered.
KEPT_KEYS = 4_096

R = TypeVar("R")


@lru_cache(KEPT_KEYS)
def partition_of(key: str, partition_count: int) -> int:
    """The partition that coordinates a key; Kafka counts the one hash without an absolute as 0."""
    value = java_hash(key)
    return 0 if value == -(1 << 31) else abs(value) % partition_count


@dataclass(slots=True, eq=False)
class Shards:
    """Runtimes by partition index."""

    env: Env
    topic: str
    partition_count: Callable[[], int]
    make_shard: Callable[[], Shard]
    deliver: Callable[[int, object], None] | None = None
    append_timeout_ms: int = APPEND_TIMEOUT_MS
    supply: Supply | None = None
    runtimes: dict[int, Runtime] = field(default_factory=dict)

    def gained(self, index: int, partition: Partition) -> None:
        """This broker leads the partition now: load its log and answer for its keys."""
        self.lost(index)
        runtime = Runtime(
            self.env,
            partition,
            self.make_shard,
            name=f"{self.topic}-{index}",
            append_timeout_ms=self.append_timeout_ms,
            deliver=None if self.deliver is None else partial(self.deliver, index),
            supply=self.supply,
        )
        self.runtimes[index] = runtime
        runtime.load()

    def lost(self, index: int) -> None:
        """This broker does not lead the partition any more."""
        runtime = self.runtimes.pop(index, None)
        if runtime is not None:
            runtime.unload()

    def partition_for(self, key: str) -> int:
        return partition_of(key, self.partition_count())

    def submit(self, key: str, event: Event[R]) -> Later[R | KafkaError]:
        """The answer of the key's shard, or the error that sends the client elsewhere."""
        count = self.partition_count()
        if count == 0:
            return Later.of(KafkaError(Error.NOT_COORDINATOR))
        return self.submit_to(partition_of(key, count), event)

    def submit_to(self, index: int, event: Event[R]) -> Later[R | KafkaError]:
        runtime = self.runtimes.get(index)
        if runtime is None:
            return Later.of(KafkaError(Error.NOT_COORDINATOR))
        return runtime.submit(event)

    def submit_all(self, make_event: Callable[[], Event[R]]) -> Later[list[R | KafkaError]]:
        """The answers of all shards of this broker, in order of their partitions."""
        return Later.all([self.runtimes[i].submit(make_event()) for i in sorted(self.runtimes)])
