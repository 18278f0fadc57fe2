"""Metadata records as bytes: uvarint frame version, uvarint type, uvarint version, message.

Owns that frame and the version in which each type is written (that of metadata.version 30). Never
knows what a record means. An unknown type or version is refused: a fold that skips records is not
the state that everybody else sees.
"""

from __future__ import annotations

from typing import Any, Final

from kafkalite.protocol import codec, messages
from kafkalite.protocol.errors import MalformedFrame

FRAME_VERSION = 1

# Type number -> (name of the message, version that is written, newest version that is read).
TYPES: Final[dict[int, tuple[str, int, int]]] = {
    0: ("RegisterBrokerRecord", 4, 4),
    1: ("UnregisterBrokerRecord", 0, 0),
    2: ("TopicRecord", 0, 0),
    3: ("PartitionRecord", 2, 2),
    4: ("ConfigRecord", 0, 0),
    5: ("PartitionChangeRecord", 2, 2),
    7: ("FenceBrokerRecord", 0, 0),
    8: ("UnfenceBrokerRecord", 0, 0),
    9: ("RemoveTopicRecord", 0, 0),
    10: ("DelegationTokenRecord", 0, 0),
    11: ("UserScramCredentialRecord", 0, 0),
    12: ("FeatureLevelRecord", 0, 0),
    14: ("ClientQuotaRecord", 0, 0),
    15: ("ProducerIdsRecord", 0, 0),
    17: ("BrokerRegistrationChangeRecord", 3, 3),
    18: ("AccessControlEntryRecord", 0, 0),
    19: ("RemoveAccessControlEntryRecord", 0, 0),
    20: ("NoOpRecord", 0, 0),
    21: ("ZkMigrationStateRecord", 0, 0),
    22: ("RemoveUserScramCredentialRecord", 0, 0),
    23: ("BeginTransactionRecord", 0, 0),
    24: ("EndTransactionRecord", 0, 0),
    25: ("AbortTransactionRecord", 0, 0),
    26: ("RemoveDelegationTokenRecord", 0, 0),
    27: ("RegisterControllerRecord", 0, 0),
    28: ("ClearElrRecord", 0, 0),
}
_NUMBERS: Final = {name: number for number, (name, _, _) in TYPES.items()}


class UnknownMetadata(Exception):
    """A record of a type or version that this broker cannot fold: it must not go on."""


def encode_record(message: Any) -> bytes:
    """The value of a metadata record."""
    number = _NUMBERS[type(message).__name__]
    version = TYPES[number][1]
    # All three are below 128, so each is one byte.
    return bytes((FRAME_VERSION, number, version)) + codec.encode(message, version)


def decode_record(value: bytes | memoryview) -> Any:
    """The message in a metadata record's value."""
    if len(value) < 3:
        raise MalformedFrame("a metadata record is shorter than its frame")
    # A byte of 128 or more begins a longer number, which no known type or version is.
    frame_version, number, version = value[0], value[1], value[2]
    if frame_version != FRAME_VERSION:
        raise UnknownMetadata(f"metadata frame version {frame_version}")
    if number not in TYPES or version > TYPES[number][2]:
        raise UnknownMetadata(f"metadata record type {number} version {version}")
    return codec.decode(messages.message_class(TYPES[number][0]), version, value, 3)
