"""One partition's log: the segments, and what is known of them in memory.

Owns every offset of the log but the high watermark's advance, and the error codes that a peer is
told; how a batch comes into it is `appending`'s. It never waits for a disk: what must last is
handed to the flusher of its directory. Invariant: log_start <= last_stable <= high_watermark <=
log_end, and offsets never change once given.

After a write that failed the file may hold a part of the batch behind `size`; nobody sees it, the
next append writes over it, and recovery cuts it. A disk that is full refuses the write and nothing
else; any other failure takes the directory offline.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps, finish
from kafkalite.log import appending, reader, rolling, truncation
from kafkalite.log.appending import AppendResult
from kafkalite.log.checkpoints import write_partition_metadata
from kafkalite.log.config import LogConfig
from kafkalite.log.durability import Durability
from kafkalite.log.epochs import LeaderEpochs
from kafkalite.log.flusher import FlushWork, sync_all
from kafkalite.log.home import LogHome
from kafkalite.log.names import METADATA_DIRECTORY, PARTITION_METADATA
from kafkalite.log.producers import (
    AppendOrigin,
    Producers,
    ProducerState,
    SeenBatch,
    Verification,
)
from kafkalite.log.reader import FoundOffset, LogRead, Place
from kafkalite.log.replay import look_back
from kafkalite.log.seals import SEALS, Closed, Seals
from kafkalite.log.segment import Segment
from kafkalite.log.snapshots import snapshot_offsets, write_snapshot
from kafkalite.log.txn_index import AbortedTransaction
from kafkalite.log.validator import Checked, Writable
from kafkalite.log.watermark import Watermark
from kafkalite.protocol.errors import Error, KafkaError

__all__ = ["AppendOrigin", "AppendResult", "FoundOffset", "LogRead", "PartitionLog"]


class PartitionLog:
    """The records of one partition on this broker's disk."""

    __slots__ = (
        "_snapshot_offset",
        "bases",
        "config",
        "directory",
        "durability",
        "epochs",
        "home",
        "is_future",
        "last_flush_ms",
        "leaving",
        "log_end_offset",
        "log_start_offset",
        "lost",
        "partition",
        "producers",
        "recovery_point",
        "roll_jitter_ms",
        "seals",
        "segments",
        "topic",
        "topic_id",
        "watermark",
    )

    def __init__(
        self,
        home: LogHome,
        topic: str,
        partition: int,
        topic_id: bytes,
        directory: str,
        config: LogConfig,
        segments: list[Segment],
    ) -> None:
        self.home = home
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.directory = directory
        self.config = config
        self.segments = segments
        self.leaving: list[Segment] = []  # out of the log, while somebody may still send from them
        self.bases = [segment.base_offset for segment in segments]
        self.epochs = LeaderEpochs()
        self.producers: Producers | None = None  # until a producer with an id comes
        self.log_start_offset = segments[0].base_offset
        self.log_end_offset = segments[-1].base_offset
        self.recovery_point = self.log_end_offset
        self.is_future = False
        self.lost: KafkaError | None = None  # why nothing more comes of it: deleted, moved, offline
        self.last_flush_ms = home.env.clock.now_ms()
        self.watermark = Watermark(home.env.clock, self.log_start_offset)
        self.durability = Durability(self, self.log_end_offset)
        self.seals: Seals | None = None
        if not directory.endswith(f"/{METADATA_DIRECTORY}"):  # who reads it needs offsets only
            self.seals = Seals(topic, partition, topic_id)
        self._snapshot_offset = self.log_end_offset  # nothing new for a snapshot before this
        self.roll_jitter_ms = rolling.draw_jitter(home, config)

    def __repr__(self) -> str:
        return f"PartitionLog({self.directory}, {self.log_start_offset}..{self.log_end_offset})"

    # --- offsets ----------------------------------------------------------------------------------

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def high_watermark(self) -> int:
        """Everything below it is replicated."""
        return self.watermark.offset

    def replicated(self, offset: int) -> bool:
        """Everything below an offset is, as whoever has the role for it knows; False when that is
        no news. The one way for the high watermark to rise, and nobody else calls it."""
        assert offset <= self.log_end_offset, f"{self} has nothing to replicate below {offset}"
        is_news = self.watermark.raise_to(offset)
        if is_news and self.producers is not None:
            self.producers.replicated(offset)
        return is_news

    def cut(self, end_offset: int) -> None:
        """Nothing is left above an offset, and nothing more was replicated."""
        self.log_end_offset = end_offset
        self.watermark.cut_to(end_offset)
        self.durability.truncated(end_offset)

    def begin_at(self, offset: int, high_watermark: int) -> None:
        """Nothing lies below an offset, in a log that is opened or made empty; and what is known to
        be replicated of it."""
        assert offset <= high_watermark <= self.log_end_offset
        self.log_start_offset = offset
        self.watermark.lower_to(high_watermark)
        self.watermark.raise_to(high_watermark)
        if self.producers is not None:
            self.producers.replicated(high_watermark)

    def take_watermark(self, other: PartitionLog) -> None:
        """Goes on where another log of this partition was, and with who waits there."""
        assert other.high_watermark <= self.log_end_offset
        self.watermark = other.watermark
        if self.producers is not None:
            self.producers.replicated(self.high_watermark)

    @property
    def last_stable_offset(self) -> int:
        """Below this every transaction is decided, and its decision replicated."""
        unstable = self.producers.first_unstable if self.producers is not None else None
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    @property
    def is_durable_on_append(self) -> bool:
        """Whether an append may be acknowledged before it is on stable storage."""
        return not self.config.is_fsynced

    # --- appending --------------------------------------------------------------------------------

    def append_as_leader(
        self,
        records: Writable | Checked,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        now_ms: int | None = None,
        *,
        verification: Verification | None = None,
        is_verified: bool = True,
        transaction_version: int = 0,
    ) -> AppendResult:
        """Gives a batch its offsets and writes it; raises KafkaError, and then nothing has changed.

        What was examined before (see `validator.examine`) is not looked at again.
        `is_verified` false asks for the proof (`verification`, see `start_verification`) that the
        coordinator of a transaction knows of this partition. `transaction_version` is that of the
        marker, when it is one.
        """
        return appending.append_as_leader(
            self, records, leader_epoch, origin, now_ms, verification, is_verified,
            transaction_version,
        )  # fmt: skip

    def append_as_follower(
        self, records: Writable, leader_epoch: int | None = None, now_ms: int | None = None
    ) -> AppendResult:
        """Writes batches as another broker's leader gave them out."""
        return appending.append_as_follower(self, records, leader_epoch, now_ms)

    def needed_producers(self) -> Producers:
        """Its producers, from now on if there were none."""
        if self.producers is None:
            self.producers = Producers(self.look_back, self.log_end_offset)
        return self.producers

    def begin_epoch(self, epoch: int) -> None:
        """A leader's epoch begins at the log's end; in an empty log its first batch says so."""
        if self.log_end_offset > 0 and self.epochs.assign(epoch, self.log_end_offset):
            self.durability.epochs_changed()

    def roll(self, next_offset: int | None = None) -> Segment:
        """Begins a new segment at the log's end, or at a later offset that comes next."""
        return rolling.roll(self, max(self.log_end_offset, next_offset or 0))

    def take_snapshot(self, offset: int) -> None:
        """Keeps the producers as they are at an offset, unless that was done."""
        if offset > self._snapshot_offset:
            path = write_snapshot(self.home.disk, self.directory, self.producers, offset)
            self.durability.snapshot_written(path)
            self._snapshot_offset = offset
            if self.seals is not None:
                self.seals.add_snapshot(self.home.disk, self.directory, offset)

    def seal(self, segment: Segment, next_offset: int) -> None:
        """A segment's files are complete, and the next one begins at an offset."""
        if self.seals is not None:
            self.seals.add_segment(self.home.disk, self.directory, segment, next_offset)

    # --- durability -------------------------------------------------------------------------------

    def when_durable(self, offset: int) -> Later[KafkaError | None]:
        """Filled once everything below an offset is on stable storage; with an error when that will
        never be: the log was cut, deleted or moved, or its directory failed."""
        return self.durability.when_durable(offset)

    def when_flushed(self, then: Callable[[], None]) -> None:
        """Flushes, and goes on when everything written so far is durable or cannot be made so."""
        self.flush()
        self.when_durable(self.log_end_offset).then(lambda _: then())

    def flush(self) -> None:
        """Has everything written so far made durable, and the recovery point moved."""
        if not self.durability.is_complete:
            self.durability.flush(is_complete=True)

    # --- reading ----------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        max_bytes: int,
        limit_offset: int | None = None,
        min_one_message: bool = True,
    ) -> LogRead:
        """Batches from the one that holds an offset on, none of which reaches to the limit."""
        end = self.log_end_offset
        if offset < self.log_start_offset or offset > end:
            raise KafkaError(
                Error.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not within {self.log_start_offset} to {end}",
            )
        limit = end if limit_offset is None else min(limit_offset, end)
        if offset >= limit:
            return LogRead(None, offset)
        try:
            return reader.read(self, offset, max_bytes, limit, min_one_message)
        except OSError as error:
            raise self.storage_error(error) from error

    def place_of(self, offset: int) -> Place:
        """Where in the files the batch of an offset begins, or would."""
        try:
            return reader.place_of(self, offset)
        except OSError as error:
            raise self.storage_error(error) from error

    def is_current(self, place: Place) -> bool:
        """Whether a place is still one of this log."""
        return reader.is_current(self, place)

    def offset_for_time(self, timestamp: int, limit: int | None = None) -> FoundOffset | None:
        """The first record at or after a time, or a place with a name (-1 to -6); None when there
        is none below the limit."""
        return finish(self.offset_for_time_in_steps(timestamp, limit))

    def offset_for_time_in_steps(
        self, timestamp: int, limit: int | None
    ) -> Steps[FoundOffset | None]:
        try:
            return (yield from reader.offset_for_time(self, timestamp, limit))
        except OSError as error:
            raise self.storage_error(error) from error

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest known epoch up to this one, and where it ends; (-1, -1) when that is not
        known."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def aborted_transactions(self, first: int, end: int) -> list[tuple[int, int]]:
        """Producer id and first offset of the aborted transactions with records in a range."""
        return [(found.producer_id, found.first_offset) for found in self.aborted(first, end)]

    def aborted(self, first: int, end: int) -> list[AbortedTransaction]:
        """The same with the offsets of their markers."""
        return reader.aborted(self, first, end)

    # --- producers --------------------------------------------------------------------------------

    def active_producers(self) -> list[ProducerState]:
        return list(self.producers) if self.producers is not None else []

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
    ) -> Verification | None:
        """What the first batch of a transaction must bring along; None when it needs nothing."""
        return self.needed_producers().start_verification(
            producer_id,
            sequence,
            epoch,
            self.home.env.clock.now_ms(),
            supports_epoch_bump=supports_epoch_bump,
        )

    def expire_producers(self, now_ms: int) -> None:
        if self.producers is not None:
            self.producers.expire(now_ms, self.home.settings.producer_id_expiration_ms)

    def look_back(self, state: ProducerState) -> list[SeenBatch]:
        """The batches of a producer before those of its snapshot."""
        return look_back(self.segments, state)

    # --- changing what is there -------------------------------------------------------------------

    def truncate_to(self, offset: int) -> bool:
        """Removes every batch that reaches an offset; True when there was one."""
        self.home.check_online()
        try:
            return truncation.truncate_to(self, offset)
        except OSError as error:
            raise self.storage_error(error) from error

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Empties the log; the next record gets the offset given."""
        self.home.check_online()
        try:
            truncation.truncate_fully(self, offset)
        except OSError as error:
            raise self.storage_error(error) from error

    def delete_records_before(self, offset: int) -> int:
        """Raises the log's start, at most to the high watermark (-1 means there); files go with
        retention."""
        self.home.check_online()
        offset = self.high_watermark if offset == -1 else offset
        if offset > self.high_watermark or offset < 0:
            raise KafkaError(
                Error.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not within {self.log_start_offset} to {self.high_watermark}",
            )
        self.raise_start(offset)
        return self.log_start_offset

    def raise_start(self, offset: int) -> None:
        """Forgets what lies below an offset, which is replicated."""
        if offset <= self.log_start_offset:
            return
        assert offset <= self.high_watermark, f"{self} is not replicated up to {offset}"
        self.log_start_offset = offset
        if self.epochs.truncate_start(offset):
            self.durability.epochs_changed()

    def add_segment(self, segment: Segment) -> None:
        slot = reader.slot_of(self.bases, segment.base_offset) + 1
        self.segments.insert(slot, segment)
        self.bases.insert(slot, segment.base_offset)
        self.durability.directory_changed()

    def drop_segment(self, segment: Segment) -> None:
        """Takes a segment out of the log; its files are the caller's now."""
        slot = self.segments.index(segment)
        del self.segments[slot]
        del self.bases[slot]
        self.durability.directory_changed()

    def loaded(
        self,
        end_offset: int,
        recovery_point: int,
        producers: Producers | None,
        snapshot_offset: int,
    ) -> None:
        """Takes over what was found in the files."""
        self.log_end_offset = end_offset
        self.recovery_point = recovery_point
        self.durability = Durability(self, recovery_point)
        if recovery_point < end_offset:
            self.durability.directory_changed(is_new=True)
        self._snapshot_offset = snapshot_offset
        self.producers = producers
        if producers is not None:
            producers.look_back = self.look_back

    def snapshot_taken(self, offset: int) -> None:
        """The newest snapshot of the producers is that of an offset."""
        self._snapshot_offset = offset

    # --- the end ----------------------------------------------------------------------------------

    @property
    def tells_its_topic(self) -> bool:
        """Whether what is left after a power cut says whose it is."""
        return self.topic_id != bytes(16) and self.durability.is_named

    def tell_topic(self, topic_id: bytes) -> None:
        """Says whose it is, which its own file could not tell."""
        self.topic_id = topic_id
        path = f"{self.directory}/{PARTITION_METADATA}"
        try:
            write_partition_metadata(self.home.disk, path, topic_id)
        except OSError as error:
            raise self.storage_error(error) from error
        self.durability.directory_changed(is_new=True)

    def moved(self, directory: str) -> None:
        """The directory has another name now."""
        self.durability.moved(self.directory, directory)
        self.directory = directory
        for segment in (*self.segments, *self.leaving):
            segment.moved(directory, segment.suffix)

    def end(self, error: KafkaError) -> None:
        """Out of service, and why: whoever waits for it is told, and who asks from now on."""
        if self.lost is None:
            self.lost = error
            self.durability.end(error)
            if self.durability.on_moved is not None:
                self.durability.on_moved()

    def storage_error(self, error: OSError) -> KafkaError:
        """What a peer is told of a failure with the files. Those of a log that is out of service
        may be gone, which is no failure of their disk."""
        if self.lost is not None and isinstance(error, FileNotFoundError):
            return KafkaError(self.lost.code, self.lost.message)
        return self.home.storage_error(error)

    def gone_offline(self) -> None:
        """The disk failed."""
        self.end(KafkaError(Error.KAFKA_STORAGE_ERROR, f"{self.home.path} is offline"))

    def release(self) -> None:
        """Gives back open files; using the log opens them again."""
        for segment in self.segments:
            segment.close()

    def close(self) -> None:
        """Puts everything into the files, in the state of a clean stop, and syncs it."""
        self.take_snapshot(self.log_end_offset)
        self.active.finish()
        has_contents = self.durability.has_contents
        work = FlushWork(self.log_end_offset, 0)
        if has_contents:
            work = self.durability.flush_work(is_complete=True)
        if self.seals is not None and (has_contents or not self._is_sealed(self.seals)):
            self._seal_all(self.seals)
            work.files.append(f"{self.directory}/{SEALS}")
            work.directories.append(self.directory)
        if work.files:
            sync_all(self.home.disk, [work])
        if has_contents:
            self.durability.flushed(work)
        self.release()

    def _is_sealed(self, seals: Seals) -> bool:
        """Whether nothing became of the files since they were sealed; or there is nothing yet."""
        is_empty = self.log_end_offset == 0 or (seals.size < 0 and not self.size)
        is_same = seals.closed == (self.log_start_offset, self.log_end_offset)
        return is_empty or (is_same and all(segment.seal for segment in self.segments))

    def _seal_all(self, seals: Seals) -> None:
        disk, directory = self.home.disk, self.directory
        self.active.seal = None
        seals.topic_id = self.topic_id
        seals.write_closed(
            disk, directory, self.segments, snapshot_offsets(disk.list_directory(directory)),
            self.epochs.entries(), Closed(self.log_start_offset, self.log_end_offset),
        )  # fmt: skip
