"""What the codec does with single messages: bytes that Apache Kafka wrote, versions, records."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.protocol import codec
from kafkalite.protocol.messages import (
    ZERO_UUID,
    AlterClientQuotasRequest,
    ApiVersionsRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupMemberMetadataValue,
    FetchRequest,
    FetchResponse,
    HeartbeatResponse,
    MetadataRequest,
    ProduceRequest,
    RequestHeader,
)

# Each line was written by the Java classes of Apache Kafka 4.3.1.
WRITTEN_BY_KAFKA: list[tuple[str, Any, int, str]] = [
    (
        "compact strings",
        ApiVersionsRequest(client_software_name="me", client_software_version="1.0"),
        3,
        "036d6504312e3000",
    ),
    (
        "a client id that is not compact in a flexible header",
        RequestHeader(
            request_api_key=18, request_api_version=3, correlation_id=9, client_id="me"
        ),
        2,
        "001200030000000900026d6500",
    ),
    (
        "a string of two bytes for its length",
        MetadataRequest(topics=[MetadataRequest.Topic(name="é")]),
        0,
        "000000010002c3a9",
    ),
    ("a null array", MetadataRequest(topics=None), 1, "ffffffff"),
    (
        "a null struct",
        ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=3, assignment=None),
        0,
        "00000000000000026d0000000300000000ff00",
    ),
    (
        "a struct that could be null",
        ConsumerGroupHeartbeatResponse(
            member_id="m", assignment=ConsumerGroupHeartbeatResponse.Assignment()
        ),
        0,
        "00000000000000026d000000000000000001010000",
    ),
    (
        "a null struct in a tagged field",
        ConsumerGroupMemberMetadataValue(
            instance_id="", rack_id="", subscribed_topic_regex="", server_assignor="",
            classic_member_metadata=None,
        ),
        0,
        "010101010101ffffffff0101000100",
    ),
    (
        "a tagged field that keeps its default",
        ConsumerGroupMemberMetadataValue(
            instance_id="", rack_id="", subscribed_topic_regex="", server_assignor=""
        ),
        0,
        "010101010101ffffffff0100",
    ),
    (
        "a struct that could be null in a tagged field",
        ConsumerGroupMemberMetadataValue(
            instance_id="", rack_id="", subscribed_topic_regex="", server_assignor="",
            classic_member_metadata=ConsumerGroupMemberMetadataValue.ClassicMemberMetadata(
                session_timeout_ms=7
            ),
        ),
        0,
        "010101010101ffffffff0101000701000000070100",
    ),
    (
        "a struct in a tagged field, and null records",
        FetchResponse(
            responses=[
                FetchResponse.Response(
                    topic="t",
                    partitions=[
                        FetchResponse.Partition(
                            high_watermark=5,
                            current_leader=FetchResponse.CurrentLeader(
                                leader_id=1, leader_epoch=2
                            ),
                        )
                    ],
                )
            ]
        ),
        12,
        "00000000000000000000020274020000000000000000000000000005ffffffffffffffffffffffffffffffff01"
        "ffffffff000101090000000100000002000000",
    ),
    (
        "a float",
        AlterClientQuotasRequest(
            entries=[
                AlterClientQuotasRequest.Entry(
                    ops=[AlterClientQuotasRequest.Op(key="k", value=1.5)]
                )
            ]
        ),
        1,
        "020102026b3ff80000000000000000000000",
    ),
    (
        "tagged fields at two depths",
        FetchRequest(
            cluster_id="c",
            topics=[
                FetchRequest.Topic(
                    partitions=[
                        FetchRequest.Partition(
                            replica_directory_id=bytes([*[0] * 7, 1, *[0] * 7, 2])
                        )
                    ]
                )
            ],
        ),
        17,
        "00000000000000007fffffff0000000000ffffffff02000000000000000000000000000000000200000000"
        "ffffffff0000000000000000ffffffffffffffffffffffff00000000010010000000000000000100000000"
        "00000002" "0001010100020263",
    ),
]


@pytest.mark.parametrize(
    ("message", "version", "written"), [case[1:] for case in WRITTEN_BY_KAFKA],
    ids=[case[0] for case in WRITTEN_BY_KAFKA],
)
def test_bytes_are_those_of_apache_kafka(message: Any, version: int, written: str) -> None:
    assert codec.encode(message, version).hex() == written
    assert codec.decode(type(message), version, bytes.fromhex(written)) == message


def produce(records: Any) -> ProduceRequest:
    partition = ProduceRequest.PartitionData(index=3, records=records)
    return ProduceRequest(
        acks=-1, topic_data=[ProduceRequest.TopicData(name="t", partition_data=[partition])]
    )


def records_of(request: ProduceRequest) -> Any:
    return request.topic_data[0].partition_data[0].records


def test_a_field_that_the_version_lacks_is_dropped_and_then_defaulted() -> None:
    request = MetadataRequest(topics=[MetadataRequest.Topic(topic_id=b"i" * 16, name="t")])
    decoded = codec.decode(MetadataRequest, 9, codec.encode(request, 9))
    assert decoded.topics is not None
    assert decoded.topics[0].topic_id == ZERO_UUID
    assert decoded.topics[0].name == "t"


def test_records_are_a_view_that_writes_through_to_the_frame() -> None:
    frame = bytearray(codec.encode(produce(b"batch"), 9))
    records = records_of(codec.decode(ProduceRequest, 9, frame))
    assert isinstance(records, memoryview)
    records[0:1] = b"B"
    assert b"Batch" in frame


@pytest.mark.parametrize("size", [5, 100_000])
@pytest.mark.parametrize("as_view", [False, True])
def test_records_are_not_copied_whatever_the_frame_is(size: int, as_view: bool) -> None:
    whole = bytearray(b"head" + codec.encode(produce(bytes(size)), 9))
    frame = memoryview(whole)[2:] if as_view else whole
    request = codec.decode(ProduceRequest, 9, frame, 2 if as_view else 4)
    records = records_of(request)
    assert (request.topic_data[0].name, len(records)) == ("t", size)
    records[size - 1] = 0xAB
    assert whole[-4] == 0xAB


def parts_of(message: Any, version: int) -> list[Any]:
    parts: list[Any] = []
    codec.encoder(type(message), version)(message, parts)
    return parts


@pytest.mark.parametrize("version", [0, 3, 9, 12])
def test_an_unread_file_range_stays_a_part_of_its_own(version: int) -> None:
    class Range:
        def __len__(self) -> int:
            return 5

    part = Range()
    parts = parts_of(produce(part), version)
    assert parts.count(part) == 1
    joined = b"".join(b"batch" if made is part else made for made in parts)
    assert joined == codec.encode(produce(b"batch"), version)
    with pytest.raises(ValueError, match="ProduceRequest"):
        codec.encode(produce(part), version)


def test_a_list_of_parts_counts_as_their_bytes() -> None:
    split = [b"bat", memoryview(b"ch")]
    assert codec.encode(produce(split), 9) == codec.encode(produce(b"batch"), 9)
    assert split[1] in parts_of(produce(split), 9)


@pytest.mark.parametrize(
    "message",
    [
        HeartbeatResponse(error_code=40_000),
        HeartbeatResponse(throttle_time_ms=None),  # type: ignore[arg-type]
        ApiVersionsRequest(client_software_name=None),  # type: ignore[arg-type]
        ApiVersionsRequest(client_software_name="x" * 32_768),
        ApiVersionsRequest(client_software_name="\ud800"),
        FetchRequest(topics=None),  # type: ignore[arg-type]
        FetchRequest(topics=[None]),  # type: ignore[list-item]
        FetchRequest(topics=[FetchRequest.Topic(topic_id=b"short")]),
        FetchRequest(replica_state=None),  # type: ignore[arg-type]
    ],
)
def test_what_has_no_place_on_the_wire_is_our_mistake(message: Any) -> None:
    version = message.SPEC.versions[-1]
    with pytest.raises(ValueError, match=r"\w"):
        codec.encode(message, version)


def test_a_null_that_only_later_versions_know_is_refused_in_earlier_ones() -> None:
    with pytest.raises(ValueError, match="MetadataRequest v0"):
        codec.encode(MetadataRequest(topics=None), 0)


@pytest.mark.parametrize("version", [-1, 5])
def test_a_version_that_is_not_there(version: int) -> None:
    with pytest.raises(ValueError, match=f"HeartbeatResponse has no version {version}"):
        codec.encode(HeartbeatResponse(), version)
    with pytest.raises(ValueError, match=f"HeartbeatResponse has no version {version}"):
        codec.decode(HeartbeatResponse, version, b"")
