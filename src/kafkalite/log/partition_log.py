"""One partition's log: what can be done with it, and what a peer is told when it cannot.

Owns the error codes of what goes wrong with the files, and the end of a log's service. What is
known of it in memory is `log_state`'s, and each larger change is another module's. It never waits
for a disk: what must last is handed to the flusher of its directory.

After a write that failed the file may hold a part of the batch behind `size`; nobody sees it, the
next append writes over it, and recovery cuts it. A disk that is full refuses the write and nothing
else; any other failure takes the directory offline.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps, finish
from kafkalite.log import appending, reader, rolling, truncation
from kafkalite.log.append import Append, AppendResult, Writable
from kafkalite.log.checkpoints import write_partition_metadata
from kafkalite.log.cutting import Cutting
from kafkalite.log.flusher import FlushWork, sync_all
from kafkalite.log.log_state import LogState
from kafkalite.log.names import PARTITION_METADATA
from kafkalite.log.producers import AppendOrigin, ProducerState, Verification
from kafkalite.log.reader import FoundOffset, LogRead, Place
from kafkalite.log.seals import SEALS, Closed, Seals
from kafkalite.log.segment import Segment
from kafkalite.log.snapshots import snapshot_offsets
from kafkalite.log.txn_index import AbortedTransaction
from kafkalite.protocol.errors import Error, KafkaError

__all__ = ["AppendOrigin", "AppendResult", "FoundOffset", "LogRead", "PartitionLog"]


class PartitionLog(LogState):
    """The records of one partition on this broker's disk."""

    __slots__ = ()

    # --- appending --------------------------------------------------------------------------------

    def append_as_leader(
        self,
        records: Writable,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        now_ms: int | None = None,
    ) -> AppendResult:
        """The same for a batch that nothing comes along with, see `appending.append_as_leader`."""
        if now_ms is None:
            now_ms = self.home.env.clock.now_ms()
        append = Append(records, now_ms, origin=origin, leader_epoch=leader_epoch)
        return appending.append_as_leader(self, append)

    def append_as_follower(
        self, records: Writable, leader_epoch: int | None = None, now_ms: int | None = None
    ) -> AppendResult:
        """Writes batches as another broker's leader gave them out."""
        return appending.append_as_follower(self, records, leader_epoch, now_ms)

    def roll(self, next_offset: int | None = None) -> Segment:
        """Begins a new segment at the log's end, or at a later offset that comes next."""
        return rolling.roll(self, next_offset)

    # --- durability -------------------------------------------------------------------------------

    def when_durable(self, offset: int) -> Later[KafkaError | None]:
        """Filled once everything below an offset is on stable storage; with an error when that will
        never be: the log was cut, deleted or moved, or its directory failed."""
        return self.durability.when_durable(offset)

    def when_flushed(self, then: Callable[[], None]) -> None:
        """Flushes, and goes on when everything written so far is durable or cannot be made so."""
        self.flush()
        self.when_durable(self.log_end_offset).then(lambda _: then())

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

    # --- changing what is there -------------------------------------------------------------------

    def cut_later(
        self, offset: int, is_wanted: Callable[[], bool], *, is_whole: bool = False
    ) -> Later[KafkaError | None]:
        """Has every batch removed that reaches an offset, with `is_whole` all of them, and the next
        record get that offset; filled when this lasts. As long as nothing is cut yet, it may be
        not wanted any more."""
        if not is_whole and not truncation.reaches(self, offset):
            return Later.of(None)
        return Cutting(self, truncation.Cut(self, offset, is_whole=is_whole), is_wanted).begin()

    def truncate_to(self, offset: int) -> bool:
        """Removes every batch that reaches an offset, at once; True when there was one."""
        self.home.check_online()
        try:
            return truncation.truncate_to(self, offset)
        except OSError as error:
            raise self.storage_error(error) from error

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Empties the log at once; the next record gets the offset given."""
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
