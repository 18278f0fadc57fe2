"""Requests of which rows of the table of allowed differences speak, by API and by what is odd."""

from __future__ import annotations

from typing import Any

from kafkalite.protocol.messages import (
    AlterConfigsRequest,
    ConsumerGroupHeartbeatRequest,
    FetchRequest,
    JoinGroupRequest,
    OffsetDeleteRequest,
    ProduceRequest,
    StreamsGroupHeartbeatRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from tests.differential.batches import TIMESTAMP, Batch

_NOBODY = -7


def _produced(records: Batch | None) -> ProduceRequest:
    data = ProduceRequest.PartitionData(index=0, records=records)
    return ProduceRequest(
        topic_data=[ProduceRequest.TopicData(name="apples", partition_data=[data])]
    )


def _marked(producer_id: int, *indexes: int) -> WriteTxnMarkersRequest:
    topic = WriteTxnMarkersRequest.Topic(name="apples", partition_indexes=list(indexes))
    marker = WriteTxnMarkersRequest.Marker(producer_id=producer_id, topics=[topic])
    return WriteTxnMarkersRequest(markers=[marker])


_PROTOCOL = JoinGroupRequest.Protocol(name="range", metadata=b"")
_RESOURCE = AlterConfigsRequest.Resource(resource_type=2, resource_name="apples")
_RECORD = (TIMESTAMP, None, b"value", ())

ODD_REQUESTS: dict[str, dict[str, Any]] = {
    "JoinGroup": {"a protocol twice": JoinGroupRequest(protocols=[_PROTOCOL, _PROTOCOL])},
    "ConsumerGroupHeartbeat": {
        "a pattern": ConsumerGroupHeartbeatRequest(subscribed_topic_regex="a.*")
    },
    "StreamsGroupHeartbeat": {
        "what it has": StreamsGroupHeartbeatRequest(
            member_epoch=5, active_tasks=[], standby_tasks=[], warmup_tasks=[]
        )
    },
    "Produce": {
        "null records": _produced(None),
        "an id without an epoch": _produced(Batch((_RECORD,), producer_id=5, epoch=-1)),
    },
    "WriteTxnMarkers": {
        "a partition twice": _marked(5, 0, 0),
        "a producer below -1": _marked(_NOBODY, 0),
        "a producer below -1, and nothing": WriteTxnMarkersRequest(
            markers=[*_marked(_NOBODY, 0).markers, WriteTxnMarkersRequest.Marker(topics=[])]
        ),
    },
    "AlterConfigs": {"a resource twice": AlterConfigsRequest(resources=[_RESOURCE, _RESOURCE])},
    "Fetch": {"an id of zeros": FetchRequest(topics=[FetchRequest.Topic(topic_id=bytes(16))])},
    "TxnOffsetCommit": {
        "a topic without partitions": TxnOffsetCommitRequest(
            topics=[TxnOffsetCommitRequest.Topic(name="name-3", partitions=[])]
        )
    },
    "OffsetDelete": {
        "a topic without partitions": OffsetDeleteRequest(
            topics=[OffsetDeleteRequest.Topic(name="name-4", partitions=[])]
        )
    },
}
