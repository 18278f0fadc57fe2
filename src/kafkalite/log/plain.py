"""The usual Produce in few steps: one uncompressed batch v2 for a topic without special wishes.

Owns no rule: it only recognises batches that `validator` would accept as they are, and says
nothing about any other. Invariant: whatever is accepted here, `validator` accepts with the same
header.
"""

from __future__ import annotations

from crc32c import crc32c

from kafkalite.log.config import LogConfig
from kafkalite.records.batch import (
    ATTRIBUTES_POSITION,
    HEADER_BYTES,
    TRANSACTIONAL_BIT,
    BatchHeader,
    patch,
    read_header,
)
from kafkalite.records.errors import CorruptRecords
from kafkalite.records.whole import highest_delta

Writable = bytearray | memoryview


def accept(
    records: Writable, config: LogConfig, offset: int, leader_epoch: int, now_ms: int
) -> BatchHeader | None:
    """The header of the batch, with its offset and epoch set; None when it needs a closer look."""
    try:
        header = read_header(records)
    except CorruptRecords:
        return None
    count = header.record_count
    if (
        header.magic != 2
        or header.size != len(records)
        or header.size > config.max_message_bytes
        or header.attributes & ~TRANSACTIONAL_BIT
        or header.base_offset
        or count <= 0
        or header.last_offset_delta + 1 != count
        or (header.producer_id >= 0 and header.base_sequence < 0)
        or header.max_timestamp > now_ms + config.message_timestamp_after_max_ms
        or header.max_timestamp < header.base_timestamp
        or header.base_timestamp < 0
    ):
        return None
    view = memoryview(records)
    delta = highest_delta(bytes(view[HEADER_BYTES:]), count)
    if delta is None or header.base_timestamp + delta != header.max_timestamp:
        return None
    if crc32c(view[ATTRIBUTES_POSITION:]) != header.crc:
        return None
    patch(records, header, offset, leader_epoch)
    return header
