"""What the rows of large requests share: how much is asked for, a broker, and what is there.

Owns the table of rows. A row is a generator: what it does before its first `yield` is not looked
at, what comes then is, and what comes after the second one is not. What a row made goes when it is
over, but for what others use, too; of that, only one thing at a time is there: Apache Kafka holds a
descriptor for each partition, and there are machines with 20,000 for a process.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from bench.raw_client import PRODUCE_VERSION, RawClient, make_batch
from kafkalite.protocol import messages
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    OffsetCommitRequest,
    ProduceRequest,
)

TIMEOUT_MS = 120_000
LED_ATTEMPTS, LED_PAUSE_S = 1_200, 0.1  # Apache Kafka takes a minute for its logs on a busy disk
TOPICS_PER_REQUEST = 500
FILES_GO_SECONDS = 2.0
ALREADY_GONE = 3  # UNKNOWN_TOPIC_OR_PARTITION: metadata may still tell of what a row has deleted
BYSTANDERS_TOPIC = "bystander"
_unique = count()


@dataclass(slots=True, frozen=True)
class Sizes:
    """How much is asked for."""

    partitions: int = 5_000
    topics: int = 10_000
    small_topics: int = 300
    names: int = 200_000
    offsets: int = 200_000
    readers: int = 5_000
    groups: int = 5_000
    segments: int = 1_000
    seconds: float = 5.0  # of what goes on for a while

    @classmethod
    def quick(cls) -> Sizes:
        return cls(1_000, 2_000, 100, 40_000, 40_000, 500, 500, 200, 2.0)

    def settings(self) -> dict[str, str]:
        """Of the broker: passes come soon, and what they find is large."""
        return {
            "log_retention_check_interval_ms": "5000",
            "offsets_retention_check_interval_ms": "5000",
            "offsets_topic_num_partitions": "4",
            "transaction_state_log_num_partitions": "4",
            "transaction_max_timeout_ms": "900000",
            "log_segment_delete_delay_ms": "500",
        }


@dataclass(slots=True)
class Stage:
    """One broker, and what a row may use."""

    host: str
    port: int
    client: RawClient
    sizes: Sizes
    made: dict[str, int] = field(default_factory=lambda: {BYSTANDERS_TOPIC: 1})  # what rows share

    def ask(self, request: Any, version: int) -> Any:
        """A request and its answer."""
        name = type(request).__name__.replace("Request", "Response")
        return self.client.call(request, version, getattr(messages, name))

    def another(self) -> RawClient:
        return RawClient(self.host, self.port)

    def name(self, prefix: str = "t") -> str:
        """One that nothing has."""
        return f"{prefix}-{next(_unique)}"

    def create(self, topics: dict[str, int], **settings: str) -> None:
        """Topics by their partitions, as many at a time as one request may make."""
        waiting = list(topics.items())
        while waiting:
            some, waiting = waiting[:TOPICS_PER_REQUEST], waiting[TOPICS_PER_REQUEST:]
            asked = [_topic(name, partitions, settings) for name, partitions in some]
            answer = self.ask(CreateTopicsRequest(topics=asked, timeout_ms=TIMEOUT_MS), 7)
            assert not any(topic.error_code for topic in answer.topics), answer.topics[:3]
        self.wait_for(next(reversed(topics)))

    def wait_for(self, topic: str) -> None:
        """Until all partitions of a topic can be written to: Apache Kafka learns of it later."""
        for _ in range(600):
            asked = [MetadataRequest.Topic(name=topic)]
            (found,) = self.ask(MetadataRequest(topics=asked), 12).topics
            if not found.error_code and all(p.leader_id >= 0 for p in found.partitions):
                return
            time.sleep(0.05)
        raise AssertionError(f"{topic} never came")

    def find_coordinator(self, name: str, key_type: int = 0) -> None:
        """As clients do first of all, whereupon the coordinators' topics are made."""
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[name])
        for _ in range(200):
            if not self.ask(request, 4).coordinators[0].error_code:
                return
            time.sleep(0.05)
        raise AssertionError(f"{name} has no coordinator")

    def tidy_up(self) -> None:
        """Deletes the topics that no other row uses, and waits until their files are gone."""
        found = self.ask(MetadataRequest(topics=None), 12).topics
        names = [one.name for one in found if not one.is_internal and one.name not in self.made]
        while names:
            some, names = names[:TOPICS_PER_REQUEST], names[TOPICS_PER_REQUEST:]
            request = DeleteTopicsRequest(topic_names=some, timeout_ms=TIMEOUT_MS)
            answers = self.ask(request, 5).responses
            failed = [one for one in errors_in(answers) if one.error_code != ALREADY_GONE]
            assert not failed, failed[:3]
            if not names:
                time.sleep(FILES_GO_SECONDS)

    def _make_room_for(self, name: str) -> None:
        if name not in self.made:
            self.made = {BYSTANDERS_TOPIC: 1}
            self.tidy_up()

    def large_topic(self) -> str:
        """One of as many partitions as there may be in a request, a record in each."""
        self._make_room_for("large")
        if "large" not in self.made:
            self.create({"large": self.sizes.partitions})
            self.made["large"] = self.sizes.partitions
            produce_to_all(self, "large", self.sizes.partitions)
        return "large"

    def many_topics(self) -> list[str]:
        names = [f"many-{number}" for number in range(self.sizes.topics)]
        self._make_room_for(names[0])
        if names[0] not in self.made:
            self.create(dict.fromkeys(names, 1))
            self.made |= dict.fromkeys(names, 1)
        return names

    def many_groups(self) -> list[str]:
        """Groups that have an offset each and no members."""
        names = [f"group-{number}" for number in range(self.sizes.groups)]
        if names[0] not in self.made:
            topic = self.large_topic()
            for name in names:
                commit(self, name, topic, range(1))
            self.made |= dict.fromkeys(names, 1)
        return names


Action = Callable[[Stage], Iterator[None]]
ROWS: dict[str, Action] = {}


def row(name: str) -> Callable[[Action], Action]:
    def add(action: Action) -> Action:
        ROWS[name] = action
        return action

    return add


def _topic(name: str, partitions: int, settings: dict[str, str]) -> CreateTopicsRequest.Topic:
    configs = [
        CreateTopicsRequest.Config(name=key.replace("_", "."), value=value)
        for key, value in settings.items()
    ]
    return CreateTopicsRequest.Topic(
        name=name, num_partitions=partitions, replication_factor=1, configs=configs
    )


def produce_to_all(stage: Stage, topic: str, partitions: int, size: int = 100) -> None:
    """A record to each partition, in one request; again for those that are not led yet."""
    waiting = list(range(partitions))
    for _ in range(LED_ATTEMPTS):
        answer = stage.ask(produce_request(topic, waiting, size), PRODUCE_VERSION)
        answers = answer.responses[0].partition_responses
        failed = {one.index: Error(one.error_code).name for one in answers if one.error_code}
        if not failed:
            return
        waiting = list(failed)
        time.sleep(LED_PAUSE_S)
    raise AssertionError(f"{topic}: partitions take no records: {Counter(failed.values())}")


def produce_request(topic: str, partitions: list[int], size: int) -> ProduceRequest:
    batch, _ = make_batch(size, size)
    data = [ProduceRequest.PartitionData(index=index, records=batch) for index in partitions]
    return ProduceRequest(
        acks=1,
        timeout_ms=TIMEOUT_MS,
        topic_data=[ProduceRequest.TopicData(name=topic, partition_data=data)],
    )


def commit(stage: Stage, group: str, topic: str, partitions: range, retention: int = -1) -> None:
    asked = [
        OffsetCommitRequest.Partition(
            partition_index=index, committed_offset=1, committed_metadata=""
        )
        for index in partitions
    ]
    request = OffsetCommitRequest(
        group_id=group,
        retention_time_ms=retention,
        topics=[OffsetCommitRequest.Topic(name=topic, partitions=asked)],
    )
    stage.find_coordinator(group)
    for _ in range(200):
        (found,) = stage.ask(request, 2).topics
        if not any(each.error_code for each in found.partitions):
            return
        time.sleep(0.05)
    raise AssertionError(f"{group} cannot commit: {found.partitions[0]}")


def fetch_of(
    topic: str, partitions: int, *, wait_ms: int, min_bytes: int, offset: int = 0
) -> FetchRequest:
    asked = [
        FetchRequest.Partition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index in range(partitions)
    ]
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=32 << 20,
        session_epoch=-1,
        topics=[FetchRequest.Topic(topic=topic, partitions=asked)],
    )


def errors_in(parts: Any) -> list[Any]:
    return [part for part in parts if part.error_code]
