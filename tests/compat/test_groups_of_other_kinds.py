"""Share and streams groups in a directory that both brokers serve in turn.

Each goes on with the groups that the other one left, and answers about them as it does. These tests
name the brokers they start.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AddOffsetsToTxnRequest,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DescribeGroupsRequest,
    EndTxnRequest,
    HeartbeatRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
from tests.compat import brokers
from tests.compat.admin_peer import GROUP, SET, Admin
from tests.compat.brokers import APACHE_KAFKA, KAFKALITE, Broker
from tests.out_and_in.asking import TRANSACTION, Asker
from tests.out_and_in.other_groups import ShareMember, StreamsMember

# All groups in one partition: what harms one of them harms all.
ONE_PARTITION = {"offsets.topic.num.partitions": "1", "offsets.topic.segment.bytes": "1048576"}
TOPIC, RECORDS = "orders", 60
SHARE_GROUP, STREAMS_GROUP, DESERTED = "sharers", "streamers", "deserted"
COMPLAINT = re.compile(r"^.* (WARN|ERROR) .*(?:Coordinator|__consumer_offsets).*$", re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "broker"
    brokers.end(tmp_path / "broker", signal.SIGTERM)


def produce(broker: Broker, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for index in range(count):
        producer.produce(TOPIC, b"%d" % index, partition=index % 2)
    assert producer.flush(20) == 0


def make_groups(broker: Broker) -> bytes:
    """A share group that has read half, two streams groups with a commit each, without members."""
    with closing(Admin(broker)) as admin, closing(Asker(broker.port)) as asker:
        topic_id = bytes(admin.create(TOPIC, 2).topic_id)
        earliest = ("share.auto.offset.reset", SET, "earliest")
        assert admin.alter(GROUP, SHARE_GROUP, earliest).error_code == Error.NONE
        produce(broker, RECORDS)
        sharer = ShareMember(asker, SHARE_GROUP, TOPIC, topic_id, 1)
        assert sharer.read(RECORDS) == RECORDS
        sharer.leave()
        for number, group_id in enumerate((STREAMS_GROUP, DESERTED)):
            streamer = StreamsMember(asker, group_id, TOPIC, number + 2)
            streamer.join()
            streamer.commit(17)
            streamer.leave()
        return topic_id


def questions(group_id: str) -> list[tuple[Any, int]]:
    """What a classic member, a consumer, a committer and an administrator ask."""
    protocol = JoinGroupRequest.Protocol(name="range", metadata=bytes(10))
    join = JoinGroupRequest(
        group_id=group_id, session_timeout_ms=10_000, rebalance_timeout_ms=10_000,
        protocol_type="consumer", protocols=[protocol],
    )  # fmt: skip
    leaver = LeaveGroupRequest.Member(member_id="m")
    offset = OffsetCommitRequest.Partition(partition_index=0, committed_offset=5)
    topic = OffsetCommitRequest.Topic(name=TOPIC, partitions=[offset])
    wanted = OffsetFetchRequest.GroupTopic(name=TOPIC, partition_indexes=[0, 1])
    gone = OffsetDeleteRequest.Topic(
        name="no such topic", partitions=[OffsetDeleteRequest.Partition(partition_index=0)]
    )
    is_share = group_id == SHARE_GROUP
    return [
        *([(join, 9)] if is_share else []),
        (HeartbeatRequest(group_id=group_id, member_id="m", generation_id=1), 4),
        (SyncGroupRequest(group_id=group_id, member_id="m", generation_id=1), 5),
        (LeaveGroupRequest(group_id=group_id, members=[leaver]), 5),
        (ConsumerGroupHeartbeatRequest(
            group_id=group_id, member_id="m", member_epoch=0, rebalance_timeout_ms=5_000,
            subscribed_topic_names=[TOPIC], topic_partitions=[],
        ), 1),
        (ConsumerGroupHeartbeatRequest(group_id=group_id, member_id="m", member_epoch=1), 1),
        (ConsumerGroupHeartbeatRequest(group_id=group_id, member_id="m", member_epoch=-1), 1),
        *((OffsetCommitRequest(
            group_id=group_id, member_id=who, generation_id_or_member_epoch=epoch, topics=[topic]
        ), version) for who, epoch, version in [("m", 1, 9), ("m", 1, 7), ("m", -1, 9)]
           if is_share or epoch > 0),
        (OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id=group_id, topics=None)]), 8),
        (OffsetFetchRequest(groups=[OffsetFetchRequest.Group(
            group_id=group_id, member_id="m", member_epoch=1, topics=[wanted]
        )]), 9),
        (OffsetDeleteRequest(group_id=group_id, topics=[gone]), 0),
        (DescribeGroupsRequest(groups=[group_id]), 5),
        (DescribeGroupsRequest(groups=[group_id]), 6),
        (ConsumerGroupDescribeRequest(group_ids=[group_id]), 1),
    ]  # fmt: skip


def answers(broker: Broker) -> dict[str, Any]:
    with closing(Asker(broker.port)) as asker:
        told: dict[str, Any] = {}
        for group_id in (SHARE_GROUP, STREAMS_GROUP):
            asker.find(group_id)
            asker.patiently(HeartbeatRequest(group_id=group_id, member_id="m"), 4)
            for number, (request, version) in enumerate(questions(group_id)):
                name = f"{group_id} {number} {type(request).__name__} v{version}"
                told[name] = asker.ask(request, version)
            told[f"{group_id} transaction"] = commit_in_transaction(asker, group_id)
        told["groups"] = sorted(
            (one.group_id, one.group_type, one.protocol_type, one.group_state)
            for one in asker.ask(ListGroupsRequest(), 5).groups
        )
        return told


def commit_in_transaction(asker: Asker, group_id: str) -> int:
    """The code that a transactional commit of a member gets; the transaction is aborted."""
    name = f"to {group_id}"
    asker.find(name, TRANSACTION)
    init = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    who = asker.patiently(init, 4)
    identity = {
        "transactional_id": name, "producer_id": who.producer_id,
        "producer_epoch": who.producer_epoch,
    }  # fmt: skip
    asker.patiently(AddOffsetsToTxnRequest(group_id=group_id, **identity), 3)
    offset = TxnOffsetCommitRequest.Partition(partition_index=0, committed_offset=5)
    request = TxnOffsetCommitRequest(
        group_id=group_id, generation_id=1, member_id="m",
        topics=[TxnOffsetCommitRequest.Topic(name=TOPIC, partitions=[offset])], **identity,
    )  # fmt: skip
    code = asker.patiently(
        request, 3, lambda got: int(got.topics[0].partitions[0].error_code)
    ).topics[0].partitions[0].error_code  # fmt: skip
    asker.patiently(EndTxnRequest(committed=False, **identity), 3)
    return int(code)


def consume_in_new_groups(broker: Broker) -> None:
    """Writes of ours into the same partition: a group of each kind, and a commit from outside."""
    with closing(Asker(broker.port)) as asker:
        enter = ConsumerGroupHeartbeatRequest(
            group_id="consumers", member_id="m", member_epoch=0, rebalance_timeout_ms=5_000,
            subscribed_topic_names=[TOPIC], topic_partitions=[],
        )  # fmt: skip
        assert asker.patiently(enter, 1).error_code == Error.NONE
        offset = OffsetCommitRequest.Partition(partition_index=0, committed_offset=5)
        topic = OffsetCommitRequest.Topic(name=TOPIC, partitions=[offset])
        for group_id in ("tool", STREAMS_GROUP):
            commit = OffsetCommitRequest(group_id=group_id, topics=[topic])
            (got,) = asker.ask(commit, 9).topics
            assert got.partitions[0].error_code == Error.NONE
        leave = ConsumerGroupHeartbeatRequest(
            group_id="consumers", member_id="m", member_epoch=-1
        )
        assert asker.patiently(leave, 1).error_code == Error.NONE


def make_room(asker: Asker) -> None:
    """A classic member joins the deserted streams group."""
    protocol = JoinGroupRequest.Protocol(name="range", metadata=bytes(10))
    join = JoinGroupRequest(
        group_id=DESERTED, session_timeout_ms=10_000, rebalance_timeout_ms=10_000,
        protocol_type="consumer", protocols=[protocol],
    )  # fmt: skip
    assert asker.ask(join, 3).error_code == Error.NONE


def committed(asker: Asker, group_id: str) -> dict[int, int]:
    request = OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id=group_id, topics=None)])
    (group,) = asker.patiently(request, 8, lambda got: int(got.groups[0].error_code)).groups
    return {
        one.partition_index: one.committed_offset
        for topic in group.topics
        for one in topic.partitions
    }


def goes_on(asker: Asker, member: StreamsMember) -> None:
    """The same member, in the same epoch and with the same tasks, at another broker."""
    epoch, partitions = member.epoch, member.partitions
    member.asker = asker
    asker.find(STREAMS_GROUP)
    member.beat()
    assert (member.epoch, member.partitions) == (epoch, partitions)
    member.commit(20)
    assert committed(asker, STREAMS_GROUP) == {0: 20, 1: 20}
    member.leave()


@pytest.mark.timeout(240)
def test_share_and_streams_groups_outlast_a_stay_with_the_other_broker(folder: Path) -> None:
    broker = brokers.start(APACHE_KAFKA, folder, ONE_PARTITION)
    topic_id = make_groups(broker)
    told = answers(broker)
    broker.stop()

    broker = brokers.start(KAFKALITE, folder, ONE_PARTITION)
    told_here = answers(broker)
    assert {name: told_here[name] for name in told} == told
    consume_in_new_groups(broker)
    produce(broker, 10)
    with closing(Asker(broker.port)) as asker:
        make_room(asker)
        sharer = ShareMember(asker, SHARE_GROUP, TOPIC, topic_id, 8)
        assert sharer.read(10) == 10, "the share group reads what it had not read"
        sharer.leave()
        streamer = StreamsMember(asker, STREAMS_GROUP, TOPIC, 4)
        streamer.join()
        streamer.commit(19)
        # It stays, and is known to the next broker.
    produce(broker, 20)
    broker.stop()

    at = len(broker.log())
    broker = brokers.start(APACHE_KAFKA, folder, ONE_PARTITION)
    with closing(Asker(broker.port)) as asker:
        assert committed(asker, STREAMS_GROUP) == {0: 19, 1: 19}
        goes_on(asker, streamer)
        assert committed(asker, DESERTED) == {0: 17, 1: 17}
        sharer = ShareMember(asker, SHARE_GROUP, TOPIC, topic_id, 9)
        assert sharer.read(20) == 20, "the share group reads what it had not read"
        sharer.leave()
        kinds = {one.group_id: one.group_type for one in asker.ask(ListGroupsRequest(), 5).groups}
    assert kinds == {
        SHARE_GROUP: "share", STREAMS_GROUP: "streams", DESERTED: "classic",
        "consumers": "consumer", "tool": "classic",
    }  # fmt: skip
    assert COMPLAINT.findall(broker.log()[at:]) == []
