"""What is done between the requests of a conversation.

Acts of the pair concern all conversations at once, and its owner does them while nobody talks; each
conversation may have something to do before and after. Acts of its own concern only its topics.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from kafkalite.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
)
from tests.differential.generating import Generator, Step

ROLLING = {"segment.ms": "5000"}  # of record time
COMPACTED = {
    "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0", "delete.retention.ms": "0",
    **ROLLING,
}  # fmt: skip
TOPICS = {"apples-RUN": COMPACTED, "pears-RUN": ROLLING}
PARTITIONS = 2

CLEAN, RETAIN, RESTART, KILL = "clean", "retain", "restart", "kill"
RESTARTS = (RESTART, KILL)
PAIR_ACTS = (*(2 * (CLEAN, RETAIN)), RESTART, KILL)


def created(*names: str) -> Step:
    topics = [
        CreateTopicsRequest.Topic(
            name=name, num_partitions=PARTITIONS, replication_factor=1,
            configs=[
                CreateTopicsRequest.Config(name=each, value=value)
                for each, value in TOPICS[name].items()
            ],
        )
        for name in names or TOPICS
    ]  # fmt: skip
    return Step(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)


def before(act: str) -> Iterator[Step]:
    """A day, of records that are three days old."""
    if act == RETAIN:
        yield _altered("pears-RUN", "retention.ms", "86400000")


def after(act: str) -> Iterator[Step]:
    if act == RETAIN:
        yield _altered("pears-RUN", "retention.ms", "-1")


def remake(rng: random.Random, generator: Generator) -> Iterator[Step]:
    name = _topic(rng)
    deleted = DeleteTopicsRequest.Topic(name=name)
    yield Step(DeleteTopicsRequest(topics=[deleted], timeout_ms=10_000), 6)
    yield created(name)


def delete_records(rng: random.Random, generator: Generator) -> Iterator[Step]:
    partition = DeleteRecordsRequest.Partition(
        partition_index=rng.randrange(PARTITIONS), offset=rng.choice((-1, 1, 2, 4))
    )
    topic = DeleteRecordsRequest.Topic(name="pears-RUN", partitions=[partition])
    yield Step(DeleteRecordsRequest(topics=[topic], timeout_ms=10_000), 2)


def administer(rng: random.Random, generator: Generator) -> Iterator[Step]:
    partition = AlterPartitionReassignmentsRequest.Partition(partition_index=0, replicas=[1])
    topic = AlterPartitionReassignmentsRequest.Topic(name=_topic(rng), partitions=[partition])
    more = CreatePartitionsRequest.Topic(name="pears-RUN", count=PARTITIONS + 1)
    yield Step(AlterPartitionReassignmentsRequest(topics=[topic]), 1)
    yield Step(CreatePartitionsRequest(topics=[more], timeout_ms=10_000), 3)
    yield _altered(_topic(rng), "max.message.bytes", rng.choice(("150", "1048588")))
    administrator = Generator(rng, generator.memory, generator.served, "administration")
    for _ in range(3):
        yield administrator.step()


OWN_ACTS: tuple[Callable[[random.Random, Generator], Iterator[Step]], ...] = (
    remake,
    delete_records,
    administer,
)


def _topic(rng: random.Random) -> str:
    return rng.choice(list(TOPICS))


def _altered(topic: str, name: str, value: str) -> Step:
    config = IncrementalAlterConfigsRequest.Config(name=name, config_operation=0, value=value)
    resource = IncrementalAlterConfigsRequest.Resource(
        resource_type=2, resource_name=topic, configs=[config]
    )
    return Step(IncrementalAlterConfigsRequest(resources=[resource]), 1)
