"""Produce requests as clients send them, and what is read in their answers."""

from __future__ import annotations

import struct
from typing import Any

from crc32c import crc32c

from kafkalite.protocol.messages import ProduceRequest
from tests.unit.handlers.whole_broker import WholeBroker, records

TopicData, PartitionData = ProduceRequest.TopicData, ProduceRequest.PartitionData


def request(
    batch: Any, *, acks: int = -1, topic: str = "t", index: int = 0, **fields: Any
) -> ProduceRequest:
    data = TopicData(name=topic, partition_data=[PartitionData(index=index, records=batch)])
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=[data], **fields)


def only(response: Any) -> Any:
    (topic,) = response.responses
    (answer,) = topic.partition_responses
    return answer


def produce(broker: WholeBroker, batch: Any, version: int = 9, **fields: Any) -> Any:
    return only(broker.ask(request(batch, **fields), version))


def batch_of(broker: WholeBroker, *values: bytes, **fields: Any) -> Any:
    return records(values or (b"v",), timestamp=fields.pop("timestamp", broker.now_ms), **fields)


def by_producer(broker: WholeBroker, sequence: int, count: int = 1, epoch: int = 0) -> Any:
    values = [b"%d" % number for number in range(sequence, sequence + count)]
    return batch_of(
        broker, *values, producer_id=9, producer_epoch=epoch, base_sequence=sequence
    )


def with_checksum(batch: Any) -> Any:
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return batch
