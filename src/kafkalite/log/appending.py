"""How a batch comes into a log: checked, given its offsets, written, and only then noted.

Owns the order of these steps and what a producer is told of a batch that is there already. It never
waits for a disk and never changes a batch that is written. Invariant: when an append raises, no
reader and no later append finds anything of it.

`PartitionLog` says what the two functions take. Most batches are one at a time, of a producer
without an id or with the next sequence number: that way is the shortest here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkalite.log.plain import (
    LAST_OFFSET_DELTA,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    Fields,
    accept,
    header_of,
)
from kafkalite.log.producers import AppendOrigin, Marker, SeenBatch, Verification
from kafkalite.log.replay import marker_of, note_completed
from kafkalite.log.rolling import segment_for
from kafkalite.log.segment import Segment
from kafkalite.log.validator import Checked, Writable, check, check_as_given
from kafkalite.protocol.errors import KafkaError
from kafkalite.records.batch import NO_PRODUCER_ID, NO_TIMESTAMP, BatchHeader
from kafkalite.records.scan import BadRecord

if TYPE_CHECKING:
    from kafkalite.log.partition_log import PartitionLog

_CLIENT = AppendOrigin.CLIENT  # looked up for every batch


@dataclass(slots=True)
class AppendResult:
    """Where a batch is in the log now, or has been since it came for the first time."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    is_duplicate: bool = False
    record_errors: list[BadRecord] | None = None  # always None: such a batch is refused


def append_as_leader(
    log: PartitionLog,
    records: Writable | Checked,
    leader_epoch: int,
    origin: AppendOrigin,
    now_ms: int | None,
    verification: Verification | None,
    is_verified: bool,
    transaction_version: int,
) -> AppendResult:
    home = log.home
    if home.failure is not None:
        home.check_online()
    if now_ms is None:
        now_ms = home.env.clock.now_ms()
    start, config = log.log_end_offset, log.config
    checked: Checked | None = None
    if config.is_plain and origin == _CLIENT and not isinstance(records, Checked):
        fields = accept(records, config, start, leader_epoch, now_ms)
        if fields is not None:
            if fields[PRODUCER_ID] < 0:
                return _append_plain(log, records, fields, leader_epoch, now_ms)
            producer = log.producers.going_on(fields) if log.producers is not None else None
            if producer is not None:
                result = _append_plain(log, records, fields, leader_epoch, now_ms)
                producer.go_on(fields, result.last_offset)
                return result
            checked = Checked(records, [header_of(fields, len(records), start, leader_epoch)])
    if checked is None:
        checked = check(records, config, origin, start, leader_epoch, now_ms)
    header = checked.headers[0]
    marker = None
    if header.producer_id > NO_PRODUCER_ID:
        marker = marker_of(checked.records, header)
        try:
            seen = _seen(log, header, origin)
            if seen is None:
                _judge(log, header, marker, origin, verification, is_verified, transaction_version)
        except KafkaError:
            _roll_if_due(log, checked, now_ms)
            raise
        if seen is not None:
            _roll_if_due(log, checked, now_ms)
            return AppendResult(
                seen.first_offset, seen.last_offset, seen.timestamp, log.log_start_offset, True
            )
    _write(log, checked, [marker], now_ms)
    return AppendResult(
        header.base_offset,
        log.log_end_offset - 1,
        checked.log_append_time_ms,
        log.log_start_offset,
    )


def append_as_follower(
    log: PartitionLog,
    records: Writable,
    leader_epoch: int | None,
    now_ms: int | None,
) -> AppendResult:
    log.home.check_online()
    checked = check_as_given(records, log.log_end_offset, leader_epoch)
    start, end = log.log_end_offset, log.log_end_offset
    if checked.headers:
        markers = [marker_of(checked.records, header) for header in checked.headers]
        now_ms = log.home.env.clock.now_ms() if now_ms is None else now_ms
        start = checked.headers[0].base_offset
        _write(log, checked, markers, now_ms, is_given=True)
        end = log.log_end_offset
    return AppendResult(start, end - 1, -1, log.log_start_offset)


# --- checking -------------------------------------------------------------------------------------


def _seen(log: PartitionLog, header: BatchHeader, origin: AppendOrigin) -> SeenBatch | None:
    if origin != AppendOrigin.CLIENT or log.producers is None:
        return None
    return log.producers.find_duplicate(header)


def _judge(
    log: PartitionLog,
    header: BatchHeader,
    marker: Marker | None,
    origin: AppendOrigin,
    verification: Verification | None,
    is_verified: bool,
    transaction_version: int,
) -> None:
    """Raises KafkaError for what its producer, or the coordinator of it, may not write."""
    producers = log.needed_producers()
    if marker is not None:
        producers.check_marker(header, marker, origin, transaction_version)
        return
    if header.is_transactional and not is_verified:
        producers.check_verified(header, verification)
    producers.check(header, origin)


# --- writing --------------------------------------------------------------------------------------


def _segment_for(
    log: PartitionLog, checked: Checked, now_ms: int, *, is_given: bool = False
) -> Segment:
    last = checked.headers[-1]
    return segment_for(
        log, len(checked.records), checked.headers[0].base_offset, last.last_offset,
        last.max_timestamp, now_ms, is_given=is_given,
    )  # fmt: skip


def _roll_if_due(log: PartitionLog, checked: Checked, now_ms: int) -> None:
    """For batches that are not written: Kafka looks at their producer only after it has."""
    try:
        _segment_for(log, checked, now_ms)
    except OSError as error:
        raise log.storage_error(error) from error


def _append_plain(
    log: PartitionLog, records: Writable, fields: Fields, leader_epoch: int, now_ms: int
) -> AppendResult:
    """Writes what was accepted, apart from what it says of its producer; `_write` in short."""
    config, offset, timestamp = log.config, log.log_end_offset, fields[MAX_TIMESTAMP]
    last_offset = offset + fields[LAST_OFFSET_DELTA]
    try:
        segment = segment_for(log, len(records), offset, last_offset, timestamp, now_ms)
        if leader_epoch != log.epochs.latest:
            _note_epoch(log, leader_epoch, offset)
        segment.append_one(records, offset, last_offset, timestamp, config.index_interval_bytes)
    except OSError as error:
        raise log.storage_error(error) from error
    log.log_end_offset = last_offset + 1
    if last_offset - log.recovery_point >= config.flush_messages - 1 > 0:
        log.durability.flush(is_complete=True)
    return AppendResult(offset, last_offset, NO_TIMESTAMP, log.log_start_offset)


def _write(
    log: PartitionLog,
    checked: Checked,
    markers: list[Marker | None],
    now_ms: int,
    *,
    is_given: bool = False,
) -> None:
    headers, config = checked.headers, log.config
    try:
        segment = _segment_for(log, checked, now_ms, is_given=is_given)
        for header in headers:
            if header.partition_leader_epoch != log.epochs.latest:
                _note_epoch(log, header.partition_leader_epoch, header.base_offset)
        segment.append(checked.records, headers, config.index_interval_bytes)
        end = log.log_end_offset = headers[-1].next_offset
        if log.producers is not None or any(one.producer_id > NO_PRODUCER_ID for one in headers):
            _note_producers(log, segment, headers, markers)
    except OSError as error:
        if log.producers is not None and headers[0].producer_id > NO_PRODUCER_ID and not is_given:
            log.producers.not_written(headers[0], now_ms)
        raise log.storage_error(error) from error
    if end - log.recovery_point >= config.flush_messages > 1:
        log.durability.flush(is_complete=True)


def _note_epoch(log: PartitionLog, epoch: int, offset: int) -> None:
    if epoch >= 0:
        log.epochs.assign(epoch, offset)
        log.durability.epochs_changed()


def _note_producers(
    log: PartitionLog,
    segment: Segment,
    headers: list[BatchHeader],
    markers: list[Marker | None],
) -> None:
    for header, marker in zip(headers, markers, strict=True):
        if header.producer_id > NO_PRODUCER_ID:
            producers = log.needed_producers()
            completed = producers.apply(header, marker)
            if completed is not None:
                note_completed(producers, segment, completed)
