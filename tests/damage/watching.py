"""Everything that clients and the broker itself can see of a log."""

from __future__ import annotations

from dataclasses import dataclass

from kafkalite.env.slicing import finish
from kafkalite.log import reader
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.producers import ProducerState
from kafkalite.log.replay import marker_of
from kafkalite.records.batch import NO_PRODUCER_ID, BatchHeader, iterate_headers
from kafkalite.records.convert import iterate_any

_FETCH_BYTES = 250
_WINDOW = 5


@dataclass
class Seen:
    """What is to be the same whatever became of derived files."""

    offsets: tuple[int, int, int]  # start, last stable, end
    uncommitted: dict[int, bytes]  # what a fetch from each offset brings
    committed: dict[int, list[int]]  # the offsets that a fetch from each offset shows
    times: dict[int, tuple[int, ...] | None]
    largest: list[int]  # of each segment, by which retention goes
    epochs: list[tuple[int, int]]
    producers: list[tuple[object, ...]]
    repeated: list[tuple[int, int] | None]  # what is said of each of the last batches once more
    topic_id: bytes


def watch(log: PartitionLog) -> Seen:
    start, end = log.log_start_offset, log.log_end_offset
    batches = _batches(log)
    stamps = sorted({
        stamp + near
        for data, header in batches
        for stamp in [record.timestamp for record in iterate_any(data, header)]
        for near in (-1, 0, 1)
    })
    return Seen(
        (start, log.last_stable_offset, end),
        {offset: _fetched(log, offset, end) for offset in range(start, end)},
        {offset: _committed(log, offset) for offset in range(start, end)},
        {stamp: _at_time(log, stamp) for stamp in [*stamps, reader.MAX_TIMESTAMP]},
        [segment.largest_timestamp() for segment in log.segments if segment.size],
        log.epochs.entries(),
        sorted(_state(state) for state in log.active_producers()),
        _repeated(log, [header for _, header in batches]),
        log.topic_id,
    )


def _batches(log: PartitionLog) -> list[tuple[bytes, BatchHeader]]:
    found: list[tuple[bytes, BatchHeader]] = []
    offset, end = log.log_start_offset, log.log_end_offset
    while offset < end:
        data = _fetched(log, offset, end)
        if not data:
            break
        found += [(data, header) for header in iterate_headers(data)]
        offset = found[-1][1].next_offset
    return found


def _fetched(log: PartitionLog, offset: int, limit: int) -> bytes:
    found = log.read(offset, _FETCH_BYTES, limit)
    return b"" if found.range is None else found.range.read()


def _committed(log: PartitionLog, offset: int) -> list[int]:
    """As a consumer of committed records sees a fetch."""
    found = log.read(offset, _FETCH_BYTES, log.last_stable_offset)
    if found.range is None:
        return []
    waiting = sorted(log.aborted(offset, found.end_offset), key=lambda one: one.first_offset)
    data, hidden, shown = found.range.read(), set[int](), []
    for header in iterate_headers(data):
        while waiting and waiting[0].first_offset <= header.last_offset:
            hidden.add(waiting.pop(0).producer_id)
        if header.is_control:
            ended = marker_of(data, header)
            if ended is not None and not ended.is_commit:
                hidden.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in hidden):
            shown += [one.offset for one in iterate_any(data, header) if one.offset >= offset]
    return shown


def _at_time(log: PartitionLog, timestamp: int) -> tuple[int, ...] | None:
    found = finish(reader.offset_for_time(log, timestamp, None))
    return None if found is None else tuple(found)


def _state(state: ProducerState) -> tuple[object, ...]:
    return (
        state.producer_id, state.epoch, state.last_sequence, state.last_offset,
        state.last_timestamp, state.coordinator_epoch, state.transaction_start,
    )  # fmt: skip


def _repeated(log: PartitionLog, headers: list[BatchHeader]) -> list[tuple[int, int] | None]:
    if log.producers is None:
        return []
    sent = [one for one in headers if one.producer_id > NO_PRODUCER_ID and not one.is_control]
    found = []
    for producer in sorted({one.producer_id for one in sent}):
        for header in [one for one in sent if one.producer_id == producer][-_WINDOW:]:
            again = log.producers.find_duplicate(header)
            found.append(None if again is None else (again.first_offset, again.last_offset))
    return found
