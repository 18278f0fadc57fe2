"""Reads one file of a log directory into plain values: segments, indexes, snapshots, checkpoints.

Reads only, and needs nothing but the file: it says what is in it, also when the rest of the
directory is gone. A segment that is cut or corrupt is shown up to there, with the reason.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from kafkalite.client.internal_records import TOPICS, DescribeRecord, control_record, describer
from kafkalite.client.rendering import Plain, plain_bytes
from kafkalite.log import names
from kafkalite.protocol.errors import KafkaError
from kafkalite.records.batch import BatchHeader, Buffer, codec, read_header, verify
from kafkalite.records.checksum import crc32c
from kafkalite.records.convert import iterate_any
from kafkalite.records.record import Record

_OFFSET_ENTRY = Struct(">II")
_TIME_ENTRY = Struct(">qI")
_ABORTED_ENTRY = Struct(">hqqqq")
_SNAPSHOT_HEAD = Struct(">hIi")
_SNAPSHOT_ENTRY = Struct(">qhiqiqiq")
_SNAPSHOT_CHECKED_FROM = 6
_SNAPSHOT_FIELDS = (
    "producer_id",
    "epoch",
    "last_sequence",
    "last_offset",
    "offset_delta",
    "timestamp",
    "coordinator_epoch",
    "current_txn_first_offset",
)


def describe_file(path: Path, *, deep: bool, topic: str | None = None) -> Iterator[Plain]:
    """What the file holds, one plain value after the other; `deep` also decodes records."""
    suffixes = [suffix for suffix in path.suffixes if suffix != names.DELETED]
    suffix = next((each for each in suffixes if each not in (names.CLEANED, names.SWAP)), "")
    if suffix in (names.LOG, ".checkpoint"):
        yield from _segment(path, deep, topic or topic_of(path))
    elif suffix == names.INDEX:
        base = names.offset_of(path.name)
        for offset, position in _entries(path, _OFFSET_ENTRY):
            yield {"offset": base + offset, "position": position}
    elif suffix == names.TIME_INDEX:
        base = names.offset_of(path.name)
        for timestamp, offset in _entries(path, _TIME_ENTRY):
            yield {"timestamp": timestamp, "offset": base + offset}
    elif suffix == names.TXN_INDEX:
        yield from map(_aborted, _ABORTED_ENTRY.iter_unpack(_whole(path, _ABORTED_ENTRY)))
    elif suffix == names.SNAPSHOT:
        yield from _snapshot(path.read_bytes())
    else:
        yield from path.read_text(encoding="utf-8").splitlines()


def topic_of(path: Path) -> str | None:
    """The internal topic whose log the file's folder holds, if it is one."""
    topic = path.absolute().parent.name.rpartition("-")[0]
    return topic if topic in TOPICS else None


def describe_batches(buffer: Buffer, describe: DescribeRecord, *, deep: bool) -> Iterator[Plain]:
    """Each batch's header, whether its checksum is right, and if wished its records."""
    position = 0
    while position < len(buffer):
        try:
            header = read_header(buffer, position)
            described = _header(header, position)
            verify(buffer, header)
            if deep:
                described["records"] = _records(buffer, header, describe)
        except KafkaError as reason:
            yield {"position": position, "unreadable": str(reason)}
            return
        yield described
        position += header.size


def _segment(path: Path, deep: bool, topic: str | None) -> Iterator[Plain]:
    if path.stat().st_size == 0:
        return
    with path.open("rb") as file:
        # Unmapped when the last view of it is gone: records may still be held by the caller.
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    yield from describe_batches(memoryview(mapped), describer(topic), deep=deep)


def _header(header: BatchHeader, position: int) -> dict[str, Plain]:
    described: dict[str, Plain] = {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.record_count,
        "position": position,
        "size": header.size,
        "magic": header.magic,
        "compression": codec(header).name.lower(),
        "timestamp_type": header.timestamp_type.name.lower(),
        "max_timestamp": header.max_timestamp,
        "partition_leader_epoch": header.partition_leader_epoch,
        "crc": header.crc,
    }
    if header.is_idempotent:
        described["producer_id"] = header.producer_id
        described["producer_epoch"] = header.producer_epoch
        described["base_sequence"] = header.base_sequence
        described["last_sequence"] = header.last_sequence
    described["is_transactional"] = header.is_transactional
    described["is_control"] = header.is_control
    if header.has_delete_horizon:
        described["delete_horizon_ms"] = header.delete_horizon_ms
    return described


def _records(buffer: Buffer, header: BatchHeader, describe: DescribeRecord) -> list[Plain]:
    how = control_record if header.is_control else describe
    return [_record(record, how) for record in iterate_any(buffer, header)]


def _record(record: Record, describe: DescribeRecord) -> dict[str, Plain]:
    described = {"offset": record.offset, "timestamp": record.timestamp, **describe(record)}
    if record.headers:
        described["headers"] = [
            {"key": plain_bytes(key), "value": plain_bytes(value)} for key, value in record.headers
        ]
    return described


def _entries(path: Path, entry: Struct) -> Iterator[tuple[int, int]]:
    """Entries of an index up to the zeros that fill a preallocated one."""
    for number, (first, second) in enumerate(entry.iter_unpack(_whole(path, entry))):
        if number and not first and not second:
            return
        yield first, second


def _whole(path: Path, entry: Struct) -> bytes:
    """The file's bytes without a torn entry at its end."""
    data = path.read_bytes()
    return data[: len(data) // entry.size * entry.size]


def _aborted(row: tuple[int, ...]) -> Plain:
    fields = ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset")
    return dict(zip(fields, row, strict=True))


def _snapshot(data: bytes) -> Iterator[Plain]:
    if len(data) < _SNAPSHOT_HEAD.size:
        yield {"unreadable": f"{len(data)} bytes are no snapshot"}
        return
    version, crc, count = _SNAPSHOT_HEAD.unpack_from(data)
    is_right = crc32c(data[_SNAPSHOT_CHECKED_FROM:]) == crc
    yield {"version": version, "crc": crc, "crc_is_right": is_right, "count": count}
    rows = data[_SNAPSHOT_HEAD.size :]
    usable = len(rows) // _SNAPSHOT_ENTRY.size * _SNAPSHOT_ENTRY.size
    for row in _SNAPSHOT_ENTRY.iter_unpack(rows[:usable]):
        yield dict(zip(_SNAPSHOT_FIELDS, row, strict=True))
