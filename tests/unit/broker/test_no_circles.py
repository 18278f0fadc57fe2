"""What a broker is done with goes with its last reference: no collector of garbage is needed.

Each piece of work is done once before, so that what a process makes once and for all is there.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafkalite.env.turns import Turns
from kafkalite.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    EndTxnRequest,
    FetchRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    ProduceRequest,
)
from tests.unit.handlers.whole_broker import WholeBroker, records

MANY = 40
SETTINGS = [{}, {"kafkalite.durability": "fsync"}, {"log.dirs": "/one,/two"}]


@pytest.fixture(params=SETTINGS, ids=["page-cache", "fsync", "two directories"])
def broker(request: pytest.FixtureRequest) -> Iterator[WholeBroker]:
    broker = WholeBroker(request.param)
    for key_type in (0, 1):
        broker.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g"]), 4)
    broker.create("t", MANY)
    yield broker
    broker.close()


@pytest.fixture
def left() -> Iterator[Callable[[Callable[[], object]], Counter[str]]]:
    """What only the collector finds of something that is done, the second time."""
    was_on = gc.isenabled()

    def found(act: Callable[[], object]) -> Counter[str]:
        act()
        gc.collect()
        gc.freeze()  # what is there takes no part: a look at all of it takes a second
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        act()
        gc.collect()
        return Counter(type(one).__qualname__ for one in gc.garbage)

    yield found
    gc.set_debug(0)
    gc.unfreeze()
    gc.garbage.clear()
    if was_on:
        gc.enable()


def produce(broker: WholeBroker, partitions: int = MANY, acks: int = -1) -> None:
    batch = records([b"a"], timestamp=broker.now_ms)
    data = [ProduceRequest.PartitionData(index=n, records=batch) for n in range(partitions)]
    topic = ProduceRequest.TopicData(name="t", partition_data=data)
    broker.send(ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=[topic]), 9)
    broker.clock.advance(100)


def fetch(broker: WholeBroker, wait_ms: int, offset: int = 0, topic: str = "t") -> Any:
    partition = FetchRequest.Partition(fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchRequest.Topic(topic=topic, partitions=[partition])]
    request = FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=topics
    )
    return broker.send(request, 12)


def poll_for_long(broker: WholeBroker) -> None:
    end = broker.partition().log.log_end_offset
    waiting = [fetch(broker, 500, end), fetch(broker, 5_000, end)]
    broker.clock.advance(1_000)
    produce(broker, 1)
    assert all(each.is_resolved for each in waiting)


def make_and_delete(broker: WholeBroker) -> None:
    broker.create("gone", MANY)
    for index in range(MANY):
        now_ms = broker.now_ms
        batch = records([b"a"], timestamp=now_ms, producer_id=5, producer_epoch=0, base_sequence=0)
        broker.partition("gone", index).append(batch, now_ms)
    broker.clock.advance(100)
    broker.delete("gone")
    broker.clock.advance(120_000)


def be_refused(broker: WholeBroker) -> None:
    """By coordinators, controllers and partitions."""
    beat = HeartbeatRequest(group_id="none", generation_id=1, member_id="x")
    end = EndTxnRequest(transactional_id="none", producer_id=5, producer_epoch=1, committed=True)
    broker.ask(beat, 2)
    broker.ask(end, 3)
    broker.ask(DeleteGroupsRequest(groups_names=["none"]), 2)
    for epoch in (0, 9, -1):
        request = ConsumerGroupHeartbeatRequest(
            group_id="c", member_id="m" * 22, member_epoch=epoch, rebalance_timeout_ms=60_000,
            subscribed_topic_names=["t"] if epoch == 0 else None, topic_partitions=[],
        )  # fmt: skip
        broker.send(request, 1)
        broker.clock.advance(2_000)
    fetch(broker, 0, 9_999_999)
    fetch(broker, 0, topic="none")
    broker.clock.advance(0)


def commit(broker: WholeBroker) -> None:
    partition = OffsetCommitRequest.Partition(committed_offset=1, committed_metadata="")
    topics = [OffsetCommitRequest.Topic(name="t", partitions=[partition])]
    broker.send(OffsetCommitRequest(group_id="g", topics=topics), 2)
    broker.clock.advance(100)
    broker.send(DeleteGroupsRequest(groups_names=["g"]), 2)
    broker.clock.advance(100)


def cut(broker: WholeBroker) -> None:
    partitions = [DeleteRecordsRequest.Partition(partition_index=n, offset=-1) for n in range(MANY)]
    topics = [DeleteRecordsRequest.Topic(name="t", partitions=partitions)]
    produce(broker)
    broker.ask(DeleteRecordsRequest(topics=topics, timeout_ms=1_000), 2)


def ask_a_lot(broker: WholeBroker) -> None:
    names = [MetadataRequest.Topic(name=f"none-{number}") for number in range(2_000)]
    broker.ask(MetadataRequest(topics=names, allow_auto_topic_creation=False), 12)
    ends = [ListOffsetsRequest.Partition(partition_index=n, timestamp=1) for n in range(MANY)]
    topics = [ListOffsetsRequest.Topic(name="t", partitions=ends)]
    broker.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 6)
    broker.send(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1_000), 4)
    broker.clock.advance(100)


@pytest.mark.parametrize(
    "act", [produce, poll_for_long, make_and_delete, be_refused, commit, cut, ask_a_lot]
)
def test_nothing_is_left_for_the_collector(
    broker: WholeBroker,
    act: Callable[[WholeBroker], None],
    left: Callable[[Callable[[], object]], Counter[str]],
) -> None:
    assert not left(lambda: act(broker))


def test_nothing_is_left_of_a_look_at_the_loops(
    left: Callable[[Callable[[], object]], Counter[str]],
) -> None:
    assert not left(lambda: Turns().look(0.0))
