"""What classic consumers put into the opaque bytes of JoinGroup and SyncGroup.

Owns the reading and writing of the embedded consumer protocol: a version, then the message. A
newer version than we know reads as the newest we know, since versions only append fields.
Subscriptions come from peers: malformed ones are None, never an exception.
"""

from __future__ import annotations

from kafkalite.protocol import codec
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription

NEWEST_VERSION = 3


def subscription_topics(metadata: bytes) -> list[str] | None:
    """Only the first field is read, which all versions share."""
    subscription = _read_subscription(metadata, 0)
    return None if subscription is None else subscription.topics


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription | None:
    version = read_version(metadata)
    if version is None:
        return None
    return _read_subscription(metadata, min(version, NEWEST_VERSION))


def read_version(metadata: bytes) -> int | None:
    if len(metadata) < 2:
        return None
    version = int.from_bytes(metadata[:2], "big", signed=True)
    return None if version < 0 else version


def _read_subscription(metadata: bytes, version: int) -> ConsumerProtocolSubscription | None:
    if read_version(metadata) is None:
        return None
    try:
        message, _ = codec.decode_prefix(ConsumerProtocolSubscription, version, metadata, 2)
    except MalformedFrame:
        return None
    return message


def read_assignment(assignment: bytes) -> ConsumerProtocolAssignment | None:
    version = read_version(assignment)
    if version is None:
        return None
    version = min(version, NEWEST_VERSION)
    try:
        message, _ = codec.decode_prefix(ConsumerProtocolAssignment, version, assignment, 2)
    except MalformedFrame:
        return None
    return message


def write_assignment(partitions: dict[str, list[int]], version: int) -> bytes:
    version = min(version, NEWEST_VERSION)
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.AssignedPartition(topic=topic, partitions=indexes)
            for topic, indexes in partitions.items()
        ]
    )
    return version.to_bytes(2, "big") + codec.encode(message, version)
