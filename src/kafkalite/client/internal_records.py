"""Reads the records of the internal topics: which message a key and a value are.

A key begins with its type and a value with its version, two bytes each; in the metadata log there
are no keys, and a value begins with frame version, type and version, one byte each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from kafkalite.client.rendering import Plain, plain_bytes, plain_message
from kafkalite.client.secrets import METADATA_TOPIC, without_secrets
from kafkalite.protocol import codec, messages, spec
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.records import control
from kafkalite.records.record import Record

DescribeRecord = Callable[[Record], dict[str, Plain]]

# Topic to the folder of its records' specs.
KEYED_TOPICS = {
    "__consumer_offsets": "consumer_offsets",
    "__transaction_state": "transaction_state",
    "__share_group_state": "share_group_state",
}
TOPICS = (*KEYED_TOPICS, METADATA_TOPIC)

_CONTROL_VALUES = {
    control.ControlType.ABORT: "EndTxnMarker",
    control.ControlType.COMMIT: "EndTxnMarker",
    control.ControlType.LEADER_CHANGE: "LeaderChangeMessage",
    control.ControlType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    control.ControlType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    control.ControlType.KRAFT_VERSION: "KRaftVersionRecord",
    control.ControlType.KRAFT_VOTERS: "VotersRecord",
}


def describer(topic: str | None) -> DescribeRecord:
    """What shows the key and value of this topic's records; of other topics as they stand."""
    if topic == METADATA_TOPIC:
        return _unless_malformed(_metadata_record, _size)
    if topic in KEYED_TOPICS:
        folder = KEYED_TOPICS[topic]
        return _unless_malformed(lambda record: _keyed_record(record, folder))
    return raw_record


def raw_record(record: Record) -> dict[str, Plain]:
    return {"key": plain_bytes(record.key), "value": plain_bytes(record.value)}


def control_record(record: Record) -> dict[str, Plain]:
    """A marker or another record that consumers do not see."""
    kind = control.read_type(record.key)
    value = record.value
    if kind not in _CONTROL_VALUES or value is None:
        return {"control": kind.name, **raw_record(record)}
    version = int.from_bytes(value[:2], "big", signed=True)
    cls = messages.message_class(_CONTROL_VALUES[kind])
    # The values of the metadata log hold their version as a field, the markers hold it before.
    start = 0 if hasattr(cls(), "version") else 2
    message = codec.decode(cls, min(version, cls.SPEC.versions.stop - 1), value, start)
    return {"control": kind.name, "value": plain_message(message, version)}


def _size(record: Record) -> dict[str, Plain]:
    """Of what may be secret."""
    return {"key": plain_bytes(record.key), "bytes": len(record.value or b"")}


def _unless_malformed(
    describe: DescribeRecord, otherwise: DescribeRecord = raw_record
) -> DescribeRecord:
    def described(record: Record) -> dict[str, Plain]:
        try:
            return describe(record)
        except (MalformedFrame, ValueError, KeyError, IndexError) as reason:
            return {"unreadable": str(reason) or type(reason).__name__, **otherwise(record)}

    return described


def _metadata_record(record: Record) -> dict[str, Plain]:
    if record.value is None:
        raise ValueError("a record of the metadata has a value")
    # Frame version, type, version: all are below 128, so each is one byte.
    _, number, version = record.value[:3]
    cls = _classes("cluster_metadata")[(number, "")]
    message = codec.decode(cls, version, record.value, 3)
    without_secrets(message)
    return {"type": cls.SPEC.name, "version": version, "value": plain_message(message, version)}


def _keyed_record(record: Record, folder: str) -> dict[str, Plain]:
    if record.key is None:
        raise ValueError("a coordinator's record has a key")
    number = int.from_bytes(record.key[:2], "big", signed=True)
    classes = _classes(folder)
    key = codec.decode(classes[(number, "Key")], 0, record.key, 2)
    described = {"type": type(key).__name__.removesuffix("Key"), "key": plain_message(key, 0)}
    if record.value is None:
        return {**described, "value": None}
    version = int.from_bytes(record.value[:2], "big", signed=True)
    value = codec.decode(classes[(number, "Value")], version, record.value, 2)
    return {**described, "version": version, "value": plain_message(value, version)}


@cache
def _classes(folder: str) -> dict[tuple[int, str], type[Any]]:
    """The message classes of a folder's records by type, and by Key or Value if there are both."""
    found = {}
    for path in sorted((spec.directory() / "records" / folder).glob("*.spec")):
        for name, message in spec.read(path).messages.items():
            assert message.type is not None, f"{path.name}: a record without a type"
            half = next((half for half in ("Key", "Value") if name.endswith(half)), "")
            found[(message.type, half)] = messages.message_class(name)
    return found
