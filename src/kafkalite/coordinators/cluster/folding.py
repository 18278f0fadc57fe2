"""New states of partitions, worked out before their records are folded in.

Thousands of partitions in one batch become visible at once, as to clients of Apache Kafka; what
takes long about it is done beforehand, in steps. Owns nothing of the image and changes nothing.
"""

from __future__ import annotations

from typing import Any

from kafkalite.coordinators.cluster.image import (
    Image,
    PartitionState,
    PreparedPartition,
    changed_partition,
    new_partition,
)
from kafkalite.coordinators.cluster.records import decode_record
from kafkalite.coordinators.effects import Record
from kafkalite.env.slicing import Steps
from kafkalite.protocol.messages import ClearElrRecord, PartitionChangeRecord, PartitionRecord

_AT_ONCE = 16


def prepare(image: Image, records: list[Record]) -> Steps[list[Any]]:
    """What is to be folded in for these records, which nothing else may come before."""
    states: dict[tuple[bytes, int], PartitionState] = {}
    is_known = True  # what becomes of partitions before these records
    folded: list[Any] = []
    for number, record in enumerate(records):
        assert record.value is not None, "a metadata record without a value"
        message = record.decoded if record.decoded is not None else decode_record(record.value)
        if isinstance(message, ClearElrRecord):
            is_known = False
        state = _state_after(image, message, states) if is_known else None
        if state is not None:
            states[state.topic_id, state.index] = state
        folded.append(message if state is None else PreparedPartition(state))
        if (number + 1) % _AT_ONCE == 0:
            yield
    return folded


def _state_after(
    image: Image, message: Any, states: dict[tuple[bytes, int], PartitionState]
) -> PartitionState | None:
    """None for what is no partition's, and for what does not fit the image, whose fold says so."""
    if isinstance(message, PartitionRecord):
        return new_partition(message)
    if not isinstance(message, PartitionChangeRecord):
        return None
    old = states.get((message.topic_id, message.partition_id))
    if old is None:
        topic = image.by_id.get(message.topic_id)
        old = None if topic is None else topic.partitions.get(message.partition_id)
    return None if old is None else changed_partition(old, message)
