"""What a log holds up to an offset, to compare it with copies: bytes, and epochs with records."""

from __future__ import annotations

from kafkalite.log.partition_log import PartitionLog

AT_ONCE = 1 << 20


def bytes_until(log: PartitionLog, end: int) -> bytes:
    found, offset = bytearray(), log.log_start_offset
    while offset < end:
        read = log.read(offset, AT_ONCE, end)
        assert read.range is not None
        found += read.range.read()
        offset = read.end_offset
    return bytes(found)


def epochs_until(log: PartitionLog, end: int) -> list[tuple[int, int]]:
    """Each with its first offset; a leader knows of its own before it has any record."""
    return [each for each in log.epochs.entries() if each[1] < end]
