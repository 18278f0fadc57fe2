"""With fsync nobody is told of metadata that a power cut could still take back, and nothing is done
for good that only makes sense with it. The disk is as slow here as a test says."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite import handlers
from kafkalite.config.listeners import BROKER
from kafkalite.coordinators.cluster.brokers import FenceBroker
from kafkalite.coordinators.groups.front import OFFSETS_TOPIC
from kafkalite.coordinators.transactions.events import List
from kafkalite.coordinators.transactions.transaction import State
from kafkalite.env.later import Later
from kafkalite.handlers.api_set import ApiSet
from kafkalite.handlers.call import CloseConnection
from kafkalite.handlers.leaders import current_leader
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    AlterConfigsRequest,
    DeleteTopicsRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    OffsetCommitRequest,
    message_class,
)
from tests.unit.broker.turns import creation, deletion
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.handlers.writer import writer

PRODUCE, FETCH = 0, 1
TELLING = [api for api in ApiSet(BROKER).apis if api.key not in (PRODUCE, FETCH)]


class SlowMetadata:
    """A broker with the topic `old`; from now on its metadata lasts when the test says so."""

    def __init__(self, durability: str = "fsync") -> None:
        self.broker = WholeBroker({"kafkalite.durability": durability})
        self.broker.create("old")
        self.broker.clock.advance(100)
        self.controller = self.broker.broker.controller
        self.image = self.broker.context.metadata.image
        self.hold()

    def hold(self) -> None:
        self.controller.log.log.durability.hold()

    def send(self, request: Any, version: int) -> Later[Any]:
        came = self.broker.send(request, version)
        self.broker.clock.advance(10)
        return came

    def sync(self) -> None:
        self.controller.log.log.durability.release()
        self.controller.log.log.flush()
        self.broker.clock.advance(200)


def metadata_of(name: str) -> MetadataRequest:
    wanted = MetadataRequest.Topic(topic_id=bytes(16), name=name)
    return MetadataRequest(topics=[wanted], allow_auto_topic_creation=False)


def test_who_is_refused_because_a_topic_is_there_hears_it_when_it_lasts() -> None:
    slow = SlowMetadata()
    created, again = slow.send(creation(1, "t"), 7), slow.send(creation(1, "t"), 7)
    assert slow.image.topic_id("t") is not None
    assert not created.is_resolved
    assert not again.is_resolved
    slow.sync()
    assert created.value.topics[0].error_code == Error.NONE
    assert again.value.topics[0].error_code == Error.TOPIC_ALREADY_EXISTS


def test_who_is_refused_because_a_topic_is_gone_hears_it_when_that_lasts() -> None:
    slow = SlowMetadata()
    topic_id = slow.image.topics["old"].topic_id
    by_id = DeleteTopicsRequest(topics=[DeleteTopicsRequest.Topic(name=None, topic_id=topic_id)])
    slow.send(by_id, 6)
    again = slow.send(by_id, 6)
    assert not again.is_resolved
    slow.sync()
    assert again.value.responses[0].error_code == Error.UNKNOWN_TOPIC_ID


def test_metadata_tells_of_a_topic_when_it_lasts() -> None:
    slow = SlowMetadata()
    slow.send(creation(1, "t"), 7)
    told = slow.send(metadata_of("t"), 12)
    assert not told.is_resolved
    slow.sync()
    assert told.value.topics[0].topic_id == slow.image.topic_id("t")


def test_metadata_of_a_topic_that_is_gone_is_told_when_that_lasts() -> None:
    slow = SlowMetadata()
    slow.send(deletion("old"), 5)
    told = slow.send(metadata_of("old"), 12)
    assert not told.is_resolved
    slow.sync()
    assert told.value.topics[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("api", TELLING, ids=lambda api: api.name)
def test_no_answer_but_those_with_records_goes_before(api: Any) -> None:
    """Whatever is asked: what it tells may come from what does not last."""
    slow = SlowMetadata()
    slow.send(creation(1, "t"), 7)
    request = message_class(f"{api.name}Request")()
    came = slow.send(request, handlers.versions(api)[-1])
    assert not came.is_resolved or isinstance(came.value, CloseConnection)
    slow.sync()
    slow.broker.clock.advance(60_000)
    assert came.is_resolved


def test_who_does_not_ask_for_fsync_does_not_wait() -> None:
    slow = SlowMetadata("page-cache")
    assert slow.send(creation(1, "t"), 7).value.topics[0].error_code == Error.NONE
    assert slow.send(creation(1, "t"), 7).is_resolved
    assert slow.send(metadata_of("t"), 12).value.topics[0].error_code == Error.NONE


def test_who_waits_hears_of_a_disk_that_failed() -> None:
    slow = SlowMetadata()
    slow.send(creation(1, "t"), 7)
    told = slow.send(metadata_of("t"), 12)
    slow.broker.broker.logs.directories[0].home.fail(OSError(5, "broken"))
    slow.broker.clock.advance(10)
    assert isinstance(told.value, CloseConnection)


def test_a_leader_that_does_not_last_is_not_named() -> None:
    """In an answer with records, which does not wait (KIP-951)."""
    slow = SlowMetadata()
    slow.controller.decide(FenceBroker(1))
    assert current_leader(slow.broker.context, "old", bytes(16), 0) == (-1, -1)
    slow.sync()
    state = slow.image.partition("old", 0)
    assert state is not None
    told = current_leader(slow.broker.context, "old", bytes(16), 0)
    assert told == (state.leader, state.leader_epoch)


def test_settings_are_followed_when_they_last() -> None:
    """Else retention takes records that a power cut has the broker keep."""
    slow = SlowMetadata()
    log = slow.broker.partition("old").log
    before = log.config.retention_ms
    config = AlterConfigsRequest.Config(name="retention.ms", value="1")
    wanted = AlterConfigsRequest.Resource(resource_type=2, resource_name="old", configs=[config])
    altered = slow.send(AlterConfigsRequest(resources=[wanted]), 2)
    assert log.config.retention_ms == before
    slow.sync()
    assert log.config.retention_ms == 1
    assert altered.value.responses[0].error_code == Error.NONE


def test_offsets_go_with_their_topic_when_its_deletion_lasts() -> None:
    """Else a power cut could give the topic back without them."""
    slow = SlowMetadata()
    slow.sync()
    slow.send(FindCoordinatorRequest(key_type=0, coordinator_keys=["readers"]), 4)
    partition = OffsetCommitRequest.Partition(partition_index=0, committed_offset=7)
    topic = OffsetCommitRequest.Topic(name="old", partitions=[partition])
    committed = slow.send(OffsetCommitRequest(group_id="readers", topics=[topic]), 8)
    assert committed.value.topics[0].partitions[0].error_code == Error.NONE
    ends = [slow.broker.partition(OFFSETS_TOPIC, index).high_watermark for index in (0, 1)]
    slow.hold()
    slow.send(deletion("old"), 5)
    slow.broker.clock.advance(1_000)
    now = [slow.broker.partition(OFFSETS_TOPIC, index).log.log_end_offset for index in (0, 1)]
    assert now == ends
    slow.sync()
    now = [slow.broker.partition(OFFSETS_TOPIC, index).log.log_end_offset for index in (0, 1)]
    assert sum(now) == sum(ends) + 1


def state_of(slow: SlowMetadata, transactional_id: str) -> State:
    coordinator = slow.broker.context.transactions
    listed = coordinator.submit_all(List)
    slow.broker.clock.advance(1)
    (found,) = [
        each for shard in listed.value if not isinstance(shard, KafkaError) for each in shard
    ]
    return State(found.state)


def test_a_transaction_leaves_out_a_topic_when_its_deletion_lasts() -> None:
    """Else a power cut could give it back without the marker, and open for ever."""
    slow = SlowMetadata()
    slow.sync()
    slow.broker.clock.advance(100)
    who = writer(slow.broker)
    assert who.write(b"a", topic="old").error_code == Error.NONE
    slow.hold()
    slow.send(deletion("old"), 5)
    slow.send(
        EndTxnRequest(
            transactional_id=who.id, producer_id=who.producer_id, producer_epoch=who.epoch,
            committed=True,
        ),
        5,
    )  # fmt: skip
    slow.broker.clock.advance(1_000)
    assert state_of(slow, who.id) is State.PREPARE_COMMIT
    slow.sync()
    slow.broker.clock.advance(1_000)
    assert state_of(slow, who.id) is State.COMPLETE_COMMIT
