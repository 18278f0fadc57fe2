"""When a log begins a new segment, and how.

Owns the rules of `segment.bytes`, `segment.ms` and full indexes. It never writes a record.
Invariant: a segment that is not the last one has complete indexes, and the producers as they
were at the next one's first offset are in a snapshot. And a segment begins where the one before
it ends, so that recovery knows a lost end from records that were never there.
"""

from __future__ import annotations

from kafkalite.log.config import LogConfig
from kafkalite.log.home import LogHome
from kafkalite.log.log_state import LogState
from kafkalite.log.names import INDEX, LOG, TIME_INDEX, offset_name
from kafkalite.log.segment import Segment
from kafkalite.protocol.errors import Error, KafkaError

MAX_OFFSETS = 2**31  # that a segment's indexes can tell apart


def segment_for(
    log: LogState, size: int, first_offset: int, last_offset: int, timestamp: int, now_ms: int,
    *, is_given: bool = False,
) -> Segment:  # fmt: skip
    """The segment that batches are to be written to: the last one, or a new one when it is due.

    The timestamp is the largest of the last batch. What is given, another log took already: it may
    be larger than the segments that the topic has by now.
    """
    segment, config = log.segments[-1], log.config
    first_timestamp = segment.known_first_timestamp
    if (
        # The usual case first; every term of it is looked at again below.
        first_timestamp is not None
        and first_timestamp >= 0
        and segment.size + size <= config.segment_bytes
        and timestamp - first_timestamp <= config.segment_ms - log.roll_jitter_ms
        and last_offset - segment.base_offset < MAX_OFFSETS
        and (
            segment.bytes_since_index <= config.index_interval_bytes
            or 0 <= segment.index_entries < config.index_slots
        )
    ):
        return segment
    if not segment.size and not log.durability.is_named and log.is_durable_on_append:
        log.durability.flush()  # records whose topic a power cut took would be nobody's
    if segment.size + size > config.segment_bytes:
        if size > config.segment_bytes and not is_given:
            raise KafkaError(Error.RECORD_LIST_TOO_LARGE, f"{size} bytes do not fit into a segment")
        return roll(log) if segment.size else segment
    if last_offset - segment.base_offset >= MAX_OFFSETS:
        # Where the log's end itself is too far away, the segment begins at the batch.
        is_far = last_offset - log.log_end_offset >= MAX_OFFSETS
        return roll(log, first_offset if is_far else None)
    is_due = (segment.size and _is_aged(log, segment, timestamp, now_ms)) or (
        # The index can only fill up when an entry is due.
        segment.bytes_since_index > config.index_interval_bytes
        and segment.is_index_full(config.segment_index_bytes)
    )
    return roll(log) if is_due else segment


def _is_aged(log: LogState, segment: Segment, timestamp: int, now_ms: int) -> bool:
    return segment.waited_ms(now_ms, timestamp) > log.config.segment_ms - log.roll_jitter_ms


def begin_segment(home: LogHome, directory: str, base_offset: int, config: LogConfig) -> Segment:
    """A new segment to append to, with the whole of its file when `preallocate` asks for it.

    When it raises, nothing is left of it: the segment before it goes on, and what that takes would
    be looked for in this one after a restart.
    """
    try:
        segment = Segment.create(home.disk, directory, base_offset, home.env.clock.now_ms())
        if config.preallocate:
            segment.log.reserve(config.segment_bytes)
    except OSError:
        kinds = (LOG, INDEX, TIME_INDEX)
        home.remove_now([f"{directory}/{offset_name(base_offset, kind)}" for kind in kinds])
        raise
    return segment


def roll(log: LogState, next_offset: int | None = None) -> Segment:
    """Begins a new segment at the log's end, or at a later offset that comes next."""
    old, base_offset = log.active, max(log.log_end_offset, next_offset or 0)
    if old.base_offset == base_offset:
        return old  # empty: nothing can be gained by another one
    home = log.home
    log.take_snapshot(base_offset)
    old.finish()
    log.seal(old, base_offset)
    log.durability.segment_completed(old.base_offset)
    try:
        segment = begin_segment(home, log.directory, base_offset, log.config)
    except OSError:
        old.seal = None  # it goes on
        raise
    log.add_segment(segment)
    log.draw_jitter()
    log.flush()
    return segment
