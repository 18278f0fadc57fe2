"""Batches of records as they lie in a log, looked at by their headers alone.

Owns the walk: how far it goes for a member that wants so many records, which batches are those of
aborted transactions, and which part of the file holds what was acquired. Reads some tens of
kilobytes at a time, a batch that is larger by its header.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kafkalite.env.disk import FileRange
from kafkalite.env.slicing import Steps
from kafkalite.records.batch import HEADER_BYTES, BatchHeader, peek_header, read_header
from kafkalite.records.control import ControlType, read_type
from kafkalite.records.record import iterate_records
from kafkalite.sharing.acquiring import Acquired, Fetched

CHUNK_BYTES = 32 * 1024
BATCHES_PER_STEP = 64


@dataclass(slots=True)
class Walk:
    """What was found: batches, where each lies in the file, and those that were aborted."""

    batches: list[Fetched]
    positions: list[int]  # one more than batches: the end
    aborted: list[Fetched]


def walk(
    records: FileRange, until_offset: int, aborted: Iterable[tuple[int, int]]
) -> Steps[Walk]:
    """From the beginning to the batch that reaches an offset. `aborted` are producers, and where
    their transactions begin."""
    found = Walk([], [records.position], [])
    coming = sorted(aborted, key=lambda one: one[1])
    open_producers: set[int] = set()
    end = records.position + records.length
    position, chunk, chunk_at = records.position, b"", records.position
    while position + HEADER_BYTES <= end:
        if position + HEADER_BYTES > chunk_at + len(chunk):
            chunk_at = position
            chunk = records.file.read_at(position, min(CHUNK_BYTES, end - position))
        header = peek_header(chunk, position - chunk_at)
        if position + header.size > end:
            break  # the end of what was read, not of a batch
        one = Fetched(header.base_offset, header.last_offset)
        while coming and coming[0][1] <= one.last:
            open_producers.add(coming.pop(0)[0])
        if header.producer_id in open_producers:
            if header.is_control:
                if _is_abort(records, position, header):
                    open_producers.discard(header.producer_id)
            elif header.is_transactional:
                found.aborted.append(one)
        found.batches.append(one)
        position += header.size
        found.positions.append(position)
        if one.last >= until_offset:
            break
        if len(found.batches) % BATCHES_PER_STEP == 0:
            yield
    return found


def _is_abort(records: FileRange, position: int, header: BatchHeader) -> bool:
    data = records.file.read_at(position, header.size)
    own = read_header(data, 0, len(data))
    return any(read_type(one.key) is ControlType.ABORT for one in iterate_records(data, own))


def part_with(records: FileRange, found: Walk, acquired: list[Acquired]) -> FileRange:
    """The batches that hold what was acquired."""
    first, last = acquired[0].first, acquired[-1].last
    held = [
        number
        for number, one in enumerate(found.batches)
        if one.first <= last and one.last >= first
    ]
    if not held:
        return records
    begin, end = found.positions[held[0]], found.positions[held[-1] + 1]
    return FileRange(records.file, begin, end - begin)
