"""Chooses the log that needs compaction most, and remembers how far each is clean.

Owns the `cleaner-offset-checkpoint` and which logs are left alone. One pass runs at a time for the
whole broker (see `cleaning`). Invariant: a log that cannot be compacted keeps no other waiting.
"""

from __future__ import annotations

import logging
from collections import Counter

from kafkalite.env.clock import Timer
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.slicing import Steps, Work
from kafkalite.log.cleaning import Dirt, Pass
from kafkalite.log.config import FOREVER
from kafkalite.log.directory import LogDirectory
from kafkalite.log.log_table import LogTable
from kafkalite.log.names import CLEANER_OFFSETS
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.segment import Segment
from kafkalite.protocol.errors import KafkaError

logger = logging.getLogger(__name__)

TopicPartition = tuple[str, int]
LOOKED_AT_PER_STEP = 256


@dataclass(slots=True)
class Hindrance:
    """What keeps a log from being chosen."""

    until_ms: int
    segment: Segment | None  # while the log has it, however long

    def holds(self, log: PartitionLog, now_ms: int) -> bool:
        return now_ms < self.until_ms or self.segment in log.segments


def measure(log: PartitionLog, cleaned_to: int, now_ms: int) -> Dirt | None:
    """What of a log could be cleaned; None when nothing."""
    first_dirty = max(cleaned_to, log.log_start_offset)
    if first_dirty > log.active.base_offset:
        first_dirty = log.log_start_offset  # the log was cut below what was cleaned
    end = _end_of_cleanable(log, first_dirty, now_ms)
    clean_bytes, dirty = 0, list[Segment]()
    for segment, following in zip(log.segments, log.bases[1:], strict=False):
        if segment.base_offset >= end:
            break
        if following > first_dirty:
            dirty.append(segment)
        else:
            clean_bytes += segment.size
    dirty_bytes = sum(segment.size for segment in dirty)
    if not dirty_bytes:
        return None
    ratio = dirty_bytes / (clean_bytes + dirty_bytes)
    return Dirt(log, first_dirty, end, ratio, _is_overdue(log, dirty, now_ms))


def _end_of_cleanable(log: PartitionLog, first_dirty: int, now_ms: int) -> int:
    """Where the first segment begins that a pass may not look at.

    One that holds the last stable offset is none of its business, nor is any behind it: what is
    read there would count though it is aborted later. And what recovery may have to look at stays
    as it was written: there a gap means a loss.
    """
    limit = min(log.last_stable_offset, log.recovery_point)
    end = log.bases[max(0, log.slot_of(limit))]
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in log.segments[:-1]:
            is_dirty = segment.base_offset >= first_dirty
            if is_dirty and segment.max_timestamp[0] > now_ms - lag_ms:
                return min(end, segment.base_offset)
    return end


def _is_overdue(log: PartitionLog, dirty: list[Segment], now_ms: int) -> bool:
    lag_ms = log.config.max_compaction_lag_ms
    if lag_ms >= FOREVER:
        return False
    oldest_ms = min((s.first_timestamp for s in dirty if s.first_timestamp > 0), default=now_ms)
    return oldest_ms < now_ms - max(lag_ms, 0)


class Cleaner:
    """The compaction of one broker."""

    def __init__(self, logs: LogTable) -> None:
        self._logs = logs
        self._offsets: dict[int, dict[TopicPartition, int]] = {}  # by directory
        self._hindered: dict[TopicPartition, Hindrance] = {}
        self._timer: Timer | None = None
        self.is_running = False
        self._choosing: Work | None = None
        self.dirtiest_ratio = 0.0  # at the last look
        self.looked_ms = logs.env.clock.monotonic_ms()
        self._asked_for: set[TopicPartition] = set()  # whatever there is to clean of them
        self._is_saving = False  # soon, for all that is forgotten in this turn

    def start(self) -> None:
        for directory in self._logs.directories:
            if directory.home.is_online:
                self._offsets[id(directory)] = directory.all_saved(CLEANER_OFFSETS)
        self.save()
        if self._logs.settings.log_cleaner_enable:
            self._later(self._logs.settings.log_cleaner_backoff_ms)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.is_running = False
        if self._choosing is not None:
            self._choosing = None
            self._logs.env.slices.drop(self)

    def clean_now(self, log: PartitionLog) -> None:
        """Has a log cleaned, however little of it is dirty."""
        self._asked_for.add((log.topic, log.partition))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.run()

    def _is_there(self, log: PartitionLog) -> bool:
        return self._logs.get(log.topic, log.partition) is log

    def _later(self, delay_ms: int) -> None:
        self._timer = self._logs.env.clock.call_later(delay_ms, self.run)

    def cleaned_to(self, log: PartitionLog) -> int:
        """The offset up to which a log is clean; the checkpoint of its directory says so."""
        offsets = self._offsets.get(id(self._logs.directory_of(log)), {})
        return offsets.get((log.topic, log.partition), 0)

    # --- choosing ---------------------------------------------------------------------------------

    def choose(self) -> Steps[Dirt | None]:
        """The log with the largest share of dirt among those that have enough of it."""
        now_ms = self._logs.env.clock.now_ms()
        best: Dirt | None = None
        dirtiest_ratio = 0.0
        for count, log in enumerate(self._logs, 1):
            if count % LOOKED_AT_PER_STEP == 0:
                yield
            if not log.config.is_compacted or not log.home.is_online or len(log.segments) < 2:
                continue
            if self._is_hindered(log) or not self._is_there(log):
                continue
            if log.recovery_point < log.active.base_offset:
                log.flush()  # for the next look; after a kill the next roll may be far
            try:
                dirt = measure(log, self.cleaned_to(log), now_ms)
            except (OSError, KafkaError) as error:
                self._cannot_begin(log, error)
                continue
            if dirt is None:
                continue
            dirtiest_ratio = max(dirtiest_ratio, dirt.ratio)
            is_enough = dirt.is_overdue or dirt.ratio > log.config.min_cleanable_dirty_ratio
            is_enough = is_enough or (log.topic, log.partition) in self._asked_for
            if is_enough and (best is None or dirt.ratio > best.ratio):
                best = dirt
        self.dirtiest_ratio = dirtiest_ratio
        self.looked_ms = self._logs.env.clock.monotonic_ms()
        return best

    def uncleanable(self) -> Counter[str]:
        """How many logs of each directory cannot be read by a pass."""
        found = Counter({each.path: 0 for each in self._logs.directories})
        for name, hindrance in self._hindered.items():
            log = self._logs.get(*name)
            if log is not None and hindrance.segment in log.segments:
                found[self._logs.directory_of(log).path] += 1
        return found

    def _is_hindered(self, log: PartitionLog) -> bool:
        name = log.topic, log.partition
        hindrance = self._hindered.get(name)
        if hindrance is None:
            return False
        if not hindrance.holds(log, self._logs.env.clock.monotonic_ms()):
            del self._hindered[name]
            return False
        return True

    def run(self) -> None:
        """Begins a pass over the dirtiest log, or looks again later."""
        if self.is_running or self._choosing is not None:
            return
        self._choosing = Work(self.choose(), self._chosen, self._not_chosen, owner=self)
        self._logs.env.slices.begin(self._choosing)

    def _chosen(self, dirt: Dirt | None) -> None:
        self._choosing = None
        if dirt is None:
            self._asked_for.clear()
            self.save()
            self._later(self._logs.settings.log_cleaner_backoff_ms)
            return
        if not self._is_there(dirt.log) or not dirt.log.config.is_compacted:
            self._later(0)  # it was deleted, or is to keep all, since it was looked at
            return
        try:
            begun = Pass(self._logs, dirt, self._passed)
        except (OSError, KafkaError) as error:
            self._cannot_begin(dirt.log, error)
            self._later(0)
            return
        self.is_running = True
        begun.start()

    def _not_chosen(self) -> None:
        """What went wrong once must not be the last time."""
        if self._choosing is not None:
            self._choosing = None
            self._later(self._logs.settings.log_cleaner_backoff_ms)

    def _cannot_begin(self, log: PartitionLog, error: OSError | KafkaError) -> None:
        """Of a log that cannot even be looked at: it is not, while its first segment is there."""
        if isinstance(error, OSError):
            log.storage_error(error)
            self._hinder(log, None)
            return
        logger.error(
            "%s is not compacted any more: %s. It is tried again when its first segment is gone or"
            " the broker starts anew; other partitions go on as before", log.directory, error,
        )  # fmt: skip
        self._hinder(log, log.segments[0])

    def _passed(self, done: Pass, end_offset: int | None) -> None:
        """A pass is over: successfully up to an offset, or not at all. Others come next."""
        if not self.is_running:
            return
        self._logs.compactions += end_offset is not None
        self._logs.failed_compactions += end_offset is None
        self.is_running = False
        self._asked_for.discard((done.log.topic, done.log.partition))
        if end_offset is None:
            self._hinder(done.log, done.hindering)
        elif self._is_there(done.log):
            self._remember(done, end_offset)
        self._later(0)

    def _hinder(self, log: PartitionLog, segment: Segment | None) -> None:
        """For a while, and while the log has the segment."""
        until_ms = self._logs.env.clock.monotonic_ms()
        until_ms += self._logs.settings.log_cleaner_backoff_ms
        self._hindered = {k: v for k, v in self._hindered.items() if self._logs.get(*k)}
        self._hindered[log.topic, log.partition] = Hindrance(until_ms, segment)

    def _remember(self, done: Pass, end_offset: int) -> None:
        directory = done.directory
        offsets = dict(self._offsets.get(id(directory), {}))
        offsets[done.log.topic, done.log.partition] = end_offset
        self._offsets[id(directory)] = offsets
        self.save()

    # --- the checkpoint ---------------------------------------------------------------------------

    def forget(self, log: PartitionLog) -> None:
        """A log leaves its directory, deleted or moved: the checkpoint tells of it no more."""
        offsets = self._offsets.get(id(self._logs.directory_of(log)), {})
        if offsets.pop((log.topic, log.partition), None) is None or self._is_saving:
            return
        self._is_saving = True
        self._logs.env.clock.call_later(0, self.save)

    def save(self) -> None:
        self._is_saving = False
        for directory in self._logs.directories:
            if id(directory) in self._offsets:
                directory.write_later(CLEANER_OFFSETS, self._known(directory))

    def close(self, directory: LogDirectory) -> None:
        """The checkpoint as it is to be found by the next who starts here."""
        if id(directory) in self._offsets:
            directory.write(CLEANER_OFFSETS, self._known(directory))

    def _known(self, directory: LogDirectory) -> dict[TopicPartition, int]:
        """Of logs that lie in the directory: when two directories tell of one, Apache Kafka's
        cleaner ends at its start, for all of them."""
        known = {}
        for name, offset in self._offsets[id(directory)].items():
            log = self._logs.get(*name)
            if log is not None and log.home is directory.home:
                known[name] = offset
        self._offsets[id(directory)] = known
        return dict(known)
