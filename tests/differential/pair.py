"""Both brokers as one thing to act on: stopped, killed and started under the same address, and
waited for until neither has anything of its own to do.

What brokers do by themselves happens only while nobody talks: no record is old enough to be
compacted but while `clean` waits, so that both compact the same. Other work of theirs that has a
time (producers forgotten, starts of logs written down) comes later than any of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from kafkalite.protocol.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
)
from kafkalite.testing.comparison import settling
from kafkalite.testing.comparison.side import Side
from tests.compat import brokers
from tests.compat.brokers import Broker

LAG, FOREVER_MS = "log.cleaner.min.compaction.lag.ms", "315360000000"
LATER_MS, SESSION_MS = "36000000", "600000"
SETTINGS = {
    # Short, so that what happens by itself happens soon.
    "log.cleaner.backoff.ms": "200",
    "log.retention.check.interval.ms": "300",
    "log.segment.delete.delay.ms": "100",
    "log.initial.task.delay.ms": "100",
    # Long, so that it does not happen at a moment of its own.
    LAG: FOREVER_MS,
    "log.flush.start.offset.checkpoint.interval.ms": LATER_MS,
    "producer.id.expiration.check.interval.ms": LATER_MS,
    "transactional.id.expiration.ms": "604800000",
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.max.session.timeout.ms": SESSION_MS,
}
CLEANED, STARTS = "cleaner-offset-checkpoint", "log-start-offset-checkpoint"
SOON_S, QUIET_S, PATIENCE_S, LOOK_S = 0.4, 0.9, 20.0, 0.1
JOINED_S = 1.8  # until who waits for others to join, and then for their leader, does no more
BROKER, SET, DELETE = 4, 0, 1


@dataclass(slots=True)
class Pair:
    folder: Path
    running: list[Broker] = field(default_factory=list)

    def start(self) -> None:
        ports = [each.port for each in self.running] or [0, 0]
        with ThreadPoolExecutor() as pool:
            self.running = list(pool.map(self._start, brokers.BROKERS, ports))

    def _start(self, kind: str, port: int) -> Broker:
        return brokers.start(kind, self.folder / kind, SETTINGS, port=port)

    def end(self, how: Callable[[Broker], None]) -> None:
        with ThreadPoolExecutor() as pool:
            list(pool.map(how, self.running))

    def again(self, sides: Sequence[Side], how: Callable[[Broker], None]) -> None:
        """Both ended and started; their coordinators have loaded."""
        time.sleep(JOINED_S)
        for side in sides:
            _have_starts_written(side)
        self.wait(self._starts, SOON_S)
        for side in sides:
            side.close()
        self.end(how)
        self.start()
        for side in sides:
            settling.warm_up(side)

    def clean(self, sides: Sequence[Side]) -> None:
        """Both compact all that they can."""
        _set_lag(sides, "0")
        self.wait(self._checkpoints, QUIET_S)
        _set_lag(sides, None)

    def retain(self) -> None:
        """Some time for retention to be done."""
        self.wait(self._segments, 2 * QUIET_S)

    def wait(self, look: Callable[[], object], quiet_s: float) -> None:
        """Until nothing that can be seen has changed for a while."""
        last, since = look(), time.monotonic()
        deadline = since + PATIENCE_S
        while time.monotonic() - since < quiet_s and time.monotonic() < deadline:
            time.sleep(LOOK_S)
            if (now := look()) != last:
                last, since = now, time.monotonic()

    def _checkpoints(self) -> list[str]:
        """What either cleaner says how far it has come."""
        return self._texts(CLEANED)

    def _starts(self) -> list[str]:
        """Where logs begin, which both write down soon after a topic was deleted."""
        return self._texts(STARTS)

    def _texts(self, name: str) -> list[str]:
        return [each.read_text() for folder in self._folders() for each in folder.glob(name)]

    def _segments(self) -> list[str]:
        """The files of records; directories may vanish meanwhile."""
        return [
            f"{folder}/{name}"
            for data in self._folders()
            for folder, _, names in sorted(os.walk(data))
            for name in sorted(names)
            if name.endswith(".log")
        ]

    def _folders(self) -> list[Path]:
        return [self.folder / kind / "data" for kind in brokers.BROKERS]


def take_first_ids(sides: Sequence[Side]) -> None:
    """A producer's id of 0 means in some answers that there is none: no conversation gets it."""
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=1000, producer_id=-1, producer_epoch=-1
    )
    for side in sides:
        while side.ask(request, 4).error_code:
            time.sleep(LOOK_S)  # until its broker was given some to give out


def _have_starts_written(side: Side) -> None:
    """Where logs begin: by the deletion of a topic, so that nobody else's before decides whether
    what a conversation has deleted comes back after a kill."""
    name = "starts"
    topic = CreateTopicsRequest.Topic(name=name, num_partitions=1, replication_factor=1)
    side.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5)
    settling.settle_metadata(side, "starts")
    side.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), 5)
    settling.settle_metadata(side, "starts")


def _set_lag(sides: Sequence[Side], value: str | None) -> None:
    """Of this broker alone: what conversations say of all brokers does not undo it."""
    config = IncrementalAlterConfigsRequest.Config(
        name=LAG, config_operation=DELETE if value is None else SET, value=value
    )
    resource = IncrementalAlterConfigsRequest.Resource(
        resource_type=BROKER, resource_name="1", configs=[config]
    )
    for side in sides:
        answer = side.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert not any(each.error_code for each in answer.responses), answer
        settling.settle_metadata(side, "lag")
