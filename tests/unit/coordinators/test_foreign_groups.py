"""Groups that this broker does not serve keep their records and their ids, whoever asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kafkalite
from kafkalite.coordinators.asked import State
from kafkalite.coordinators.groups import events
from kafkalite.coordinators.groups.records import _NAMES
from kafkalite.env.later import Later
from kafkalite.protocol import codec, messages
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    GroupMetadataKey,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitKey,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
from kafkalite.records.record import BatchBuilder
from tests.unit.coordinators.stage import Stage

OTHER, TOPIC = "others", "orders"
SPECS = Path(kafkalite.__file__).parents[2] / "protocol_specs/records/consumer_offsets"

# As Apache Kafka 4.3.1 left them when the last member had gone: of a share group `sg` …
SHARE = {
    "000f00027367": "00000102ab553a49a5ea4d62a1ba00c428f0020c0274030000000000000001000100",
    "000c00027367": "000000000003010008000001a1f210bbe0",
    "000b00027367": "000000000004000000000000000000",
}
# … and of a streams group `st`, with an offset that it committed.
STREAMS = {
    "001700027374": "00000000000002023002027401010101010000",
    "001400027374": "000000000002010008000001a1f210c81f",
    "00010002737400017400000000": (
        "00040000000000000011ffffffff057461736b000001a1f210c86e"
        "010010ab553a49a5ea4d62a1ba00c428f0020c"
    ),
    "001100027374": (
        "000000000003203fc004dfa3410102000400000000011902156e756d2e7374616e6462792e7265706c69636173"
        "023000"
    ),
}


def stage_with(*rows: tuple[bytes, bytes | None]) -> Stage:
    """A coordinator that has read these records."""
    stage = Stage()
    for key, value in rows:
        builder = BatchBuilder()
        builder.append(1_000, key, value)
        stage.partition.log.append(memoryview(builder.build()), 0)
    stage.partition.commit()
    stage.restart()
    assert stage.runtime.state is State.ACTIVE
    return stage


def stage_after(left: dict[str, str]) -> Stage:
    return stage_with(*((bytes.fromhex(key), bytes.fromhex(left[key])) for key in left))


def key(kind: int, group_id: str = OTHER, rest: bytes = b"") -> bytes:
    name = group_id.encode()
    return kind.to_bytes(2, "big", signed=True) + len(name).to_bytes(2, "big") + name + rest


def foreign_kinds() -> list[int]:
    """Every type of Apache Kafka's that is not served here, and some that nobody has yet."""
    found = set()
    for spec in SPECS.glob("*.spec"):
        name = "".join(word.title() for word in spec.stem.split("_"))
        found.add(getattr(messages, f"{name}Key").TYPE)
    return [*sorted(found - set(_NAMES)), 24, 99, -5]


def joining(group_id: str, member_id: str = "") -> events.Join:
    request = JoinGroupRequest(
        group_id=group_id, session_timeout_ms=10_000, rebalance_timeout_ms=10_000,
        member_id=member_id, protocol_type="consumer",
        protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"")],
    )  # fmt: skip
    return events.Join(request, 3, "client", "/127.0.0.1")


def entering(group_id: str, epoch: int) -> events.ConsumerHeartbeat:
    is_first = epoch == 0
    request = ConsumerGroupHeartbeatRequest(
        group_id=group_id, member_id="m", member_epoch=epoch,
        rebalance_timeout_ms=5_000 if is_first else -1,
        instance_id="i" if epoch == -2 else None,
        subscribed_topic_names=[TOPIC] if is_first else None,
        topic_partitions=[] if is_first else None,
    )  # fmt: skip
    return events.ConsumerHeartbeat(request, 1, "client", "/127.0.0.1")


def committing(group_id: str, epoch: int, member_id: str) -> events.CommitOffsets:
    partition = OffsetCommitRequest.Partition(partition_index=0, committed_offset=5)
    topic = OffsetCommitRequest.Topic(name=TOPIC, partitions=[partition])
    request = OffsetCommitRequest(
        group_id=group_id, generation_id_or_member_epoch=epoch, member_id=member_id, topics=[topic]
    )
    return events.CommitOffsets(request, 9)


def committing_in_transaction(group_id: str, epoch: int) -> events.CommitTransactionalOffsets:
    partition = TxnOffsetCommitRequest.Partition(partition_index=0, committed_offset=5)
    request = TxnOffsetCommitRequest(
        transactional_id="x", group_id=group_id, producer_id=7, producer_epoch=0,
        generation_id=epoch,
        topics=[TxnOffsetCommitRequest.Topic(name=TOPIC, partitions=[partition])],
    )  # fmt: skip
    return events.CommitTransactionalOffsets(request, 3)


def fetching(group_id: str, member_id: str | None = None, epoch: int = -1) -> events.FetchOffsets:
    topic = OffsetFetchRequest.GroupTopic(name="t", partition_indexes=[0])
    group = OffsetFetchRequest.Group(
        group_id=group_id, member_id=member_id, member_epoch=epoch, topics=[topic]
    )
    return events.FetchOffsets(group, require_stable=True)


def deleting_offsets(group_id: str) -> events.DeleteOffsets:
    partition = OffsetDeleteRequest.Partition(partition_index=0)
    topic = OffsetDeleteRequest.Topic(name=TOPIC, partitions=[partition])
    return events.DeleteOffsets(OffsetDeleteRequest(group_id=group_id, topics=[topic]))


def everything_asked_of(group_id: str) -> list[Any]:
    leaver = LeaveGroupRequest.Member(member_id="m")
    return [
        joining(group_id),
        joining(group_id, "m"),
        events.Sync(SyncGroupRequest(group_id=group_id, member_id="m", generation_id=1)),
        events.Heartbeat(HeartbeatRequest(group_id=group_id, member_id="m", generation_id=1)),
        events.Leave(LeaveGroupRequest(group_id=group_id, members=[leaver])),
        *(entering(group_id, epoch) for epoch in (0, 1, -1, -2)),
        committing(group_id, -1, ""),
        committing(group_id, 1, "m"),
        committing_in_transaction(group_id, -1),
        committing_in_transaction(group_id, 1),
        fetching(group_id),
        fetching(group_id, "m", 1),
        deleting_offsets(group_id),
        events.DescribeGroups([group_id], 5),
        events.DescribeConsumerGroups([group_id]),
        events.DeleteGroups([group_id]),
        events.TopicsChanged([TOPIC]),
    ]


def asked(stage: Stage, event: Any) -> Any:
    later: Later[Any] = stage.runtime.submit(event)
    stage.clock.advance(10)
    assert later.is_resolved
    return later.value


def code_of(answer: Any) -> int:
    return answer.code if isinstance(answer, KafkaError) else answer.error_code


def listed(stage: Stage) -> dict[str, tuple[str, str, str]]:
    return {
        one.group_id: (one.group_type, one.protocol_type, one.group_state)
        for one in asked(stage, events.ListGroups(frozenset(), frozenset()))
    }


def log_of(stage: Stage) -> list[tuple[bytes, bytes | None]]:
    return [
        (bytes(one.key), None if one.value is None else bytes(one.value))
        for one in stage.partition.log.records()
    ]


def without_offsets(stage: Stage) -> list[tuple[bytes, bytes | None]]:
    return [row for row in log_of(stage) if row[0][:2] != b"\0\1"]


@pytest.mark.parametrize("kind", foreign_kinds())
def test_whatever_is_asked_of_a_group_of_another_kind_its_records_stay(kind: int) -> None:
    stage = stage_with((key(kind, rest=b"\0\1m"), b"\0\0?"))
    before = log_of(stage)
    for event in everything_asked_of(OTHER):
        asked(stage, event)
        assert without_offsets(stage) == before, event
    stage.clock.advance(30 * 86_400_000)
    assert without_offsets(stage) == before
    assert OTHER in listed(stage)
    assert asked(stage, events.DeleteGroups([OTHER]))[0].error_code != Error.NONE


def test_a_share_group_is_listed_and_its_id_is_taken() -> None:
    stage = stage_after(SHARE)
    assert listed(stage) == {"sg": ("share", "share", "Empty")}
    assert code_of(asked(stage, joining("sg"))) == Error.INCONSISTENT_GROUP_PROTOCOL
    assert code_of(asked(stage, entering("sg", 0))) == Error.GROUP_ID_NOT_FOUND
    assert code_of(asked(stage, committing("sg", -1, ""))) == Error.GROUP_ID_NOT_FOUND
    (described,) = asked(stage, events.DescribeGroups(["sg"], 6))
    assert described.error_message == "Group sg is not a classic group."
    (described,) = asked(stage, events.DescribeConsumerGroups(["sg"]))
    assert described.error_message == "Group sg is not a consumer group."
    (deleted,) = asked(stage, events.DeleteGroups(["sg"]))
    assert deleted.error_code == Error.NONE
    assert listed(stage) == {}


def test_a_group_whose_records_are_deleted_leaves_its_id() -> None:
    stage = stage_after(SHARE)
    rows = [*log_of(stage), *((bytes.fromhex(one), None) for one in SHARE)]
    stage = stage_with(*rows)
    assert listed(stage) == {}
    assert asked(stage, entering("sg", 0)).member_epoch > 0


def test_offsets_of_a_streams_group_are_kept_for_their_time_and_may_be_set_while_it_is_empty() -> (
    None
):
    stage = stage_after(STREAMS)
    assert listed(stage) == {"st": ("streams", "streams", "Empty")}
    (topic,) = asked(stage, committing("st", -1, "")).topics
    assert topic.partitions[0].error_code == Error.NONE
    assert asked(stage, fetching("st")).topics[0].partitions[0].committed_offset == 17
    stage.restart()
    assert listed(stage) == {"st": ("streams", "streams", "Empty")}
    stage.clock.advance(30 * 86_400_000)
    assert listed(stage) == {}


def test_what_nobody_reads_of_a_streams_group_takes_no_id() -> None:
    """Apache Kafka 4.1 kept partitions in records of a type of their own."""
    assert listed(stage_with((key(18), b"\0\0"))) == {}


def test_an_empty_streams_group_makes_room_for_a_classic_one_with_its_offsets() -> None:
    stage = stage_after(STREAMS)
    stage.runtime.submit(joining("st"))
    stage.clock.advance(10)
    assert listed(stage)["st"][0] == "classic"
    stage.restart()
    assert listed(stage)["st"][0] == "classic"
    assert asked(stage, fetching("st")).topics[0].partitions[0].committed_offset == 17
    live = dict(log_of(stage))
    assert [one for one in live if one[:2] > b"\0\3" and live[one] is not None] == []


def test_an_empty_streams_group_is_deleted_on_request_with_all_it_has() -> None:
    stage = stage_after(STREAMS)
    (deleted,) = asked(stage, events.DeleteGroups(["st"]))
    assert deleted.error_code == Error.NONE
    assert set(dict(log_of(stage)).values()) == {None}
    assert listed(stage) == {}
    # Apache Kafka deletes the group's epoch and its topology last.
    assert [one[:2] for one, _ in log_of(stage)[-2:]] == [b"\0\x11", b"\0\x17"]


@pytest.mark.parametrize(
    ("newer_key", "value"),
    [
        (b"\0\2" + codec.encode(GroupMetadataKey(group=OTHER), 0), b"\0\x09?"),
        (
            b"\0\1" + codec.encode(OffsetCommitKey(group=OTHER, topic="t", partition=0), 0),
            b"\0\x09?",
        ),
        (b"\0\2" + codec.encode(GroupMetadataKey(group=OTHER), 0), b"\0\3cut"),
    ],
    ids=["newer group", "newer offset", "cut off"],
)
def test_a_value_that_cannot_be_read_concerns_its_group_alone(
    newer_key: bytes, value: bytes
) -> None:
    stage = stage_with((newer_key, value))
    before = log_of(stage)
    for event in everything_asked_of(OTHER):
        answer = asked(stage, event)
        if hasattr(event, "request"):
            assert code_of(answer) == Error.NOT_COORDINATOR, event
        assert log_of(stage) == before, event
    assert asked(stage, entering("mine", 0)).member_epoch > 0
    # Who reads it again after the other broker wrote something readable serves it.
    stage = stage_with((newer_key, value), (newer_key, None))
    assert asked(stage, entering(OTHER, 0)).member_epoch > 0


def test_a_group_of_ours_with_records_of_an_unknown_type_is_served() -> None:
    """A newer broker may keep more about a consumer group; who does not know it passes it over."""
    stage = stage_with()
    assert asked(stage, entering("mine", 0)).member_epoch > 0
    rows = [*log_of(stage), (key(99, "mine"), b"\0\0")]
    stage = stage_with(*rows)
    assert listed(stage)["mine"][0] == "consumer"
    assert asked(stage, entering("mine", 0)).member_epoch > 0
