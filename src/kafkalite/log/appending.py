"""How a batch comes into a log: checked, given its offsets, written, and only then noted.

Owns the order of these steps and what a producer is told of a batch that is there already. It never
waits for a disk and never changes a batch that is written. Invariant: when an append raises, no
reader and no later append finds anything of it.

Most batches are one at a time, of a producer without an id or with the next sequence number: that
way is the shortest here. What of a batch was checked where is told in `validator`.
"""

from __future__ import annotations

from kafkalite.log.append import Append, AppendResult, Checked, Writable
from kafkalite.log.log_state import LogState
from kafkalite.log.producers import AppendOrigin, Marker, SeenBatch
from kafkalite.log.replay import marker_of, note_completed
from kafkalite.log.rolling import segment_for
from kafkalite.log.segment import Segment
from kafkalite.log.validator import accept, check, check_as_given, only_batch
from kafkalite.protocol.errors import KafkaError
from kafkalite.records.batch import NO_PRODUCER_ID, NO_TIMESTAMP, BatchHeader

_CLIENT = AppendOrigin.CLIENT  # looked up for every batch


def append_as_leader(log: LogState, append: Append) -> AppendResult:
    """Gives a batch its offsets and writes it; raises KafkaError, and then nothing has changed."""
    if log.home.failure is not None:
        log.home.check_online()
    config, offset = log.config, log.log_end_offset
    if not config.is_plain or append.origin != _CLIENT or append.checked is not None:
        return _append_checked(log, append, check(append, config, offset))
    header = append.header
    if header is None:
        header = append.header = only_batch(append.records)
    if not accept(append, header, config, offset):
        return _append_checked(log, append, check(append, config, offset))
    producer = None
    if header.producer_id > NO_PRODUCER_ID:
        producer = log.producers.going_on(header) if log.producers is not None else None
        if producer is None:
            return _append_checked(log, append, Checked(append.records, [header]))
    # What is left is `_write` in short.
    timestamp, last_offset = header.max_timestamp, offset + header.last_offset_delta
    try:
        segment = segment_for(log, header.size, offset, last_offset, timestamp, append.now_ms)
        if append.leader_epoch != log.epochs.latest:
            _note_epoch(log, append.leader_epoch, offset)
        segment.append_one(
            append.records, offset, last_offset, timestamp, config.index_interval_bytes
        )
    except OSError as error:
        raise log.storage_error(error) from error
    log.log_end_offset = last_offset + 1
    if last_offset - log.recovery_point >= config.flush_messages - 1 > 0:
        log.durability.flush(is_complete=True)
    if producer is not None:
        producer.go_on(header, last_offset)
    return AppendResult(offset, last_offset, NO_TIMESTAMP, log.log_start_offset)


def _append_checked(log: LogState, append: Append, checked: Checked) -> AppendResult:
    header = checked.headers[0]
    marker = None
    if header.producer_id > NO_PRODUCER_ID:
        marker = marker_of(checked.records, header)
        try:
            seen = _seen(log, header, append.origin)
            if seen is None:
                _judge(log, header, marker, append)
        except KafkaError:
            _roll_if_due(log, checked, append.now_ms)
            raise
        if seen is not None:
            _roll_if_due(log, checked, append.now_ms)
            return AppendResult(
                seen.first_offset, seen.last_offset, seen.timestamp, log.log_start_offset, True
            )
    _write(log, checked, [marker], append.now_ms)
    return AppendResult(
        header.base_offset,
        log.log_end_offset - 1,
        checked.log_append_time_ms,
        log.log_start_offset,
    )


def append_as_follower(
    log: LogState,
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


def _seen(log: LogState, header: BatchHeader, origin: AppendOrigin) -> SeenBatch | None:
    if origin != AppendOrigin.CLIENT or log.producers is None:
        return None
    return log.producers.find_duplicate(header)


def _judge(log: LogState, header: BatchHeader, marker: Marker | None, append: Append) -> None:
    """Raises KafkaError for what its producer, or the coordinator of it, may not write."""
    producers = log.needed_producers()
    if marker is not None:
        producers.check_marker(header, marker, append.origin, append.transaction_version)
        return
    if header.is_transactional:
        producers.check_verified(header, append.verification)
    producers.check(header, append.origin)


# --- writing --------------------------------------------------------------------------------------


def _segment_for(
    log: LogState, checked: Checked, now_ms: int, *, is_given: bool = False
) -> Segment:
    last = checked.headers[-1]
    return segment_for(
        log, len(checked.records), checked.headers[0].base_offset, last.last_offset,
        last.max_timestamp, now_ms, is_given=is_given,
    )  # fmt: skip


def _roll_if_due(log: LogState, checked: Checked, now_ms: int) -> None:
    """For batches that are not written: Kafka looks at their producer only after it has."""
    try:
        _segment_for(log, checked, now_ms)
    except OSError as error:
        raise log.storage_error(error) from error


def _write(
    log: LogState,
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


def _note_epoch(log: LogState, epoch: int, offset: int) -> None:
    if epoch >= 0:
        log.epochs.assign(epoch, offset)
        log.durability.epochs_changed()


def _note_producers(
    log: LogState,
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
