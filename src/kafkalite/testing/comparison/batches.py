"""Record batches of a trace as they are sent to one side: with the ids of producers there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from kafkalite.protocol.errors import KafkaError
from kafkalite.records.batch import (
    CRC,
    CRC_POSITION,
    HEADER,
    BatchHeader,
    checksum,
    iterate_headers,
)

if TYPE_CHECKING:
    from kafkalite.testing.comparison.names import Names

PRODUCER_ID = "producer id"
_PRODUCER_ID_FIELD, _PRODUCER_EPOCH_FIELD = 9, 10


def renamed(records: bytes | memoryview, names: Names) -> bytes:
    """Only what is intact is changed: a wrong checksum stays wrong."""
    changed = bytearray(records)
    with suppress(KafkaError):
        for header in iterate_headers(changed):
            if header.producer_id >= 0 and checksum(changed, header) == header.crc:
                _set_producer(changed, header, names.actual(PRODUCER_ID, header.producer_id))
    return bytes(changed)


def with_epochs(records: bytes | memoryview, epoch_of: Callable[[int, int], int]) -> bytes:
    """The same with other epochs; `epoch_of` is given a producer's id and its epoch."""
    changed = bytearray(records)
    with suppress(KafkaError):
        for header in iterate_headers(changed):
            if header.producer_id >= 0 and checksum(changed, header) == header.crc:
                header.producer_epoch = epoch_of(header.producer_id, header.producer_epoch)
                _set_producer(changed, header, header.producer_id)
    return bytes(changed)


def _set_producer(buffer: bytearray, header: BatchHeader, producer_id: int) -> None:
    """Sets the header's epoch and this id, and renews the checksum over them."""
    values = list(HEADER.unpack_from(buffer, header.position))
    values[_PRODUCER_ID_FIELD] = producer_id
    values[_PRODUCER_EPOCH_FIELD] = header.producer_epoch
    HEADER.pack_into(buffer, header.position, *values)
    CRC.pack_into(buffer, header.position + CRC_POSITION, checksum(buffer, header))
