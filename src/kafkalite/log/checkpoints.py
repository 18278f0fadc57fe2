"""The small text files beside the logs: checkpoints, partition.metadata, meta.properties, the
clean-shutdown marker.

Owns their formats. Every write replaces the whole file, so that a crash leaves the old or the new
contents. What cannot be parsed is a `CorruptFile`, and the caller decides what can be rebuilt.
Invariant: what is written is read back equal, and is what Apache Kafka writes, line for line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from kafkalite.config.properties import MalformedProperties, parse_properties
from kafkalite.env.disk import Disk, read_whole, replace_file, write_synced
from kafkalite.log.names import parse_uuid, uuid_text

_VERSION = "0"
_LINE_END = b"\n"

TopicPartition = tuple[str, int]


class CorruptFile(Exception):
    """A side file that cannot be what we or Apache Kafka wrote."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


def _checkpoint_text(lines: list[str]) -> bytes:
    return "\n".join([_VERSION, str(len(lines)), *lines, ""]).encode("utf-8")


def _read_checkpoint(disk: Disk, path: str, fields: int) -> list[list[str]]:
    """The rows of a checkpoint; none when there is no such file."""
    if not disk.exists(path):
        return []
    try:
        text = read_whole(disk, path).decode("utf-8")
    except UnicodeDecodeError:
        raise CorruptFile(path, "not text") from None
    lines = text.splitlines()
    if not lines:
        return []  # Apache Kafka makes the file before it has anything to say
    if not text.endswith("\n"):
        raise CorruptFile(path, "its last line has no end")  # nor, perhaps, its last digits
    if len(lines) < 2 or lines[0] != _VERSION or not lines[1].isdigit():
        raise CorruptFile(path, "no version and count in its first two lines")
    rows = [line.split() for line in lines[2:] if line]
    if len(rows) != int(lines[1]):
        raise CorruptFile(path, f"{lines[1]} rows announced, {len(rows)} found")
    if any(len(row) != fields for row in rows):
        raise CorruptFile(path, f"a row has not {fields} fields")
    return rows


def write_offsets(disk: Disk, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """An offset of each partition, as in `recovery-point-offset-checkpoint`."""
    replace_file(disk, path, _offsets_text(offsets))


def stage_offsets(disk: Disk, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """The same contents on stable storage under a name of its own, to be renamed."""
    write_synced(disk, path, _offsets_text(offsets))


def _offsets_text(offsets: Mapping[TopicPartition, int]) -> bytes:
    return _checkpoint_text(
        [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    )


def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    try:
        rows = _read_checkpoint(disk, path, 3)
        return {(topic, int(partition)): int(offset) for topic, partition, offset in rows}
    except ValueError:
        raise CorruptFile(path, "a field is not a number") from None


def write_epochs(disk: Disk, path: str, epochs: Iterable[tuple[int, int]]) -> None:
    """`leader-epoch-checkpoint`: each epoch and the offset at which it began.

    Not synced here: a flush of the log syncs it before the recovery point moves past what it speaks
    of.
    """
    text = _checkpoint_text([f"{epoch} {start}" for epoch, start in epochs])
    replace_file(disk, path, text, is_synced=False)


def read_epochs(disk: Disk, path: str) -> list[tuple[int, int]]:
    try:
        return [(int(epoch), int(start)) for epoch, start in _read_checkpoint(disk, path, 2)]
    except ValueError:
        raise CorruptFile(path, "a field is not a number") from None


def write_partition_metadata(disk: Disk, path: str, topic_id: bytes) -> None:
    text = f"version: 0\ntopic_id: {uuid_text(topic_id)}"
    replace_file(disk, path, text.encode("ascii"), is_synced=False)


def read_partition_metadata(disk: Disk, path: str) -> bytes:
    """The topic id."""
    fields = _key_values(disk, path, ":")
    try:
        return parse_uuid(fields["topic_id"])
    except (KeyError, ValueError):
        raise CorruptFile(path, "no topic id") from None


def write_properties(disk: Disk, path: str, properties: Mapping[str, str]) -> None:
    """`meta.properties`: who this directory belongs to."""
    rows = [f"{_escaped(key)}={_escaped(value)}" for key, value in sorted(properties.items())]
    replace_file(disk, path, "\n".join(["#", *rows, ""]).encode("ascii"))


def read_properties(disk: Disk, path: str) -> dict[str, str]:
    try:
        return parse_properties(_text(disk, path))
    except MalformedProperties as error:
        raise CorruptFile(path, str(error)) from None


def _escaped(text: str) -> str:
    """As Java writes a key or a value: a cluster id may end with equals signs."""
    units = text.encode("utf-16-be")
    escaped = []
    for high, low in zip(units[::2], units[1::2], strict=True):
        is_plain = high == 0 and 0x20 < low < 0x7F
        mark = "\\" if is_plain and chr(low) in "=:#!\\" else ""
        escaped.append(mark + chr(low) if is_plain else f"\\u{high:02x}{low:02x}")
    return "".join(escaped)


def _key_values(disk: Disk, path: str, separator: str) -> dict[str, str]:
    fields = {}
    for line in _text(disk, path).splitlines():
        if line.strip() and not line.startswith(("#", "!")):
            key, _, value = line.partition(separator)
            fields[key.strip()] = value.strip()
    return fields


def _text(disk: Disk, path: str) -> str:
    try:
        return read_whole(disk, path).decode("utf-8")
    except UnicodeDecodeError:
        raise CorruptFile(path, "not text") from None


def write_clean_shutdown(disk: Disk, path: str, broker_epoch: int) -> None:
    """Apache Kafka's has no line's end, so the next start knows who stopped here."""
    text = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    replace_file(disk, path, text.encode("ascii") + _LINE_END)


def is_own_shutdown(disk: Disk, path: str) -> bool:
    """Whether it was kafkalite that stopped cleanly, and no other broker since."""
    return read_whole(disk, path).endswith(_LINE_END)


def read_clean_shutdown(disk: Disk, path: str) -> int:
    """The broker epoch of the stop that was clean, or -1 when the marker does not say."""
    try:
        return int(json.loads(read_whole(disk, path))["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        return -1
