"""Opens one partition's log from its directory.

Owns the way from files to a `PartitionLog`: after a clean stop without reading more than the
end, after any other by recovery from the recovery point. It runs on a worker thread and leaves
no file open. Invariant: what it returns is what the files say, and the files say the same when
it is run again.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from kafkalite.env.disk import Disk
from kafkalite.log import leftovers
from kafkalite.log.checkpoints import CorruptFile, read_partition_metadata
from kafkalite.log.config import LogConfig
from kafkalite.log.epochs import LeaderEpochs
from kafkalite.log.flusher import FlushWork, sync_all
from kafkalite.log.home import LogHome
from kafkalite.log.names import (
    INDEX,
    LOG,
    PARTITION_METADATA,
    TIME_INDEX,
    is_offset_name,
    offset_name,
    offset_of,
)
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.producers import Producers
from kafkalite.log.recovery import Progress, Recovery, is_hole, recover, restart, whole_batches
from kafkalite.log.replay import load_snapshot, replay
from kafkalite.log.segment import Segment
from kafkalite.log.snapshots import snapshot_offsets, snapshot_path
from kafkalite.records.errors import CorruptRecords

logger = logging.getLogger(__name__)

UNKNOWN_TOPIC_ID = bytes(16)


@dataclass(slots=True)
class Opening:
    """What is known of a log before its directory is looked at."""

    topic: str
    partition: int
    directory: str
    config: LogConfig
    recovery_point: int = 0
    log_start_offset: int = 0
    is_clean: bool = False


def load_log(home: LogHome, opening: Opening, progress: Progress | None = None) -> PartitionLog:
    """Opens a log; raises OSError when the disk fails."""
    return _Loader(home, opening, progress or Progress()).load()


class _Loader:
    """One log on its way from files to memory."""

    def __init__(self, home: LogHome, opening: Opening, progress: Progress) -> None:
        self.home = home
        self.disk: Disk = home.disk
        self.opening = opening
        self.directory = opening.directory
        self.progress = progress
        self.names = leftovers.settle(self.disk, opening.directory)
        self.epochs_changed = False

    def load(self) -> PartitionLog:
        leftovers.remove_orphans(self.disk, self.directory, self.names)
        segments = self._segments()
        epochs = self._epochs(segments)
        producers = None
        if self.opening.is_clean:
            segments, producers = self._open_clean(segments, epochs)
        else:
            segments, producers = self._recover(segments, epochs)
        log = self._log(segments, epochs, producers)
        log.release()
        return log

    # --- segments ---------------------------------------------------------------------------------

    def _segments(self) -> list[Segment]:
        segments = []
        for name in self.names:
            if is_offset_name(name, LOG):
                base_offset = offset_of(name)
                path = f"{self.directory}/{name}"
                segments.append(
                    Segment(
                        self.disk,
                        self.directory,
                        base_offset,
                        self.disk.size_of(path),
                        self.disk.modified_ms(path),
                    )
                )
        return segments or [self._first_segment()]

    def _first_segment(self) -> Segment:
        now_ms = self.home.env.clock.now_ms()
        start = self.opening.log_start_offset
        self.names.extend(offset_name(start, kind) for kind in (LOG, INDEX, TIME_INDEX))
        return Segment.create(self.disk, self.directory, start, now_ms)

    def _has_indexes(self, segment: Segment) -> bool:
        base_offset = segment.base_offset
        return all(offset_name(base_offset, kind) in self.names for kind in (INDEX, TIME_INDEX))

    def _rebuild_indexes(self, segment: Segment) -> None:
        """For a segment that is known to be on stable storage, but whose indexes are not there."""
        logger.warning("%s: its indexes are missing and are built anew", segment.path(LOG))
        size = segment.size
        aborted = list(segment.txn_index.entries)
        restart(segment)
        interval = self.opening.config.index_interval_bytes
        try:
            for _, header in whole_batches(segment, size):
                segment.note(header.last_offset, header.max_timestamp, header.size, interval)
        except CorruptRecords as error:
            logger.error("%s is damaged at position %d: %s", segment.path(LOG), segment.size, error)
            segment.size = size
        for transaction in aborted:
            segment.txn_index.append(transaction)
        segment.finish()
        segment.close()
        # It lies below the recovery point, where nothing is looked at again after the next crash.
        files = [segment.path(kind) for kind in (INDEX, TIME_INDEX)]
        sync_all(self.disk, [FlushWork(0, 0, files, [self.directory])])

    # --- epochs -----------------------------------------------------------------------------------

    def _epochs(self, segments: list[Segment]) -> LeaderEpochs:
        try:
            epochs = LeaderEpochs.load(self.disk, self.directory)
        except CorruptFile as error:
            logger.warning("the leader epochs are rebuilt from the log: %s", error)
            epochs = LeaderEpochs()
        if epochs.latest < 0:
            self._rebuild_epochs(epochs, segments)
        return epochs

    def _rebuild_epochs(self, epochs: LeaderEpochs, segments: list[Segment]) -> None:
        """From the segments that recovery will not look at anyway."""
        if not self.opening.is_clean:
            segments = segments[: _first_unflushed(segments, self.opening.recovery_point)]
        for segment in segments:
            try:
                for header in segment.walk(0):
                    if header.partition_leader_epoch >= 0:
                        epochs.assign(header.partition_leader_epoch, header.base_offset)
                        self.epochs_changed = True
            except CorruptRecords as error:
                logger.error("%s is damaged: %s", segment.path(LOG), error)
                return

    # --- after a clean stop -----------------------------------------------------------------------

    def _open_clean(
        self, segments: list[Segment], epochs: LeaderEpochs
    ) -> tuple[list[Segment], Producers]:
        for segment in segments:
            if not self._has_indexes(segment):
                self._rebuild_indexes(segment)
        try:
            end_offset = segments[-1].next_offset()
        except (CorruptRecords, OSError) as error:
            if isinstance(error, OSError):
                raise
            logger.warning("%s is damaged: %s", segments[-1].path(LOG), error)
            self.opening.is_clean = False
            return self._recover(segments, epochs)
        offsets = snapshot_offsets(self.names)
        producers = self._producers_before(
            segments, offsets, end_offset, is_scan_needed=bool(offsets)
        )
        return segments, producers

    def _producers_before(
        self, segments: list[Segment], offsets: list[int], offset: int, *, is_scan_needed: bool
    ) -> Producers:
        """The producers as they were at an offset, from the newest snapshot up to it and the
        log."""
        producers = Producers(lambda state: [], segments[0].base_offset)
        usable = [snapshot for snapshot in offsets if snapshot <= offset]
        now_ms = self.home.env.clock.now_ms()
        oldest_ms = now_ms - self.home.settings.producer_id_expiration_ms
        load_snapshot(self.disk, self.directory, usable, producers, oldest_ms)
        if is_scan_needed and producers.end_offset < offset:
            replay(producers, segments, offset)
        producers.end_offset = offset
        return producers

    # --- after any other --------------------------------------------------------------------------

    def _recover(
        self, segments: list[Segment], epochs: LeaderEpochs
    ) -> tuple[list[Segment], Producers]:
        first = _first_unflushed(segments, self.opening.recovery_point)
        sound, doubtful = segments[:first], segments[first:]
        for segment in sound:
            if not self._has_indexes(segment):
                self._rebuild_indexes(segment)
        if sound:
            _drop_hole(sound[-1])
        base_offset = doubtful[0].base_offset
        if epochs.truncate_end(base_offset):
            self.epochs_changed = True
        # Snapshots behind may speak of batches that the crash took: the scan makes them anew.
        for offset in snapshot_offsets(self.names):
            if offset > base_offset:
                self.disk.remove(snapshot_path(self.directory, offset))
        producers = self._producers_before(
            sound or doubtful, snapshot_offsets(self.names), base_offset, is_scan_needed=bool(sound)
        )
        before = epochs.entries()
        self.progress.bytes_expected += sum(segment.size for segment in doubtful)
        recovery = Recovery(
            self.disk, producers, epochs, self.opening.config.index_interval_bytes, self.progress
        )
        remaining = recover(recovery, doubtful)
        self.epochs_changed |= epochs.entries() != before
        return sound + remaining, producers

    # --- the result -------------------------------------------------------------------------------

    def _log(
        self, segments: list[Segment], epochs: LeaderEpochs, producers: Producers
    ) -> PartitionLog:
        opening, home = self.opening, self.home
        end_offset = producers.end_offset
        if end_offset < opening.log_start_offset:
            logger.warning(
                "%s ends at %d, before its start at %d: it begins anew there",
                self.directory,
                end_offset,
                opening.log_start_offset,
            )
        topic_id = topic_id_in(self.disk, self.directory)
        log = PartitionLog(
            home,
            opening.topic,
            opening.partition,
            topic_id,
            self.directory,
            opening.config,
            segments,
        )
        log.epochs = epochs
        log.loaded(
            end_offset,
            end_offset if opening.is_clean else min(opening.recovery_point, end_offset),
            producers if len(producers) else None,
            self._newest_snapshot(end_offset),
        )
        if not opening.is_clean or not log.active.size:
            # A process that died, or a machine, may have left names here that nobody synced; and a
            # clean stop does not sync those of files that hold nothing.
            log.durability.directory_changed(is_new=True)
        if end_offset < opening.log_start_offset:
            log.truncate_fully_and_start_at(opening.log_start_offset)
        log.log_start_offset = max(opening.log_start_offset, segments[0].base_offset)
        self.epochs_changed |= epochs.truncate_end(max(end_offset, log.log_start_offset))
        self.epochs_changed |= epochs.truncate_start(log.log_start_offset)
        if self.epochs_changed:
            log.durability.epochs_changed()
        log.high_watermark = log.log_start_offset
        return log

    def _newest_snapshot(self, end_offset: int) -> int:
        offsets = snapshot_offsets(self.disk.list_directory(self.directory))
        return max((offset for offset in offsets if offset <= end_offset), default=0)


def topic_id_in(disk: Disk, directory: str) -> bytes:
    """Of the topic that the log in a directory belongs to."""
    try:
        return read_partition_metadata(disk, f"{directory}/{PARTITION_METADATA}")
    except FileNotFoundError:
        return UNKNOWN_TOPIC_ID
    except CorruptFile as error:
        logger.warning("the topic id is not known: %s", error)
        return UNKNOWN_TOPIC_ID


def _drop_hole(segment: Segment) -> None:
    """Of the last complete segment, which was preallocated: a crash may have undone its cut."""
    position = segment.index.lookup(segment.index.last_offset)
    try:
        for header in segment.walk(position):
            position = header.position + header.size
    except CorruptRecords:
        if is_hole(segment, position, segment.size):
            segment.size = position
            segment.drop_tail()
            segment.log.sync()


def _first_unflushed(segments: list[Segment], recovery_point: int) -> int:
    """The index of the first segment that may hold records from the recovery point on."""
    for index in range(len(segments) - 1):
        if segments[index + 1].base_offset > recovery_point:
            return index
    return len(segments) - 1
