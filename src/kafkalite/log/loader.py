"""Opens one partition's log from its directory.

Owns the way from files to a `PartitionLog`: after a clean stop without reading more than the
end, after any other by recovery from the recovery point. It runs on a worker thread and leaves
no file open. Invariant: what it returns is what the files say, and the files say the same when
it is run again.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial

from kafkalite.env.dataclasses import dataclass
from kafkalite.env.disk import Disk
from kafkalite.env.slicing import finish
from kafkalite.log import interrupted
from kafkalite.log.checkpoints import (
    CorruptFile,
    read_partition_metadata,
    write_partition_metadata,
)
from kafkalite.log.config import LogConfig
from kafkalite.log.epochs import LeaderEpochs
from kafkalite.log.flusher import FlushWork, sync_all
from kafkalite.log.home import LogHome
from kafkalite.log.names import (
    INDEX,
    LOG,
    METADATA_DIRECTORY,
    PARTITION_METADATA,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    is_offset_name,
    offset_name,
    offset_of,
)
from kafkalite.log.offline import UNKNOWN_TOPIC_ID
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.producers import Producers
from kafkalite.log.recovery import Progress, Recovery, is_hole, rebuild, recover
from kafkalite.log.replay import load_snapshot, replay
from kafkalite.log.seals import SEALS, Seals, checksum_of, read_seals
from kafkalite.log.segment import Segment
from kafkalite.log.snapshots import snapshot_offsets, snapshot_path
from kafkalite.records.errors import CorruptRecords

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Opening:
    """What is known of a log before its directory is looked at."""

    topic: str
    partition: int
    directory: str
    config: LogConfig
    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int | None = None
    cleaned_to: int = 0
    is_clean: bool = False
    is_closed_here: bool = False  # and by no other broker


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
        self.names = interrupted.settle(self.disk, opening.directory)
        self.epochs_changed = False
        self.doubted_epochs: LeaderEpochs | None = None  # as the file has them: not as was sealed
        self.seals: Seals | None = None
        if not self.directory.endswith(f"/{METADATA_DIRECTORY}"):
            self.seals = read_seals(
                self.disk, self.directory, opening.topic, opening.partition,
                is_clean=opening.is_clean,
            )  # fmt: skip
        self.is_unchanged = False  # since the clean stop that sealed it
        self.is_strict = False  # whether files that are not sealed are not to be believed

    def load(self) -> PartitionLog:
        interrupted.remove_orphans(self.disk, self.directory, self.names)
        segments = interrupted.without_unbegun(self.disk, self._segments(), self.seals)
        self._look_at_seals(segments)
        self.opening.log_start_offset = self._log_start()
        epochs = self._epochs(segments)
        open_log = self._open_clean if self.opening.is_clean else self._recover
        segments, producers = open_log(segments, epochs)
        log = self._log(segments, epochs, self._known_behind_the_start(segments, producers))
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

    def _look_at_seals(self, segments: list[Segment]) -> None:
        seals = self.seals
        if seals is None:
            return
        last = seals.segments.get(segments[-1].base_offset)
        is_last_same = last is not None and last.log_size == segments[-1].size
        self.is_unchanged = self.opening.is_clean and seals.closed is not None and is_last_same
        if seals.is_damaged:
            logger.warning("%s/%s is damaged: all is built anew", self.directory, SEALS)
        elif self.opening.is_clean and not self.is_unchanged:
            return  # another broker wrote here, and stopped cleanly
        self.is_strict = seals.is_complete

    def _is_sound(self, segment: Segment) -> bool:
        """Whether the indexes of a whole segment are there, and what they were left as."""
        base_offset = segment.base_offset
        seal = self.seals.segments.get(base_offset) if self.seals is not None else None
        if not all(offset_name(base_offset, kind) in self.names for kind in (INDEX, TIME_INDEX)):
            return False
        if seal is None or seal.log_size != segment.size:
            return not self.is_strict
        if not segment.has_sealed_files(seal):
            return False
        segment.trust(seal)
        return True

    def _rebuild_doubtful(self, segments: list[Segment]) -> None:
        """Of segments that are whole, but whose indexes are not there or not what was left."""
        producers: Producers | None = None
        for number, segment in enumerate(segments):
            if self._is_sound(segment):
                producers = None
                continue
            # After a kill of Apache Kafka, whose cleaner was here, that is nothing to wonder at.
            level = logging.WARNING if self.opening.is_clean else logging.INFO
            logger.log(level, "%s: its indexes are built anew from its records", segment.path(LOG))
            if producers is None:
                producers = self._producers_before(
                    segments[: number or 1], self._snapshots, segment.base_offset,
                    is_scan_needed=number > 0,
                )  # fmt: skip
            rebuild(
                self.disk, producers, segment, self.opening.config.index_interval_bytes,
                self.progress,
            )  # fmt: skip
            # It lies below the recovery point, where nothing is looked at after the next crash.
            files = [segment.path(kind) for kind in (INDEX, TIME_INDEX, TXN_INDEX)]
            files = [path for path in files if self.disk.exists(path)]
            sync_all(self.disk, [FlushWork(0, 0, files, [self.directory])])

    @property
    def _snapshots(self) -> list[int]:
        return snapshot_offsets(self.names)

    # --- epochs -----------------------------------------------------------------------------------

    def _epochs(self, segments: list[Segment]) -> LeaderEpochs:
        seals = self.seals
        sealed = seals.epochs if seals is not None else None
        try:
            epochs = LeaderEpochs.load(self.disk, self.directory)
        except CorruptFile as error:
            logger.warning("the leader epochs are rebuilt from the log: %s", error)
            epochs = LeaderEpochs()
        if sealed is not None and self.is_unchanged:
            self.epochs_changed = epochs.entries() != sealed
            return LeaderEpochs.of(sealed)
        if self.is_strict and epochs.entries() != sealed:
            self.doubted_epochs, epochs = epochs, LeaderEpochs()
        if epochs.latest < 0:
            self._rebuild_epochs(epochs, segments)
        return epochs

    def _rebuild_epochs(self, epochs: LeaderEpochs, segments: list[Segment]) -> None:
        """From the segments that recovery will not look at anyway."""
        if not self.opening.is_clean:
            segments = segments[: _first_unflushed(segments, self.opening.recovery_point)]
        first = segments[0].base_offset if segments else 0
        for segment in segments:
            try:
                for header in segment.walk(0):
                    if header.partition_leader_epoch >= 0:
                        # What is compacted away at the start was of the first one, or of none.
                        start = header.base_offset if epochs.latest >= 0 else first
                        epochs.assign(header.partition_leader_epoch, start)
                        self.epochs_changed = True
            except CorruptRecords as error:
                logger.error("%s is damaged: %s", segment.path(LOG), error)
                return

    # --- after a clean stop -----------------------------------------------------------------------

    def _open_clean(
        self, segments: list[Segment], epochs: LeaderEpochs
    ) -> tuple[list[Segment], Producers]:
        try:
            self._rebuild_doubtful(segments)
            end_offset = _end_of(segments[-1])
        except CorruptRecords as error:
            if self.is_unchanged:
                raise  # all of it had been there: to cut it would be to lose what is whole
            logger.warning("%s: its end is damaged: %s", self.directory, error)
            self.opening.is_clean = False
            self.opening.recovery_point = segments[-1].base_offset  # nothing else is cut
            return self._recover(segments, epochs)
        return segments, self._producers_before(segments, self._snapshots, end_offset)

    def _producers_before(
        self,
        segments: list[Segment],
        offsets: list[int],
        offset: int,
        *,
        is_scan_needed: bool = True,
    ) -> Producers:
        """The producers as they were at an offset, from the newest snapshot up to it and the
        log. What lies before the log's start tells of nobody, as in Kafka."""
        start = self.opening.log_start_offset
        producers = Producers(lambda state: [], max(segments[0].base_offset, start))
        usable = [snapshot for snapshot in offsets if start < snapshot <= offset]
        while usable and not self._is_snapshot_sound(usable[-1]):
            self._forget_snapshot(usable.pop())
        sound = list(usable)
        now_ms = self.home.env.clock.now_ms()
        oldest_ms = now_ms - self.home.settings.producer_id_expiration_ms
        load_snapshot(self.disk, self.directory, sound, producers, oldest_ms)
        for broken in usable[len(sound) :]:
            self.names.remove(offset_name(broken, SNAPSHOT))
        if is_scan_needed and producers.end_offset < offset:
            finish(replay(producers, segments, offset))
        producers.end_offset = offset
        return producers

    def _known_behind_the_start(self, segments: list[Segment], found: Producers) -> Producers:
        """In an empty log nobody is known, whatever was deleted from it."""
        start = max(self.opening.log_start_offset, segments[0].base_offset)
        return found if found.end_offset > start else Producers(lambda state: [], found.end_offset)

    def _is_snapshot_sound(self, offset: int) -> bool:
        """Whether a snapshot is the one that was written at its offset."""
        sealed = self.seals.snapshots.get(offset) if self.seals is not None else None
        if sealed is None:
            return not self.is_strict
        path = snapshot_path(self.directory, offset)
        if checksum_of(self.disk, path) == sealed:
            return True
        logger.warning("%s is damaged: the producers are looked for in the log", path)
        return False

    def _forget_snapshot(self, offset: int) -> None:
        self.disk.remove(snapshot_path(self.directory, offset))
        self.names.remove(offset_name(offset, SNAPSHOT))

    # --- after any other --------------------------------------------------------------------------

    def _recover(
        self, segments: list[Segment], epochs: LeaderEpochs
    ) -> tuple[list[Segment], Producers]:
        first = _first_unflushed(segments, self.opening.recovery_point)
        sound, doubtful = segments[:first], segments[first:]
        if sound:
            _drop_hole(sound[-1])
        self._rebuild_doubtful(sound)
        base_offset = doubtful[0].base_offset
        if epochs.truncate_end(base_offset):
            self.epochs_changed = True
        # Snapshots behind may speak of batches that the crash took: the scan makes them anew.
        for offset in self._snapshots:
            if offset > base_offset:
                self._forget_snapshot(offset)
        producers = self._producers_before(
            sound or doubtful, self._snapshots, base_offset, is_scan_needed=bool(sound)
        )
        before = epochs.entries()
        self.progress.bytes_expected += sum(segment.size for segment in doubtful)
        recovery = Recovery(
            self.disk, producers, epochs, self.opening.config.index_interval_bytes, self.progress,
            self._is_next,
        )  # fmt: skip
        remaining = recover(recovery, doubtful)
        # As those of a snapshot, whether they are found there or in the log.
        producers.expire(
            self.home.env.clock.now_ms(), self.home.settings.producer_id_expiration_ms
        )
        self.epochs_changed |= epochs.entries() != before
        return sound + remaining, producers

    def _is_next(self, segment: Segment, base_offset: int) -> bool | None:
        """The seal of a segment that is whole tells. Compaction leaves gaps, but where it was, all
        had lasted before."""
        opening, seals, first = self.opening, self.seals, segment.base_offset
        seal = seals.segments.get(first) if seals is not None else None
        is_whole = seal is not None and seal.log_size == segment.log.size()
        if is_whole and seals is not None and first in seals.next_offsets:
            return seals.next_offsets[first] == base_offset
        is_compacted = base_offset <= max(opening.cleaned_to, opening.recovery_point)
        return True if is_compacted else None

    # --- the result -------------------------------------------------------------------------------

    def _log(
        self, segments: list[Segment], epochs: LeaderEpochs, producers: Producers
    ) -> PartitionLog:
        opening, home = self.opening, self.home
        end_offset = producers.end_offset
        self._compare_end(end_offset)
        known = opening.high_watermark
        if known is not None and max(known, end_offset) < opening.log_start_offset:
            logger.warning(
                "%s: a start at %d, where it never reached, is passed over",
                self.directory,
                opening.log_start_offset,
            )
            opening.log_start_offset = 0
        if end_offset < opening.log_start_offset:
            logger.warning(
                "%s ends at %d, before its start at %d: it begins anew there",
                self.directory,
                end_offset,
                opening.log_start_offset,
            )
        topic_id, is_known = self._topic_id()
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
        log.seals = self._seals_of(log)
        log.loaded(
            end_offset,
            end_offset if opening.is_clean else min(opening.recovery_point, end_offset),
            producers if len(producers) or producers.first_unstable is not None else None,
            self._newest_snapshot(end_offset),
        )
        if not opening.is_clean or not log.active.size:
            # A process that died, or a machine, may have left names here that nobody synced; and a
            # clean stop does not sync those of files that hold nothing.
            log.durability.directory_changed(is_new=True)
        if not is_known:
            write_partition_metadata(self.disk, f"{self.directory}/{PARTITION_METADATA}", topic_id)
            log.durability.directory_changed(is_new=True)
        if end_offset < opening.log_start_offset:
            log.truncate_fully_and_start_at(opening.log_start_offset)
        start = max(opening.log_start_offset, segments[0].base_offset)
        log.begin_at(start, max(start, min(known or 0, log.log_end_offset)))  # cut by a crash
        log.epochs = self._fitting_epochs(log, epochs, end_offset)
        if self.epochs_changed:
            log.durability.epochs_changed()
        return log

    def _fitting_epochs(
        self, log: PartitionLog, found: LeaderEpochs, end_offset: int
    ) -> LeaderEpochs:
        """From where the log begins to where it ends: the file's if it contradicts no batch, also
        when it is not as was sealed. Apache Kafka, killed here after it went on, left what is
        right, and compaction may have taken the batches that would tell."""
        self.epochs_changed |= found.fit(log.log_start_offset, end_offset)
        doubted = self.doubted_epochs
        if doubted is None:
            return found
        doubted.fit(log.log_start_offset, end_offset)
        self.epochs_changed |= doubted.entries() != found.entries()
        if doubted.agrees_with(found, partial(_epoch_from, log)):
            return doubted
        logger.warning("%s: its leader epochs were not those of its log", self.directory)
        return found

    def _topic_id(self) -> tuple[bytes, bool]:
        """Whose the log is, and whether its file says so."""
        found = topic_id_in(self.disk, self.directory)
        sealed = self.seals.topic_id if self.seals is not None else b""
        if sealed in (b"", UNKNOWN_TOPIC_ID, found):
            return found, True
        logger.warning("%s/%s is written anew", self.directory, PARTITION_METADATA)
        return sealed, False

    def _seals_of(self, log: PartitionLog) -> Seals | None:
        """What is sealed from now on: all, once the log was stopped cleanly."""
        found = self.seals
        if log.seals is None:
            return None
        if found is None or found.is_damaged or (self.opening.is_clean and not self.is_unchanged):
            return Seals(log.topic, log.partition, log.topic_id, is_complete=False)
        found.segments, found.next_offsets = {}, {}
        return found

    def _compare_end(self, end_offset: int) -> None:
        closed = self.seals.closed if self.seals is not None else None
        if closed is not None and end_offset < closed.end_offset:
            logger.error(
                "%s ended at %d when it was closed, and ends at %d now: records are lost, and their"
                " offsets are given out again. Stop the broker and put a copy in place if there is"
                " one",
                self.directory,
                closed.end_offset,
                end_offset,
            )

    def _log_start(self) -> int:
        """What the checkpoint says, unless it is known better. Another broker may have raised it
        and left everything else as it was."""
        checkpointed = self.opening.log_start_offset
        closed = self.seals.closed if self.seals is not None else None
        if closed is None:
            return checkpointed
        is_known = self.is_unchanged and self.opening.is_closed_here
        return closed.start_offset if is_known else max(checkpointed, closed.start_offset)

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


def _end_of(segment: Segment) -> int:
    """The offset behind the last record of a segment, whatever its index says."""
    try:
        return segment.next_offset()
    except CorruptRecords:
        segment.rebuild_index()  # it led to what looked like a batch
        return segment.next_offset()


def _drop_hole(segment: Segment) -> None:
    """Of the last complete segment, which was preallocated: a crash may have undone its cut."""
    position = 0
    try:
        if segment.disk.exists(segment.path(INDEX)):
            position = segment.place_before(segment.index.last_offset)
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


def _epoch_from(log: PartitionLog, offset: int) -> int | None:
    """That of the first batch which holds an offset or lies behind it, if that one tells."""
    with suppress(CorruptRecords):
        for segment in log.segments[max(0, log.slot_of(offset)) :]:
            header = segment.find(offset)
            if header is not None:
                return header.partition_leader_epoch if header.magic == 2 else None
    return None
