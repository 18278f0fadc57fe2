"""The `.snapshot` files: the producers of a partition at an offset.

Owns the file format and which snapshots of a directory are usable. It never decides when one is
taken. Invariant: a snapshot whose checksum is wrong is never loaded.
"""

from __future__ import annotations

import struct
from struct import Struct

from kafkalite.env.disk import Disk, read_whole
from kafkalite.log.checkpoints import CorruptFile
from kafkalite.log.home import LogHome
from kafkalite.log.names import SNAPSHOT, is_offset_name, offset_name, offset_of
from kafkalite.log.producers import NO_OFFSET, Producers, ProducerState, SeenBatch
from kafkalite.records.checksum import crc32c

# The layout of protocol_specs/files/producer_snapshot.spec, behind its version; written here as a
# struct because recovery of thousands of partitions reads and writes one each.
_HEAD = Struct(">hIi")  # version, crc of what follows it, number of entries
_ENTRY = Struct(">qhiqiqiq")
_VERSION = 1
_CRC_END = 6


def snapshot_path(directory: str, offset: int) -> str:
    return f"{directory}/{offset_name(offset, SNAPSHOT)}"


def snapshot_offsets(names: list[str]) -> list[int]:
    """The offsets of the snapshots among the names of a directory, rising."""
    return sorted(offset_of(name) for name in names if is_offset_name(name, SNAPSHOT))


def remove_within(home: LogHome, directory: str, first: int, end: int) -> None:
    """Removes snapshots inside a segment, made at the beginnings of those that it took the place
    of. The newest up to its end stays in any case: recovery may begin with it."""
    offsets = snapshot_offsets(home.disk.list_directory(directory))
    inside = [offset for offset in offsets if offset <= end][:-1]
    home.remove_now([snapshot_path(directory, o) for o in inside if first < o < end])


def write_snapshot(disk: Disk, directory: str, producers: Producers | None, offset: int) -> str:
    """Writes the producers as they are at an offset; returns the path, which the caller may
    sync."""
    path = snapshot_path(directory, offset)
    data = encode_snapshot(list(producers) if producers is not None else [])
    file = disk.create(path)
    try:
        file.write_at(0, data)
    finally:
        file.close()
    return path


def encode_snapshot(states: list[ProducerState]) -> bytes:
    entries = b"".join(_encode_entry(state) for state in states)
    checked = struct.pack(">i", len(states)) + entries
    return struct.pack(">hI", _VERSION, crc32c(checked)) + checked


def _encode_entry(state: ProducerState) -> bytes:
    last = state.batches[-1] if state.batches else SeenBatch(-1, -1, 0, -1)
    return _ENTRY.pack(
        state.producer_id,
        state.epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        state.last_timestamp,
        state.coordinator_epoch,
        state.transaction_start,
    )


def read_snapshot(disk: Disk, path: str) -> list[ProducerState]:
    data = read_whole(disk, path)
    if len(data) < _HEAD.size:
        raise CorruptFile(path, f"only {len(data)} bytes")
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise CorruptFile(path, f"unknown version {version}")
    if crc != crc32c(data[_CRC_END:]):
        raise CorruptFile(path, "its checksum is wrong")
    if len(data) != _HEAD.size + count * _ENTRY.size:
        raise CorruptFile(path, f"{count} entries do not fill {len(data)} bytes")
    return [_decode_entry(row) for row in _ENTRY.iter_unpack(data[_HEAD.size :])]


def _decode_entry(row: tuple[int, ...]) -> ProducerState:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, start = row
    state = ProducerState(
        producer_id, epoch, coordinator_epoch, timestamp, start if start >= 0 else NO_OFFSET
    )
    if offset >= 0:
        state.batches.append(SeenBatch(sequence, offset, delta, timestamp))
        state.is_partial = True
    return state
