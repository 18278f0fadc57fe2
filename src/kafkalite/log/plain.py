"""The usual Produce in few steps: one uncompressed batch v2 for a topic without special wishes.

Owns no rule: it only recognises batches that `validator` would accept as they are, and says
nothing about any other. Invariant: whatever is accepted here, `validator` accepts with the same
header.
"""

from __future__ import annotations

from struct import Struct

from crc32c import crc32c

from kafkalite.log.config import LogConfig
from kafkalite.records.batch import (
    ATTRIBUTES_POSITION,
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD,
    TRANSACTIONAL_BIT,
    BatchHeader,
)
from kafkalite.records.whole import highest_delta

Writable = bytearray | memoryview

_FEW_RECORDS = 3
_OFFSET = Struct(">q")
_EPOCH = Struct(">i")


def accept(
    records: Writable, config: LogConfig, offset: int, leader_epoch: int, now_ms: int
) -> BatchHeader | None:
    """The header of the batch, with its offset and epoch set; None when it needs a closer look."""
    size = len(records)
    if size < HEADER_BYTES:
        return None
    (
        base_offset, length, _, magic, crc, attributes, last_delta, base_timestamp, max_timestamp,
        producer_id, producer_epoch, base_sequence, count,
    ) = HEADER.unpack_from(records)  # fmt: skip
    if (
        magic != 2
        or length + LOG_OVERHEAD != size
        or size > config.max_message_bytes
        or attributes & ~TRANSACTIONAL_BIT
        or base_offset
        or count <= 0
        or last_delta + 1 != count
        or producer_id >= 0 > base_sequence
        or max_timestamp > now_ms + config.message_timestamp_after_max_ms
        or max_timestamp < base_timestamp
        or base_timestamp < 0
    ):
        return None
    view = memoryview(records)
    body = view[HEADER_BYTES:]
    # Bytes are read faster than a view of them, but have to be copied first.
    delta = highest_delta(bytes(body) if count > _FEW_RECORDS else body, count)
    if delta is None or base_timestamp + delta != max_timestamp:
        return None
    if crc32c(view[ATTRIBUTES_POSITION:]) != crc:
        return None
    _OFFSET.pack_into(records, 0, offset)
    _EPOCH.pack_into(records, LOG_OVERHEAD, leader_epoch)
    return BatchHeader(
        0, size, offset, leader_epoch, magic, crc, attributes, last_delta, base_timestamp,
        max_timestamp, producer_id, producer_epoch, base_sequence, count,
    )  # fmt: skip
