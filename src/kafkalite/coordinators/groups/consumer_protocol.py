"""What classic consumers put into the opaque bytes of JoinGroup and SyncGroup.

Owns the reading and writing of the embedded consumer protocol: a version, then the message. A
newer version than we know reads as the newest we know, since versions only append fields.
Subscriptions come from peers: malformed ones are None, never an exception.
"""

from __future__ import annotations

from typing import TypeVar

from kafkalite.env.slicing import Steps, finish
from kafkalite.protocol import codec
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription

T = TypeVar("T")

NEWEST_VERSION = 3
# Of an assignment, written in one step.
TOPICS_PER_STEP = 64


def subscription_topics(metadata: bytes) -> list[str] | None:
    """Only the first field is read, which all versions share."""
    if read_version(metadata) is None:
        return None
    try:
        subscription, _ = codec.decode_prefix(ConsumerProtocolSubscription, 0, metadata, 2)
    except MalformedFrame:
        return None
    topics: list[str] = subscription.topics
    return topics


def read_subscription(metadata: bytes) -> Steps[ConsumerProtocolSubscription | None]:
    return (yield from _read_in_steps(ConsumerProtocolSubscription, metadata))


def read_assignment(assignment: bytes) -> ConsumerProtocolAssignment | None:
    return finish(read_assignment_in_steps(assignment))


def read_assignment_in_steps(assignment: bytes) -> Steps[ConsumerProtocolAssignment | None]:
    return (yield from _read_in_steps(ConsumerProtocolAssignment, assignment))


def _read_in_steps(cls: type[T], data: bytes) -> Steps[T | None]:
    version = read_version(data)
    if version is None:
        return None
    try:
        message, _ = yield from codec.decoder_in_steps(cls, min(version, NEWEST_VERSION))(data, 2)
    except MalformedFrame:
        return None
    return message


def read_version(metadata: bytes) -> int | None:
    if len(metadata) < 2:
        return None
    version = int.from_bytes(metadata[:2], "big", signed=True)
    return None if version < 0 else version


def write_assignment(partitions: dict[str, list[int]], version: int) -> bytes:
    return finish(write_assignment_in_steps(partitions, version))


def write_assignment_in_steps(partitions: dict[str, list[int]], version: int) -> Steps[bytes]:
    version = min(version, NEWEST_VERSION)
    message = ConsumerProtocolAssignment(assigned_partitions=[])
    for topic, indexes in partitions.items():
        message.assigned_partitions.append(
            ConsumerProtocolAssignment.AssignedPartition(topic=topic, partitions=indexes)
        )
        if len(message.assigned_partitions) % TOPICS_PER_STEP == 0:
            yield
    parts = [version.to_bytes(2, "big")]
    yield from codec.encoder_in_steps(ConsumerProtocolAssignment, version)(message, parts)
    return b"".join(parts)
