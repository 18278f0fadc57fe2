"""Metadata records as bytes: uvarint frame version, uvarint type, uvarint version, message.

Owns that frame, and the version in which each type is written at each metadata.version. Never
knows what a record means. An unknown type or version is refused: a fold that skips records is not
the state that everybody else sees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kafkalite.coordinators.effects import Record
from kafkalite.protocol import codec, messages
from kafkalite.protocol.errors import MalformedFrame

FRAME_VERSION = 1

# Type number -> (name of the message, newest version that is read).
TYPES: Final[dict[int, tuple[str, int]]] = {
    0: ("RegisterBrokerRecord", 4),
    1: ("UnregisterBrokerRecord", 0),
    2: ("TopicRecord", 0),
    3: ("PartitionRecord", 2),
    4: ("ConfigRecord", 0),
    5: ("PartitionChangeRecord", 2),
    7: ("FenceBrokerRecord", 0),
    8: ("UnfenceBrokerRecord", 0),
    9: ("RemoveTopicRecord", 0),
    10: ("DelegationTokenRecord", 0),
    11: ("UserScramCredentialRecord", 0),
    12: ("FeatureLevelRecord", 0),
    14: ("ClientQuotaRecord", 0),
    15: ("ProducerIdsRecord", 0),
    17: ("BrokerRegistrationChangeRecord", 3),
    18: ("AccessControlEntryRecord", 0),
    19: ("RemoveAccessControlEntryRecord", 0),
    20: ("NoOpRecord", 0),
    21: ("ZkMigrationStateRecord", 0),
    22: ("RemoveUserScramCredentialRecord", 0),
    23: ("BeginTransactionRecord", 0),
    24: ("EndTransactionRecord", 0),
    25: ("AbortTransactionRecord", 0),
    26: ("RemoveDelegationTokenRecord", 0),
    27: ("RegisterControllerRecord", 0),
    28: ("ClearElrRecord", 0),
}
_NUMBERS: Final = {name: number for number, (name, _) in TYPES.items()}
_NEWEST: Final = dict(TYPES.values())

# Levels of metadata.version from which on more can be said.
MIGRATION, SCRAM, METADATA_TRANSACTIONS, DELEGATION_TOKENS = 8, 11, 13, 14
CONTROLLER_REGISTRATION = 15
DIRECTORIES, ELIGIBLE_LEADER_REPLICAS, CORDONED_DIRECTORIES = 17, 23, 30


def _registration(message: object, level: int) -> int:
    if level >= CORDONED_DIRECTORIES:
        return 4
    if level >= DIRECTORIES:
        return 3
    return 2 if level >= MIGRATION else 1


def _partition(message: object, level: int) -> int:
    if level >= ELIGIBLE_LEADER_REPLICAS:
        return 2
    return 1 if level >= DIRECTORIES else 0


def _registration_change(message: messages.BrokerRegistrationChangeRecord, level: int) -> int:
    """The oldest version that can say it; what a level does not know is not said."""
    if message.cordoned_log_dirs is not None and level >= CORDONED_DIRECTORIES:
        return 3
    if message.log_dirs and level >= DIRECTORIES:
        return 2
    return 1 if message.in_controlled_shutdown else 0


# The version in which a record is written at a level; those that are not here have only one.
_VERSIONS: Final[dict[str, Callable[[Any, int], int]]] = {
    "RegisterBrokerRecord": _registration,
    "PartitionRecord": _partition,
    "PartitionChangeRecord": _partition,
    "BrokerRegistrationChangeRecord": _registration_change,
}


class UnknownMetadata(Exception):
    """A record of a type or version that this broker cannot fold: it must not go on."""


def written_version(message: object, level: int) -> int:
    """The version in which a controller writes this record at a level of metadata.version."""
    find = _VERSIONS.get(type(message).__name__)
    return 0 if find is None else find(message, level)


def encode_record(message: object, level: int) -> bytes:
    """The value of a metadata record; a field that the level does not know is left out."""
    version = written_version(message, level)
    # All three are below 128, so each is one byte.
    start = bytes((FRAME_VERSION, _NUMBERS[type(message).__name__], version))
    return start + codec.encode(message, version)


def as_record(message: object, level: int) -> Record:
    """A record of the log. What is folded of it is what was written, and no more than that."""
    is_whole = written_version(message, level) == _NEWEST[type(message).__name__]
    return Record(None, encode_record(message, level), message if is_whole else None)


def read_record(value: bytes | memoryview) -> Any:
    """As `decode_record`, of a record that somebody else may have written: raises UnknownMetadata
    for one that says more than is understood, since no snapshot of ours would say it again."""
    message = decode_record(value)
    version = value[2]
    if 3 + len(codec.encode(message, version)) == len(value):
        return message
    # Something was left out: a default that was spelled out, or a field that is not known. Telling
    # them apart takes long, and happens to nobody but who comes from a newer release.
    from kafkalite.protocol.interpreted import unknown_tags

    tags = unknown_tags(type(message), version, value, 3)
    if tags:
        name = type(message).__name__
        raise UnknownMetadata(f"a {name} of version {version} with a tagged field {tags[0]}")
    return message


def decode_record(value: bytes | memoryview) -> Any:
    """The message in a metadata record's value."""
    if len(value) < 3:
        raise MalformedFrame("a metadata record is shorter than its frame")
    # A byte of 128 or more begins a longer number, which no known type or version is.
    frame_version, number, version = value[0], value[1], value[2]
    if frame_version != FRAME_VERSION:
        raise UnknownMetadata(f"a metadata record with a frame of version {frame_version}")
    if number not in TYPES or version > TYPES[number][1]:
        raise UnknownMetadata(f"a metadata record of type {number}, version {version}")
    return codec.decode(messages.message_class(TYPES[number][0]), version, value, 3)
